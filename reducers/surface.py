"""The surface: the ordered nodes that the model sees, and which call has which result.

Rule: an item is a node at the place where it was appended; a replaced item keeps its place and reads from the
replacement. A result belongs to the newest call with its id that has none yet and is not closed (providers reuse ids).
Invariants: a call has at most one result; a result of a closed call is late: kept, and not handed out a second time.
Refuses: closing a call that is not open; replacing an item that is not on the surface.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..events import CallClosed, ItemAppended, ItemFacts, ItemReplaced, PartKind, Recorded
from .contract import Reducer

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
    """Nodes in order; open calls by id; for each call with a result, that result's place; closed calls;
    late results.
    """

    nodes: dict[int, Node] = field(default_factory=dict)
    open: dict[str, list[Place]] = field(default_factory=dict)
    results: dict[Place, Place] = field(default_factory=dict)
    answered: dict[Place, Place] = field(default_factory=dict)
    closed: dict[Place, str] = field(default_factory=dict)
    closed_ids: dict[str, Place] = field(default_factory=dict)
    late: dict[Place, Place] = field(default_factory=dict)
    orphans: set[Place] = field(default_factory=set)


def _refusal(state: Surface, recorded: Recorded) -> str | None:
    header, event = recorded.header, recorded.event
    if isinstance(event, CallClosed):
        if (event.item_seq, event.part) not in state.open.get(event.call_id, ()):
            return f"it closes call {event.call_id} of event {event.item_seq}, which is not open"
    elif isinstance(event, ItemReplaced):
        if header.cause is None or header.cause.seq not in state.nodes:
            return "it replaces an item that is not on the surface"
        if header.item is None:
            return "it has no item facts"
    elif isinstance(event, ItemAppended) and header.item is None:
        return "it has no item facts"
    return None


def _evolve(state: Surface, recorded: Recorded) -> Surface:
    header, event = recorded.header, recorded.event
    if not isinstance(event, (ItemAppended, ItemReplaced, CallClosed)) or _refusal(state, recorded):
        return state
    if isinstance(event, CallClosed):
        place = (event.item_seq, event.part)
        state.open[event.call_id].remove(place)
        if not state.open[event.call_id]:
            del state.open[event.call_id]
        state.closed[place] = event.outcome
        state.closed_ids[event.call_id] = place
        return state
    assert header.item is not None
    if isinstance(event, ItemReplaced):
        assert header.cause is not None
        node = state.nodes[header.cause.seq]
        _forget(state, node)
        node.content_seq, node.facts = header.seq, header.item
        node.group = header.group.id if header.group else None
    else:
        group = header.group.id if header.group else None
        node = state.nodes[header.seq] = Node(
            header.seq, header.key, header.seq, header.item, group
        )
    _pair(state, node)
    return state


def _pair(state: Surface, node: Node) -> None:
    for n, part in enumerate(node.facts.parts):
        place, call_id = (node.seq, n), part.call_id or ""
        if part.kind is PartKind.TOOL_CALL:
            state.open.setdefault(call_id, []).append(place)
        elif part.kind is PartKind.TOOL_RESULT:
            waiting = state.open.get(call_id)
            if waiting:
                call = waiting.pop()
                if not waiting:
                    del state.open[call_id]
                state.results[call], state.answered[place] = place, call
            elif call_id in state.closed_ids:
                state.late[place] = state.closed_ids[call_id]
            else:
                state.orphans.add(place)


def _forget(state: Surface, node: Node) -> None:
    """Take a node's parts out of the pairing before it is paired anew with its new content."""
    for n, part in enumerate(node.facts.parts):
        place, call_id = (node.seq, n), part.call_id or ""
        if part.kind is PartKind.TOOL_CALL:
            waiting = state.open.get(call_id, [])
            if place in waiting:
                waiting.remove(place)
                if not waiting:
                    del state.open[call_id]
            result = state.results.pop(place, None)
            if result is not None:
                del state.answered[result]
                state.orphans.add(result)
            if state.closed.pop(place, None) is not None and state.closed_ids.get(call_id) == place:
                del state.closed_ids[call_id]
        elif part.kind is PartKind.TOOL_RESULT:
            call = state.answered.pop(place, None)
            if call is not None:
                del state.results[call]
                state.open.setdefault(call_id, []).append(call)
            state.late.pop(place, None)
            state.orphans.discard(place)


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


REDUCER = Reducer("surface", 1, Surface, _evolve, _refusal, _canonical)
