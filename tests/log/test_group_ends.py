"""A request is told once how it ended, and a writer that is closed or that nobody waits for any more tells nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ef.errors import CannotWrite, OutcomeUnknown, StoreUnavailable
from ef.log import committer as module
from ef.log.committer import Committer, Request
from ef.log.pages import Leaf
from ef.log.quick import Chain


def request(path: Path) -> Request[int]:
    return Request(path, lambda view: [], lambda first: first, 1)


def fault(path: Path, why: str) -> CannotWrite:
    return CannotWrite(path=path, why=why, remedy="Retry.")


def test_the_first_thing_that_a_caller_is_told_stays(tmp_path: Path) -> None:
    asked = request(tmp_path)
    asked.fail(fault(tmp_path, "first"))
    asked.fail(fault(tmp_path, "second"))
    asked.answer()
    with pytest.raises(CannotWrite, match="first"):
        asked.outcome()
    other = request(tmp_path)
    other.answer()
    other.fail(fault(tmp_path, "late"))
    assert other.outcome() == 0


def test_a_group_that_breaks_off_fails_only_whom_it_had_not_answered(tmp_path: Path) -> None:
    def commit(group: Sequence[Request[Any]]) -> None:
        group[0].answer()
        raise OutcomeUnknown(path=tmp_path, why="the disk went away")

    writer = Committer(tmp_path, commit)
    first, second = request(tmp_path), request(tmp_path)
    with writer.alone():
        futures = [writer.submit(first), writer.submit(second)]
    assert futures[0].result(30) == 0
    with pytest.raises(OutcomeUnknown, match="went away"):
        futures[1].result(30)
    writer.close()


def test_a_writer_that_is_closed_takes_nothing(tmp_path: Path) -> None:
    writer = Committer(tmp_path, lambda group: [each.answer() for each in group] and None)
    assert writer.submit(request(tmp_path)).result(30) == 0
    writer.close()
    for ask in (writer.submit, writer.run):
        with pytest.raises(StoreUnavailable, match="it is closed"):
            ask(request(tmp_path))


def test_room_that_nobody_waits_for_any_more_is_given_to_nobody() -> None:
    async def both() -> tuple[bool, bool]:
        loop = asyncio.get_running_loop()
        left, waits = loop.create_future(), loop.create_future()
        left.cancel()
        module._wake(left)
        module._wake(waits)
        return left.cancelled(), waits.done()

    assert asyncio.run(both()) == (True, True)


def test_behind_damage_no_record_is_a_common_one() -> None:
    chain = Chain()
    chain.digest = b""
    assert chain.leaf(Leaf(0, b"", 0, 0, (0,)), 0, 4096) == 0
