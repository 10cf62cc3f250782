"""Codex rollouts (JSON lines) -> meanings.

What a model is given is a line of type `response_item`; what such a line says the log of the interface (`event_msg`)
says again, and stays in the source. No line has an id: order is the only key, and the items of one response are grouped
by it. A rollout that goes on from another begins with the other's lines; its own session is the one of its first line.
Files of before 0.4 have the items themselves as lines.
"""

from __future__ import annotations

from typing import Any

from ..events import ForeignCompaction, Reading, RouteChanged, SessionDescribed
from ..events.shapes import is_map
from ..readers import codex as reader
from ..readers import openai_responses as responses
from ..readers.jsoncuts import cuts
from ..readers.pieces import kind_of, map_of, text_of
from .chains import INFERRED, Chain
from .formats import Format, Head, Tells
from .given import made_by_agent, name_in, title_of, usage_of
from .translator import Given, Spot, Translator, count

NAME = reader.NAME
_READER = (reader.NAME, reader.VERSION)
_SUMMARY = (reader.SUMMARY, reader.VERSION)
_RESULTS = (f"{reader.NAME}/results", reader.VERSION)
_LINES = frozenset(
    """session_meta turn_context response_item event_msg compacted world_state inter_agent_communication
    inter_agent_communication_metadata ghost_snapshot""".split()
)
_NO_ITEMS = frozenset(("ghost_snapshot", "other"))
_COMPACTED = frozenset({(), ("payload",), ("payload", "replacement_history")})


class Codex(Translator):
    """A rollout."""

    NAME = NAME
    KEPT = responses.KEPT

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._provider: str | None = None
        self._window: int | None = None
        self._agent = False
        self._total: Any = None
        self._compacted = False

    def record(self, value: dict[str, Any], spot: Spot) -> None:
        kind, payload = text_of(value.get("type")), map_of(value.get("payload"))
        if kind == "session_meta" or self._is_head(value):
            self._opens(payload or value)
        elif kind == "turn_context":
            self._route(payload, spot)
        elif kind == "event_msg":
            self._noted(payload, spot)
        elif kind == "compacted":
            self._compacts(payload, spot)
        elif kind == "response_item":
            self._item(payload, spot)
        elif "payload" not in value and responses.is_known(value):
            self._item(value, spot)
        elif kind not in _LINES and value.get("record_type") != "state":
            self.unknown(spot, value.get("type"))

    def _is_head(self, value: dict[str, Any]) -> bool:
        """Whether a record is the first line of an old rollout."""
        return "type" not in value and "id" in value and "timestamp" in value

    # Sessions.

    def _chain(self) -> Chain:
        return self.main or self.begin(None)

    def _opens(self, meta: Any) -> None:
        if self.main is not None:
            return
        self._provider = name_in(meta.get("model_provider"))
        name = text_of(meta.get("id")) or text_of(meta.get("session_id")) or None
        asked = map_of(meta.get("source")).get("subagent")
        spawned = text_of(map_of(map_of(asked).get("thread_spawn")).get("parent_thread_id"))
        forked = text_of(meta.get("forked_from_id"))
        if spawned or asked or meta.get("thread_source") == "subagent":
            self._agent = True
            self.begin(name, relation="subagent", parent=spawned or forked or None)
        elif forked:
            self.begin(name, relation="fork", parent=forked)
        else:
            self.begin(name)

    # What a record means.

    def _route(self, context: Any, spot: Spot) -> None:
        model = name_in(context.get("model"))
        if model is None:
            return
        chain = self._chain()
        route = chain.routed(RouteChanged(self._provider, model, self._window))
        if route is not None:
            self.event(chain, spot, route)

    def _noted(self, payload: Any, spot: Spot) -> None:
        kind = kind_of(payload)
        if kind == "token_count":
            self._usage(map_of(payload.get("info")), spot)
        elif kind == "task_started":
            self._window = count(payload.get("model_context_window"))
        elif kind == "context_compacted":
            if not self._compacted:
                compaction = ForeignCompaction(NAME, "compact", None, None)
                self.event(self._chain(), spot, compaction)
            self._compacted = False
        elif kind == "thread_name_updated" and title_of(payload.get("thread_name")):
            title = SessionDescribed(title_of(payload.get("thread_name")))
            self.event(self._chain(), spot, title)

    def _usage(self, info: Any, spot: Spot) -> None:
        """What the newest response took; the same report comes again and again."""
        total = info.get("total_token_usage")
        if total is None or total == self._total:
            return
        self._total = total
        last = map_of(info.get("last_token_usage"))
        given, made = last.get("input_tokens"), last.get("output_tokens")
        read = last.get("cached_input_tokens")
        name = INFERRED + spot.key
        report = usage_of(name, given, made, read, None, with_cache=True)
        if report is not None:
            self.event(self._chain(), spot, report)

    def _compacts(self, payload: Any, spot: Spot) -> None:
        chain = self._chain()
        self._compacted = True
        self.event(chain, spot, ForeignCompaction(NAME, "compact", None, None))
        for cut in cuts(spot.data, _COMPACTED):
            told = cut.path == ("payload", "message") and text_of(cut.value).strip()
            left = cut.path[:2] == ("payload", "replacement_history") and is_map(cut.value)
            if cut.fault is None and (told or (left and reader.is_summary(cut.value))):
                inner = spot.inner(cut.start, cut.end, cut.value)
                self.item(chain, inner, _SUMMARY, reader.read_summary(inner.data))
                return

    def _item(self, item: Any, spot: Spot) -> None:
        kind = responses.kind_in(item)
        if kind in _NO_ITEMS:
            return
        chain = self._chain()
        if not responses.is_known(item) and kind != "agent_message":
            self.unknown(spot, kind)
            return
        reading = reader.reading(spot.value)
        if not reading.parts:
            return
        self.item(chain, spot, _READER, self._spoken(reading))
        if responses.has_results(item):
            results = responses.given_back(item)
            with chain.within():
                self.item(chain, spot, _RESULTS, results, view="results")

    def _spoken(self, reading: Reading) -> Reading:
        return made_by_agent(reading) if self._agent else reading


def recognises(head: Head) -> bool:
    """Whether a file looks like a rollout, from its first lines."""
    records = head.records[:20]
    if any(text_of(r.get("type")) in _LINES and is_map(r.get("payload")) for r in records):
        return True
    first: dict[str, Any] = records[0] if records else {}
    old = "type" not in first and {"id", "timestamp"} <= first.keys()
    return old and (
        "instructions" in first or any(r.get("record_type") == "state" for r in records)
    )


FORMAT = Format(
    NAME,
    "Codex rollouts",
    "lines",
    Codex,
    recognises,
    Tells(
        ids="call ids; none of items",
        groups="inferred from order",
        order="file order",
        usage="per response, with cache",
        errors="exit codes in the output",
        compaction="boundary, summary where it is not encrypted",
        subagents="files of their own, with their parent",
        images="base64",
    ),
)
