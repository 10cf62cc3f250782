"""Other processes that append to a store that a test has open: a forked child, and a rival from elsewhere."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import warnings
from collections.abc import Sequence

from ef.log import points
from ef.log.base import Log
from tests.log.build import ROOT
from tests.log.model import Batch, drafts_of

SECONDS_MAX = 120


class Rival:
    """Another process that appends to any store it is told of. It keeps the newest one open."""

    PROGRAM = """
import json, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.log.build import opened
from tests.log.model import drafts_of
log = at = None
for line in sys.stdin:
    path, batch = json.loads(line)
    if path != at:
        if log is not None:
            log.close()
        at, log = path, opened(Path(path)) if path else None
    print(json.dumps([a.seq for a in log.append(drafts_of(batch))] if log else []), flush=True)
"""

    def __init__(self) -> None:
        self.child = subprocess.Popen(
            [sys.executable, "-c", self.PROGRAM.format(root=str(ROOT))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
        )  # fmt: skip

    def append(self, path: str, batch: Batch) -> list[int]:
        """The seqs of what was appended; with an empty path it only closes what it has open."""
        assert self.child.stdin is not None and self.child.stdout is not None
        self.child.stdin.write(json.dumps([path, batch]) + "\n")
        self.child.stdin.flush()
        ready, _, _ = select.select([self.child.stdout], [], [], SECONDS_MAX)
        assert ready, "the other process said nothing"
        seqs: list[int] = json.loads(self.child.stdout.readline())
        return seqs

    def end(self) -> None:
        self.child.kill()
        self.child.communicate()


RIVALS: list[Rival] = []


def rival() -> Rival:
    if not RIVALS:
        RIVALS.append(Rival())
    return RIVALS[0]


def no_rival_is_left() -> None:
    """End what `rival` began."""
    while RIVALS:
        RIVALS.pop().end()


class Child:
    """A forked child that appends through the log it inherits and tells of each batch that was acknowledged."""

    def __init__(self, log: Log, batches: Sequence[Batch], dies_at: str | None, after: int) -> None:
        self._pipe, send = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            try:
                self._work(log, batches, dies_at, after, send)
            except BaseException as fault:
                os.write(send, json.dumps([repr(fault), []]).encode() + b"\n")
            finally:
                os._exit(0)
        os.close(send)

    @staticmethod
    def _work(
        log: Log, batches: Sequence[Batch], dies_at: str | None, after: int, send: int
    ) -> None:
        passed = 0

        def at(name: str) -> None:
            nonlocal passed
            passed += name == dies_at
            if passed > after:
                os.kill(os.getpid(), signal.SIGKILL)

        points.hold(at if dies_at else None)
        for n, batch in enumerate(batches):
            seqs = [a.seq for a in log.append(drafts_of(batch))]
            os.write(send, json.dumps([n, seqs]).encode() + b"\n")

    def acknowledged(self, kill_after: int | None = None) -> dict[int, list[int]]:
        """The seqs of each batch that it told of. It has ended when this returns: killed when it told of so many."""
        told: dict[int, list[int]] = {}
        data = b""
        while True:
            ready, _, _ = select.select([self._pipe], [], [], SECONDS_MAX)
            more = os.read(self._pipe, 65_536) if ready else b""
            data += more
            if not more or data.count(b"\n") == kill_after:
                break
        stuck = not ready
        os.kill(
            self.pid, signal.SIGKILL
        )  # it is not waited for yet, so the number is still its own
        while more := os.read(self._pipe, 65_536):
            data += more
        os.close(self._pipe)
        os.waitpid(self.pid, 0)
        assert not stuck, "the child is stuck"
        for line in data.splitlines():
            n, seqs = json.loads(line)
            assert isinstance(n, int), n
            told[n] = seqs
        return told
