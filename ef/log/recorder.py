"""The same store as an application recorder of the eventsourcing library.

What the library inserts is a record of kind StoredEvent in a stream of its own name space, chained in the store like
every other; its seq is the library's version, so gaps and version 0 are allowed there (the library's own rules).
What ef appended is seen through the library too: originator id = stream, version = seq, topic = kind, state = the
frame. Notification ids are positions: gapless, in commit order, from 1 (the genesis, position 0, is outside).
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event
from typing import Any
from uuid import UUID

from eventsourcing.persistence import (
    ApplicationRecorder,
    IntegrityError,
    ListenNotifySubscription,
    Notification,
    StoredEvent,
    Subscription,
)

from .. import events as ev
from ..codec import kinds
from ..codec.digests import commitment, event_uuid, record_digest
from ..codec.record import encode_frame, encode_header, pack_body
from .base import Prepared, Record, Tip
from .lmdb_log import LmdbLog
from .rows import SEQS, View

PREFIX = "recorder/"
OWN = ("session/", "source/", "store")
KIND = ev.StoredEvent.__name__


class LmdbApplicationRecorder(ApplicationRecorder):
    """Records of `log` as stored events and notifications; see the module's first lines."""

    def __init__(self, log: LmdbLog) -> None:
        self.log = log

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """Insert all or none; notification ids in order. IntegrityError when an id and version are there already."""
        if not stored_events:
            return []
        first = self.log.write(lambda view: self._build(view, stored_events))
        return list(range(first, first + len(stored_events)))

    def _build(self, view: View, stored_events: Sequence[StoredEvent]) -> list[Prepared]:
        _, digest = view.store_tip()
        tips: dict[str, Tip] = {}
        seen: set[tuple[str, int]] = set()
        new: list[Prepared] = []
        for stored in stored_events:
            stream, seq = PREFIX + str(stored.originator_id), stored.originator_version
            if not 0 <= seq < SEQS:
                raise IntegrityError(f"version {seq} of {stored.originator_id} is no 64-bit number")
            if (stream, seq) in seen or view.has(stream, seq):
                raise IntegrityError(f"version {seq} of {stored.originator_id} is recorded already")
            seen.add((stream, seq))
            made = self._record(stored, stream, tips.get(stream) or view.tip(stream), digest)
            digest, tips[stream] = made.digest, Tip(seq, made.digest)
            new.append(made)
        return new

    def _record(
        self, stored: StoredEvent, stream: str, before: Tip, store_digest: bytes
    ) -> Prepared:
        event = ev.StoredEvent(
            stored.topic, bytes(stored.state), isinstance(stored.originator_id, UUID)
        )
        spec = kinds.spec_of(event)
        plain = kinds.encode_body(event)
        encoding, body = pack_body(plain, where=f"{KIND} in {stream}")
        salt, key = self.log.salt(), str(stored.originator_version)
        header = ev.Header(
            spec.name, spec.version, spec.required, stream, stored.originator_version, event_uuid(stream, key), key,
            self.log.now(), None, ev.Basis.UNKNOWN, ev.Channel.OPERATOR, None, None, None, None,
            commitment(salt, body), len(plain), ev.Place.INLINE, None, encoding, before.digest, store_digest,
        )  # fmt: skip
        data = encode_header(header)
        return Prepared(header, record_digest(data), encode_frame(data, salt, body))

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Stored events of an originator, or records of an ef stream given by its name, in version order."""
        name = str(originator_id)
        stream = name if name.startswith(OWN) else PREFIX + name
        found: list[StoredEvent] = []
        for record in self.log.stored(stream, 0 if gt is None else max(gt + 1, 0)):
            if lte is not None and record.header.seq > lte:
                break
            found.append(self._stored(record))
            if limit is not None and not desc and len(found) >= limit:
                break
        if desc:
            found.reverse()
        return found[:limit]

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Notifications from `start` to `stop`, both inclusive; `limit` counts after the filter by topic."""
        first = 1 if start is None else max(start if inclusive_of_start else start + 1, 1)
        found: list[Notification] = []
        if limit < 1:
            return found
        for record in self.log.all(after=first - 1):
            if stop is not None and record.position > stop:
                break
            stored = self._stored(record)
            if topics and stored.topic not in topics:
                continue
            found.append(
                Notification(
                    originator_id=stored.originator_id,
                    originator_version=stored.originator_version,
                    topic=stored.topic,
                    state=stored.state,
                    id=record.position,
                )
            )
            if len(found) == limit:
                break
        return found

    def max_notification_id(self) -> int | None:
        """The newest notification's id, None for a store that holds only its genesis."""
        return self.log.tip_position() or None

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> Subscription[ApplicationRecorder]:
        """Notifications after `gt`, then those to come; woken by commits of this process."""
        return LmdbSubscription(self, gt=gt, topics=topics)

    def _stored(self, record: Record) -> StoredEvent:
        h, frame = record.header, record.frame
        if h.kind != KIND:
            state = encode_frame(frame.header_bytes, frame.salt, frame.body)
            return StoredEvent(h.stream, h.seq, h.kind, state)
        where = f"stream {h.stream}, seq {h.seq}"
        event = kinds.decode_body(h.kind, h.version, self.log.body(record), where=where)
        assert isinstance(event, ev.StoredEvent)
        name = h.stream.removeprefix(PREFIX)
        return StoredEvent(UUID(name) if event.uuid_id else name, h.seq, event.topic, event.state)


class LmdbSubscription(ListenNotifySubscription[LmdbApplicationRecorder]):
    """A subscription that commits of this process wake."""

    def __init__(
        self, recorder: LmdbApplicationRecorder, gt: int | None = None, topics: Sequence[str] = ()
    ) -> None:
        super().__init__(recorder=recorder, gt=gt, topics=topics)
        woken: Event = self._has_been_notified
        self._unlisten = recorder.log.on_commit(woken.set)
        woken.set()  # what was committed between the first look and the listening

    def stop(self) -> None:
        """End the iteration."""
        super().stop()
        self._unlisten()
