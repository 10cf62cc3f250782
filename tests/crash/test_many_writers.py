"""Eight processes append to one store for ten seconds while one of them is killed each second."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import ef
from ef.importers.names import session_stream
from tests.log.build import ROOT

WRITERS, SECONDS = 8, 10
WRITER = """
import sys, ef
path, name = sys.argv[1:]
with ef.open(path) as store:
    own, shared = store.session(name), store.session("shared")
    print("ready", flush=True)
    n = 0
    while True:
        batch = [own.append_nowait({"role": "user", "content": f"{name} {n} {k}"}, key=f"{n}/{k}") for k in range(4)]
        seq = shared.append({"role": "user", "content": f"{name} {n}"}, key=f"{name}/{n}")
        done = [str(future.result()) for future in batch]
        print("acked", n, seq, *done, flush=True)
        n += 1
"""


class Writer:
    """A process that appends until it is killed, and what it acknowledged."""

    def __init__(self, store: Path, name: str) -> None:
        self.name, self.acked = name, dict[int, list[int]]()
        self.ready = threading.Event()
        words = [sys.executable, "-c", WRITER, str(store), name]
        self.process = subprocess.Popen(
            words,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": "."},
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line == "ready\n":
                self.ready.set()
            elif line.endswith("\n"):
                n, *seqs = map(int, line.split()[1:])
                self.acked[n] = seqs
        self.ready.set()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()


def test_writers_that_are_killed_while_others_append_lose_and_double_nothing(
    tmp_path: Path, figure: Callable[[str], None]
) -> None:
    path = tmp_path / "store"
    ef.open(path).close()
    writers: list[Writer] = []
    try:
        writers += [Writer(path, f"w{n}") for n in range(WRITERS)]
        for writer in writers:
            assert writer.ready.wait(60)
        began = time.monotonic()
        for kills in range(SECONDS):
            time.sleep(max(0.0, began + 1 + kills - time.monotonic()))
            writers[kills].kill()
            writers.append(Writer(path, f"w{WRITERS + kills}"))
    finally:
        for writer in writers:
            writer.kill()
    acked = {writer.name: writer.acked for writer in writers}
    with ef.open(path) as store:
        assert store.verify().ok
        log = store.log
        shared = [r.header.key for r in log.read(session_stream("shared"))]
        lost = doubled = count = 0
        doubled += len(shared) - len(set(shared))
        for name, rounds in acked.items():
            own = [r.header.key for r in log.read(session_stream(name))]
            doubled += len(own) - len(set(own))
            for n, (seq, *seqs) in rounds.items():
                count += 1 + len(seqs)
                lost += shared[seq - 1] != f"{name}/{n}"
                lost += sum(own[s - 1] != f"{n}/{k}" for k, s in enumerate(seqs))
    figure(
        f"{len(writers)} writers, {SECONDS} killed one by one, {count} events acknowledged,"
        f" {len(shared)} in the shared session, {lost} lost, {doubled} doubled"
    )
    assert (lost, doubled) == (0, 0)
    assert sum(bool(rounds) for rounds in acked.values()) >= WRITERS
