"""What must not hang, lie or leak: callbacks, listeners, telemetry, threads that cannot start, forks while it works."""

from __future__ import annotations

import gc
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lmdb
import pytest

from ef.errors import Damaged, OutcomeUnknown, StoreUnavailable, UsageError
from ef.log import committer as module
from ef.log import points, writer
from ef.log.lmdb_env import LmdbEnv
from ef.log.lmdb_log import LmdbLog
from tests.log.build import checked, in_child, item, opened, run, says, title, typed
from tests.log.faults import Faulty
from tests.log.test_group import SECONDS, fails, keys, seqs, together


@pytest.fixture
def held() -> Iterator[Callable[[str], tuple[threading.Event, threading.Event]]]:
    """Hold the writer thread at a point, once: (it is there, let it go on)."""
    there, go = threading.Event(), threading.Event()

    def at(point: str) -> tuple[threading.Event, threading.Event]:
        def reached(name: str) -> None:
            mine = threading.current_thread().name == "ef-writer"
            if name == point and mine and not there.is_set():
                there.set()
                go.wait(SECONDS)

        points.hold(reached)
        return there, go

    yield at
    go.set()
    points.hold(None)


def in_callback(log: LmdbLog, work: Callable[[], Any]) -> list[Any]:
    """What `work` gave, called by the future of an append on the writer's thread."""
    got: list[Any] = []
    done = threading.Event()

    def call(_: object) -> None:
        try:
            got.append(work())
        except BaseException as fault:
            got.append(fault)
        done.set()

    together(log, lambda: log.append_nowait([title("s", "first")]).add_done_callback(call))
    assert done.wait(SECONDS)
    return got


# -- a future's callback ----------------------------------------------------------------------------------------


def test_a_callback_may_append_without_waiting(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        (future,) = in_callback(log, lambda: log.append_nowait([title("s", "next")]))
        assert seqs([future]) == [2]


def test_a_callback_goes_on_beyond_the_bytes_in_flight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IN_FLIGHT_BYTES_MAX", 3_000)
    with opened(tmp_path / "store") as log:
        (futures,) = in_callback(
            log, lambda: [log.append_nowait([title("s", str(n))]) for n in range(5)]
        )
        assert seqs(futures) == [2, 3, 4, 5, 6]


@pytest.mark.parametrize("what", ["append", "result", "close", "flush"])
def test_what_would_wait_for_itself_in_a_callback_is_refused(tmp_path: Path, what: str) -> None:
    with opened(tmp_path / "store") as log:
        work: dict[str, Callable[[], Any]] = {
            "append": lambda: log.append([title("s", "x")]),
            "result": lambda: log.append_nowait([title("s", "x")]).result(),
            "close": log.close,
            "flush": log.committer.flush,
        }
        (fault,) = in_callback(log, work[what])
        assert isinstance(fault, UsageError)
        assert log.append([title("s", "on")])[0].new


def test_a_callback_that_exits_harms_no_other_caller(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:

        def submit() -> Any:
            one = log.append_nowait([title("s", "one")])
            one.add_done_callback(lambda _: sys.exit(3))
            return one, log.append_nowait([title("s", "two")])

        assert seqs(list(together(log, submit))) == [1, 2]
        assert seqs([log.append_nowait([title("s", "three")])]) == [3]


# -- after the commit nothing may fail --------------------------------------------------------------------------


def test_a_listener_that_raises_makes_no_append_fail(tmp_path: Path) -> None:
    def bad() -> None:
        raise StoreUnavailable(path="x", why="another store", remedy="-")

    with opened(tmp_path / "store") as log:
        log.on_commit(bad)
        futures = together(log, lambda: [log.append_nowait([title("s", str(n))]) for n in range(3)])
        assert [f.result(SECONDS)[0].new for f in futures] == [True] * 3
        assert log.append([title("s", "on")])[0].new


class Raises:
    def group(self, group: object) -> None:
        raise ValueError("telemetry")

    def appended(self, seconds: float) -> None:
        raise ValueError("telemetry")

    def rebuilt(self, stream: str, events: int, seconds: float) -> None: ...


def test_telemetry_that_raises_makes_no_append_fail_or_hang(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        log.committer.telemetry = Raises()
        assert seqs([log.append_nowait([title("s", str(n))]) for n in range(3)]) == [1, 2, 3]
        assert log.append([title("s", "on")])[0].seq == 4


def no_thread(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    real = threading.Thread.start

    def start(self: threading.Thread) -> None:
        if name in (self.name, type(self).__name__):
            raise RuntimeError("can't start new thread")
        real(self)

    monkeypatch.setattr(threading.Thread, "start", start)


def test_a_timer_that_cannot_start_makes_no_append_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "store") as log:
        log.append([title("s", "a")])
        no_thread(monkeypatch, "Timer")
        assert log.append([title("s", "b")])[0].new
        known = log.tipfile.read()
        assert known is not None and known[0] == log.tip_position()


def test_a_writer_that_cannot_start_is_started_by_the_next_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "store") as log:
        with monkeypatch.context() as patch:
            no_thread(patch, "ef-writer")
            with pytest.raises(RuntimeError):
                log.append_nowait([title("s", "a")])
        assert seqs([log.append_nowait([title("s", "b")])]) == [1]


def test_what_cannot_be_looked_up_after_a_failed_commit_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(*_: object) -> None:
        raise Damaged(where="page 7", what="it cannot be read")

    with opened(tmp_path / "store") as log:
        monkeypatch.setattr(writer, "record_of_key", unreadable)
        Faulty(log, monkeypatch).fail("commit", lmdb.DiskError("EIO"), before=False)
        assert typed(lambda: log.append([title("s", "a")])) == "OutcomeUnknown"
        assert keys(log) == ["a"]


# -- ends -------------------------------------------------------------------------------------------------------


def test_a_log_whose_last_group_failed_is_closed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = opened(tmp_path / "store")
    faulty, data = Faulty(log, monkeypatch), tmp_path / "store" / "data.mdb"
    faulty.fail(
        "commit", lmdb.PanicError("meta"), before=False, after=lambda: data.rename(tmp_path / "x")
    )
    with log.committer.alone():
        future = log.append_nowait([title("s", "a")])
        closing = threading.Thread(target=log.close)
        closing.start()
        while log.committer.in_flight[0] < 2:
            closing.join(0.01)
    closing.join(SECONDS)
    fails(future, OutcomeUnknown)
    assert not LmdbEnv._open


def test_what_was_written_is_not_held_on_to(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        future = log.append_nowait([item("s", "a", bytes(1_000_000))])
        future.result(SECONDS)
        log.committer.flush()
        alive = weakref.ref(future)
        del future
        for _ in range(200):
            gc.collect()
            if alive() is None:
                break
            threading.Event().wait(0.05)
        assert alive() is None


EXITS = """
from ef.log import committer
import time
committer.EXIT_SECONDS = 1.0
logs = [opened(path.with_name(f"store{n}")) for n in range(6)]
for log in logs:
    log.committer._busy = committer.NOBODY
    log.append_nowait([title("s", "a")])
import atexit
began = time.monotonic()
atexit.unregister(committer.Committer.at_exit)
committer.Committer.at_exit()
print(time.monotonic() - began < 5)
"""


def test_all_stores_share_the_seconds_at_exit(tmp_path: Path) -> None:
    assert run(tmp_path / "store", EXITS) == "True\n"


# -- forks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["group.prepared", "group.durable"])
def test_a_child_that_is_forked_while_the_writer_works_is_not_stuck(
    tmp_path: Path, held: Any, point: str
) -> None:
    with opened(tmp_path / "store") as log:
        there, go = held(point)
        future = log.append_nowait([title("s", "parent")])
        assert there.wait(SECONDS)
        # The fork waits for the group to end; let it.
        threading.Timer(0.3, go.set).start()
        assert in_child(lambda: log.append([title("t", "child")])[0].seq) == 1
        assert seqs([future]) == [1]
    assert says(checked(tmp_path / "store")) == ""


@pytest.mark.parametrize("point", ["group.begun", "group.put"])
def test_a_fork_waits_until_the_transaction_is_over(tmp_path: Path, held: Any, point: str) -> None:
    """The engine's own close waits for transactions of threads that a child does not have: it would never end."""
    with opened(tmp_path / "store") as log:
        there, go = held(point)
        future = log.append_nowait([title("s", "parent")])
        assert there.wait(SECONDS)
        threading.Timer(0.3, go.set).start()
        assert in_child(lambda: (log.tip("s").seq, log.append([title("t", "child")])[0].seq)) == (
            1,
            1,
        )
        assert seqs([future]) == [1]
    assert says(checked(tmp_path / "store")) == ""


def test_a_child_that_was_forked_in_a_transaction_says_so(
    tmp_path: Path, held: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ef.log import lmdb_env

    monkeypatch.setattr(lmdb_env, "FORK_SECONDS_MAX", 0.2)
    with opened(tmp_path / "store") as log:
        there, go = held("group.put")
        future = log.append_nowait([title("s", "parent")])
        assert there.wait(SECONDS)
        threading.Timer(1.0, go.set).start()  # whoever opens a store waits for its write lock
        assert in_child(lambda: typed(lambda: log.tip("s"))) in ("", "StoreUnavailable")
        go.set()
        assert seqs([future]) == [1]


def test_children_of_a_process_that_writes_all_the_time_are_not_stuck(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        stop = threading.Event()

        def work() -> None:
            n = 0
            while not stop.is_set():
                n += 1
                log.append_nowait([item("s", str(n), os.urandom(2_000))]).result(SECONDS)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            for n in range(15):
                in_child(lambda n=n: log.append([title("c", str(n))]))
        finally:
            stop.set()
            thread.join(SECONDS)
        assert keys(log, "c") == [str(n) for n in range(15)]


class Rude:
    """Telemetry that raises whatever it is told."""

    def group(self, group: object) -> None:
        raise ValueError("group")

    def appended(self, seconds: float) -> None:
        raise ValueError("appended")

    def rebuilt(self, stream: str, events: int, seconds: float) -> None:
        raise ValueError("rebuilt")


def test_telemetry_that_raises_is_not_heard_by_who_appends(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        log.committer.telemetry = Rude()
        assert log.append([title("s", "a")])[0].seq == 1
        assert log.append_nowait([title("s", "b")]).result(60)[0].seq == 2
        log.committer.telemetry = None


def test_a_read_that_finds_the_environment_opened_anew_begins_in_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "store") as log:
        log.append([title("s", "a")])
        env = log._env
        real, old = env._mine, [object()]
        monkeypatch.setattr(env, "_mine", lambda: old.pop() if old else real())
        assert log.tip("s").seq == 1 and old == []


def test_closing_twice_is_closing(tmp_path: Path) -> None:
    log = opened(tmp_path / "store")
    log.close()
    log.close()
