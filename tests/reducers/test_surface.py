"""The surface against a plain model that pairs everything anew after each event, and its rules one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings

from ef import events as ev
from ef.reducers.surface import REDUCER, Surface
from tests.reducers.build import (
    CALL,
    RESULT,
    STREAM,
    TEXT,
    appended,
    closed,
    facts,
    histories,
    recorded,
    replaced,
    run,
)

Place = tuple[int, int]

# -- the model --------------------------------------------------------------------------------------------------


@dataclass(eq=False)  # two calls of one id are two
class Token:
    """A call or a result, wherever it stands now."""

    kind: ev.PartKind
    call_id: str
    place: Place
    partner: Token | None = None
    why: str | None = None
    late_for: Token | None = None


@dataclass
class Model:
    """Tokens in a list; every question is answered by looking at all of them."""

    items: dict[int, ev.ItemFacts] = field(default_factory=dict)
    tokens: list[Token] = field(default_factory=list)
    groups: dict[int, str | None] = field(default_factory=dict)

    def first(self, calls: list[Token]) -> Token:
        """Of the newest response among these calls the first one, counted back without another response between."""
        *older, found = sorted(calls, key=lambda t: t.place)
        response = {found.place[0], self.groups[found.place[0]]} - {None}
        for call in reversed(older):
            if not {call.place[0], self.groups[call.place[0]]} & response:
                break
            found = call
            response |= {call.place[0]}
        return found

    def fresh(self, place: Place, part: ev.PartFacts) -> None:
        token = Token(part.kind, part.call_id or "", place)
        if part.kind is RESULT:
            before = [
                t
                for t in self.tokens
                if t.kind is CALL and t.call_id == token.call_id and t.place < place
            ]
            waiting = [t for t in before if t.partner is None and t.why is None]
            ended = [t for t in before if t.why is not None]
            if waiting:
                call = self.first(waiting)
                call.partner, token.partner = token, call
            elif ended:
                token.late_for = self.first(ended)
        self.tokens.append(token)

    def append(self, seq: int, item: ev.ItemFacts) -> None:
        self.items[seq] = item
        for n, part in enumerate(item.parts):
            if part.kind in (CALL, RESULT):
                self.fresh((seq, n), part)

    def replace(self, seq: int, item: ev.ItemFacts) -> None:
        old = sorted((t for t in self.tokens if t.place[0] == seq), key=lambda t: t.place)
        self.items[seq] = item
        new: list[tuple[Place, ev.PartFacts]] = []
        kept: list[Token] = []
        for n, part in enumerate(item.parts):
            if part.kind not in (CALL, RESULT):
                continue
            same = [
                t
                for t in old
                if (t.kind, t.call_id) == (part.kind, part.call_id or "") and t not in kept
            ]
            if same:
                same[0].place = (seq, n)
                kept.append(same[0])
            else:
                new.append(((seq, n), part))
        for gone in (t for t in old if t not in kept):
            self.tokens.remove(gone)
            for t in self.tokens:
                t.partner = None if t.partner is gone else t.partner
                t.late_for = None if t.late_for is gone else t.late_for
        for place, part in new:
            self.fresh(place, part)

    def close(self, event: ev.CallClosed) -> bool:
        for t in self.tokens:
            if (t.place, t.call_id, t.kind) == ((event.item_seq, event.part), event.call_id, CALL):
                if t.partner is None and t.why is None:
                    t.why = event.outcome
                    return True
        return False

    def apply(self, each: ev.Recorded) -> bool:
        """Whether the event is legal."""
        h, event = each.header, each.event
        if isinstance(event, ev.CallClosed):
            return self.close(event)
        if isinstance(event, ev.ItemAppended):
            if h.item is not None:
                self.groups[h.seq] = h.group.id if h.group else None
                self.append(h.seq, h.item)
            return h.item is not None
        if isinstance(event, ev.ItemReplaced):
            legal = h.item is not None and h.cause is not None
            legal = legal and h.cause.stream == h.stream and h.cause.seq in self.items
            if legal:
                self.replace(h.cause.seq, h.item)
                self.groups[h.cause.seq] = h.group.id if h.group else None
            return legal
        return True


def relations(model: Model) -> dict[str, Any]:
    calls = [t for t in model.tokens if t.kind is CALL]
    results = [t for t in model.tokens if t.kind is RESULT]
    return {
        "results": {t.place: t.partner.place for t in calls if t.partner},
        "closed": {t.place: t.why for t in calls if t.why is not None},
        "open": sorted((t.call_id, t.place) for t in calls if not t.partner and t.why is None),
        "late": {t.place: t.late_for.place for t in results if t.late_for},
        "orphans": {t.place for t in results if not t.partner and not t.late_for},
    }


def shown(state: Surface) -> dict[str, Any]:
    assert state.answered == {r: c for c, r in state.results.items()}
    return {
        "results": state.results,
        "closed": state.closed,
        "open": sorted((call, p) for call, places in state.open.items() for p in places),
        "late": state.late,
        "orphans": state.orphans,
    }


def agree(events: list[ev.Recorded]) -> None:
    state, model = REDUCER.initial(), Model()
    for each in events:
        legal = REDUCER.refusal(state, each) is None
        state = REDUCER.evolve(state, each)
        assert model.apply(each) is legal, each
        assert shown(state) == relations(model), each
        assert {s: n.facts for s, n in state.nodes.items()} == model.items


@settings(max_examples=300)
@given(histories())
def test_pairing_is_that_of_the_model_for_any_history(events: list[ev.Recorded]) -> None:
    agree(events)


MOVES = [
    lambda s: appended(s, (CALL, "x")),
    lambda s: appended(s, (RESULT, "x")),
    lambda s: appended(s, (CALL, "x"), (RESULT, "x"), (CALL, "x")),
    lambda s: closed(s, "x", s - 1),
    lambda s: closed(s, "x", 1),
    lambda s: replaced(s, 1, (RESULT, "x"), (CALL, "x")),
    lambda s: replaced(s, 2, (TEXT, None)),
    lambda s: replaced(s, 1, (TEXT, None), (CALL, "x"), (CALL, "x")),
]


def test_pairing_is_that_of_the_model_for_every_short_history_with_one_id() -> None:
    for length in range(1, 5):
        for moves in product(MOVES, repeat=length):
            agree([move(n + 1) for n, move in enumerate(moves)])


# -- rules ------------------------------------------------------------------------------------------------------


def state_of(*events: ev.Recorded) -> Surface:
    state: Surface = run(REDUCER, list(events))
    return state


def test_a_result_belongs_to_the_newest_call_before_it_that_has_none() -> None:
    state = state_of(
        appended(1, (CALL, "x")), appended(2, (CALL, "x")), appended(3, (RESULT, "x")),
        appended(4, (RESULT, "x")), appended(5, (RESULT, "x")), appended(6, (CALL, "x")),
    )  # fmt: skip
    assert state.results == {(2, 0): (3, 0), (1, 0): (4, 0)}
    assert state.orphans == {(5, 0)} and state.open == {"x": [(6, 0)]}


def test_calls_of_one_response_that_share_an_id_are_answered_in_their_order() -> None:
    """As some servers name parallel calls: all call_0. In one item, or in several of one response."""
    one = state_of(
        appended(1, (CALL, "x"), (CALL, "x")), appended(2, (RESULT, "x")), appended(3, (RESULT, "x"))
    )  # fmt: skip
    assert one.results == {(1, 0): (2, 0), (1, 1): (3, 0)}
    g, h = ev.Group("g"), ev.Group("h")
    several = state_of(
        appended(1, (CALL, "x"), group=g), appended(2, (CALL, "x"), group=h), appended(3, (CALL, "x"), group=h),
        appended(4, (RESULT, "x"), (RESULT, "x"), (RESULT, "x")),
    )  # fmt: skip
    assert several.results == {(2, 0): (4, 0), (3, 0): (4, 1), (1, 0): (4, 2)}


def test_a_result_of_a_closed_call_is_late_and_not_a_second_answer() -> None:
    state = state_of(
        appended(1, (CALL, "x")), closed(2, "x", 1, why="not_started"), appended(3, (RESULT, "x")),
        appended(4, (CALL, "x")), appended(5, (RESULT, "x")), appended(6, (RESULT, "x")),
    )  # fmt: skip
    assert state.closed == {(1, 0): "not_started"}
    assert state.late == {(3, 0): (1, 0), (6, 0): (1, 0)}
    assert state.results == {(4, 0): (5, 0)} and not state.orphans


def test_a_replaced_item_keeps_its_place_and_its_pairs_move_with_their_parts() -> None:
    state = state_of(
        appended(1, (TEXT, None), group=ev.Group("g")), appended(2, (CALL, "a"), (CALL, "b")),
        appended(3, (RESULT, "a"), (RESULT, "b")), closed(4, "a", 2), appended(5, (TEXT, None)),
        replaced(6, 2, (TEXT, None), (CALL, "b"), (CALL, "a"), group=ev.Group("h")),
        replaced(7, 1, (TEXT, None)),
    )  # fmt: skip
    assert list(state.nodes) == [1, 2, 3, 5]
    assert state.results == {(2, 2): (3, 0), (2, 1): (3, 1)}
    assert [(n.content_seq, n.group) for n in state.nodes.values()] == [
        (7, None), (6, "h"), (3, None), (5, None),
    ]  # fmt: skip


def test_a_call_whose_result_was_replaced_away_is_open_again_and_the_other_way_round() -> None:
    both = [appended(1, (CALL, "a")), appended(2, (RESULT, "a"))]
    without_result = state_of(*both, replaced(3, 2, (TEXT, None)))
    assert without_result.open == {"a": [(1, 0)]} and not without_result.results
    without_call = state_of(*both, replaced(3, 1, (TEXT, None)))
    assert without_call.orphans == {(2, 0)} and not without_call.open
    late = [appended(1, (CALL, "a")), closed(2, "a", 1), appended(3, (RESULT, "a"))]
    assert state_of(*late, replaced(4, 1, (TEXT, None))).orphans == {(3, 0)}
    assert not state_of(*late, replaced(4, 3, (TEXT, None))).late
    assert state_of(*late, replaced(4, 1, (TEXT, None), (CALL, "a"))).late == {(3, 0): (1, 1)}


def test_a_new_part_of_a_replaced_item_does_not_answer_what_came_after_it() -> None:
    state = state_of(
        appended(1, (TEXT, None)), appended(2, (CALL, "a")), replaced(3, 1, (RESULT, "a"))
    )
    assert state.orphans == {(1, 0)} and state.open == {"a": [(2, 0)]}


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (closed(9, "b", 1), "closes call b of event 1, which is not open"),
        (closed(9, "a", 1, 1), "closes call a of event 1, which is not open"),
        (closed(9, "a", 2), "which is not open"),
        (closed(9, "done", 3), "which is not open"),
        (replaced(9, 2, (TEXT, None)), "replaces an item that is not on the surface"),
        (replaced(9, 9, (TEXT, None)), "replaces an item that is not on the surface"),
        (recorded(ev.ItemReplaced(b""), 9, item=facts()), "that is not on the surface"),
        (
            recorded(ev.ItemReplaced(b""), 9, item=facts(), cause=ev.Cause("session/b", 1)),
            "that is not on the surface",
        ),
        (recorded(ev.ItemReplaced(b""), 9, cause=ev.Cause(STREAM, 1)), "it has no item facts"),
        (recorded(ev.ItemAppended(b""), 9), "it has no item facts"),
    ],
)
def test_what_is_illegal_is_named_and_moves_nothing(event: ev.Recorded, why: str) -> None:
    def before() -> Surface:
        return state_of(
            appended(1, (CALL, "a")), appended(3, (CALL, "done")), appended(4, (RESULT, "done"))
        )

    assert why in (REDUCER.refusal(before(), event) or "")
    assert REDUCER.canonical(REDUCER.evolve(before(), event)) == REDUCER.canonical(before())
    for legal in (closed(9, "a", 1), replaced(9, 1, (TEXT, None)), appended(9)):
        assert REDUCER.refusal(before(), legal) is None
        assert REDUCER.canonical(REDUCER.evolve(before(), legal)) != REDUCER.canonical(before())


def test_every_other_kind_leaves_the_surface_alone() -> None:
    from tests.codec.samples import BARE, FULL

    for n, event in enumerate([*FULL, *BARE], 2):
        if not isinstance(event, (ev.ItemAppended, ev.ItemReplaced, ev.CallClosed)):
            state = state_of(appended(1, (CALL, "a")))
            assert REDUCER.refusal(state, recorded(event, n)) is None
            assert REDUCER.canonical(
                REDUCER.evolve(state, recorded(event, n))
            ) == REDUCER.canonical(state_of(appended(1, (CALL, "a"))))
