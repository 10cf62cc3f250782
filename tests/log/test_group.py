"""Group commit: what many callers want written is committed together, and one caller's failure is its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import lmdb
import pytest

from ef.errors import (
    CannotWrite,
    Damaged,
    KeyConflict,
    OutcomeUnknown,
    TipConflict,
)
from ef.log.base import EMPTY, Appended, Tip
from ef.log.committer import Committer
from ef.log.lmdb_log import LmdbLog
from ef.log.rows import SEQ, U64, stream_hash
from tests.log.build import checked, item, opened, raw, says, title
from tests.log.faults import Faulty

SECONDS = 60


def keys(log: LmdbLog, stream: str = "s") -> list[str]:
    return [r.header.key for r in log.read(stream)]


def seqs(futures: list[Future[list[Appended]]]) -> list[int]:
    return [future.result(SECONDS)[0].seq for future in futures]


def together(log: LmdbLog, submit: Callable[[], Any]) -> Any:
    """What `submit` queues goes into one group: nothing is written before it returns."""
    with log.committer.alone():
        return submit()


def fails(future: Future[Any], fault: type[BaseException], match: str | None = None) -> None:
    with pytest.raises(fault, match=match):
        future.result(SECONDS)


# -- who writes -------------------------------------------------------------------------------------------------


def test_a_caller_alone_writes_for_itself_and_nobody_waits_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[int] = []
    monkeypatch.setattr(Committer, "_gather", lambda self, before: waited.append(before))
    with opened(tmp_path / "store") as log:
        for n in range(5):
            log.append([title("s", str(n))])
        assert log.committer._thread is None
        assert seqs([log.append_nowait([title("s", "on")])]) == [6]
        assert log.append_nowait([title("s", "and on")]).result(SECONDS)[0].seq == 7
        assert waited == [] and log.committer.groups == 7
        together(log, lambda: [log.append_nowait([title("t", str(n))]) for n in range(3)])[
            -1
        ].result(SECONDS)
        log.append_nowait([title("s", "after a group")]).result(SECONDS)
        assert waited == [3]


def test_what_waits_is_committed_together_and_every_caller_gets_its_own(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        futures = together(
            log,
            lambda: [
                log.append_nowait([title("s", str(n)), title(f"t/{n}", "x")]) for n in range(50)
            ],
        )
        assert seqs(futures) == list(range(1, 51))
        assert (log.committer.groups, log.committer.requests, log.committer.largest) == (1, 50, 50)
        assert log.committer.in_flight == (0, 0)
    assert says(checked(tmp_path / "store")) == ""


def test_many_threads_append_and_all_is_there_once(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        got: dict[str, int] = {}

        def work(name: int) -> None:
            for n in range(40):
                got[f"{name}/{n}"] = log.append([title("s", f"{name}/{n}")])[0].seq
                log.append([title("s", f"shared/{n}")])

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        held = keys(log)
        assert len(held) == 8 * 40 + 40
        assert {held[seq - 1]: seq for seq in got.values()} == got
        assert log.committer.groups < log.committer.requests == 640
    assert says(checked(tmp_path / "store")) == ""


def test_appends_of_one_caller_keep_their_order(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        for n in range(60):
            if n % 7 == 6:
                log.append([title("s", str(n))])
            else:
                log.append_nowait([title("s", str(n))])
        log.committer.flush()
        log.committer.flush()
        assert keys(log) == [str(n) for n in range(60)]


def test_a_batch_whose_keys_are_known_waits_for_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        log.append([title("s", "a")])
        position = log.tip_position()
        assert [a.new for a in log.append([title("s", "a")])] == [False]
        assert log.append([]) == []
        assert log.tip_position() == position


# -- one caller's failure is its own ----------------------------------------------------------------------------


def test_a_request_that_is_refused_leaves_the_group_as_if_it_had_not_come(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        log.append([title("s", "known", "one")])

        def submit() -> list[Future[list[Appended]]]:
            return [
                log.append_nowait([title("s", "a")]),
                log.append_nowait([title("s", "b"), title("s", "known", "other")]),
                log.append_nowait([title("s", "c")], expect={"s": EMPTY}),
                log.append_nowait([title("s", "d")]),
            ]

        a, conflict, moved, d = together(log, submit)
        fails(conflict, KeyConflict)
        fails(moved, TipConflict)
        assert seqs([a, d]) == [2, 3] and keys(log) == ["known", "a", "d"]
        assert log.committer.groups == 2
    assert says(checked(tmp_path / "store")) == ""


def test_a_precondition_sees_what_the_group_has_prepared_before_it(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        first = log.append([title("s", "first")])[0]

        def submit() -> list[Future[list[Appended]]]:
            tip = {"s": Tip(first.seq, first.digest)}
            return [log.append_nowait([title("s", str(n))], expect=tip) for n in range(2)]

        won, lost = together(log, submit)
        assert seqs([won]) == [2]
        fails(lost, TipConflict)


@pytest.mark.parametrize("stored", [False, True])
def test_the_same_key_in_one_group_is_one_event(tmp_path: Path, stored: bool) -> None:
    with opened(tmp_path / "store") as log:
        if stored:
            log.append([item("s", "k", b"body")])

        def submit() -> list[Future[list[Appended]]]:
            bodies = (b"body", b"body", b"other", b"body")
            return [log.append_nowait([item("s", "k", body)]) for body in bodies]

        one, two, other, three = together(log, submit)
        assert seqs([one, two, three]) == [1, 1, 1]
        assert [f.result()[0].new for f in (one, two, three)] == [not stored, False, False]
        fails(other, KeyConflict)
        assert keys(log) == ["k"]


def test_a_request_that_cannot_be_put_fails_alone(tmp_path: Path) -> None:
    path = tmp_path / "store"
    opened(path).close()
    with raw(path) as store:  # an index row that nothing explains
        store.put(SEQ, stream_hash("bad") + U64.pack(1), U64.pack(0))
        store.put(b"stream", stream_hash("bad"), b"\x83\x63bad\x00\x58\x20" + bytes(32))
    with opened(path) as log:
        log.append([title("s", "before")])

        def submit() -> list[Future[list[Appended]]]:
            names = (("s", "a"), ("bad", "b"), ("s", "c"))
            return [log.append_nowait([title(stream, key)]) for stream, key in names]

        a, bad, c = together(log, submit)
        fails(bad, Damaged)
        assert seqs([a, c]) == [2, 3]


def test_a_commit_that_failed_is_tried_again_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "store") as log:
        log.append([title("s", "first")])
        faulty = Faulty(log, monkeypatch)

        def submit() -> list[Future[list[Appended]]]:
            faulty.fail("commit", lmdb.DiskError("no space"), before=True)
            return [log.append_nowait([title("s", str(n))]) for n in range(3)]

        assert seqs(together(log, submit)) == [2, 3, 4]
        assert keys(log) == ["first", "0", "1", "2"]
    assert says(checked(tmp_path / "store")) == ""


def test_one_by_one_only_the_one_that_the_disk_refuses_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "store") as log:
        faulty = Faulty(log, monkeypatch)
        again = lambda: faulty.fail("commit", lmdb.DiskError("second"), before=True)  # noqa: E731

        def submit() -> list[Future[list[Appended]]]:
            faulty.fail("commit", lmdb.DiskError("first"), before=True, after=again)
            return [log.append_nowait([title("s", str(n))]) for n in range(3)]

        monkeypatch.setattr(log._env, "_reopen", lambda fault: None)
        zero, one, two = together(log, submit)
        fails(zero, CannotWrite, "second")
        assert seqs([one, two]) == [1, 2] and keys(log) == ["1", "2"]


def test_a_group_that_was_kept_although_its_commit_failed_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "store") as log:
        faulty = Faulty(log, monkeypatch)

        def submit() -> list[Future[list[Appended]]]:
            faulty.fail("commit", lmdb.PanicError("after all"), before=False)
            return [log.append_nowait([title("s", str(n))]) for n in range(3)]

        assert seqs(together(log, submit)) == [1, 2, 3]


def test_an_outcome_that_cannot_be_looked_up_is_unknown_to_the_whole_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "store") as log:
        faulty = Faulty(log, monkeypatch)
        lock = tmp_path / "store" / "lock.mdb"
        moved = lock.with_name("elsewhere")

        def gone() -> None:
            (tmp_path / "store" / "data.mdb").rename(moved)

        def submit() -> list[Future[list[Appended]]]:
            faulty.fail("commit", lmdb.PanicError("meta"), before=False, after=gone)
            return [log.append_nowait([title("s", str(n))]) for n in range(3)]

        for future in together(log, submit):
            fails(future, OutcomeUnknown)
        moved.rename(tmp_path / "store" / "data.mdb")
        assert keys(log) == ["0", "1", "2"]
        assert [a.new for a in log.append([title("s", "1")])] == [False]


def test_a_request_that_the_map_cannot_hold_fails_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot_grow(env: object) -> None:
        raise CannotWrite(path=tmp_path, why="the memory map is full", remedy="Raise the limit.")

    with opened(tmp_path / "store", map_size=1 << 20) as log:
        monkeypatch.setattr(log._env, "_grow", cannot_grow)

        def submit() -> list[Future[list[Appended]]]:
            sizes = (100, 3_000_000, 100)
            return [
                log.append_nowait([item("s", str(k), os.urandom(n))]) for k, n in enumerate(sizes)
            ]

        small, big, on = together(log, submit)
        fails(big, CannotWrite, "map is full")
        assert seqs([small, on]) == [1, 2]
    assert says(checked(tmp_path / "store")) == ""


def test_a_map_that_is_full_grows_and_the_whole_group_is_kept(tmp_path: Path) -> None:
    with opened(tmp_path / "store", map_size=1 << 20) as log:
        futures = together(
            log,
            lambda: [
                log.append_nowait([item("s", str(n), os.urandom(300_000))]) for n in range(12)
            ],
        )
        assert seqs(futures) == list(range(1, 13))
    assert says(checked(tmp_path / "store")) == ""
