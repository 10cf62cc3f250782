"""The record: a small header without transcript text, and references to records."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .items import Channel, ItemFacts
from .quick import quick


class Basis(StrEnum):
    """Where `occurred_at` comes from: the provider claimed it, it equals recorded_at, or nobody knows."""

    CLAIMED = "claimed"
    EQUAL = "equal"
    UNKNOWN = "unknown"


class Place(StrEnum):
    """Where a record's body bytes are: beside the header, in a blob, or in a span of a source."""

    INLINE = "inline"
    BLOB = "blob"
    SOURCE = "source"


@quick
@dataclass(frozen=True, slots=True)
class Origin:
    """Where the bytes came from: source id, line number (from 1), byte range [start, end) in the source."""

    source: str
    line: int
    start: int
    end: int


@quick
@dataclass(frozen=True, slots=True)
class Cause:
    """The event that this one answers or replaces."""

    stream: str
    seq: int


@quick
@dataclass(frozen=True, slots=True)
class Group:
    """The items of one model response; `inferred` when the provider gave no id for it."""

    id: str
    inferred: bool = False


@quick
@dataclass(frozen=True, slots=True)
class SourceRef:
    """What grounds an anchor: a span (UTF-8 bytes, end exclusive) of one part of one recorded item.

    Never a copied quote and never a position. `item_key` is the item's idempotency key: it is what enters
    the state digest, so that the same history in another store has the same digest.
    """

    stream: str
    seq: int
    part: int
    start: int
    end: int
    digest: bytes
    channel: Channel
    kind: str
    item_key: str


@quick
@dataclass(frozen=True, slots=True)
class Header:
    """A record's header; the field order is the order of the CBOR array (see docs/log-format.md).

    Times are microseconds since 1970-01-01 UTC. `prev_stream` and `prev_store` are digests of 32 bytes.
    """

    kind: str
    version: int
    required: bool
    stream: str
    seq: int
    uuid: bytes
    key: str
    recorded_at: int
    occurred_at: int | None
    basis: Basis
    channel: Channel
    origin: Origin | None
    cause: Cause | None
    group: Group | None
    item: ItemFacts | None
    commitment: bytes
    body_size: int
    place: Place
    reader: tuple[str, int] | None
    encoding: str
    prev_stream: bytes
    prev_store: bytes
