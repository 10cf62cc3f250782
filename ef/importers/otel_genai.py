"""GenAI messages in OpenTelemetry spans (OTLP JSON, one or many a file, or a console exporter's JSON) -> meanings.

A span of a model call holds what was sent, which is the whole history again, and what came back. A message comes in
once: of equal ones in a history so many are known as came in before. Reasoning is not told apart there, as providers do
not take it back. A conversation is a session; where none is named, the trace is. Messages are mostly packed as JSON
text in an attribute: their own bytes are kept with the items.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from blake3 import blake3

from ..events import PartKind, Reading, RouteChanged, UsageReported
from ..events.shapes import is_list, is_map
from ..readers import otel_genai as reader
from ..readers.jsoncuts import Path, cuts
from ..readers.jsonvalues import read_line
from ..readers.pieces import id_of, list_of, map_of, maps_of, text_of
from .chains import INFERRED, Chain
from .documents import DocumentTranslator
from .formats import Format, Head, Tells
from .given import name_in, usage_of
from .lines import RawLine, lines
from .translator import REMARKS, Given, Spot

NAME = reader.NAME
_READER = (reader.NAME, reader.VERSION)
_SYSTEM = (reader.SYSTEM, reader.VERSION)
_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
_INSTRUCTIONS = "gen_ai.system_instructions"
_ASKS = ("chat", "text_completion", "generate_content")
"""Operations that ask a model; what others hold (an agent's run, a workflow) says their messages again."""
_TOP = frozenset({()})
_TOPS = frozenset(("resourceSpans", "resource_spans", "attributes"))
_VALUES = ("stringValue", "intValue", "doubleValue", "boolValue")


class OtelGenai(DocumentTranslator):
    """Spans of one or many conversations."""

    NAME = NAME
    DESCEND = _TOP

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._sessions: dict[str, Chain] = {}
        self._known: dict[str, Counter[str]] = {}
        self._systems: dict[str, str] = {}

    def document(self, data: bytes) -> None:
        if data.lstrip()[:1] == b"[" and data.rstrip()[-1:] == b"]":
            super().document(data)
            return
        if any(_is_whole(row) for row in lines(data)):
            for row in lines(data):
                self.line(row)
            return
        found = read_line(data)
        for kind in sorted(
            found.remarks - {"glued"}
        ):  # one behind another is how exporters write them
            self._remark(kind, 1, 0, REMARKS[kind])
        if found.rest is not None and "too-deep" not in found.remarks:
            line = 1 + data.count(b"\n", 0, found.rest)
            self._remark("torn-tail", line, found.rest, REMARKS["torn-tail"])
        for each in found.values:
            if is_map(each.value):
                self.out.records += 1
                line = 1 + data.count(b"\n", 0, each.start)
                spot = self.spot(each.value, data[each.start : each.end], line, each.start)
                self.record(each.value, spot)

    def cut(self, path: Path, value: Any, spot: Spot) -> None:
        if is_map(value):
            self.record(dict(value), spot)
        else:
            self.remark("not-object", spot, REMARKS["not-object"])

    def time_of(self, value: Mapping[str, Any]) -> Any:
        return _time(value)

    def record(self, value: dict[str, Any], spot: Spot) -> None:
        spans = list(_spans(value))
        if not spans:
            self.unknown(spot, value.get("name"))
        for number, span in enumerate(spans):
            self._span(span, spot, number)

    def _span(self, span: Mapping[str, Any], spot: Spot, number: int) -> None:
        told = _attributes(span.get("attributes"))
        if _INPUT not in told and _OUTPUT not in told:
            return
        trace = span.get("traceId") or map_of(span.get("context")).get("trace_id")
        name = text_of(told.get("gen_ai.conversation.id")) or text_of(trace)
        chain = self._sessions.get(name)
        if chain is None:
            chain = self._sessions[name] = self.begin(name or None)
            self._known[name] = Counter()
        self._instructed(told.get(_INSTRUCTIONS), name, chain, spot, number)
        seen: Counter[str] = Counter()
        for place, (message, data) in enumerate(_messages(told.get(_INPUT))):
            self._said(message, data, name, chain, spot, f"{number}.in{place}", seen)
        asks = text_of(told.get("gen_ai.operation.name")) in (*_ASKS, "")
        route = self._route(told, chain)
        for place, (message, data) in enumerate(_messages(told.get(_OUTPUT))):
            view = f"{number}.out{place}"
            again = None if asks else seen
            key = self._said(message, data, name, chain, spot, view, again, route=route, told=told)
            route = None if key else route
            if key and asks and place == 0:
                self._took(told, key, chain, spot, number)

    def _instructed(self, value: Any, name: str, chain: Chain, spot: Spot, number: int) -> None:
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        if not value or self._systems.get(name) == text:
            return
        self._systems[name] = text
        data = text.encode("utf-8", "surrogatepass")
        if reader.read_system(data).parts:
            reading = reader.read_system(data)
            self.item(
                chain, _packed(spot, data), _SYSTEM, reading, view=f"{number}.sys", inline=True
            )

    def _said(
        self,
        message: Any,
        data: bytes,
        name: str,
        chain: Chain,
        spot: Spot,
        view: str,
        seen: Counter[str] | None,
        *,
        route: RouteChanged | None = None,
        told: Mapping[str, Any] | None = None,
    ) -> str | None:
        """A message, where it is new; its key. `seen`: those of the same history before it."""
        reading = reader.reading(map_of(message))
        if not reading.parts:
            return None
        same = _likeness(reading)
        known = self._known[name]
        if seen is not None:
            seen[same] += 1
            if seen[same] <= known[same]:
                return None
        known[same] += 1
        group = id_of(map_of(told).get("gen_ai.response.id")) or None
        if reading.role == "assistant" and group:
            reading = Reading(reading.role, reading.parts, group)
        return self.item(
            chain, _packed(spot, data), _READER, reading, view=view, route=route, inline=True
        )

    def _route(self, told: Mapping[str, Any], chain: Chain) -> RouteChanged | None:
        provider = name_in(told.get("gen_ai.provider.name") or told.get("gen_ai.system"))
        model = name_in(told.get("gen_ai.response.model") or told.get("gen_ai.request.model"))
        return chain.routed(RouteChanged(provider, model)) if model else None

    def _took(
        self, told: Mapping[str, Any], key: str, chain: Chain, spot: Spot, number: int
    ) -> None:
        names = ("input_tokens", "output_tokens", "cache_read.input_tokens")
        given, made, read = (_count(told.get(f"gen_ai.usage.{name}")) for name in names)
        write = _count(told.get("gen_ai.usage.cache_creation.input_tokens"))
        name = id_of(told.get("gen_ai.response.id")) or INFERRED + key
        report: UsageReported | None = usage_of(name, given, made, read, write, with_cache=True)
        if report is not None:
            self.event(chain, spot, report, view=str(number))


def _packed(spot: Spot, data: bytes) -> Spot:
    """A record's place for bytes that were packed in it; the view tells them apart."""
    return spot.holding(data)


def _messages(value: Any) -> Iterator[tuple[Any, bytes]]:
    """Messages and their bytes: of a JSON text the text's own, of a structure the structure's as JSON."""
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
        for cut in cuts(data, _TOP):
            if cut.fault is None and len(cut.path) == 1:
                yield cut.value, data[cut.start : cut.end]
        return
    for each in list_of(value):
        yield (
            each,
            json.dumps(each, ensure_ascii=False, default=str).encode("utf-8", "surrogatepass"),
        )


def _likeness(reading: Reading) -> str:
    """What two tellings of a message have in common: all but reasoning."""
    parts = [
        (p.kind.value, p.call_id, p.text, *((p.call.name, p.call.given) if p.call else (p.media,)))
        for p in reading.parts
        if p.kind is not PartKind.REASONING
    ]
    opaque = [p.block for p in reading.parts if p.kind is PartKind.OPAQUE]
    told = repr((reading.role, parts, opaque)).encode("utf-8", "surrogatepass")
    return blake3(told).hexdigest()


def _spans(value: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The spans of a record: itself, or those of an export."""
    if "attributes" in value:
        yield value
        return
    for resource in maps_of(value.get("resourceSpans") or value.get("resource_spans")):
        for scope in maps_of(resource.get("scopeSpans") or resource.get("scope_spans")):
            yield from maps_of(scope.get("spans"))
    yield from (span for span in maps_of(value.get("spans")) if "attributes" in span)


def _time(value: Mapping[str, Any]) -> Any:
    span = map_of(next(_spans(value), None))
    stamp = span.get("startTimeUnixNano") or span.get("start_time_unix_nano")
    if isinstance(stamp, str) and stamp.isascii() and stamp.isdigit() and len(stamp) < 24:
        return int(stamp)
    return stamp or span.get("start_time")


def _attributes(given: Any) -> Mapping[str, Any]:
    """A span's attributes by name, whichever way they are written."""
    if is_map(given):
        return given
    found: dict[str, Any] = {}
    for each in maps_of(given):
        found.setdefault(text_of(each.get("key")), _any(each.get("value"), 0))
    return found


def _any(value: Any, depth: int) -> Any:
    """A value of OTLP's form as JSON."""
    held = map_of(value)
    if depth > 48:
        return None
    for name in _VALUES:
        if name in held:
            return held[name]
    if "arrayValue" in held:
        return [_any(each, depth + 1) for each in list_of(map_of(held["arrayValue"]).get("values"))]
    pairs = maps_of(map_of(held.get("kvlistValue")).get("values"))
    return {text_of(p.get("key")): _any(p.get("value"), depth + 1) for p in pairs}


def _count(value: Any) -> Any:
    """A count, also one that is written as text."""
    short = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16
    return int(value) if short else value


def recognises(head: Head) -> bool:
    """Whether a file holds spans of model calls."""
    if _INPUT.encode() not in head.data and _OUTPUT.encode() not in head.data:
        return False
    if _TOPS & head.keys or any(map(_is_export, head.records)):
        return True
    return any(len(path) == 2 and path[0] == 0 and path[1] in _TOPS for path, _ in head.cuts)


def _is_whole(row: RawLine) -> bool:
    """Whether a line is an export by itself: then each line of the file is one."""
    if not row.data.startswith(b"{"):
        return False
    values = read_line(row.data).values
    return len(values) == 1 and is_map(values[0].value) and _is_export(values[0].value)


def _is_export(record: Mapping[str, Any]) -> bool:
    if any(is_list(record.get(name)) for name in ("resourceSpans", "resource_spans")):
        return True
    told = record.get("attributes")
    return is_map(told) and any(key.startswith("gen_ai.") for key in told)


FORMAT = Format(
    NAME,
    "OpenTelemetry GenAI spans",
    "document",
    OtelGenai,
    recognises,
    Tells(
        ids="call ids, response ids",
        groups="response id",
        order="order of the spans",
        usage="per response, with cache",
        errors="an error in the response",
        compaction="none",
        subagents="none",
        images="base64 and addresses",
    ),
)
