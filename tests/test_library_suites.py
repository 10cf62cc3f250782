"""The eventsourcing library's own suites of recorders, on the recorders over the store that `ef.open` makes.

Its suites of factories, applications and projections: library/test_applications.py.
"""

from __future__ import annotations

from typing import Any

from eventsourcing.persistence import StoredEvent
from eventsourcing.tests.persistence import (
    AggregateRecorderTestCase,
    ApplicationRecorderTestCase,
    NonInterleavingNotificationIDsBaseCase,
    ProcessRecorderTestCase,
    TrackingRecorderTestCase,
)

import ef
from ef.log.lmdb_log import LmdbLog
from ef.log.recorder import (
    LmdbAggregateRecorder,
    LmdbApplicationRecorder,
    LmdbProcessRecorder,
    LmdbTrackingRecorder,
)
from tests.library.fresh import Fresh, TextIds


class TestAggregates(Fresh, AggregateRecorderTestCase):
    """Stored events without notifications."""

    def create_recorder(self) -> Any:
        return LmdbAggregateRecorder(self.log, "app", "snapshots")


class TestAggregatesWithTextIds(TextIds, TestAggregates):
    """The same with text ids."""


class TestApplications(Fresh, ApplicationRecorderTestCase[LmdbApplicationRecorder]):
    """Stored events and notifications, of the application without a name."""

    def create_recorder(self) -> LmdbApplicationRecorder:
        return LmdbApplicationRecorder(self.log)

    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestApplicationsWithTextIds(TextIds, TestApplications):
    """The same with text ids, of an application with a name."""

    def create_recorder(self) -> LmdbApplicationRecorder:
        return LmdbApplicationRecorder(self.log, "app/é")


class TestTracking(Fresh, TrackingRecorderTestCase):
    """Positions of other applications."""

    def create_recorder(self) -> Any:
        return LmdbTrackingRecorder(self.log, "app")


class TestProcesses(Fresh, ProcessRecorderTestCase):
    """Stored events with the positions that they come from."""

    def create_recorder(self) -> Any:
        return LmdbProcessRecorder(self.log, "app")


class TestProcessesWithTextIds(TextIds, TestProcesses):
    """The same with text ids."""


class TestProcessesAreApplications(TestApplications):
    """A process recorder is an application recorder too."""

    test_concurrent_no_conflicts = None  # type: ignore[assignment]  # as long as above, and nothing new

    def create_recorder(self) -> LmdbApplicationRecorder:
        return LmdbProcessRecorder(self.log)


class TestNonInterleaving(Fresh, NonInterleavingNotificationIDsBaseCase):
    """Ids of concurrent batches do not interleave."""

    insert_num = 1000

    def create_recorder(self) -> Any:
        return LmdbApplicationRecorder(self.log)


class TestNonInterleavingWithTextIds(TextIds, TestNonInterleaving):
    """The same with text ids."""


def test_what_a_session_appends_is_read_through_the_library(tmp_path: Any) -> None:
    with ef.open(tmp_path / "store") as store:
        seq = store.session("one").append({"role": "user", "content": "Hello."})
        assert type(store.log) is LmdbLog
        recorder = LmdbApplicationRecorder(store.log)
        stored = recorder.select_events("session/one", gt=seq - 1)
        assert [(s.originator_version, s.topic) for s in stored] == [(seq, "ItemAppended")]
        assert stored[0].state[:4] == b"EFr1"
        ids = [n.id for n in recorder.select_notifications(None, 100)]
        assert ids == [1, 2]


def test_what_the_library_inserts_stands_in_the_log_of_the_store(tmp_path: Any) -> None:
    with ef.open(tmp_path / "store") as store:
        session = store.session("one")
        session.append({"role": "user", "content": "Hello."})
        state = session.state().to_json()
        recorder = LmdbProcessRecorder(store.log)
        (position,) = recorder.insert_events([StoredEvent("order/1", 7, "Paid", b"12")]) or ()
        record = store.log.at(position)
        assert (record.header.stream, record.header.seq) == ("recorder/order/1", 7)
        assert record.header.prev_store == store.log.at(position - 1).digest
        assert session.state().to_json() == state
        assert list(store.session_names()) == ["one"]
        assert store.verify().ok


del AggregateRecorderTestCase, ApplicationRecorderTestCase, TrackingRecorderTestCase
del ProcessRecorderTestCase, NonInterleavingNotificationIDsBaseCase
