"""The lifecycle of a head: contested, unsupported, stale or active, by what befell it since."""

from __future__ import annotations

from typing import Any

import pytest

from ef import events as ev
from ef.events import Authority, Channel, Kind
from ef.reducers import heads
from tests.reducers.build import (  # fmt: skip
    STREAM,
    TEXT,
    anchor,
    appended,
    declared,
    facts,
    recorded,
    ref,
    replaced,
    run,
)


def fact(key: str, value: Any, seq: int, cites: int = 1) -> ev.Recorded:
    """What a tool's output says of a key of test runs."""
    made = anchor(
        key, value, channel=Channel.TOOL, kind=Kind.EVIDENCE, authority=Authority.EMPIRICAL,
        sources=(ref(cites, Channel.TOOL),),
    )  # fmt: skip
    return declared(seq, made)


def lives(*events: ev.Recorded) -> dict[str, str]:
    state = run(heads.REDUCER, list(events))
    found = {key: heads.lifecycle(state, key) for key in state.heads}
    assert found == {k: v[5] for k, v in heads.REDUCER.canonical(state)["heads"].items()}
    return found


NARROW, WHOLE = "test/pytest:tests/a.py/status", "test/pytest/status"
ITEM = appended(1, (TEXT, None))


# -- stale ------------------------------------------------------------------------------------------------------


def whole_run(seq: int, verdict: str, names: Any, counts: Any) -> list[ev.Recorded]:
    return [
        fact(WHOLE, verdict, seq),
        fact("test/pytest/counts", counts, seq + 1),
        fact("test/pytest/failing", names, seq + 2),
    ]


GREEN = whole_run(5, "passed", [], {"passed": 9, "failed": 0})
NAMED = whole_run(5, "failed", ["t::x"], {"passed": 9, "failed": 1})


@pytest.mark.parametrize("verdict", ["passed", "failed"])
def test_a_narrow_run_is_stale_after_a_green_run_of_the_whole_suite(verdict: str) -> None:
    assert lives(ITEM, fact(NARROW, verdict, 3))[NARROW] == "active"
    assert lives(ITEM, fact(NARROW, verdict, 3), *GREEN)[NARROW] == "stale"
    assert lives(ITEM, *GREEN, fact(NARROW, verdict, 9))[NARROW] == "active"
    assert lives(ITEM, fact(NARROW, verdict, 3), *GREEN)[WHOLE] == "active"


def test_a_green_run_is_remembered_when_the_suite_is_red_again() -> None:
    red = whole_run(9, "failed", None, {"passed": None, "failed": 2})
    assert lives(ITEM, fact(NARROW, "failed", 3), *GREEN, *red)[NARROW] == "stale"
    assert lives(ITEM, fact(NARROW, "failed", 3), *red)[NARROW] == "active"


def test_a_narrow_green_is_stale_after_any_later_run_of_the_whole_suite() -> None:
    red = whole_run(9, "failed", None, None)
    assert lives(ITEM, fact(NARROW, "passed", 3), *red)[NARROW] == "stale"
    assert lives(ITEM, *red, fact(NARROW, "passed", 20))[NARROW] == "active"


@pytest.mark.parametrize(
    ("names", "counts", "life"),
    [
        (["t::x"], {"passed": 9, "failed": 1}, "stale"),
        (["t::x"], {"passed": 9, "failed": 2}, "active"),
        (["t::x"], {"passed": None, "failed": 1}, "active"),
        (["t::x"], {"passed": 0, "failed": 1}, "active"),
        (None, {"passed": 9, "failed": 1}, "active"),
        (["t::x"], None, "active"),
        ("t::x", {"passed": 9, "failed": 4}, "active"),
        (["t::x"], [9, 1], "active"),
    ],
)
def test_a_narrow_failure_is_stale_only_where_the_whole_run_named_all_that_failed(
    names: Any, counts: Any, life: str
) -> None:
    later = whole_run(5, "failed", names, counts)
    assert lives(ITEM, fact(NARROW, "failed", 3), *later)[NARROW] == life


def test_a_whole_run_without_counts_or_names_says_nothing_of_a_narrow_failure() -> None:
    for kept in (NAMED[:1], NAMED[:2], [NAMED[0], NAMED[2]]):
        assert lives(ITEM, fact(NARROW, "failed", 3), *kept)[NARROW] == "active"
    assert lives(ITEM, fact(NARROW, "failed", 3), *NAMED)[NARROW] == "stale"


def test_only_the_status_of_a_whole_suite_that_passed_is_a_green_run() -> None:
    for key, value in (
        ("test/pytest:tests/b.py/status", "passed"), ("test/pytest/counts", "passed"),
        ("call/pytest/status", "passed"), (WHOLE, "failed"),
    ):  # fmt: skip
        assert lives(ITEM, fact(NARROW, "failed", 3), fact(key, value, 5))[NARROW] == "active", key


# -- unsupported ------------------------------------------------------------------------------------------------


def test_a_head_is_unsupported_when_what_it_cites_was_given_other_content() -> None:
    held = fact("a/b/c", 1, 3)
    assert lives(ITEM, held)["a/b/c"] == "active"
    assert lives(ITEM, held, replaced(4, 1, (TEXT, None)))["a/b/c"] == "unsupported"
    assert lives(ITEM, held, replaced(4, 2, (TEXT, None)))["a/b/c"] == "active"


def test_a_head_that_cites_the_new_content_is_unsupported_only_when_that_goes_too() -> None:
    first = [ITEM, replaced(2, 1, (TEXT, None)), fact("a/b/c", 1, 4, cites=2)]
    assert lives(*first)["a/b/c"] == "active"
    assert lives(*first, replaced(6, 1, (TEXT, None)))["a/b/c"] == "unsupported"
    assert (
        lives(*first, replaced(6, 1, (TEXT, None)), fact("a/b/c", 2, 8, cites=6))["a/b/c"]
        == "active"
    )


def test_what_replaces_nothing_of_this_stream_leaves_every_head_supported() -> None:
    held = fact("a/b/c", 1, 3)
    for event in (
        recorded(ev.ItemReplaced(b""), 4, item=facts(), cause=ev.Cause("session/b", 1)),
        recorded(ev.ItemReplaced(b""), 4, cause=ev.Cause(STREAM, 1)),
        recorded(ev.ItemReplaced(b""), 4, item=facts()),
    ):
        assert lives(ITEM, held, event)["a/b/c"] == "active"


def test_a_superseded_head_no_longer_follows_what_it_cited() -> None:
    old, new = fact("a/b/c", 1, 3, cites=1), fact("a/b/c", 2, 4, cites=2)
    events = [ITEM, appended(2, (TEXT, None)), old, new]
    assert lives(*events, replaced(5, 1, (TEXT, None)))["a/b/c"] == "active"
    assert lives(*events, replaced(5, 2, (TEXT, None)))["a/b/c"] == "unsupported"
    state = run(heads.REDUCER, events)
    assert state.citing == {2: {"a/b/c"}}
    both = run(heads.REDUCER, [ITEM, fact("k/1/p", 1, 3), fact("k/2/p", 1, 4), fact("k/1/p", 2, 5)])
    assert both.citing == {1: {"k/1/p", "k/2/p"}}
    left = run(heads.REDUCER, [ITEM, *(fact(f"k/{n}/p", 1, 3 + n) for n in (1, 2)),
                               declared(9, anchor("k/1/p", 3, channel=Channel.OPERATOR, sources=()))])  # fmt: skip
    assert left.citing == {1: {"k/2/p"}}


def test_a_source_in_another_stream_is_not_followed_here() -> None:
    made = anchor(sources=(ref(1, Channel.USER_TYPED, stream="session/b"),))
    again = [declared(n, made) for n in (3, 4)]
    assert lives(ITEM, *again, replaced(5, 1, (TEXT, None)))["a/b/c"] == "active"
    assert run(heads.REDUCER, [ITEM, *again]).citing == {}


def test_a_contest_is_told_before_all_else() -> None:
    held = declared(3, anchor(value=1))
    weak = declared(4, anchor(value=2, channel=Channel.WEB))
    assert lives(ITEM, held, weak, replaced(5, 1, (TEXT, None)))["a/b/c"] == "contested"
