"""The surface: the ordered nodes that the model sees, and which call has which result.

Rule: an item is a node at the place where it was appended; a replaced item keeps its place and reads from the
replacement, and its parts keep what the replaced ones with the same call id were paired with. A result belongs to the
newest call before it with its id that has none yet and is not closed (providers reuse ids).
Invariants: a call has at most one result; a result of a closed call is late: kept, and not handed out a second time.
Refuses: closing a call that is not open; replacing an item that is not on the surface.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import NoneType
from typing import Any

from ..events import (
    CallClosed,
    ItemAppended,
    ItemFacts,
    ItemReplaced,
    PartFacts,
    PartKind,
    Recorded,
)
from .contract import Reducer
from .saved import checked, facts_of, facts_row, row_types

_CALL, _RESULT = PartKind.TOOL_CALL, PartKind.TOOL_RESULT
Place = tuple[int, int]
"""(seq of the item, part number)."""


@dataclass(slots=True)
class Node:
    """An item on the surface. `seq` is its place's event; `content_seq` the event that holds its bytes now."""

    seq: int
    key: str
    content_seq: int
    facts: ItemFacts
    group: str | None


@dataclass(slots=True)
class Surface:
    """Nodes in order; open and closed calls by id, in order; each answered call's result and each result's call; why a
    call was closed; each late result's closed call; results without a call."""

    nodes: dict[int, Node] = field(default_factory=dict[int, Node])
    open: dict[str, list[Place]] = field(default_factory=dict[str, list[Place]])
    results: dict[Place, Place] = field(default_factory=dict[Place, Place])
    answered: dict[Place, Place] = field(default_factory=dict[Place, Place])
    closed: dict[Place, str] = field(default_factory=dict[Place, str])
    closed_ids: dict[str, list[Place]] = field(default_factory=dict[str, list[Place]])
    late: dict[Place, Place] = field(default_factory=dict[Place, Place])
    orphans: set[Place] = field(default_factory=set[Place])


def _refusal(state: Surface, recorded: Recorded) -> str | None:
    header, event = recorded.header, recorded.event
    if isinstance(event, ItemAppended):
        return None if header.item is not None else "it has no item facts"
    if isinstance(event, CallClosed):
        if (event.item_seq, event.part) not in state.open.get(event.call_id, ()):
            return f"it closes call {event.call_id} of event {event.item_seq}, which is not open"
    elif isinstance(event, ItemReplaced):
        cause = header.cause
        if cause is None or cause.stream != header.stream or cause.seq not in state.nodes:
            return "it replaces an item that is not on the surface"
        if header.item is None:
            return "it has no item facts"
    return None


def _accept(state: Surface, recorded: Recorded) -> Surface:
    header, event = recorded.header, recorded.event
    if isinstance(event, CallClosed):
        place = (event.item_seq, event.part)
        _take(state.open, event.call_id, place)
        state.closed[place] = event.outcome
        insort(state.closed_ids.setdefault(event.call_id, []), place)
    elif isinstance(event, (ItemAppended, ItemReplaced)):
        assert header.item is not None
        parts, group = header.item.parts, header.group.id if header.group else None
        if isinstance(event, ItemReplaced):
            assert header.cause is not None
            node = state.nodes[header.cause.seq]
            for n in _replace(state, node, header.item):
                _pair(state, (node.seq, n), parts[n])
            node.content_seq, node.facts, node.group = header.seq, header.item, group
        else:
            state.nodes[header.seq] = Node(header.seq, header.key, header.seq, header.item, group)
            for n, part in enumerate(parts):
                if part.kind is _CALL or part.kind is _RESULT:
                    _pair(state, (header.seq, n), part)
    return state


def _pair(state: Surface, place: Place, part: PartFacts) -> None:
    """Find what a new call or result belongs to: only what stands before it."""
    call_id = part.call_id or ""
    if part.kind is _CALL:
        insort(state.open.setdefault(call_id, []), place)
    elif call := _waiting_before(state, state.open, call_id, place):
        _take(state.open, call_id, call)
        state.results[call], state.answered[place] = place, call
    elif call := _waiting_before(state, state.closed_ids, call_id, place):
        state.late[place] = call
    else:
        state.orphans.add(place)


def _waiting_before(
    state: Surface, calls: dict[str, list[Place]], call_id: str, place: Place
) -> Place | None:
    """The call that a result answers: of the newest response that has one of that id, the first one."""
    known = calls.get(call_id, [])
    at = bisect_left(known, place)
    if not at:
        return None
    newest = known[at - 1]
    group = state.nodes[newest[0]].group
    for call in reversed(known[: at - 1]):
        if call[0] != newest[0] and (group is None or state.nodes[call[0]].group != group):
            break
        newest = call
    return newest


def _take(calls: dict[str, list[Place]], call_id: str, place: Place) -> None:
    calls[call_id].remove(place)
    if not calls[call_id]:
        del calls[call_id]


def _replace(state: Surface, node: Node, facts: ItemFacts) -> list[int]:
    """Move the links of a node's parts to those of its new content; the numbers of the parts that are new.

    The n-th call (or result) of an id takes over what the n-th one of that id was paired with. A call whose result is
    gone is open again; a result whose call is gone has none.
    """
    kept: dict[tuple[PartKind, str], list[Place]] = {}
    for place, part in _linked(node.seq, facts):
        kept.setdefault((part.kind, part.call_id or ""), []).append(place)
    moved: dict[Place, tuple[str, Place | None]] = {}
    for place, part in _linked(node.seq, node.facts):
        places = kept.get((part.kind, part.call_id or ""))
        moved[place] = (part.call_id or "", places.pop(0) if places else None)
    _relink(state, moved)
    return sorted(n for places in kept.values() for _, n in places)


def _linked(seq: int, facts: ItemFacts) -> Iterator[tuple[Place, PartFacts]]:
    for n, part in enumerate(facts.parts):
        if part.kind is _CALL or part.kind is _RESULT:
            yield (seq, n), part


def _relink(state: Surface, moved: dict[Place, tuple[str, Place | None]]) -> None:
    """Give places other numbers (or None: gone), each with its call id, everywhere at once."""
    opened = {p for p, (call_id, _) in moved.items() if p in state.open.get(call_id, ())}
    closed = {p: why for p in moved if (why := state.closed.pop(p, None)) is not None}
    late = {p: state.late[p] for p in moved if p in state.late}
    if closed:  # rare: only then all late results are looked at
        late |= {r: c for r, c in state.late.items() if c in closed}
    pairs = {p: state.results[p] for p in moved if p in state.results}
    pairs |= {state.answered[p]: p for p in moved if p in state.answered}
    orphans = {p for p in moved if p in state.orphans}
    for p in opened:
        _take(state.open, moved[p][0], p)
    for p in closed:
        _take(state.closed_ids, moved[p][0], p)
    for result in late:
        del state.late[result]
    for call, result in pairs.items():
        del state.results[call], state.answered[result]
    state.orphans -= orphans

    def now(place: Place) -> Place | None:
        return moved[place][1] if place in moved else place

    for old in opened:
        if place := now(old):
            insort(state.open.setdefault(moved[old][0], []), place)
    for old, why in closed.items():
        if place := now(old):
            state.closed[place] = why
            insort(state.closed_ids.setdefault(moved[old][0], []), place)
    for old, result in pairs.items():
        asked, answer = now(old), now(result)
        if asked and answer:
            state.results[asked], state.answered[answer] = answer, asked
        elif answer:
            state.orphans.add(answer)
        elif asked:
            insort(state.open.setdefault(moved[result][0], []), asked)
    for result, old in late.items():
        asked, answer = now(old), now(result)
        if asked and answer:
            state.late[answer] = asked
        elif answer:
            state.orphans.add(answer)
    state.orphans |= {place for old in orphans if (place := now(old))}


def _canonical(state: Surface) -> Any:
    return {
        "nodes": [
            [n.seq, n.key, n.content_seq, n.facts.role, n.group, [[p.kind.value, p.channel.value, p.call_id] for p in
            n.facts.parts]] for n in state.nodes.values()
        ],
        "open": [[call, [list(p) for p in places]] for call, places in sorted(state.open.items())],
        "results": [[list(c), list(r)] for c, r in sorted(state.results.items())],
        "closed": [[list(c), why] for c, why in sorted(state.closed.items())],
        "late": [[list(r), list(c)] for r, c in sorted(state.late.items())],
        "orphans": [list(p) for p in sorted(state.orphans)],
    }  # fmt: skip


def _dump(state: Surface) -> Any:
    """All of the state; `answered` is `results` the other way round."""
    return [
        [[n.seq, n.key, n.content_seq, n.group, facts_row(n.facts)] for n in state.nodes.values()],
        [[call, places] for call, places in state.open.items()],
        [[*call, *result] for call, result in state.results.items()],
        [[*call, why] for call, why in state.closed.items()],
        [[call, places] for call, places in state.closed_ids.items()],
        [[*result, *call] for result, call in state.late.items()],
        sorted(state.orphans),
    ]


def _load(value: Any) -> Surface:
    nodes, opened, results, closed, closed_ids, late, orphans = value
    pairs = [((a, b), (c, d)) for a, b, c, d in (checked(row, _LINK) for row in results)]
    return Surface(
        {
            seq: Node(seq, key, content_seq, facts_of(facts), group)
            for seq, key, content_seq, group, facts in (checked(row, _NODE) for row in nodes)
        },
        _calls_of(opened),
        dict(pairs),
        {result: call for call, result in pairs},
        {(seq, n): why for seq, n, why in (checked(row, _CLOSED) for row in closed)},
        _calls_of(closed_ids),
        {(a, b): (c, d) for a, b, c, d in (checked(row, _LINK) for row in late)},
        {(seq, n) for seq, n in (checked(row, _PLACE) for row in orphans)},
    )


def _calls_of(rows: Any) -> dict[str, list[Place]]:
    return {
        call: [(seq, n) for seq, n in (checked(place, _PLACE) for place in places)]
        for call, places in (checked(row, _CALLS) for row in rows)
    }


_PLACE = row_types(int, int)
_LINK = row_types(int, int, int, int)
_CALLS = row_types(str, list)
_CLOSED = row_types(int, int, str)
_NODE = row_types(int, str, int, (str, NoneType), list)

_KINDS = frozenset({ItemAppended, ItemReplaced, CallClosed})

REDUCER = Reducer("surface", 2, Surface, _accept, _refusal, _canonical, _dump, _load, kinds=_KINDS)
