"""Heads and supersession: for each key the one current anchor, and the newest one that contests it.

Rule: an anchor becomes the head of its key when its rank is at least the head's; a lower one is kept as contested and
the value stays. Superseded anchors leave the state; the log keeps them, and audit finds them there.
A head's lifecycle (see `lifecycle`): contested; unsupported, when the item that it cites was given other content since;
stale, when a later run of the whole suite overtook the narrow run that it tells of; else active.
Invariants: one head a key; the state grows with the number of keys and of replaced items, never with history.
Refuses (the state stays as it was): anchors that the gate refuses; anchors delivered by a channel that may not speak
for theirs; sources in this stream that lie in the future.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import NoneType
from typing import Any

from ..events import Anchor, AnchorDeclared, AnchorKey, Channel, ItemReplaced, Recorded
from ..events.shapes import is_list, is_map
from . import gate
from .contract import Reducer
from .saved import anchor_of, anchor_row, checked, row_types, texts
from .scopes import whole_suite


@dataclass(frozen=True, slots=True)
class Head:
    """An anchor that holds, and the seq of the event that declared it."""

    anchor: Anchor
    seq: int
    superseded: int | None


@dataclass(slots=True)
class Heads:
    """The state. `heads` and `contested` by the key's text; `green`: seq of the newest green run of a whole suite.

    `citing`: by seq of a cited item the keys whose heads cite it; `content`: by an item's seq the event that last
    gave it other content; `unsupported`: keys whose heads cite content that is no more.
    """

    heads: dict[str, Head] = field(default_factory=dict[str, Head])
    contested: dict[str, Head] = field(default_factory=dict[str, Head])
    green: dict[str, int] = field(default_factory=dict[str, int])
    citing: dict[int, set[str]] = field(default_factory=dict[int, set[str]])
    content: dict[int, int] = field(default_factory=dict[int, int])
    unsupported: set[str] = field(default_factory=set[str])


def lifecycle(state: Heads, key: str) -> str:
    """A head's lifecycle: contested, unsupported, stale or active."""
    if key in state.contested:
        return "contested"
    if key in state.unsupported:
        return "unsupported"
    return "stale" if _overtaken(state, key) else "active"


def _overtaken(state: Heads, key: str) -> bool:
    """Whether a later run of the whole suite says more of this narrow run's tests than it does itself."""
    head = state.heads[key]
    whole = whole_suite(head.anchor.key)
    if whole is None:
        return False
    if state.green.get(str(whole), 0) > head.seq:
        return True
    over = state.heads.get(str(whole))
    if over is None or over.seq < head.seq:
        return False
    status = state.heads.get(str(AnchorKey("test", head.anchor.key.entity, "status")))
    if status is not None and status.anchor.value == "passed":
        return True  # the whole suite failed since: that these pass is not known any more
    return _names_all(state, whole)


def _names_all(state: Heads, whole: AnchorKey) -> bool:
    """Whether the whole run that failed went through and named every test that failed."""
    failing = state.heads.get(str(AnchorKey("test", whole.entity, "failing")))
    counts = state.heads.get(str(AnchorKey("test", whole.entity, "counts")))
    if (
        failing is None
        or counts is None
        or not is_list(failing.anchor.value)
        or not is_map(counts.anchor.value)
    ):
        return False
    failed, passed = counts.anchor.value.get("failed"), counts.anchor.value.get("passed")
    return bool(passed) and failed == len(failing.anchor.value)


def _refusal(state: Heads, recorded: Recorded) -> str | None:
    if not isinstance(recorded.event, AnchorDeclared):
        return None
    anchor, header = recorded.event.anchor, recorded.header
    speaks = {Channel.OPERATOR, anchor.channel}
    if anchor.channel is not Channel.OPERATOR:
        # It reads what others said; the references say who, and verify checks them.
        speaks.add(Channel.OBSERVER)
    if header.channel not in speaks:
        return f"{header.channel.value} delivered it, and it claims to be {anchor.channel.value}'s word"
    for ref in anchor.sources:
        if ref.stream == header.stream and ref.seq >= header.seq:
            return f"it cites event {ref.seq}, which is not before it"
    return gate.refusal(anchor)


def _accept(state: Heads, recorded: Recorded) -> Heads:
    event, header = recorded.event, recorded.header
    cause = header.cause if isinstance(event, ItemReplaced) and header.item is not None else None
    if cause is not None and cause.stream == header.stream:
        place = cause.seq
        for seq in (place, state.content.get(place, place)):
            state.unsupported |= state.citing.get(seq, set())
        state.content[place] = header.seq
    if not isinstance(event, AnchorDeclared):
        return state
    anchor, key = event.anchor, str(event.anchor.key)
    head = state.heads.get(key)
    if head is None or gate.rank(anchor) >= gate.rank(head.anchor):
        _crown(
            state, key, head, Head(anchor, header.seq, head.seq if head else None), header.stream
        )
        contest = state.contested.get(key)
        if contest is not None and gate.rank(anchor) >= gate.rank(contest.anchor):
            del state.contested[key]
    else:
        state.contested[key] = Head(anchor, header.seq, None)
    return state


def _crown(state: Heads, key: str, old: Head | None, new: Head, stream: str) -> None:
    """The new head of a key; what is kept of the old one's sources goes with it."""
    for ref in old.anchor.sources if old else ():
        keys = state.citing.get(ref.seq)
        if keys is not None:
            keys.discard(key)
            if not keys:
                del state.citing[ref.seq]
    for ref in new.anchor.sources:
        if ref.stream == stream:
            state.citing.setdefault(ref.seq, set()).add(key)
    state.heads[key] = new
    state.unsupported.discard(key)
    name = new.anchor.key
    plain_run = name.namespace == "test" and name.property == "status" and ":" not in name.entity
    if plain_run and new.anchor.value == "passed":
        state.green[key] = new.seq


def _anchor_value(anchor: Anchor, life: str) -> list[Any]:
    """What of an anchor enters the state digest: sources as (item key, part, span); no seq, no time, no uuid."""
    sources = [[r.item_key, r.part, r.start, r.end] for r in anchor.sources]
    return [
        anchor.kind.value, anchor.value, anchor.unit, anchor.authority.value, anchor.channel.value, life,
        sources, [anchor.rule.name, anchor.rule.version],
    ]  # fmt: skip


def holds(state: Heads) -> Any:
    """What holds, as it enters the state digest: the same for the same history in any store."""
    return {
        "heads": {
            key: _anchor_value(h.anchor, lifecycle(state, key)) for key, h in state.heads.items()
        },
        "contested": {
            key: _anchor_value(h.anchor, "contested") for key, h in state.contested.items()
        },
    }


def _canonical(state: Heads) -> Any:
    """All of the state: what holds, and what decides of later events (where it stands, what was green, what was
    replaced).
    """
    memory = {
        "seqs": {key: [h.seq, h.superseded] for key, h in state.heads.items()},
        "contested": {key: h.seq for key, h in state.contested.items()},
        "cited": {key: sorted({r.seq for r in h.anchor.sources}) for key, h in state.heads.items()},
        "green": state.green,
        "content": [[place, seq] for place, seq in sorted(state.content.items())],
        "unsupported": sorted(state.unsupported),
    }
    return {**holds(state), "memory": memory}


def _dump(state: Heads) -> Any:
    """All of the state. Maps go in as lists, in their order: a loaded state goes through its keys as this one does."""
    return [
        [[h.seq, h.superseded, anchor_row(h.anchor)] for h in state.heads.values()],
        [[h.seq, h.superseded, anchor_row(h.anchor)] for h in state.contested.values()],
        [[key, seq] for key, seq in state.green.items()],
        [[seq, sorted(keys)] for seq, keys in state.citing.items()],
        [[place, seq] for place, seq in state.content.items()],
        sorted(state.unsupported),
    ]


def _load(value: Any) -> Heads:
    heads, contested, green, citing, content, unsupported = value
    return Heads(
        _heads_of(heads),
        _heads_of(contested),
        dict(checked(row, _GREEN) for row in green),
        {seq: set(texts(keys)) for seq, keys in (checked(row, _CITING) for row in citing)},
        dict(checked(row, _CONTENT) for row in content),
        set(texts(unsupported)),
    )


def _heads_of(rows: Any) -> dict[str, Head]:
    found = (
        Head(anchor_of(row), seq, superseded)
        for seq, superseded, row in (checked(row, _HEAD) for row in rows)
    )
    return {str(head.anchor.key): head for head in found}


_HEAD = row_types(int, (int, NoneType), list)
_GREEN = row_types(str, int)
_CITING = row_types(int, list)
_CONTENT = row_types(int, int)

_KINDS = frozenset({AnchorDeclared, ItemReplaced})

REDUCER = Reducer("heads", 1, Heads, _accept, _refusal, _canonical, _dump, _load, kinds=_KINDS)
