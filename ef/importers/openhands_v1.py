"""OpenHands' agent SDK (V1): an event a line, or a file of its own -> meanings.

A condensation lists the events that it drops. A response with several calls stands in as many events, which name it.
A session is called as its folder is; one below its parent's `subagents` is that of a sub-agent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..events import ForeignCompaction, Reading, RouteChanged
from ..readers import openhands_v1 as reader
from ..readers.pieces import id_of, list_of, map_of, text_of
from .chains import Chain
from .formats import Format, Head, Tells
from .given import calls_of, made_by_agent, name_in
from .translator import Spot, Translator

NAME = reader.NAME
_READER = (reader.NAME, reader.VERSION)
_RESULTS = (reader.RESULTS, reader.VERSION)
_FOLDER = re.compile(
    r"(?:(?:^|[/\\])([^/\\]{8,128})[/\\]subagents[/\\])?"
    r"(?:([^/\\]{8,128})[/\\]events[/\\]event-\d{1,9}-[^/\\]*\.json|(?<![^/\\])([0-9a-f]{32}))$"
)
"""(parent, session) of the place of an event's file, or of the folder that holds a conversation."""


class OpenHandsV1(Translator):
    """A conversation."""

    NAME = NAME

    def _chain(self) -> Chain:
        if self.main is None:
            found = _FOLDER.search(self.given.path)
            if found is None:
                return self.begin(None)
            name = found[2] or found[3]
            if found[1]:
                return self.begin(name, relation="subagent", parent=found[1])
            return self.begin(name)
        return self.main

    def record(self, value: dict[str, Any], spot: Spot) -> None:
        kind = text_of(value.get("kind"))
        if kind not in reader.KNOWN:
            self.unknown(spot, value.get("kind"))
            return
        chain = self._chain()
        if kind == "Condensation":
            dropped = tuple(
                id_of(each) for each in list_of(value.get("forgotten_event_ids")) if id_of(each)
            )
            self.event(chain, spot, ForeignCompaction("openhands", "compact", None, None, dropped))
        if kind == "ConversationStateUpdateEvent":
            self._routed(chain, value, spot)
        reading = reader.reading(value)
        if kind == "ACPToolCallEvent":
            self._ran(chain, value, spot)
        elif reading is not None and reading.parts:
            self._add(chain, spot, _READER, reading)

    def _add(
        self, chain: Chain, spot: Spot, of: tuple[str, int], reading: Reading, view: str = ""
    ) -> None:
        told = made_by_agent(reading) if chain.side else reading
        self.item(chain, spot, of, told, view=view)

    def _routed(self, chain: Chain, value: Mapping[str, Any], spot: Spot) -> None:
        """The state says which model the agent has."""
        if value.get("key") not in ("stats", "agent", "full_state"):
            return
        stats = map_of(value.get("value"))
        stats = map_of(stats.get("stats")) or stats
        used = map_of(map_of(stats.get("usage_to_metrics")).get("default"))
        model = used.get("model_name") or map_of(map_of(value.get("value")).get("llm")).get("model")
        route = chain.routed(RouteChanged(None, name_in(model))) if name_in(model) else None
        if route is not None:
            self.event(chain, spot, route)

    def _ran(self, chain: Chain, value: Mapping[str, Any], spot: Spot) -> None:
        """An ACP agent's tool: the event stands again with each step of its way, and the last one has it all."""
        if text_of(value.get("status")) not in reader.ENDED and value.get("is_error") is not True:
            return
        reading = reader.reading(value)
        assert reading is not None
        if not any(call in chain.calls for call in calls_of(reading)):
            self._add(chain, spot, _READER, reading)
            self._add(chain, spot, _RESULTS, reader.answer(value), view="results")


def recognises(head: Head) -> bool:
    """Whether a file looks like events of the SDK, from its first lines."""
    begin = head.data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    return begin != b"[" and any(_is_ours(record) for record in head.records[:50])


def _is_ours(record: dict[str, Any]) -> bool:
    kind = record.get("kind")
    known = isinstance(kind, str) and kind in reader.KNOWN
    return known and "source" in record and "timestamp" in record


FORMAT = Format(
    NAME,
    "OpenHands agent SDK (V1)",
    "lines",
    OpenHandsV1,
    recognises,
    Tells(
        ids="event ids, call ids",
        groups="response id",
        order="file order",
        usage="totals of the run only: not read",
        errors="is_error, exit codes, errors of the agent",
        compaction="boundary, events dropped, summary",
        subagents="own folders below their parent's",
        images="data or address",
    ),
)
