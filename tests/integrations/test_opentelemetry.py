"""Metrics and spans, read back through the OpenTelemetry SDK's own in-memory reader and exporter."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ef
from ef.errors import KeyConflict, UsageError
from ef.integrations.opentelemetry import COUNTS, SECONDS, instrument


class Watched:
    """A store that is measured."""

    def __init__(self, path: Path) -> None:
        self.reader, self.spans = InMemoryMetricReader(), InMemorySpanExporter()
        self.meters = MeterProvider(metric_readers=[self.reader])
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        self.store = ef.open(path)
        self.stop = self.instrument()

    def instrument(self) -> Any:
        return instrument(self.store, meter_provider=self.meters, tracer_provider=self.tracers)

    def points(self) -> dict[str, Any]:
        """name -> the one data point of each metric."""
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        metrics = [m for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics]
        return {m.name: next(iter(m.data.data_points)) for m in metrics if m.data.data_points}

    def close(self) -> None:
        self.store.close()
        self.meters.shutdown()
        self.tracers.shutdown()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path / "store")
    yield made
    made.close()


def test_appends_groups_and_failures_are_counted(watched: Watched) -> None:
    session = watched.store.session("one")
    session.append({"role": "user", "content": "Alone."}, key="a")
    with watched.store.log.committer.alone():
        futures = [session.append_nowait({"role": "user", "content": str(n)}) for n in range(9)]
        conflict = session.append_nowait({"role": "user", "content": "Other."}, key="a")
        waiting = watched.points()
        assert waiting["ef.append.waiting"].value == 10
        assert waiting["ef.append.waiting.bytes"].value > 10_000
    with pytest.raises(KeyConflict):
        conflict.result()
    assert [future.result() for future in futures] == list(range(3, 12))
    watched.store.log.committer.flush()
    points = watched.points()
    assert points["ef.append.duration"].count == 11 and points["ef.append.duration"].sum > 0
    assert (points["ef.group.requests"].count, points["ef.group.requests"].max) == (2, 10)
    assert (points["ef.group.records"].sum, points["ef.group.records"].max) == (11, 9)
    assert points["ef.group.prepare.duration"].count == points["ef.group.flush.duration"].count == 2
    assert points["ef.append.failed"].value == 1
    for name in ("ef.append.duration", "ef.group.flush.duration", "ef.group.prepare.duration"):
        assert points[name].explicit_bounds == tuple(SECONDS), name
    assert points["ef.group.requests"].explicit_bounds == tuple(COUNTS)
    assert points["ef.log.bytes"].value > 11 * 100
    assert points["ef.append.waiting"].value == 0
    assert points["ef.tip.lag"].value >= 0
    spans = [s for s in watched.spans.get_finished_spans() if s.name == "ef.group"]
    assert [s.attributes["ef.requests"] for s in spans if s.attributes] == [1, 10]
    assert all(s.end_time and s.start_time and s.end_time >= s.start_time for s in spans)


def test_a_projection_that_is_built_is_a_span(watched: Watched) -> None:
    session = watched.store.session("one")
    for n in range(5):
        session.append({"role": "user", "content": str(n)})
    session.state()
    spans = [s for s in watched.spans.get_finished_spans() if s.name == "ef.rebuild"]
    assert spans and spans[0].attributes is not None
    assert spans[0].attributes["ef.stream"] == "session/one"
    assert watched.points()["ef.rebuild.duration"].count == len(spans)


def test_the_page_lists_every_metric_with_its_unit_and_no_other(watched: Watched) -> None:
    session = watched.store.session("one")
    for name in ("a", "a"):
        session.append({"role": "user", "content": "Hello."}, key=name)
    with pytest.raises(KeyConflict):
        session.append({"role": "user", "content": "Other."}, key="a")
    session.state()
    data = watched.reader.get_metrics_data()
    assert data is not None
    found = {
        m.name: m.unit for r in data.resource_metrics for s in r.scope_metrics for m in s.metrics
    }
    page = (Path(__file__).resolve().parents[2] / "docs" / "observability.md").read_text("utf-8")
    rows = re.findall(r"^\| `(ef\.[a-z.]+)` \| (?:histogram|counter|gauge) \| (\S+) \|", page, re.M)
    assert dict(rows) == found
    spans = re.findall(r"^\| `(ef\.[a-z.]+)` \| (`[^|]+`) \|", page, re.M)
    attributes = {name: set(re.findall(r"`([^`]+)`", words)) for name, words in spans}
    assert attributes == {
        span.name: set(span.attributes or {}) for span in watched.spans.get_finished_spans()
    }


def test_a_store_in_memory_is_measured_as_far_as_there_is_something(watched: Watched) -> None:
    with ef.open(":memory:") as store:
        stop = instrument(store, meter_provider=watched.meters, tracer_provider=watched.tracers)
        store.session("one").append({"role": "user", "content": "Hello."})
        assert watched.points()["ef.append.duration"].count == 1
        stop()


def test_what_was_stopped_hears_nothing_more_and_can_begin_again(watched: Watched) -> None:
    with pytest.raises(UsageError, match="already"):
        watched.instrument()
    watched.stop()
    watched.store.session("one").append({"role": "user", "content": "Unheard."})
    assert watched.points() == {} and not watched.spans.get_finished_spans()
    again = watched.instrument()
    watched.stop()
    watched.store.session("one").append({"role": "user", "content": "Heard."})
    assert watched.points()["ef.append.duration"].count == 1
    again()


WITHOUT = """
import sys
import ef
with ef.open(sys.argv[1]) as store:
    store.session("one").append({"role": "user", "content": "Hello."})
    assert not any(name.startswith("opentelemetry") for name in sys.modules)
    sys.modules["opentelemetry"] = None
    from ef.integrations.opentelemetry import instrument
    try:
        instrument(store)
    except ef.EfError as fault:
        print(fault)
"""


def test_nothing_is_imported_unless_asked_and_what_lacks_is_named(tmp_path: Path) -> None:
    words = [sys.executable, "-c", WITHOUT, str(tmp_path / "store")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "pip install 'epistemic-fold[otel]'" in done.stdout
