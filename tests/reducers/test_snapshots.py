"""Dumps of reducers' states: one that was dumped and loaded goes on as the first would have, at every seq.

What is no dump is refused, so that a snapshot that is none is dropped and made anew.
"""

from __future__ import annotations

import copy
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ef import events as ev
from ef.codec import cbor
from ef.projections.working import HELD, SHOWN, Working
from ef.reducers import ALL, Reducer, gate, saved
from tests.reducers.build import (
    CALL,
    RESULT,
    STREAM,
    TEXT,
    anchor,
    appended,
    closed,
    declared,
    histories,
    ref,
    replaced,
    run,
)
from tests.reducers.test_laws import HISTORY

REDUCERS = pytest.mark.parametrize("reducer", ALL, ids=lambda r: r.name)
MANY = settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
SOME = settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])


def again(reducer: Reducer, state: Any) -> Any:
    """The state out of the bytes of its dump."""
    dump = reducer.dump(state)
    assert cbor.dumps(dump) == cbor.encode(dump), "a dump holds no map"
    return reducer.load(cbor.decode(cbor.encode(dump)))


@REDUCERS
@MANY
@given(histories())
def test_a_state_that_was_loaded_is_equal_and_goes_on_the_same_from_every_seq(
    reducer: Reducer, events: list[ev.Recorded]
) -> None:
    kept_up, reloaded = reducer.initial(), reducer.initial()
    loaded: list[Any] = []
    for each in events:
        loaded.append(again(reducer, kept_up))
        for state in (*loaded, reloaded):
            assert reducer.refusal(state, each) == reducer.refusal(kept_up, each)
        kept_up = reducer.evolve(kept_up, copy.deepcopy(each))
        loaded = [reducer.evolve(state, each) for state in loaded]
        reloaded = again(reducer, reducer.evolve(reloaded, each))
        assert reloaded == kept_up
    wanted = cbor.encode(reducer.canonical(kept_up)), cbor.encode(reducer.dump(kept_up))
    for state in (*loaded, reloaded):
        assert state == kept_up
        assert (
            cbor.encode(reducer.canonical(state)),
            cbor.encode(reducer.dump(state)),
        ) == wanted


RICH = [
    *HISTORY,
    appended(13, (CALL, "c"), (CALL, "c"), (TEXT, None), group=ev.Group("g2")),
    closed(14, "c", 13, 1, "unknown"),
    appended(15, (RESULT, "c"), (RESULT, "c"), (RESULT, "never")),
    declared(16, anchor("test/pytest/status", "passed", channel=ev.Channel.TOOL, sources=(ref(4, ev.Channel.TOOL),))),
    declared(17, anchor("u/v/w", 5, sources=(ref(2, ev.Channel.USER_TYPED),))),
    replaced(18, 2, (TEXT, None)),
    declared(19, anchor("u/v/w", 6, channel=ev.Channel.ASSISTANT)),
]  # fmt: skip


@REDUCERS
def test_each_field_of_a_state_is_in_its_dump(reducer: Reducer) -> None:
    """A state in which no field is empty, loaded and equal, at each seq on the way there."""
    state = reducer.initial()
    for each in RICH:
        state = reducer.evolve(state, each)
        assert again(reducer, state) == state
    empty = reducer.initial()
    names = [f.name for f in fields(state)]
    same = [n for n in names if getattr(state, n) == getattr(empty, n)]
    assert same == {"described": ["parent", "parent_seq", "title", "compactions"]}.get(
        reducer.name, []
    )


@REDUCERS
@SOME
@given(histories())
def test_what_was_loaded_shares_nothing_with_what_was_dumped(
    reducer: Reducer, events: list[ev.Recorded]
) -> None:
    state = run(reducer, events[: len(events) // 2])
    loaded = again(reducer, state)
    before = cbor.encode(reducer.dump(loaded))
    for each in events[len(events) // 2 :]:
        state = reducer.evolve(state, each)
    assert cbor.encode(reducer.dump(loaded)) == before


@MANY
@given(histories(), st.data())
def test_a_projection_that_was_loaded_part_by_part_is_the_whole_one(
    events: list[ev.Recorded], data: st.DataObject
) -> None:
    """Parts may have been kept at different seqs; refusals come along, in their order."""
    whole = Working(STREAM).apply(events)
    parts: list[Working] = []
    for reducer in data.draw(st.permutations(ALL)):
        cut = data.draw(st.integers(0, len(events)))
        part = Working(STREAM, (reducer,)).apply(events[:cut])
        dump = part.dump(reducer)
        back = Working.loaded(STREAM, reducer, part.seq, part.digest, dump)
        assert back.dump(reducer) == dump
        assert back.refused == part.refused
        parts.append(back.apply(events[cut:]))
    first, *others = parts
    for other in others:
        first.join(other)
    assert (first.seq, first.digest) == (whole.seq, whole.digest)
    assert first.canonical() == whole.canonical()
    assert first.refused == whole.refused


@SOME
@given(histories())
def test_a_projection_of_some_reducers_says_what_the_whole_one_says(
    events: list[ev.Recorded],
) -> None:
    whole = Working(STREAM).apply(events)
    held, shown = Working(STREAM, HELD).apply(events), Working(STREAM, SHOWN).apply(events)
    assert held.state_digest() == whole.state_digest()
    assert held.refused == [row for row in whole.refused if row[1] == "heads"]
    assert (shown.surface, shown.described) == (whole.surface, whole.described)


# ------------------------------------------------------------------------------------------------------------- anchors

FULL = ev.Anchor(
    "an:1", ev.Kind.FAILURE, ev.AnchorKey("a", "b/c", "d"), {"x": [1, None, True, "é"]}, ev.Authority.EMPIRICAL,
    ev.Channel.CI, ev.Rule("r", 3), "s", (ref(2, ev.Channel.CI), ref(3, ev.Channel.WEB, stream="t/u")), "why",
    "while", ("p", "q"), "owner", "an:0", "print", "an:2",
)  # fmt: skip


def test_an_anchor_keeps_every_field() -> None:
    assert all(value not in (None, ()) for value in (getattr(FULL, f) for f in FULL.__slots__))
    for each in (FULL, anchor()):
        row = cbor.decode(cbor.encode(saved.anchor_row(each)))
        assert saved.anchor_of(row) == each
        assert hash(saved.anchor_of(row).key) == hash(each.key)


def test_a_value_as_deep_as_the_gate_allows_can_be_dumped() -> None:
    value: Any = 1
    for _ in range(gate.VALUE_DEPTH_MAX):
        value = [value]
    reducer = next(r for r in ALL if r.name == "heads")
    events = [*HISTORY[:2], declared(3, anchor("deep/er/value", value))]
    state = run(reducer, events)
    assert state.heads["deep/er/value"].anchor.value == value
    assert again(reducer, state) == state


# ------------------------------------------------------------------------------------------------- what is no dump


def mangled(value: Any) -> list[Any]:
    """The value with each of its inner values, one at a time, gone or of another type."""
    found: list[Any] = [7, "text", None, b"", [], {}]
    if isinstance(value, list):
        for n, each in enumerate(value):
            found += [[*value[:n], other, *value[n + 1 :]] for other in mangled(each)]
            found.append([*value[:n], *value[n + 1 :]])
    elif isinstance(value, dict):
        for key in value:
            found += [{**value, key: other} for other in mangled(value[key])]
            found.append({k: v for k, v in value.items() if k != key})
    return found


@REDUCERS
def test_what_is_no_dump_is_refused_or_is_another_dump(reducer: Reducer) -> None:
    """Of the right types, or refused: never a state that fails later for what its fields are."""
    dump = cbor.decode(cbor.encode(reducer.dump(run(reducer, HISTORY))))
    refused = taken = 0
    for other in mangled(dump):
        try:
            state = reducer.load(other)
        except (ValueError, TypeError, KeyError):
            refused += 1
            continue
        taken += 1
        cbor.encode(reducer.dump(state))
        cbor.encode(reducer.canonical(state))
    assert refused > 20
    assert refused > taken


@REDUCERS
@pytest.mark.parametrize(
    "dump", [b"", b"\xff", b"\x80", b"\x82\x80\x80", b"\xa0", b"\x83\x80\x80\x80"]
)
def test_bytes_that_are_no_dump_are_malformed(reducer: Reducer, dump: bytes) -> None:
    state = Working(STREAM, (reducer,)).apply(HISTORY)
    back = Working.loaded(STREAM, reducer, state.seq, state.digest, state.dump(reducer))
    assert back.canonical() == state.canonical()
    with pytest.raises(cbor.Malformed):
        Working.loaded(STREAM, reducer, state.seq, state.digest, dump)


@pytest.mark.parametrize(
    ("load", "good", "bad"),
    [
        (saved.texts, ["a", "b"], ["a", 1]),
        (
            saved.facts_of,
            ["user", 1, "m", ["text", "user_typed", None]],
            ["user", 1, "m", ["text"]],
        ),
        (saved.facts_of, ["user", None, None, []], ["user", None, None, ["text", "user_typed", 4]]),
        (saved.facts_of, ["user", None, None, []], ["user", None, None, ["no kind", "tool", "c"]]),
    ],
)
def test_rows_of_other_types_are_refused(load: Any, good: Any, bad: Any) -> None:
    load(good)
    with pytest.raises((TypeError, ValueError, KeyError)):
        load(bad)
