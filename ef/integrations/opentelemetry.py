"""Metrics and spans of a store at work, for OpenTelemetry. Nothing of it is imported unless this module is.

    from ef.integrations.opentelemetry import instrument
    stop = instrument(store)            # or with a meter_provider and a tracer_provider of your own

Needs the extra `otel` (the OpenTelemetry API); which exporter takes the figures is the application's choice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..log.lmdb_log import LmdbLog
from ..log.telemetry import Group
from ..session.store import Store

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Histogram, Meter, MeterProvider, Observation
    from opentelemetry.trace import Tracer, TracerProvider

SCOPE = "epistemic-fold"
SECONDS = [step * 10.0**power for power in range(-5, 1) for step in (1, 2.5, 5)] + [10.0]
"""Bounds of buckets from 10 microseconds to 10 seconds; the SDK's own are meant for milliseconds."""

COUNTS = [float(1 << power) for power in range(15)]
"""And for how many there are in a group."""


def instrument(
    store: Store,
    *,
    meter_provider: MeterProvider | None = None,
    tracer_provider: TracerProvider | None = None,
) -> Callable[[], None]:
    """Measure a store from now on, with the global providers or these; what is returned ends it.

    Histograms: `ef.append.duration` (accepted to acknowledged), `ef.group.requests`, `ef.group.records`,
    `ef.group.prepare.duration`, `ef.group.flush.duration`, `ef.rebuild.duration`; seconds where they are durations.
    Counters: `ef.append.failed`, `ef.log.bytes`. Gauges: `ef.append.waiting`, `ef.append.waiting.bytes`, `ef.tip.lag`
    (records that the tip file is behind). Spans: `ef.group`, `ef.rebuild`. Raises UsageError without the extra.
    """
    try:
        from opentelemetry import metrics, trace
    except ModuleNotFoundError:
        detail = "opentelemetry is not installed: pip install 'epistemic-fold[otel]'"
        raise UsageError(detail=detail) from None
    committer = store.log.committer
    if committer.telemetry is not None:
        raise UsageError(detail="this store is measured already: end that first")
    meter = metrics.get_meter(SCOPE, meter_provider=meter_provider)
    tracer = trace.get_tracer(SCOPE, tracer_provider=tracer_provider)
    telemetry = committer.telemetry = _Telemetry(meter, tracer)
    telemetry.gauges(meter, store, metrics.Observation)

    def stop() -> None:
        telemetry.ended = True
        if committer.telemetry is telemetry:
            committer.telemetry = None

    return stop


class _Telemetry:
    """See log.telemetry.Telemetry."""

    def __init__(self, meter: Meter, tracer: Tracer) -> None:
        self._tracer = tracer
        self.ended = False

        def seconds(name: str, what: str) -> Histogram:
            return meter.create_histogram(
                name, "s", what, explicit_bucket_boundaries_advisory=SECONDS
            )

        def counts(name: str, unit: str, what: str) -> Histogram:
            return meter.create_histogram(
                name, unit, what, explicit_bucket_boundaries_advisory=COUNTS
            )

        self._appended = seconds(
            "ef.append.duration", "From an append's acceptance to its acknowledgement"
        )
        self._requests = counts(
            "ef.group.requests", "{append}", "Appends that one commit made durable"
        )
        self._records = counts(
            "ef.group.records", "{record}", "Records that one commit made durable"
        )
        self._prepare = seconds(
            "ef.group.prepare.duration", "Making and chaining a group's records"
        )
        self._flush = seconds("ef.group.flush.duration", "Putting a group's rows and flushing them")
        self._rebuild = seconds("ef.rebuild.duration", "Building a projection from the log")
        self._failed = meter.create_counter("ef.append.failed", "{append}", "Appends refused")
        self._bytes = meter.create_counter("ef.log.bytes", "By", "Bytes of records written")

    def group(self, group: Group) -> None:
        """See Telemetry.group."""
        self._requests.record(group.requests)
        self._records.record(group.records)
        self._prepare.record(group.prepare)
        self._flush.record(group.flush)
        self._bytes.add(group.frame_bytes)
        if group.failed:
            self._failed.add(group.failed)
        facts = {
            "ef.requests": group.requests,
            "ef.records": group.records,
            "ef.bytes": group.frame_bytes,
            "ef.failed": group.failed,
        }
        self._span("ef.group", group.prepare + group.flush, facts)

    def appended(self, seconds: float) -> None:
        """See Telemetry.appended."""
        self._appended.record(seconds)

    def rebuilt(self, stream: str, events: int, seconds: float) -> None:
        """See Telemetry.rebuilt."""
        self._rebuild.record(seconds)
        self._span("ef.rebuild", seconds, {"ef.stream": stream, "ef.events": events})

    def gauges(self, meter: Meter, store: Store, observation: type[Observation]) -> None:
        """Gauges that are read when somebody collects."""

        def gauge(name: str, unit: str, what: str, read: Callable[[], int]) -> None:
            def observe(options: CallbackOptions) -> Iterable[Observation]:
                return [] if self.ended else [observation(read())]

            meter.create_observable_gauge(name, [observe], unit, what)

        in_flight = store.log.committer
        gauge("ef.append.waiting", "{append}", "Appends in flight", lambda: in_flight.in_flight[0])
        gauge("ef.append.waiting.bytes", "By", "Bytes in flight", lambda: in_flight.in_flight[1])
        log = store.log
        if isinstance(log, LmdbLog):
            gauge("ef.tip.lag", "{record}", "Records the tip file is behind", lambda: _lag(log))

    def _span(self, name: str, seconds: float, facts: Mapping[str, str | int]) -> None:
        end = time.time_ns()  # noqa: TID251  (a span's own clock; it is in no event)
        span = self._tracer.start_span(name, attributes=facts, start_time=end - int(seconds * 1e9))
        span.end(end)


def _lag(log: LmdbLog) -> int:
    known = log.tipfile.read()
    return log.tip_position() - (known[0] if known else -1)
