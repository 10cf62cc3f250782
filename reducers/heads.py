"""Heads and supersession: for each key the one current anchor, and the newest one that contests it.

Rule: an anchor becomes the head of its key when its rank is at least the head's; a lower one is kept as contested and
the value stays. Superseded anchors leave the state; the log keeps them, and audit finds them there.
Invariants: one head a key; the state grows with the number of keys, never with history.
Refuses (the state stays as it was): anchors that the gate refuses; anchors delivered by a channel that may not speak
for theirs; sources in this stream that lie in the future.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..events import Anchor, AnchorDeclared, Channel, Recorded
from . import gate
from .contract import Reducer


@dataclass(frozen=True, slots=True)
class Head:
    """An anchor that holds, and the seq of the event that declared it."""

    anchor: Anchor
    seq: int
    superseded: int | None


@dataclass(slots=True)
class Heads:
    """The state. `heads` and `contested` by the key's text."""

    heads: dict[str, Head] = field(default_factory=dict[str, Head])
    contested: dict[str, Head] = field(default_factory=dict[str, Head])


def _refusal(state: Heads, recorded: Recorded) -> str | None:
    if not isinstance(recorded.event, AnchorDeclared):
        return None
    anchor, header = recorded.event.anchor, recorded.header
    if anchor.channel is Channel.OPERATOR and header.channel is not Channel.OPERATOR:
        return f"{header.channel.value} delivered it, and it claims to be the operator's"
    for ref in anchor.sources:
        if ref.stream == header.stream and ref.seq >= header.seq:
            return f"it cites event {ref.seq}, which is not before it"
    return gate.refusal(anchor)


def _evolve(state: Heads, recorded: Recorded) -> Heads:
    if not isinstance(recorded.event, AnchorDeclared) or _refusal(state, recorded):
        return state
    anchor = recorded.event.anchor
    key = str(anchor.key)
    head = state.heads.get(key)
    if head is None or gate.rank(anchor) >= gate.rank(head.anchor):
        state.heads[key] = Head(anchor, recorded.header.seq, head.seq if head else None)
        contest = state.contested.get(key)
        if contest is not None and gate.rank(anchor) >= gate.rank(contest.anchor):
            del state.contested[key]
    else:
        state.contested[key] = Head(anchor, recorded.header.seq, None)
    return state


def _anchor_value(anchor: Anchor, lifecycle: str) -> list[Any]:
    """What of an anchor enters the state digest: sources as (item key, part, span); no seq, no time, no uuid."""
    sources = [[r.item_key, r.part, r.start, r.end] for r in anchor.sources]
    return [
        anchor.kind.value, anchor.value, anchor.unit, anchor.authority.value, anchor.channel.value, lifecycle,
        sources, [anchor.rule.name, anchor.rule.version],
    ]  # fmt: skip


def _canonical(state: Heads) -> Any:
    return {
        "heads": {
            key: _anchor_value(h.anchor, "contested" if key in state.contested else "active")
            for key, h in state.heads.items()
        },
        "contested": {
            key: _anchor_value(h.anchor, "contested") for key, h in state.contested.items()
        },
    }


REDUCER = Reducer("heads", 1, Heads, _evolve, _refusal, _canonical)
