"""What a store says of an import, counted from its records: header facts, parts, the surface's pairing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..events import (
    Channel,
    ForeignCompaction,
    Header,
    ItemAppended,
    ItemReplaced,
    Part,
    PartKind,
    UsageReported,
)
from ..events.shapes import is_list, is_map
from ..importers.names import session_stream
from ..log import Record
from ..log.items import event_of, reading_of
from ..session.store import Store

_ITEMS = (ItemAppended.__name__, ItemReplaced.__name__)
_IMAGE_TYPES = ("image", "input_image", "image_url")


@dataclass(slots=True)
class Tally:
    """Counts of one or more sessions, whatever format they come from.

    `typed` are the user's words in order; `texts` the pieces of text in a model's responses; `usage` the responses that
    tokens were reported for; `open` calls that never got a result.
    """

    typed: list[str] = field(default_factory=list[str])
    messages: set[str] = field(default_factory=set[str])
    synthetic: set[str] = field(default_factory=set[str])
    usage: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    items: int = 0
    texts: int = 0
    calls: int = 0
    results: int = 0
    errors: int = 0
    images: int = 0
    compactions: int = 0
    open: list[str] = field(default_factory=list[str])
    orphans: list[str] = field(default_factory=list[str])


def sessions_of(store: Store, names: Iterable[str], *, side: bool) -> list[str]:
    """Those of the sessions that are sub-agents (`side`), or those that are none."""
    found: list[str] = []
    for name in names:
        relation = store.session(name).working().described.relation
        if (relation == "subagent") is side:
            found.append(name)
    return found


def tally(store: Store, names: Iterable[str]) -> Tally:
    """Count what the sessions hold: of an item that was replaced, what it holds now."""
    out = Tally()
    for name in names:
        now: dict[int, Record] = {}
        for record in store.log.read(session_stream(name)):
            _count(store, record, out)
            header = record.header
            if header.kind == ItemAppended.__name__:
                now[header.seq] = record
            elif header.kind == ItemReplaced.__name__ and header.cause is not None:
                now[header.cause.seq] = record
        for record in now.values():
            _item(store, record, out)
        _pairing(store, name, out)
    return out


def items(store: Store, name: str) -> Iterator[Record]:
    """The records of a session's items, replacements too."""
    for record in store.log.read(session_stream(name)):
        if record.header.kind in _ITEMS:
            yield record


def _count(store: Store, record: Record, out: Tally) -> None:
    header = record.header
    if header.kind == ForeignCompaction.__name__:
        event = event_of(store.log, record)
        out.compactions += isinstance(event, ForeignCompaction) and event.form == "compact"
    if header.kind == UsageReported.__name__:
        usage = event_of(store.log, record)
        assert isinstance(usage, UsageReported)
        out.usage.add((header.stream, usage.message_id))
    out.items += header.kind in _ITEMS


def _item(store: Store, record: Record, out: Tally) -> None:
    header = record.header
    assert header.item is not None
    _group(header, out)
    for part in reading_of(store.log, record).parts:
        if part.kind is PartKind.TEXT and part.channel is Channel.USER_TYPED:
            out.typed.append(part.text)
        if part.kind is PartKind.TEXT and header.item.role == "assistant":
            out.texts += bool(part.text)
        out.calls += part.kind is PartKind.TOOL_CALL
        out.results += part.kind is PartKind.TOOL_RESULT
        out.errors += part.result is not None and part.result.is_error
        out.images += _images(part)


def _group(header: Header, out: Tally) -> None:
    assert header.item is not None
    if header.item.role == "assistant" and header.group is not None:
        made_up = all(part.channel is Channel.SYSTEM for part in header.item.parts)
        (out.synthetic if made_up else out.messages).add(header.group.id)


def _images(part: Part) -> int:
    """The images of a part: it is one, or a result that holds some in its provider's form."""
    if part.kind is PartKind.TOOL_RESULT:
        return _image_blocks(part.block)
    return int(part.kind is PartKind.IMAGE)


def _image_blocks(block: Any) -> int:
    found, layer = 0, [block]
    while layer:
        below: list[Any] = []
        for each in layer:
            if is_map(each):
                found += each.get("type") in _IMAGE_TYPES or "inlineData" in each
                below += each.values()
            elif is_list(each):
                below += each
        layer = below
    return found


def _pairing(store: Store, name: str, out: Tally) -> None:
    surface = store.session(name).working().surface

    def call_id(place: tuple[int, int]) -> str:
        return str(surface.nodes[place[0]].facts.parts[place[1]].call_id)

    answered_late = set(surface.late.values())
    out.open += [call for call, places in surface.open.items() for _ in places]
    out.open += [call_id(place) for place in surface.closed if place not in answered_late]
    out.orphans += [call_id(place) for place in sorted(surface.orphans)]
