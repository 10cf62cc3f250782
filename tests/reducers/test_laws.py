"""The laws of reducers, for every one of them: deterministic, blind to batches, unmoved by what is illegal."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ef import events as ev
from ef.codec import cbor
from ef.projections.working import Working
from ef.reducers import ALL, Reducer, surface
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
    recorded,
    replaced,
    run,
)

ROOT = Path(__file__).resolve().parent.parent.parent
REDUCERS = pytest.mark.parametrize("reducer", ALL, ids=lambda r: r.name)
MANY = settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])


def canonical(reducer: Reducer, state: Any) -> bytes:
    return cbor.encode(reducer.canonical(state))


def test_every_reducer_has_its_own_name_and_a_version() -> None:
    assert len({r.name for r in ALL}) == len(ALL) >= 3
    assert {r.name: r.version for r in ALL} == {"surface": 2, "heads": 1, "described": 1}
    assert all(type(r.version) is int and r.version >= 1 for r in ALL)


@REDUCERS
@MANY
@given(histories())
def test_the_same_events_give_the_same_bytes_and_what_was_refused_changes_nothing(
    reducer: Reducer, events: list[ev.Recorded]
) -> None:
    one, other = reducer.initial(), reducer.initial()
    refused = []
    for each in events:
        before = canonical(reducer, one)
        why = reducer.refusal(one, each)
        assert why is None or (isinstance(why, str) and why)
        assert canonical(reducer, one) == before, "asking changes nothing"
        one = reducer.evolve(one, each)
        if why is not None:
            refused.append(each.header.seq)
            assert canonical(reducer, one) == before
        other = reducer.evolve(other, copy.deepcopy(each))
        assert canonical(reducer, other) == canonical(reducer, one)
    legal = [each for each in events if each.header.seq not in refused]
    assert canonical(reducer, run(reducer, legal)) == canonical(reducer, one)


@REDUCERS
@MANY
@given(histories(), st.data())
def test_a_state_that_was_stopped_anywhere_and_gone_on_with_is_the_same(
    reducer: Reducer, events: list[ev.Recorded], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(events)))
    first = copy.deepcopy(run(reducer, events[:cut]))
    for each in events[cut:]:
        first = reducer.evolve(first, each)
    assert canonical(reducer, first) == canonical(reducer, run(reducer, events))


@REDUCERS
@given(histories(12), histories(6))
def test_states_with_equal_bytes_answer_alike_for_ever(
    reducer: Reducer, events: list[ev.Recorded], more: list[ev.Recorded]
) -> None:
    """What the canonical value leaves out decides nothing: a state rebuilt without the refused is as good."""
    state, kept = reducer.initial(), []
    for each in events:
        if reducer.refusal(state, each) is None:
            kept.append(each)
        state = reducer.evolve(state, each)
    other = run(reducer, kept)
    for each in more:
        assert reducer.refusal(state, each) == reducer.refusal(other, each)
        state, other = reducer.evolve(state, each), reducer.evolve(other, each)
        assert canonical(reducer, state) == canonical(reducer, other)


@REDUCERS
@MANY
@given(histories())
def test_an_event_that_a_reducer_does_not_look_at_is_never_refused_and_changes_nothing(
    reducer: Reducer, events: list[ev.Recorded]
) -> None:
    state = reducer.initial()
    for each in events:
        before = canonical(reducer, state)
        looked_at = reducer.kinds is None or type(each.event) in reducer.kinds
        if not looked_at:
            assert reducer.refusal(state, each) is None
            assert canonical(reducer, reducer.accept(state, each)) == before
        state = reducer.evolve(state, each)


@MANY
@given(histories(), st.lists(st.integers(1, 5)))
def test_the_working_projection_does_not_depend_on_batches_and_lists_what_was_refused(
    events: list[ev.Recorded], sizes: list[int]
) -> None:
    whole = Working(STREAM).apply(events)
    parts, rest = Working(STREAM), list(events)
    for size in sizes:
        parts.apply(rest[:size])
        rest = rest[size:]
    parts.apply(rest)
    assert parts.canonical() == whole.canonical()
    assert parts.state_digest() == whole.state_digest()
    assert parts.refused == whole.refused
    expected = []
    states = {r.name: r.initial() for r in ALL}
    for each in events:
        if isinstance(each.event, ev.UnknownEvent):
            continue
        for r in ALL:
            why = r.refusal(states[r.name], each)
            expected += [(each.header.seq, r.name, why)] if why else []
            states[r.name] = r.evolve(states[r.name], each)
    assert whole.refused == expected


@given(histories(15))
def test_telemetry_and_unknown_kinds_change_no_state_digest(events: list[ev.Recorded]) -> None:
    working = Working(STREAM).apply(events)
    digest, seq = working.state_digest(), working.seq
    working.apply([recorded(ev.UnknownEvent("SearchServed", 4), seq + 1)])
    working.apply([recorded(ev.UsageReported("m", 1, 2, 3, 4), seq + 2)])
    working.apply([recorded(ev.ForeignCompaction("t", "compact", None, 9, ("a",)), seq + 3)])
    assert working.state_digest() == digest


HISTORY = [
    recorded(ev.SessionOpened("s", "root", "f"), 1, occurred_at=5),
    appended(2, (TEXT, None), occurred_at=4),
    appended(3, (CALL, "a"), (CALL, "b"), group=ev.Group("g")),
    appended(4, (RESULT, "b")),
    declared(5, anchor("z/y/x", {"b": 1, "a": [True]})),
    declared(6, anchor("a/b/c", "v", channel=ev.Channel.WEB)),
    declared(7, anchor("z/y/x", 2, channel=ev.Channel.WEB)),
    closed(8, "a", 3),
    appended(9, (RESULT, "a"), (RESULT, "q")),
    replaced(10, 3, (CALL, "b"), (CALL, "new")),
    recorded(ev.RouteChanged("p", "model"), 11),
    recorded(ev.UsageReported("m", 1, 2, None, 4), 12),
]


def test_another_process_with_other_hashes_gives_the_same_bytes() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from tests.reducers.test_laws import HISTORY, STREAM, Working\n"
        "print(Working(STREAM).apply(HISTORY).canonical().hex())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120,
            env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin"}, cwd=ROOT,
        ).stdout.strip()
        for seed in ("0", "1", "77")
    }  # fmt: skip
    assert found == {Working(STREAM).apply(HISTORY).canonical().hex()}


def digest_of(anchors: list[ev.Anchor]) -> bytes:
    first = appended(1, (TEXT, None))
    return (
        Working(STREAM)
        .apply([first, *(declared(n + 2, a) for n, a in enumerate(anchors))])
        .state_digest()
    )


def test_the_order_of_independent_declarations_leaves_no_trace_in_the_state_digest() -> None:
    anchors = [anchor(f"k/{n}/p", n) for n in range(6)] + [
        anchor("k/0/p", "w", channel=ev.Channel.WEB)
    ]
    one = digest_of(anchors)
    swapped = [*reversed(anchors[1:6]), anchors[0], anchors[6]]
    other = digest_of(swapped)
    assert one == other
    beaten = digest_of([*reversed(anchors)])
    assert beaten != one, "the web spoke first, and was replaced"


# -- the cost of an event ---------------------------------------------------------------------------------------


def size(value: Any) -> int:
    return len(json.dumps(value, default=lambda b: b.hex()))


def test_heads_grow_with_the_keys_and_never_with_the_history() -> None:
    reducer = next(r for r in ALL if r.name == "heads")
    sizes = []
    state, seq = reducer.initial(), 1
    for _ in range(3):
        for n in range(400):
            seq += 1
            who = ev.Channel.WEB if n % 3 == 0 else ev.Channel.USER_TYPED
            state = reducer.evolve(
                state, declared(seq, anchor(f"k/{n % 20}/p", n % 20, channel=who))
            )
        sizes.append((len(state.heads), len(state.contested), size(reducer.canonical(state))))
    assert sizes[0][:2] == sizes[1][:2] == sizes[2][:2] and sizes[0][0] == 20
    # Three times the events: only the digits of the seqs may grow.
    assert sizes[2][2] < sizes[0][2] * 1.1


def test_what_a_session_is_called_takes_the_same_room_after_any_number_of_events() -> None:
    reducer = next(r for r in ALL if r.name == "described")
    state, sizes = reducer.initial(), []
    for seq in range(1, 3_000):
        event = [
            ev.SessionDescribed("t"),
            ev.RouteChanged("p", "m"),
            ev.UsageReported(str(seq), 1, 2, 3, 4),
        ]
        state = reducer.evolve(state, recorded(event[seq % 3], seq, occurred_at=10**6))
        sizes.append(size(reducer.canonical(state)))
    assert max(sizes[10:]) == min(sizes[10:])


class Counting(dict[Any, Any]):
    """A mapping that counts how often anything in it is looked at."""

    looks = 0

    def __getitem__(self, key: Any) -> Any:
        Counting.looks += 1
        return super().__getitem__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        Counting.looks += 1
        return super().get(key, default)

    def items(self) -> Any:
        Counting.looks += len(self)
        return super().items()

    def __iter__(self) -> Any:
        Counting.looks += len(self)
        return super().__iter__()

    def __contains__(self, key: object) -> bool:
        Counting.looks += 1
        return super().__contains__(key)


def test_an_event_looks_at_no_more_of_a_long_surface_than_of_a_short_one() -> None:
    looks = {}
    for length in (10, 1_000):
        state = surface.REDUCER.initial()
        for name in ("nodes", "open", "results", "answered", "closed", "closed_ids", "late"):
            setattr(state, name, Counting())
        seq = 0
        for n in range(length):
            state = surface.REDUCER.evolve(state, appended(seq + 1, (CALL, f"c{n}")))
            state = surface.REDUCER.evolve(state, appended(seq + 2, (RESULT, f"c{n}")))
            state = surface.REDUCER.evolve(state, appended(seq + 3, (CALL, f"d{n}")))
            state = surface.REDUCER.evolve(state, closed(seq + 4, f"d{n}", seq + 3))
            state = surface.REDUCER.evolve(state, appended(seq + 5, (RESULT, f"d{n}")))
            seq += 5
        Counting.looks = 0
        tail = [
            appended(seq + 1, (CALL, "x"), (CALL, "y"), (TEXT, None)),
            closed(seq + 2, "y", seq + 1, 1),
            appended(seq + 3, (RESULT, "x"), (RESULT, "y"), (RESULT, "z")),
            replaced(seq + 4, 1, (CALL, "c0"), (TEXT, None)),
        ]
        for each in tail:
            state = surface.REDUCER.evolve(state, each)
        looks[length] = Counting.looks
    assert looks[10] == looks[1_000]
