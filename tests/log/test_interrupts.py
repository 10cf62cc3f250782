"""An interrupt at any line of a read, of a wait for readers, or of a fork leaves nothing counted and nobody waiting."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from ef.log.lmdb_env import LmdbEnv
from ef.log.lmdb_log import LmdbLog
from ef.log.transactions import ReadGate, Reading
from tests.log.build import opened, title


def lines_until(work: Callable[[], object], stop: int) -> int:
    """Run work, with an interrupt before line `stop` of what runs; how many lines ran. None is left behind."""
    ran, before = 0, sys.gettrace()

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal ran
        if event == "line":
            ran += 1
            if ran == stop:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return ran


def free(env: LmdbEnv) -> bool:
    """Whether somebody else can be alone, and read after that."""
    done = threading.Event()

    def alone() -> None:
        with env.write_lock, env._gate.alone():
            pass
        with env.read():
            done.set()

    thread = threading.Thread(target=alone, daemon=True)
    thread.start()
    return done.wait(30)


def one_read(log: LmdbLog) -> None:
    log.tip("s")


def one_in_another(log: LmdbLog) -> None:
    with log._env.read() as txn:
        log.tip("s")
        txn.names()


def a_map_that_others_enlarged(log: LmdbLog) -> None:
    log._env._follow(log._env._env)


def opened_anew(log: LmdbLog) -> None:
    log._env._stale = True
    log.tip("s")


@pytest.mark.parametrize(
    "work", [one_read, one_in_another, a_map_that_others_enlarged, opened_anew]
)
def test_an_interrupt_at_any_line_leaves_no_read_open(
    tmp_path: Path, work: Callable[[LmdbLog], None]
) -> None:
    with opened(tmp_path / "s", map_size=1 << 20) as log:
        log.append([title("s", "a")])
        log.tip("s")
        whole = lines_until(lambda: work(log), 0)
        assert whole > 15
        for stop in range(1, whole + 1):
            assert lines_until(lambda: work(log), stop) <= whole * 2
            assert not log._env._gate._open and not log._env._gate.nested(), stop
            assert not log._env._gate._closed(), stop
            if stop % 4 == 0:
                assert free(log._env), stop
        assert free(log._env) and log.tip("s").seq == 1
        log.append([title("s", "b")])


def test_an_interrupt_at_any_line_of_a_gate_leaves_it_open() -> None:
    gate = ReadGate()

    def waits() -> None:
        with gate.alone():
            gate.hold(0.0)

    whole = lines_until(waits, 0)
    for stop in range(1, whole + 1):
        lines_until(waits, stop)
        assert not gate._open and not gate._closed(), stop


def test_an_interrupt_of_who_waits_for_a_reader_lets_the_next_reader_in() -> None:
    gate, reads = ReadGate(), Reading()
    gate.enter(reads)

    def waits() -> None:
        with gate.alone():
            raise AssertionError("somebody reads")

    done: list[bool] = []

    def work() -> None:
        assert lines_until(waits, 60) == 60
        gate.enter(reading := Reading())
        done.append(True)
        gate.leave(reading)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(30)
    assert done == [True] and gate.nested()
    del reads
    assert not gate.nested(), "a read that nobody holds is over"


def test_a_fork_waits_for_readers_only_so_long_and_lets_go(tmp_path: Path) -> None:
    gate, others = ReadGate(), list[Reading]()

    def read() -> None:
        others.append(Reading())
        gate.enter(others[0])

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    wish = gate.hold(0.01)
    assert gate._closed() and len(gate._open) == 1
    del wish
    assert not gate._closed()
    with opened(tmp_path / "s") as log:
        log.append([title("s", "a")])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)
        assert free(log._env) and log.tip("s").seq == 1
