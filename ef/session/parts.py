"""Items as parts: a record's bytes through the reader that its header names, with the header's channels."""

from __future__ import annotations

from dataclasses import replace

from ..errors import Damaged
from ..events import Reading, SourceRef
from ..log import Log, Record
from ..readers import read_item


def reading_of(log: Log, record: Record) -> Reading:
    """The reading of an item's record. The header says who speaks: what delivered the bytes knew, the bytes do not."""
    reading = read_item(record.header.reader, log.body(record))
    facts = record.header.item
    if facts is None or len(facts.parts) != len(reading.parts):
        return reading
    parts = tuple(
        replace(p, channel=f.channel) for p, f in zip(reading.parts, facts.parts, strict=True)
    )
    return Reading(reading.role, parts, reading.group)


def quote_of(log: Log, ref: SourceRef) -> bytes:
    """The exact bytes that a reference cites. Raises Damaged when the record is not the one that was cited."""
    record = log.get(ref.stream, ref.seq)
    where = f"stream {ref.stream}, seq {ref.seq}"
    if record.digest != ref.digest:
        raise Damaged(where=where, what="the record is not the one that the reference cites")
    parts = reading_of(log, record).parts
    if ref.part >= len(parts):
        raise Damaged(where=where, what=f"it has no part {ref.part}")
    text = parts[ref.part].text.encode("utf-8", "surrogatepass")
    if not 0 <= ref.start < ref.end <= len(text):
        raise Damaged(where=where, what=f"part {ref.part} has no bytes {ref.start} to {ref.end}")
    return text[ref.start : ref.end]
