"""The same store as recorders of the eventsourcing library. What they store, and under which names: stored.py.

Notification ids are positions in the store: in the order of commits, from 1 (the genesis, position 0, is outside).
They have gaps where the store holds something else: other applications' rows, snapshots, tracking, and, for an
application with a name, ef's own records. The recorders of the application "" show those too: originator id = stream,
version = seq, topic = kind, state = the frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar
from uuid import UUID

from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    Notification,
    ProcessRecorder,
    StoredEvent,
    Tracking,
    TrackingRecorder,
)
from eventsourcing.persistence import Subscription as LibrarySubscription

from .base import Record
from .lmdb_log import PAGE_RECORDS, LmdbLog
from .stored import EVENTS, Rows
from .subscription import Subscription


class LmdbRecorder:
    """What all recorders share: the log, and the rows of an application in it for a purpose."""

    purpose: ClassVar[str] = EVENTS

    def __init__(self, log: LmdbLog, application: str = "", purpose: str | None = None) -> None:
        self.log = log
        self.rows = Rows(log, application, purpose or self.purpose)


class LmdbAggregateRecorder(LmdbRecorder, AggregateRecorder):
    """Stored events without notification ids; those of another purpose than `events` are no notifications."""

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """Insert all or none. IntegrityError when an id and version are there already."""
        self.rows.insert(stored_events)
        return None

    def select_events(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        """Stored events of an originator in version order, `desc` from the last; the last one is one point read."""
        return self.rows.select(originator_id, gt, lte, desc=desc, limit=limit)


class LmdbApplicationRecorder(LmdbAggregateRecorder, ApplicationRecorder):
    """Stored events and notifications; see the module's first lines."""

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """Insert all or none; notification ids in order. IntegrityError when an id and version are there already."""
        return self.rows.insert(stored_events)

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
        for record in self.log.all(after=first - 1, page=min(limit, PAGE_RECORDS)):
            if stop is not None and record.position > stop:
                break
            note = self.notification(record, topics)
            if note is not None:
                found.append(note)
                if len(found) == limit:
                    break
        return found

    def max_notification_id(self) -> int | None:
        """The newest notification's id, None where there is none. It looks back over what is no notification."""
        for position in range(self.log.tip_position(), 0, -1):
            if self.rows.shows(self.log.at(position)) is not None:
                return position
        return None

    def subscribe(
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> LibrarySubscription[ApplicationRecorder]:
        """Notifications after `gt`, then those to come; see subscription.py."""
        return LmdbSubscription(self, gt=gt, topics=topics)

    def notification(self, record: Record, topics: Sequence[str] = ()) -> Notification | None:
        """A record as a notification; None for one that is none here, or has another topic."""
        stored = self.rows.shows(record)
        if stored is None or (topics and stored.topic not in topics):
            return None
        return Notification(
            originator_id=stored.originator_id,
            originator_version=stored.originator_version,
            topic=stored.topic,
            state=stored.state,
            id=record.position,
        )


class LmdbTrackingRecorder(LmdbRecorder, TrackingRecorder):
    """How far other applications were followed. For a view that keeps its figures here too, see `rows.insert`."""

    purpose = "view"

    def insert_tracking(self, tracking: Tracking) -> None:
        """Record a position. IntegrityError when it, or a later one of its application, is recorded."""
        self.rows.insert([], tracking)

    def max_tracking_id(self, application_name: str) -> int | None:
        """The last recorded position of an application; one point read."""
        return self.rows.tracked(application_name)


class LmdbProcessRecorder(LmdbTrackingRecorder, LmdbApplicationRecorder, ProcessRecorder):
    """Stored events, and in the same batch the position of the notification that they come from."""

    purpose = EVENTS

    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """Insert all or none, `tracking` (a Tracking) among it; notification ids in order. IntegrityError as above."""
        return self.rows.insert(stored_events, kwargs.get("tracking"))


class LmdbSubscription(LibrarySubscription[LmdbApplicationRecorder]):
    """A subscription of the library over one of ours; it needs no thread."""

    def __init__(
        self, recorder: LmdbApplicationRecorder, gt: int | None = None, topics: Sequence[str] = ()
    ) -> None:
        super().__init__(recorder=recorder, gt=gt, topics=topics)
        self._followed = Subscription(recorder.log, after=max(gt or 0, 0))

    def stop(self) -> None:
        """End the iteration."""
        super().stop()
        self._followed.stop()

    def __next__(self) -> Notification:
        """The next notification; waits until there is one."""
        for record in self._followed:
            note = self._recorder.notification(record, self._topics)
            if note is not None:
                return note
        raise StopIteration
