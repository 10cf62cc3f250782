"""Group commit, where one line less would not be noticed otherwise: contention, retries in one group, bounds, ends."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ef.errors import TipConflict
from ef.log import committer as module
from ef.log import points
from ef.log.ahead import Ahead
from ef.log.base import Prepared, prepare
from ef.log.committer import Committer, Request
from ef.log.lmdb_log import LmdbLog
from ef.log.writer import CONTENDED_GROUPS
from tests.log.build import checked, in_child, item, opened, says, title
from tests.log.test_group import SECONDS, fails, keys, seqs, together


@pytest.fixture
def reached() -> Iterator[Counter[str]]:
    """How often each point was reached since the test began."""
    seen: Counter[str] = Counter()
    points.hold(lambda name: seen.update([name]))
    yield seen
    points.hold(None)


def moved(log: LmdbLog, monkeypatch: pytest.MonkeyPatch, by: Callable[[], Any]) -> list[int]:
    """Another process commits between our look and our write, once. Counts the writes of this process."""
    real = log._env.write
    writes: list[int] = []

    def write(work: Any) -> Any:
        writes.append(1)
        if len(writes) == 1:
            in_child(by)
        return real(work)

    monkeypatch.setattr(log._env, "write", write)
    return writes


def test_after_another_process_came_first_groups_are_prepared_inside_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reached: Counter[str]
) -> None:
    with opened(tmp_path / "store") as log:
        log.append([title("s", "first")])
        moved(log, monkeypatch, lambda: log.append([title("t", "theirs")]))
        log.append([title("s", "second")])
        assert reached["group.begun"] == 3  # one of the first, two of the second
        told: list[int] = []
        log.on_commit(lambda: told.append(log.tip("s").seq))
        for n in range(CONTENDED_GROUPS):
            log.append([title("s", str(n))])
        assert reached["group.begun"] == 3
        assert told == list(range(3, 3 + CONTENDED_GROUPS))
        log.append([title("s", "calm again")])
        assert reached["group.begun"] == 4
    assert says(checked(tmp_path / "store")) == ""


def test_a_group_that_was_prepared_inside_moves_the_tip_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = opened(tmp_path / "store")
    moved(log, monkeypatch, lambda: log.append([title("t", "theirs")]))
    for n in range(3):
        log.append([title("s", str(n))])
    position = log.tip_position()
    log.close()
    assert (tmp_path / "store" / "tip").read_text().split()[2] == str(position)


def test_what_was_refused_in_the_first_try_may_be_right_in_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two callers want one key: the first one's precondition does not hold any more as the group is prepared again."""
    with opened(tmp_path / "store") as log:
        before = log.tip("other")
        moved(log, monkeypatch, lambda: log.append([title("other", "theirs")]))

        def submit() -> Any:
            return [
                log.append_nowait([title("s", "k", "one")], expect={"other": before}),
                log.append_nowait([title("s", "k", "two")]),
                log.append_nowait([title("s", "on")]),
            ]

        one, two, on = together(log, submit)
        fails(one, TipConflict)
        assert seqs([two, on]) == [1, 2] and keys(log) == ["k", "on"]
    assert says(checked(tmp_path / "store")) == ""


def test_the_first_position_is_the_one_of_the_try_that_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "store") as log:
        moved(log, monkeypatch, lambda: log.append([title("t", "theirs")]))

        def build(view: Any) -> list[Prepared]:
            digest = view.store_tip()[1]
            made = prepare(
                [title("s", "k")],
                view,
                store_digest=digest,
                recorded_at=1,
                salt=log.salt,
                expect={},
            )
            return made[1]

        position = log.write(build)
        assert log.at(position).header.key == "k" and position == 2


@pytest.mark.parametrize("bodies", [(b"same", b"same"), (b"same", b"other")])
def test_one_key_twice_in_a_group_costs_no_second_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bodies: tuple[bytes, bytes]
) -> None:
    with opened(tmp_path / "store") as log:
        writes: list[int] = []
        real = log._env.write
        monkeypatch.setattr(log._env, "write", lambda work: (writes.append(1), real(work))[1])
        futures = together(
            log, lambda: [log.append_nowait([item("s", "k", body)]) for body in bodies]
        )
        assert futures[0].result(SECONDS)[0].new
        futures[1].exception(SECONDS)
        assert writes == [1]


def test_a_request_sees_what_the_group_has_prepared_before_it(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        seen: list[Any] = []

        def look(view: Ahead) -> list[Prepared]:
            found = view.record_of("s", "k")
            assert found is not None
            seen.append(
                (found[0].position, found[0].header.seq, view.has("s", 1), view.has("s", 2))
            )
            return []

        request: Request[int] = Request(log.path, look, lambda first: first, 0)

        def submit() -> Any:
            log.append_nowait([title("s", "k")])
            return log.committer.submit(request)

        together(log, submit).result(SECONDS)
        assert seen == [(1, 1, True, False)]


def test_a_group_holds_no_more_bytes_than_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GROUP_BYTES_MAX", 10_000)
    with opened(tmp_path / "store") as log:
        futures = together(
            log, lambda: [log.append_nowait([item("s", str(n), bytes(3_900))]) for n in range(6)]
        )
        assert seqs(futures) == list(range(1, 7))
        assert (log.committer.groups, log.committer.largest) == (3, 2)


def test_after_one_quiet_group_nobody_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[int] = []
    monkeypatch.setattr(Committer, "_gather", lambda self, before: waited.append(before))
    with opened(tmp_path / "store") as log:
        together(log, lambda: [log.append_nowait([title("s", str(n))]) for n in range(3)])[
            -1
        ].result(SECONDS)
        for n in range(3):
            log.append_nowait([title("t", str(n))]).result(SECONDS)
        assert waited == [3]


def test_a_closed_store_leaves_no_thread(tmp_path: Path) -> None:
    log = opened(tmp_path / "store")
    log.append_nowait([title("s", "a")]).result(SECONDS)
    thread = log.committer._thread
    assert thread is not None and thread in threading.enumerate()
    log.close()
    assert not thread.is_alive()
