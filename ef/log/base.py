"""What a log is: drafts go in, records come out; and the one place where a draft becomes a record.

Invariants: a stream's seqs are 1, 2, 3 … without a gap; each record holds the digest of the record before it
in its stream and in its store; an idempotency key names one event of its stream for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from ..codec import kinds
from ..codec.digests import ZERO, commitment, recent_uuid, record_digest
from ..codec.record import LEVEL, LEVEL_KEPT, Frame, encode_frame, encode_header, pack_body
from ..errors import KeyConflict, NotFound, TipConflict
from ..events import (
    Basis,
    Cause,
    Channel,
    Event,
    Group,
    Header,
    ItemFacts,
    Origin,
    Place,
    SessionOpened,
    SourceLines,
)
from ..events.quick import quick

GENESIS_STREAM = "store"


@quick
@dataclass(frozen=True, slots=True)
class Tip:
    """The end of a chain: seq of its last record (0: empty) and that record's digest."""

    seq: int
    digest: bytes


EMPTY = Tip(0, ZERO)
Assigned = Mapping[tuple[str, str], Tip]
"""(stream, key) of the drafts before this one in the batch -> the seq and digest that they got."""
LateEvent = Callable[[Assigned], Event]
"""An event that cites records of its own batch: made when those have their seq and digest. Must be pure."""


@quick
@dataclass(frozen=True, slots=True)
class Draft:
    """An event that is to be appended. `event` may be made late, from what the batch's earlier drafts got."""

    stream: str
    key: str
    event: Event | LateEvent
    channel: Channel
    occurred_at: int | None = None
    basis: Basis = Basis.UNKNOWN
    origin: Origin | None = None
    cause: Cause | None = None
    group: Group | None = None
    item: ItemFacts | None = None
    reader: tuple[str, int] | None = None
    place: Place = Place.INLINE
    cause_key: str | None = None
    """Instead of `cause`: the key, in the same stream, of the event that this one answers or replaces."""
    packed: tuple[str, bytes] | None = None
    """The body as `pack_body` made it, where that was done before: its encoding and bytes."""


@quick
@dataclass(frozen=True, slots=True)
class Appended:
    """Where a draft went: its seq and digest; `new` is False when its key was there already."""

    seq: int
    digest: bytes
    new: bool


@quick
@dataclass(frozen=True, slots=True)
class Record:
    """A record as read: verified frame and place in the store's global order. `body` needs the log (`Log.body`)."""

    position: int
    frame: Frame

    @property
    def header(self) -> Header:
        """The record's header."""
        return self.frame.header

    @property
    def digest(self) -> bytes:
        """The record's digest."""
        return self.frame.digest


class Log(Protocol):
    """All streams of one store. Every read that hands out a record has checked its digest."""

    def append(
        self, drafts: Sequence[Draft], *, expect: Mapping[str, Tip] | None = None
    ) -> list[Appended]:
        """Append all drafts or none; durable when it returns. `expect` names the tips that streams must have."""
        ...

    def append_nowait(
        self, drafts: Sequence[Draft], *, expect: Mapping[str, Tip] | None = None
    ) -> Future[list[Appended]]:
        """Append without waiting; the future is set when they are durable. Appends of one caller keep their order."""
        ...

    async def aappend(
        self, drafts: Sequence[Draft], *, expect: Mapping[str, Tip] | None = None
    ) -> list[Appended]:
        """Append; durable when it returns, and the event loop goes on meanwhile."""
        ...

    def tip(self, stream: str) -> Tip:
        """The stream's tip; EMPTY for a stream that does not exist."""
        ...

    def read(self, stream: str, *, after: int = 0, upto: int | None = None) -> Iterator[Record]:
        """Records of a stream in seq order, after < seq <= upto, as of the moment of the call."""
        ...

    def get(self, stream: str, seq: int) -> Record:
        """One record; NotFound if there is none."""
        ...

    def find(self, stream: str, key: str) -> int | None:
        """The seq of the event that a key names."""
        ...

    def streams(self, prefix: str = "") -> Iterator[tuple[str, Tip]]:
        """Names and tips of streams."""
        ...

    def body(self, record: Record) -> bytes:
        """The record's plain body bytes, checked against its commitment."""
        ...


@quick
@dataclass(frozen=True, slots=True)
class Prepared:
    """A record ready to be put: everything but the position. `plain` are its body's bytes before they were packed."""

    header: Header
    digest: bytes
    frame: bytes
    plain: bytes


class Known(Protocol):
    """What `prepare` must know of the store, read before the write and checked again inside it."""

    def tip(self, stream: str) -> Tip:
        """The tip of a stream."""
        ...

    def record_of(self, stream: str, key: str) -> tuple[Record, bytes] | None:
        """The record that a key names, with its plain body."""
        ...


def prepare(
    drafts: Iterable[Draft],
    known: Known,
    *,
    store_digest: bytes,
    recorded_at: int,
    salt: Callable[[], bytes],
    expect: Mapping[str, Tip],
) -> tuple[list[Appended], list[Prepared]]:
    """Turn drafts into chained records; drafts whose key is known become their seq. Raises KeyConflict, TipConflict."""
    tips: dict[str, Tip] = {}
    for stream, wanted in expect.items():
        tips[stream] = known.tip(stream)
        if tips[stream] != wanted:
            raise TipConflict(stream=stream, expected=_show(wanted), found=_show(tips[stream]))
    results: list[Appended] = []
    new: list[Prepared] = []
    assigned = _AssignedOrKnown(known)
    fresh: dict[tuple[str, str], tuple[Header, bytes]] = {}
    for draft in drafts:
        name = (draft.stream, draft.key)
        event = draft.event(assigned) if callable(draft.event) else draft.event
        plain = kinds.encode_body(event)
        found = fresh.get(name) or _stored(known, name)
        if found is not None:
            header, old = found
            _same_or_conflict(draft, event, plain, header, old)
            tip = assigned[name]
            results.append(Appended(tip.seq, tip.digest, False))
        else:
            before = tips.get(draft.stream) or known.tip(draft.stream)
            cause = draft.cause
            if draft.cause_key is not None:
                cause = Cause(draft.stream, assigned[draft.stream, draft.cause_key].seq)
            made = _record(draft, event, plain, before, store_digest, recorded_at, salt(), cause)
            tip = Tip(made.header.seq, made.digest)
            tips[draft.stream], store_digest = tip, made.digest
            fresh[name] = (made.header, plain)
            new.append(made)
            results.append(Appended(tip.seq, tip.digest, True))
        assigned[name] = tip
    return results, new


def _stored(known: Known, name: tuple[str, str]) -> tuple[Header, bytes] | None:
    found = known.record_of(*name)
    return (found[0].header, found[1]) if found else None


class _AssignedOrKnown(dict[tuple[str, str], Tip]):
    """What the batch's drafts got; a key that an earlier batch appended is looked up."""

    def __init__(self, known: Known) -> None:
        super().__init__()
        self._known = known

    def __missing__(self, name: tuple[str, str]) -> Tip:
        found = self._known.record_of(*name)
        if found is None:
            raise NotFound(
                what="event", name=name[1], where=f"stream {name[0]}", remedy="Append it first."
            )
        return Tip(found[0].header.seq, found[0].digest)


def _record(
    draft: Draft,
    event: Event,
    plain: bytes,
    before: Tip,
    store_digest: bytes,
    recorded_at: int,
    salt: bytes,
    cause: Cause | None,
) -> Prepared:
    spec = kinds.spec_of(event)
    where = f"{spec.name} in {draft.stream}"
    if draft.place is Place.SOURCE:
        encoding, stored, kept = "none", plain, b""
    else:
        level = LEVEL_KEPT if isinstance(event, SourceLines) else LEVEL
        encoding, stored = draft.packed or pack_body(plain, where=where, level=level)
        kept = stored
    prev = before.digest
    if before.seq == 0 and isinstance(event, SessionOpened) and event.parent_digest is not None:
        prev = event.parent_digest
    header = Header(
        spec.name,
        spec.version,
        spec.required,
        draft.stream,
        before.seq + 1,
        recent_uuid(draft.stream, draft.key),
        draft.key,
        recorded_at,
        recorded_at if draft.basis is Basis.EQUAL else draft.occurred_at,
        draft.basis,
        draft.channel,
        draft.origin,
        cause,
        draft.group,
        draft.item,
        commitment(salt, stored),
        len(plain),
        draft.place,
        draft.reader,
        encoding,
        prev,
        store_digest,
    )
    data = encode_header(header)
    digest = record_digest(data)
    return Prepared(header, digest, encode_frame(data, salt, kept, digest=digest), plain)


def _same_or_conflict(draft: Draft, event: Event, plain: bytes, header: Header, old: bytes) -> None:
    """A retry says the same again; where it was recorded, when, and which reader's version read it may differ."""
    differs = [
        name
        for name, mine, theirs in (
            ("kind", kinds.spec_of(event).name, header.kind),
            ("channel", draft.channel, header.channel),
            ("body", plain, old),
        )
        if mine != theirs
    ]
    if differs:
        raise KeyConflict(
            stream=draft.stream, key=draft.key, seq=header.seq, difference=", ".join(differs)
        )


def _show(tip: Tip) -> str:
    return f"{tip.seq}:{tip.digest.hex()[:12]}" if tip.seq else "empty"
