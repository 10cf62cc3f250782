"""Rows that another program stores through the eventsourcing library: their streams, how they are put, and read.

A row is a record of kind StoredEvent, chained in the store like every other. Its seq is the library's version, so gaps
and version 0 are allowed there (the library's own rules). Names of streams, parts in percent-encoding:

    recorder/ID, recorder:APPLICATION/ID                     events; they alone are notifications
    recorder-PURPOSE/ID, recorder-PURPOSE:APPLICATION/ID     snapshots and the like
    tracking/UPSTREAM, tracking:APPLICATION/UPSTREAM         how far UPSTREAM was followed: the seq is its notification
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from urllib.parse import quote
from uuid import UUID

from eventsourcing.persistence import IntegrityError, NotSupportedError, StoredEvent, Tracking

from .. import events as ev
from ..codec import kinds
from ..codec.digests import commitment, event_uuid, record_digest
from ..codec.record import encode_frame, encode_header, pack_body
from ..errors import Damaged, NotProjectable
from .base import GENESIS_STREAM, Prepared, Record, Tip
from .lmdb_log import PAGE_RECORDS, LmdbLog
from .rows import SEQS, STORED, View

EVENTS = "events"
OWN = ("session/", "source/")
TRACKING_TOPIC = "eventsourcing.persistence:Tracking"


def prefix_of(first: str, application: str) -> str:
    """What the names of an application's streams begin with."""
    return f"{first}:{quote(application, safe='')}/" if application else f"{first}/"


def _is_own(name: str) -> bool:
    """Whether a stream of this name is ef's own."""
    return name == GENESIS_STREAM or name.startswith(OWN)


@dataclass(frozen=True, slots=True)
class _Row:
    """A row to be put, and what it is called where it cannot be. `rising`: its seq must be beyond its stream's tip."""

    stream: str
    seq: int
    event: ev.StoredEvent
    name: str
    rising: bool


class Rows:
    """The rows of one application and purpose in a store. Events of the application "" see ef's own streams too."""

    def __init__(self, log: LmdbLog, application: str = "", purpose: str = EVENTS) -> None:
        self.log = log
        first = "recorder" if purpose == EVENTS else "recorder-" + quote(purpose, safe="")
        self._prefix = prefix_of(first, application)
        self._tracking = prefix_of("tracking", application)
        self._sees_own = not application and purpose == EVENTS

    def insert(self, events: Sequence[StoredEvent], tracking: Tracking | None = None) -> list[int]:
        """Put all or none; the positions of the events. IntegrityError when a version, or a later position, is there.

        NotSupportedError for an id that names a stream of ef's own.
        """
        rows = [self._event_row(event) for event in events]
        if tracking is not None:
            rows.append(self._tracking_row(tracking))
        if not rows:
            return []
        size = sum(1024 + len(event.state) for event in events)
        first = self.log.write(lambda view: self._build(view, rows), size=size)
        return list(range(first, first + len(events)))

    def select(
        self, name: UUID | str, gt: int | None, lte: int | None, *, desc: bool, limit: int | None
    ) -> list[StoredEvent]:
        """Rows of an id with gt < version <= lte in order of version, `desc` from the last; no more than `limit`."""
        records = self._records(str(name), gt, lte, desc, limit)
        return [self._stored(record) for record in islice(records, limit)]

    def tracked(self, upstream: str) -> int | None:
        """How far an application was followed; None where it never was."""
        for record in self.log.stored(self._tracking + upstream, back=True, page=1):
            return record.header.seq
        return None

    def shows(self, record: Record) -> StoredEvent | None:
        """A record as these rows show it; None for one that is not theirs. Raises NotProjectable."""
        h = record.header
        theirs = h.stream.startswith(self._prefix) if h.kind == STORED else self._sees_own
        return self._stored(record) if theirs else None

    def _records(
        self, name: str, gt: int | None, lte: int | None, desc: bool, limit: int | None
    ) -> Iterator[Record]:
        stream = name if self._sees_own and _is_own(name) else self._prefix + name
        first = 0 if gt is None else max(gt + 1, 0)
        last = SEQS - 1 if lte is None else min(lte, SEQS - 1)
        page = PAGE_RECORDS if limit is None else max(min(limit, PAGE_RECORDS), 1)
        return self.log.stored(stream, first, last, back=desc, page=page)

    def _event_row(self, stored: StoredEvent) -> _Row:
        name = str(stored.originator_id)
        if self._sees_own and _is_own(name):
            raise NotSupportedError(f"{name} is a stream of ef: append to it through a session")
        uuid_id = isinstance(stored.originator_id, UUID)
        event = ev.StoredEvent(stored.topic, bytes(stored.state), uuid_id)
        version = stored.originator_version
        return _Row(self._prefix + name, version, event, f"version {version} of {name}", False)

    def _tracking_row(self, tracking: Tracking) -> _Row:
        upstream, position = tracking.application_name, tracking.notification_id
        event = ev.StoredEvent(TRACKING_TOPIC, b"", False)
        name = f"position {position} of {upstream}"
        return _Row(self._tracking + upstream, position, event, name, True)

    def _build(self, view: View, rows: Sequence[_Row]) -> list[Prepared]:
        _, digest = view.store_tip()
        tips: dict[str, Tip] = {}
        seen: set[tuple[str, int]] = set()
        new: list[Prepared] = []
        for row in rows:
            stream, seq = row.stream, row.seq
            if not 0 <= seq < SEQS:
                raise IntegrityError(f"{row.name} is no 64-bit number")
            if (stream, seq) in seen or view.has(stream, seq):
                raise IntegrityError(f"{row.name} is recorded already")
            seen.add((stream, seq))
            before = tips.get(stream) or view.tip(stream)
            if row.rising and seq < before.seq:
                raise IntegrityError(f"{row.name} comes before {before.seq}, which is recorded")
            made = self._record(row, before, digest)
            digest, tips[stream] = made.digest, Tip(seq, made.digest)
            new.append(made)
        return new

    def _record(self, row: _Row, before: Tip, store_digest: bytes) -> Prepared:
        spec = kinds.spec_of(row.event)
        plain = kinds.encode_body(row.event)
        encoding, body = pack_body(plain, where=f"{STORED} in {row.stream}")
        salt, key = self.log.salt(), str(row.seq)
        header = ev.Header(
            spec.name, spec.version, spec.required, row.stream, row.seq, event_uuid(row.stream, key), key,
            self.log.now(), None, ev.Basis.UNKNOWN, ev.Channel.OPERATOR, None, None, None, None,
            commitment(salt, body), len(plain), ev.Place.INLINE, None, encoding, before.digest, store_digest,
        )  # fmt: skip
        data = encode_header(header)
        return Prepared(header, record_digest(data), encode_frame(data, salt, body), plain)

    def _stored(self, record: Record) -> StoredEvent:
        h, frame = record.header, record.frame
        if h.kind != STORED:
            state = encode_frame(frame.header_bytes, frame.salt, frame.body)
            return StoredEvent(h.stream, h.seq, h.kind, state)
        where = f"stream {h.stream}, seq {h.seq}"
        event = kinds.decode_body(h.kind, h.version, self.log.body(record), where=where)
        if not isinstance(event, ev.StoredEvent):
            raise NotProjectable(stream=h.stream, seq=h.seq, kind=h.kind, version=h.version)
        name = h.stream.removeprefix(self._prefix)
        try:
            originator_id = UUID(name) if event.uuid_id else name
        except ValueError:
            raise Damaged(where=where, what="it says that its stream's name is a UUID") from None
        return StoredEvent(originator_id, h.seq, event.topic, event.state)
