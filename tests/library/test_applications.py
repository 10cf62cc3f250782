"""The eventsourcing library's own suites of factories, applications and projections, on the store of `ef.open`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from threading import Event
from typing import Any
from uuid import UUID

import pytest
from eventsourcing.application import Application
from eventsourcing.domain import Aggregate
from eventsourcing.persistence import (
    InfrastructureFactory,
    IntegrityError,
    StoredEvent,
    Tracking,
)
from eventsourcing.tests.application import ApplicationTestCase, ExampleApplicationTestCase
from eventsourcing.tests.persistence import InfrastructureFactoryTestCase
from eventsourcing.tests.projection import (
    AggregateEventCountersProjectionTestCase,
    EventCountersView,
    EventCountersViewTestCase,
    EventSourcedProjectionTestCase,
)

import ef
from ef.integrations.eventsourcing import Factory
from ef.log.lmdb_log import LmdbLog
from ef.log.recorder import (
    LmdbAggregateRecorder,
    LmdbApplicationRecorder,
    LmdbProcessRecorder,
    LmdbTrackingRecorder,
)
from tests.library.fresh import MODULE, TOPIC, Fresh, FreshEnvironment

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "eventsourcing.md"


class OtherApplicationRecorder(LmdbApplicationRecorder):
    """An application recorder that is chosen by its topic."""


class OtherTrackingRecorder(LmdbTrackingRecorder):
    """A tracking recorder that is chosen by its topic or as an argument."""


class LmdbEventCounters(LmdbTrackingRecorder, EventCountersView):
    """A view that keeps its figures in the store: a counter's value is the version of its last row."""

    def _count(self, name: str) -> int:
        last = self.rows.select(name, None, None, desc=True, limit=1)
        return last[0].originator_version if last else 0

    def _incr(self, name: str, tracking: Tracking) -> None:
        self.rows.insert([StoredEvent(name, self._count(name) + 1, "Counted", b"")], tracking)

    def get_created_event_counter(self) -> int:
        return self._count("created")

    def get_subsequent_event_counter(self) -> int:
        return self._count("subsequent")

    def incr_created_event_counter(self, tracking: Tracking) -> None:
        self._incr("created", tracking)

    def incr_subsequent_event_counter(self, tracking: Tracking) -> None:
        self._incr("subsequent", tracking)


class _Patient:
    """The suites wait a second for what a loaded machine may do later."""

    def wait(
        self,
        application_name: str,
        notification_id: int | None,
        timeout: float = 1.0,
        interrupt: Event | None = None,
    ) -> None:
        super().wait(application_name, notification_id, timeout * 60, interrupt)  # type: ignore[misc]


class PatientProcessRecorder(_Patient, LmdbProcessRecorder):
    """A process recorder that is chosen by its topic."""


class PatientEventCounters(_Patient, LmdbEventCounters):
    """The view, patient."""


class TestFactory(FreshEnvironment, InfrastructureFactoryTestCase[Factory]):
    """The factory that the module of PERSISTENCE_MODULE holds."""

    def expected_factory_class(self) -> type[Factory]:
        return Factory

    def expected_aggregate_recorder_class(self) -> type[LmdbAggregateRecorder]:
        return LmdbAggregateRecorder

    def expected_application_recorder_class(self) -> type[LmdbApplicationRecorder]:
        return LmdbApplicationRecorder

    def expected_tracking_recorder_class(self) -> type[LmdbTrackingRecorder]:
        return LmdbTrackingRecorder

    def tracking_recorder_subclass(self) -> type[LmdbTrackingRecorder]:
        return OtherTrackingRecorder

    def expected_process_recorder_class(self) -> type[LmdbProcessRecorder]:
        return LmdbProcessRecorder

    def test_recorders_are_chosen_by_topic(self) -> None:
        self.env["APPLICATION_RECORDER_TOPIC"] = f"{__name__}:OtherApplicationRecorder"
        self.env["PROCESS_RECORDER_TOPIC"] = f"{__name__}:PatientProcessRecorder"
        assert type(self.factory.application_recorder()) is OtherApplicationRecorder
        assert type(self.factory.process_recorder()) is PatientProcessRecorder

    def test_the_store_is_the_one_that_ef_opens(self) -> None:
        with ef.open(self.path) as store:
            assert type(self.factory.log) is type(store.log) is LmdbLog
            self.factory.application_recorder().insert_events([StoredEvent("a", 1, "T", b"")])
            assert store.log.tip_position() == 1
            assert store.log.at(1).header.recorded_at > 1_700_000_000_000_000


class TestExampleApplication(FreshEnvironment, ExampleApplicationTestCase):
    """An application that takes snapshots."""

    expected_factory_topic = TOPIC


class TestApplication(FreshEnvironment, ApplicationTestCase):
    """Applications, their caches, and threads that contend for an aggregate."""


class TestEventSourcedProjection(FreshEnvironment, EventSourcedProjectionTestCase):
    """A projection that is an application of its own in the same store."""

    def setUp(self) -> None:
        super().setUp()
        self.env["PROCESS_RECORDER_TOPIC"] = f"{__name__}:PatientProcessRecorder"


class TestCountersProjection(FreshEnvironment, AggregateEventCountersProjectionTestCase):
    """A projection with a view, in the same store."""

    view_class = PatientEventCounters

    def test_run_forever_raises_projection_error(self) -> None:
        self.view_class = LmdbEventCounters  # here the suite waits in vain
        super().test_run_forever_raises_projection_error()


class TestCountersView(Fresh, EventCountersViewTestCase):
    """The view alone."""

    def construct_event_counters_view(self) -> LmdbEventCounters:
        return LmdbEventCounters(self.log, "eventcounters")


class Ledger(Application[UUID]):
    """An application with a name of its own."""

    is_snapshotting_enabled = True


class Audit(Application[UUID]):
    """Another one."""


def environment(path: Path) -> dict[str, str]:
    return {"PERSISTENCE_MODULE": MODULE, "EF_STORE": str(path)}


def test_applications_in_one_store_and_its_sessions_do_not_see_one_another(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with (
        ef.open(path) as store,
        Ledger(environment(path)) as ledger,
        Audit(environment(path)) as audit,
    ):
        first, second = Aggregate(), Aggregate()
        ledger.save(first)
        store.session("one").append({"role": "user", "content": "Hello."})
        audit.save(second)
        ledger.take_snapshot(first.id)
        first.trigger_event(Aggregate.Event)
        ledger.save(first)
        seen = {
            app: [n.originator_id for n in app.recorder.select_notifications(None, 100)]
            for app in (ledger, audit)
        }
        assert seen == {ledger: [first.id, first.id], audit: [second.id]}
        assert ledger.recorder.max_notification_id() == store.log.tip_position()
        assert audit.recorder.max_notification_id() == 4
        whole = LmdbApplicationRecorder(store.log)
        topics = [n.topic for n in whole.select_notifications(None, 100)]
        assert topics == ["SessionOpened", "ItemAppended"]
        assert ledger.repository.get(first.id).version == 2
        assert store.verify().ok


def test_an_application_finds_again_what_it_saved(tmp_path: Path) -> None:
    with Ledger(environment(tmp_path / "store")) as app:
        aggregate = Aggregate()
        app.save(aggregate)
    with Ledger(environment(tmp_path / "store")) as app:
        again: Aggregate = app.repository.get(aggregate.id)
        assert again == aggregate
        stale: Aggregate = app.repository.get(aggregate.id)
        again.trigger_event(Aggregate.Event)
        app.save(again)
        stale.trigger_event(Aggregate.Event)
        with pytest.raises(IntegrityError):
            app.save(stale)


def test_the_folder_may_be_named_for_one_application_and_must_be_named(tmp_path: Path) -> None:
    own = {"PERSISTENCE_MODULE": MODULE, "LEDGER_EF_STORE": str(tmp_path / "own")}
    with Ledger(own) as app:
        app.save(Aggregate())
    with ef.open(tmp_path / "own", create=False) as store:
        assert store.log.tip_position() == 1
    with pytest.raises(OSError, match="LEDGER_EF_STORE, EF_STORE"):
        Ledger({"PERSISTENCE_MODULE": MODULE})


def test_a_factory_lets_its_store_go_once(tmp_path: Path) -> None:
    factory = InfrastructureFactory[Any].construct(environment(tmp_path / "store"))
    factory.application_recorder().insert_events([StoredEvent("a", 1, "T", b"")])
    factory.close()
    factory.close()
    with ef.open(tmp_path / "store") as store:
        assert store.log.tip_position() == 1


def test_the_page_s_examples_run(tmp_path: Path) -> None:
    """In the page's order, in one program, each with the output that the page shows."""
    text = PAGE.read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S))
    shown = "".join(re.findall(r"^```text\n(.*?)^```", text, re.M | re.S))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown


del ApplicationTestCase, ExampleApplicationTestCase, InfrastructureFactoryTestCase
del AggregateEventCountersProjectionTestCase, EventCountersViewTestCase
del EventSourcedProjectionTestCase, EventCountersView
