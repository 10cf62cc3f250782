"""What a caller gives to a log wrongly is a UsageError, whichever log it is; what is only not there is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ef.errors import NotFound, UsageError
from ef.log import given
from ef.log.lmdb_log import LmdbLog
from ef.log.memory import MemoryLog
from tests.log.build import clock, opened, title

LONG = "x" * 10_000_000
NO_TEXT: list[Any] = [None, 5, True, b"x", [], object(), LONG, "é" * (given.NAME_BYTES_MAX + 1)]
NO_NUMBER: list[Any] = ["x", 1.5, True, b"x", [], object(), 10**5_000, -(10**60)]
MAKERS: list[Callable[[Path], LmdbLog | MemoryLog]] = [opened, lambda _: MemoryLog(now=clock())]


@pytest.mark.parametrize("made", MAKERS, ids=["lmdb", "memory"])
def test_wrong_types_are_told_and_absent_things_are_not_found(
    tmp_path: Path, made: Callable[[Path], LmdbLog | MemoryLog]
) -> None:
    with made(tmp_path / "s") as log:
        log.append([title("s", "a"), title("s", "b")])
        calls: list[tuple[str, list[Any], Callable[[Any], object]]] = [
            ("stream", NO_TEXT, log.tip), ("stream", NO_TEXT, log.read), ("stream", NO_TEXT, lambda v: log.get(v, 1)),
            ("stream", NO_TEXT, lambda v: log.find(v, "a")), ("key", NO_TEXT, lambda v: log.find("s", v)),
            ("prefix", NO_TEXT, lambda v: list(log.streams(v))), ("seq", [None, *NO_NUMBER], lambda v: log.get("s", v)),
            ("after", [None, *NO_NUMBER, -1], lambda v: log.read("s", after=v)),
            ("upto", NO_NUMBER, lambda v: log.read("s", upto=v)),
            ("after", [None, *NO_NUMBER, -2], lambda v: list(log.all(after=v))),
            ("drafts", [None, 5, "x", [5], iter([title("s", "c")])], log.append),
        ]  # fmt: skip
        for what, values, call in calls:
            for value in values:
                with pytest.raises(UsageError, match=f"^{what} ") as caught:
                    call(value)
                assert "give" in str(caught.value) and len(str(caught.value)) < 300
        for seq in (0, -1, 3, 10**18):
            with pytest.raises(NotFound):
                log.get("s", seq)
        assert log.tip("").seq == log.tip("é").seq == 0 and log.find("s", "") is None
        assert [r.header.seq for r in log.read("s", after=1, upto=10**18)] == [2]
        assert list(log.read("s", upto=-1)) == [] and len(list(log.all(after=-1))) == 3
        assert log.append([]) == []


def test_a_position_is_a_number(tmp_path: Path) -> None:
    with opened(tmp_path / "s") as log:
        for value in (None, *NO_NUMBER, -1, 2**64):
            with pytest.raises(UsageError, match=r"^position "):
                log.at(value)
        assert log.at(0).position == 0


def test_what_can_be_called_and_what_is_a_path() -> None:
    given.function("f", None)
    given.function("f", print)
    assert given.path("p", "é") == Path("é") and given.path("p", Path("x")) == Path("x")

    class Numbered(int):
        """Counts as a whole number."""

    assert given.number("n", Numbered(3)) == 3
    for wrong in (5, b"x", "", "\ud800", LONG):
        with pytest.raises(UsageError, match=r"^p "):
            given.path("p", wrong)
    assert given.text("t", "", empty=True) == ""
    with pytest.raises(UsageError, match=r"^t '' \(str\): it is empty"):
        given.text("t", "")
    with pytest.raises(UsageError, match=r"^f 5 \(int\)"):
        given.function("f", 5)
