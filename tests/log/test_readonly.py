"""Opening only to read: it waits for no writer, writes nothing, and stands in nobody's way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import ef
from ef.errors import CannotWrite, NotFound
from ef.log.lmdb_env import LmdbEnv
from tests.log.build import ROOT, item, opened, title

STOPPED = """
import os, signal, sys
from ef.log import points
from tests.log.build import opened, title
with opened(__import__("pathlib").Path(sys.argv[1])) as log:
    def stop(point):
        if point == "group.put":
            print("stopped", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)
    points.hold(stop)
    log.append([title("s", "held")])
"""


def test_a_store_is_read_while_a_writer_is_stopped_in_the_middle_of_its_transaction(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store"
    with ef.open(path) as store:
        store.session("one").append({"role": "user", "content": "Before."})
    words = [sys.executable, "-c", STOPPED, str(path)]
    writer = subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": "."}
    )
    try:
        assert writer.stdout is not None and writer.stdout.readline() == b"stopped\n"
        command = [sys.executable, "-m", "ef", "--store", str(path), "state", "one", "--json"]
        told = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, check=True)
        assert b'"session": "one"' in told.stdout or b'"session":"one"' in told.stdout
    finally:
        writer.send_signal(signal.SIGCONT)
        writer.communicate()
    with opened(path) as log:
        assert log.find("s", "held") == 1


def test_what_is_only_read_takes_no_append_until_it_is_opened_to_be_written(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with pytest.raises(NotFound):
        ef.open(path, readonly=True)
    with opened(path) as log:
        log.append([title("s", "a")])
    with ef.open(path, readonly=True) as store:
        with pytest.raises(CannotWrite, match="opened to be read only"):
            store.log.append([title("s", "b")])
        assert store.log.find("s", "a") == 1 and store.verify().ok
        with opened(path) as log:
            log.append([title("s", "b")])
            assert store.log.find("s", "b") == 2
    assert not LmdbEnv._open


def test_readers_go_on_while_the_store_is_opened_to_be_written(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with opened(path) as log:
        log.append([item("s", str(n)) for n in range(600)])
    for _ in range(20):
        with ef.open(path, readonly=True) as store:
            faults: list[BaseException] = []
            done = threading.Event()

            def read(faults: list[BaseException] = faults, done: threading.Event = done) -> None:
                try:
                    while not done.is_set():
                        assert sum(1 for _ in store.log.read("s")) == 600
                except BaseException as fault:
                    faults.append(fault)

            threads = [threading.Thread(target=read) for _ in range(2)]
            for thread in threads:
                thread.start()
            opened(path).close()
            done.set()
            for thread in threads:
                thread.join()
            assert faults == []
