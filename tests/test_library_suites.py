"""The eventsourcing library's own application-recorder suites, on the recorder over the store that `ef.open` uses."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from typing import Any
from uuid import uuid4  # noqa: TID251  (the suite's own way to make ids)

from eventsourcing.tests.persistence import (
    ApplicationRecorderTestCase,
    NonInterleavingNotificationIDsBaseCase,
)

import ef
from ef.log.lmdb_log import LmdbLog
from ef.log.recorder import LmdbApplicationRecorder


class _Fresh:
    """A fresh store for every test: notification ids begin at 1."""

    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp()
        self.log = LmdbLog.open(os.path.join(self.folder, "store"), now=time.monotonic_ns)
        super().setUp()  # type: ignore[misc]

    def tearDown(self) -> None:
        super().tearDown()  # type: ignore[misc]
        self.log.close()
        shutil.rmtree(self.folder)

    def create_recorder(self) -> Any:
        return LmdbApplicationRecorder(self.log)


class TestApplicationSuite(_Fresh, ApplicationRecorderTestCase):
    """Uuid originator ids."""

    def test_insert_subscribe(self) -> None:
        self.optional_test_insert_subscribe()


class TestApplicationSuiteWithTextIds(TestApplicationSuite):
    """Text originator ids."""

    def new_originator_id(self) -> str:
        return "order/" + str(uuid4())


class TestNonInterleaving(_Fresh, NonInterleavingNotificationIDsBaseCase):
    """Ids of concurrent batches do not interleave."""

    insert_num = 1000


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


del ApplicationRecorderTestCase, NonInterleavingNotificationIDsBaseCase
