"""Who may ground what, who may replace whom, and what a session is called."""

from __future__ import annotations

from dataclasses import asdict, replace
from itertools import product
from typing import Any

import pytest

from ef import events as ev
from ef.events import Authority, Channel, Kind
from ef.reducers import described, gate, heads
from tests.codec.samples import BARE, FULL
from tests.reducers.build import (
    CALL,
    RESULT,
    TEXT,
    anchor,
    appended,
    declared,
    facts,
    recorded,
    ref,
    run,
)

N, E, P, D, NA, H = (
    Authority.NORMATIVE, Authority.EMPIRICAL, Authority.PROCEDURAL, Authority.DECISION, Authority.NARRATIVE,
    Authority.HYPOTHESIS,
)  # fmt: skip

# The table of architecture section 9, written out; what stands in the code is compared with it.
GROUNDS: dict[Channel, set[Authority]] = {
    Channel.OPERATOR: {N, D},
    Channel.USER_TYPED: {N, D},
    Channel.SYSTEM: {N},
    Channel.TOOL: {E, P},
    Channel.CI: {E, P},
    Channel.FILESYSTEM: {E, P},
    Channel.SUBAGENT: {H},
    Channel.WEB: {H},
    Channel.ASSISTANT: {H, D},
    Channel.IMPORTER: set(),
    Channel.OBSERVER: set(),
}
FITS: dict[Kind, set[Authority]] = {
    Kind.OBJECTIVE: {N, D},
    Kind.CONSTRAINT: {N},
    Kind.DECISION: {D, H},
    Kind.VALUE: {N, D, E, P, H},
    Kind.ARTIFACT: {E, P, H},
    Kind.EVIDENCE: {E, P, H},
    Kind.FAILURE: {E, H},
    Kind.OBLIGATION: {N, D, H},
}
DEEP: list[Any] = [1]
for _ in range(33):
    DEEP.append([DEEP[-1]])
ORDER: list[set[Channel]] = [
    {Channel.WEB}, {Channel.SUBAGENT}, {Channel.ASSISTANT}, {Channel.TOOL, Channel.CI, Channel.FILESYSTEM},
    {Channel.SYSTEM}, {Channel.USER_TYPED}, {Channel.OPERATOR},
]  # fmt: skip
"""From the weakest to the strongest, for kinds that machines may speak of."""


def test_every_channel_authority_and_kind_is_in_the_table() -> None:
    assert set(GROUNDS) == set(Channel) and set(FITS) == set(Kind)
    assert {a for row in GROUNDS.values() for a in row} == set(Authority) - {NA}
    assert set().union(*ORDER) == set(Channel) - {Channel.IMPORTER, Channel.OBSERVER}


@pytest.mark.parametrize("channel", Channel)
def test_the_gate_lets_through_exactly_what_the_table_says(channel: Channel) -> None:
    for authority, kind in product(Authority, Kind):
        made = anchor(channel=channel, kind=kind, authority=authority)
        why = gate.refusal(made)
        may_ground, fits = authority in GROUNDS[channel], authority in FITS[kind]
        assert (why is None) is (may_ground and fits), (channel, authority, kind)
        if not may_ground:
            assert why == f"{channel.value} cannot ground {authority.value}"
        elif not fits:
            assert why == f"a {kind.value} is never {authority.value}"


@pytest.mark.parametrize("channel", sorted(set(Channel) - {Channel.IMPORTER, Channel.OBSERVER}))
def test_an_anchor_cites_what_its_channel_said(channel: Channel) -> None:
    free = channel is Channel.OPERATOR
    assert gate.refusal(anchor(channel=channel)) is None
    none = gate.refusal(anchor(channel=channel, sources=()))
    assert none == (None if free else "it cites no source")
    for other in Channel:
        for sources in ((ref(1, other),), (ref(1, channel), ref(1, other))):
            why = gate.refusal(anchor(channel=channel, sources=sources))
            if other is channel or free:
                assert why is None
            else:
                assert why == f"it cites {other.value} and claims to speak as {channel.value}"
    for start, end in ((0, 0), (3, 3), (4, 3), (-1, 3)):
        empty = (ref(1, channel, start, end),)
        assert gate.refusal(anchor(channel=channel, sources=empty)) == "it cites an empty span"
    assert gate.refusal(anchor(channel=channel, sources=(ref(1, channel, 0, 1),))) is None


# -- supersession -----------------------------------------------------------------------------------------------


def strength(channel: Channel) -> int:
    return next(n for n, row in enumerate(ORDER) if channel in row)


SPEAKERS = sorted(set(Channel) - {Channel.IMPORTER, Channel.OBSERVER})


@pytest.mark.parametrize("first", SPEAKERS)
@pytest.mark.parametrize("second", SPEAKERS)
def test_an_equal_or_stronger_channel_replaces_and_a_weaker_one_only_contests(
    first: Channel, second: Channel
) -> None:
    old, new = anchor(value="old", channel=first), anchor(value="new", channel=second)
    state = run(heads.REDUCER, [declared(5, old), declared(7, new)])
    if strength(second) >= strength(first):
        assert state.heads == {"a/b/c": heads.Head(new, 7, 5)} and state.contested == {}
    else:
        assert state.heads == {"a/b/c": heads.Head(old, 5, None)}
        assert state.contested == {"a/b/c": heads.Head(new, 7, None)}


@pytest.mark.parametrize("channel", [Channel.TOOL, Channel.CI, Channel.FILESYSTEM])
def test_a_machine_counts_for_empirical_kinds_only(channel: Channel) -> None:
    for kind in Kind:
        empirical = kind in (Kind.VALUE, Kind.ARTIFACT, Kind.EVIDENCE, Kind.FAILURE)
        assert gate.rank(anchor(channel=channel, kind=kind)) == (4 if empirical else 0)
    assert gate.rank(anchor(channel=Channel.USER_TYPED, kind=Kind.CONSTRAINT)) == 6
    assert (
        gate.rank(anchor(channel=Channel.IMPORTER))
        == gate.rank(anchor(channel=Channel.OBSERVER))
        == 0
    )


@pytest.mark.parametrize("weak", [Channel.ASSISTANT, Channel.SUBAGENT, Channel.WEB])
def test_nothing_that_a_weaker_channel_says_however_often_changes_a_value(weak: Channel) -> None:
    typed = anchor(value="typed", channel=Channel.USER_TYPED)
    events = [declared(2, typed)]
    events += [declared(n, anchor(value=n, channel=weak)) for n in range(3, 40)]
    state = run(heads.REDUCER, events)
    assert state.heads["a/b/c"].anchor == typed
    assert state.contested["a/b/c"] == heads.Head(anchor(value=39, channel=weak), 39, None)
    assert heads.REDUCER.canonical(state)["heads"]["a/b/c"][5] == "contested"
    again = run(heads.REDUCER, [*events, declared(41, replace(typed, value="typed again"))])
    assert again.contested == {} and again.heads["a/b/c"].superseded == 2
    assert heads.REDUCER.canonical(again)["heads"]["a/b/c"][5] == "active"


def test_a_contest_ends_only_by_somebody_who_counts_as_much() -> None:
    state = run(
        heads.REDUCER,
        [
            declared(2, anchor(value=1, channel=Channel.WEB)),
            declared(3, anchor(value=2, channel=Channel.SYSTEM)),
            declared(4, anchor(value=3, channel=Channel.TOOL)),
            declared(5, anchor("other/key/x", 4, channel=Channel.OPERATOR, sources=())),
        ],
    )
    assert state.heads["a/b/c"].anchor.value == 2 and state.contested["a/b/c"].anchor.value == 3
    state = heads.REDUCER.evolve(state, declared(6, anchor(value=5, channel=Channel.SYSTEM)))
    assert state.contested == {} and state.heads["a/b/c"].superseded == 3
    mixed = run(
        heads.REDUCER,
        [
            declared(
                2, anchor(value=1, channel=Channel.ASSISTANT, kind=Kind.DECISION, authority=D)
            ),
            declared(3, anchor(value=2, channel=Channel.WEB)),
            declared(4, anchor(value=3, channel=Channel.ASSISTANT, authority=H)),
        ],
    )
    assert mixed.heads["a/b/c"].anchor.value == 3 and mixed.contested == {}


def test_a_machine_that_speaks_of_its_kind_leaves_a_stronger_contest_standing() -> None:
    """A head of rank 0 can be replaced by anybody; who contests it with more rank is not silenced by that."""
    state = heads.Heads(
        heads={"a/b/c": heads.Head(anchor(value=0, channel=Channel.WEB), 2, None)},
        contested={"a/b/c": heads.Head(anchor(value=9, channel=Channel.USER_TYPED), 3, None)},
    )
    after = heads.REDUCER.evolve(state, declared(4, anchor(value=1, channel=Channel.SUBAGENT)))
    assert after.heads["a/b/c"].anchor.value == 1 and after.contested["a/b/c"].anchor.value == 9


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (declared(5, anchor(value=DEEP[33])), "its value is nested deeper than 32"),
        (declared(5, anchor(authority=NA)), "user_typed cannot ground narrative"),
        (declared(5, anchor(channel=Channel.OBSERVER)), "observer cannot ground hypothesis"),
        (declared(5, anchor(channel=Channel.OPERATOR), by=Channel.USER_TYPED), "claims to be operator's word"),
        (declared(5, anchor(channel=Channel.OPERATOR), by=Channel.TOOL), "tool delivered it"),
        (declared(5, anchor(sources=(ref(5, Channel.USER_TYPED),))), "cites event 5, which is not before it"),
        (declared(5, anchor(sources=(ref(1, Channel.USER_TYPED), ref(8, Channel.USER_TYPED)))), "event 8"),
    ],
)  # fmt: skip
def test_what_is_illegal_is_named_and_changes_no_head(event: ev.Recorded, why: str) -> None:
    def state() -> heads.Heads:
        found: heads.Heads = run(heads.REDUCER, [declared(2, anchor(value="held"))])
        return found

    assert why in (heads.REDUCER.refusal(state(), event) or "")
    assert heads.REDUCER.evolve(state(), event) == state()


def test_the_twins_of_what_is_illegal_are_legal() -> None:
    for event in (
        declared(5, anchor(value=DEEP[32])),
        declared(5, anchor(channel=Channel.OPERATOR), by=Channel.OPERATOR),
        declared(5, anchor(sources=(ref(4, Channel.USER_TYPED),))),
        declared(5, anchor(sources=(ref(99, Channel.USER_TYPED, stream="session/b"),))),
    ):
        assert heads.REDUCER.refusal(heads.Heads(), event) is None
        assert len(run(heads.REDUCER, [event]).heads) == 1


def test_the_state_digest_leaves_out_what_differs_between_two_imports() -> None:
    one = anchor(sources=(ref(1, Channel.USER_TYPED),))
    other = replace(
        one, id="an:other",
        sources=(replace(one.sources[0], seq=3, stream="session/b", digest=b"x" * 32),),
    )  # fmt: skip
    canonical = [
        heads.holds(run(heads.REDUCER, [declared(n, a)])) for n, a in ((5, one), (9, other))
    ]
    assert canonical[0] == canonical[1]
    for changed in (
        replace(one, value=2), replace(one, unit="s"), replace(one, rule=ev.Rule("test", 2)),
        replace(one, sources=(replace(one.sources[0], end=6),)), replace(one, kind=Kind.CONSTRAINT),
    ):  # fmt: skip
        assert heads.holds(run(heads.REDUCER, [declared(5, changed)])) != canonical[0]


def test_what_decides_of_later_events_is_in_the_canonical_bytes() -> None:
    """Two states with one digest that could part ways afterwards are two states."""
    one = anchor(sources=(ref(1, Channel.USER_TYPED),))
    states = [run(heads.REDUCER, [declared(n, one)]) for n in (5, 9)]
    assert heads.holds(states[0]) == heads.holds(states[1])
    assert heads.REDUCER.canonical(states[0]) != heads.REDUCER.canonical(states[1])


@pytest.mark.parametrize("by", list(Channel))
@pytest.mark.parametrize("claimed", list(Channel))
def test_only_the_speaker_the_operator_and_observers_deliver_an_anchor(
    by: Channel, claimed: Channel
) -> None:
    made = anchor(channel=claimed, sources=(ref(1, claimed),))
    event = declared(5, made)
    event = replace(event, header=replace(event.header, channel=by))
    why = heads.REDUCER.refusal(heads.Heads(), event) or ""
    may = by in (Channel.OPERATOR, claimed) or (
        by is Channel.OBSERVER and claimed is not Channel.OPERATOR
    )
    assert ("delivered it" in why) is not may


def test_every_other_kind_leaves_the_heads_alone() -> None:
    for event in (*FULL, *BARE):
        if not isinstance(event, ev.AnchorDeclared):
            assert run(heads.REDUCER, [recorded(event, 3)]) == heads.Heads()


# -- what a session is called -----------------------------------------------------------------------------------


def test_a_session_is_what_its_newest_events_say() -> None:
    opened = ev.SessionOpened("s", "fork", "fmt", "session/p", 4, bytes(32))
    state = run(
        described.REDUCER,
        [
            recorded(opened, 1, occurred_at=50),
            recorded(ev.SessionDescribed("first"), 2, occurred_at=20),
            recorded(ev.SessionDescribed("second"), 3),
            recorded(ev.RouteChanged("p", "m1"), 4),
            recorded(ev.RouteChanged("p", None), 5, occurred_at=90),
            appended(6, (CALL, "a"), (CALL, "b"), (TEXT, None)),
            appended(7, (RESULT, "a"), occurred_at=60),
            recorded(ev.UsageReported("m", 10, 999, 20, 3), 8),
            recorded(ev.ForeignCompaction("t", "compact", None, None), 9),
            recorded(ev.ForeignCompaction("t", "micro", None, None), 10),
        ],
    )
    assert asdict(state) == {
        "opened": True, "relation": "fork", "format": "fmt", "parent": "session/p", "parent_seq": 4,
        "title": "second", "model": None, "messages": 2, "calls": 2, "results": 1, "compactions": 1,
        "first": 20, "last": 90, "prompt_tokens": 33,
    }  # fmt: skip
    assert described.REDUCER.canonical(state) == asdict(state)


def test_a_session_opens_once() -> None:
    first, second = (
        recorded(ev.SessionOpened("s", r, "f"), n) for n, r in ((1, "root"), (2, "fork"))
    )
    state = run(described.REDUCER, [first])
    assert described.REDUCER.refusal(state, second) == "the session is open already"
    assert described.REDUCER.evolve(state, second).relation == "root"


def test_usage_that_nobody_reported_is_unknown_and_not_zero() -> None:
    def after(*usage: ev.UsageReported) -> int | None:
        events = [recorded(u, n) for n, u in enumerate(usage, 1)]
        tokens: int | None = run(described.REDUCER, events).prompt_tokens
        return tokens

    assert after() is None
    assert after(ev.UsageReported("m", None, 5, None, None)) is None
    assert after(ev.UsageReported("m", None, None, 0, None)) == 0
    report = ev.UsageReported("m", 4, 1, None, None)
    assert after(report, report) == 4


def test_an_item_without_facts_is_not_counted() -> None:
    state = run(described.REDUCER, [recorded(ev.ItemAppended(b""), 1), appended(2)])
    assert state.messages == 1
    assert run(described.REDUCER, [recorded(ev.ItemReplaced(b""), 1, item=facts())]).messages == 0
