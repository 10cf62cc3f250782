"""Records as what they say: typed events, items as parts, and the bytes that a reference cites."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..codec import kinds
from ..errors import Damaged
from ..events import Event, Header, Origin, Part, PartFacts, Reading, Recorded, SourceRef
from ..readers import read_item
from ..readers.tools import named
from .base import Log, Record

CITED_BYTES_MAX = 16 << 20
ITEM_BYTES = 2048
"""What a small item takes beside its text, roughly."""


def where_of(record: Record) -> str:
    """A record's place, for messages."""
    return f"stream {record.header.stream}, seq {record.header.seq}"


def event_of(log: Log, record: Record) -> Event:
    """The typed event of a record, its body read and checked."""
    h = record.header
    return kinds.decode_body(
        h.kind, h.version, log.body(record), where=where_of(record), trusted=True
    )


def recorded(
    log: Log, stream: str, *, after: int = 0, upto: int | None = None
) -> Iterator[Recorded]:
    """A stream's events as reducers meet them: raw kinds (items, source lines) without their bytes."""
    for record in log.read(stream, after=after, upto=upto):
        yield recorded_of(log, record)


def recorded_of(log: Log, record: Record) -> Recorded:
    """A record as reducers meet it. See `recorded`."""
    h = record.frame.header
    event = _WITHOUT_BYTES.get((h.kind, h.version))
    if event is None:
        event = event_of(log, record)
    return Recorded(h, record.frame.digest, event)


def recorded_as(record: Record, event: Event) -> Recorded:
    """A record whose event, with its bytes, is at hand, as reducers meet it. See `recorded`."""
    h = record.frame.header
    bare = _WITHOUT_BYTES.get((h.kind, h.version))
    return Recorded(h, record.frame.digest, event if bare is None else bare)


_WITHOUT_BYTES: dict[tuple[str, int], Event] = {
    (spec.name, spec.version): spec.type(b"") for spec in kinds.KINDS if spec.raw
}


def reading_of(log: Log, record: Record) -> Reading:
    """The reading of an item's record."""
    return read_as(record.header, log.body(record))


def read_as(header: Header, body: bytes) -> Reading:
    """The reading of an item's bytes. The header says who speaks, and what calls are named where their provider names
    none: its writer knew what the bytes alone do not say.
    """
    reading = read_item(header.reader, body)
    facts = header.item
    if facts is None or len(facts.parts) != len(reading.parts):
        return reading
    pairs = zip(reading.parts, facts.parts, strict=True)
    group = header.group.id if header.group is not None else reading.group
    return Reading(reading.role, tuple(_as_told(*pair) for pair in pairs), group)


def _as_told(part: Part, fact: PartFacts) -> Part:
    if part.call_id != fact.call_id and part.kind is fact.kind:
        part = named(part, fact.call_id or "")
    return part if part.channel is fact.channel else replace(part, channel=fact.channel)


def quote_of(log: Log, ref: SourceRef) -> bytes:
    """The exact bytes that a reference cites. Raises Damaged when the record is not the one that was cited."""
    return Cited(log).quote(ref)


class Cited:
    """The items that references cite, each read once, as long as they take no more than `CITED_BYTES_MAX`."""

    def __init__(self, log: Log, near: Mapping[tuple[str, int], Record] | None = None) -> None:
        """`near`: records by stream and seq that need not be read."""
        self._log, self._near = log, near or {}
        self._items: dict[tuple[str, int], tuple[Record, list[bytes]]] = {}
        self._bytes = 0

    def quote(self, ref: SourceRef) -> bytes:
        """The exact bytes that a reference cites. Raises Damaged when the record is not the one that was cited."""
        record, texts = self._item(ref.stream, ref.seq)
        if record.digest != ref.digest:
            raise Damaged(
                where=where_of(record), what="the record is not the one that the reference cites"
            )
        if not 0 <= ref.part < len(texts):
            raise Damaged(where=where_of(record), what=f"it has no part {ref.part}")
        text = texts[ref.part]
        if not 0 <= ref.start < ref.end <= len(text):
            what = f"part {ref.part} has no bytes {ref.start} to {ref.end}"
            raise Damaged(where=where_of(record), what=what)
        return text[ref.start : ref.end]

    def record(self, ref: SourceRef) -> Record:
        """The record that is cited, whatever it is."""
        return self._item(ref.stream, ref.seq)[0]

    def origin(self, ref: SourceRef) -> Origin | None:
        """The line of an imported source that the cited item came from."""
        return self._item(ref.stream, ref.seq)[0].header.origin

    def _item(self, stream: str, seq: int) -> tuple[Record, list[bytes]]:
        found = self._items.get((stream, seq))
        if found is None:
            record = self._near.get((stream, seq)) or self._log.get(stream, seq)
            parts = reading_of(self._log, record).parts
            found = record, [part.text.encode("utf-8", "surrogatepass") for part in parts]
            self._bytes += sum(map(len, found[1])) + ITEM_BYTES
            if self._bytes > CITED_BYTES_MAX:
                self._items.clear()
                self._bytes = 0
            self._items[stream, seq] = found
        return found
