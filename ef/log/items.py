"""Records as what they say: typed events, items as parts, and the bytes that a reference cites."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..codec import kinds
from ..errors import Damaged
from ..events import Event, Reading, Recorded, SourceRef
from ..readers import read_item
from .base import Log, Record


def where_of(record: Record) -> str:
    """A record's place, for messages."""
    return f"stream {record.header.stream}, seq {record.header.seq}"


def event_of(log: Log, record: Record) -> Event:
    """The typed event of a record, its body read and checked."""
    h = record.header
    return kinds.decode_body(h.kind, h.version, log.body(record), where=where_of(record))


def recorded(
    log: Log, stream: str, *, after: int = 0, upto: int | None = None
) -> Iterator[Recorded]:
    """A stream's events as reducers meet them: raw kinds (items, source lines) without their bytes."""
    for record in log.read(stream, after=after, upto=upto):
        h = record.header
        spec = kinds.BY_NAME.get(h.kind)
        plain = b"" if spec is not None and spec.raw else log.body(record)
        yield Recorded(
            h, record.digest, kinds.decode_body(h.kind, h.version, plain, where=where_of(record))
        )


def reading_of(log: Log, record: Record) -> Reading:
    """The reading of an item's record. The header says who speaks: its writer knew what the bytes alone do not say."""
    reading = read_item(record.header.reader, log.body(record))
    facts = record.header.item
    if facts is None or len(facts.parts) != len(reading.parts):
        return reading
    pairs = zip(reading.parts, facts.parts, strict=True)
    parts = tuple(replace(part, channel=fact.channel) for part, fact in pairs)
    return Reading(reading.role, parts, reading.group)


def quote_of(log: Log, ref: SourceRef) -> bytes:
    """The exact bytes that a reference cites. Raises Damaged when the record is not the one that was cited."""
    record = log.get(ref.stream, ref.seq)
    if record.digest != ref.digest:
        raise Damaged(
            where=where_of(record), what="the record is not the one that the reference cites"
        )
    parts = reading_of(log, record).parts
    if not 0 <= ref.part < len(parts):
        raise Damaged(where=where_of(record), what=f"it has no part {ref.part}")
    text = parts[ref.part].text.encode("utf-8", "surrogatepass")
    if not 0 <= ref.start < ref.end <= len(text):
        raise Damaged(
            where=where_of(record), what=f"part {ref.part} has no bytes {ref.start} to {ref.end}"
        )
    return text[ref.start : ref.end]
