"""DeepSeek Harness session logs (JSON lines) -> meanings.

The model's surface there is a projection of the log: a message may take the place of earlier ones. Here all stay where
they are, in the order of the log; that something was taken away is a compaction, and the message in its place the
importer's. A result that was cut down is a compaction of the form prune: its full text is the item.
What a stream brought in pieces (`assistant/chunk`, packed rows) stands whole in the message behind it, and a call
(`tool/call`) in the message before it: neither is read again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import (
    Channel,
    ForeignCompaction,
    Reading,
    RouteChanged,
    SessionDescribed,
)
from ..events.shapes import is_map
from ..readers import deepseek_harness as reader
from ..readers import texts
from ..readers.pieces import id_of, kind_of, list_of, map_of, text_of
from .chains import INFERRED, Chain
from .formats import Format, Head, Tells
from .given import made_by_agent, name_in, said_by, title_of, usage_of, value_in
from .translator import Given, Spot, Translator, count

NAME = reader.NAME
_READER = (reader.NAME, reader.VERSION)
_SYSTEM = (texts.SYSTEM, texts.VERSION)
_FAMILIES = frozenset(
    """agent agent-preset approval assistant command compact compaction ef feedback goal hook llm permission plan
    request sandbox session step subagent system todo tool tool-workflow turn user web""".split()
)
"""What the types of events begin with, up to the stroke."""
_PACKED = {"text-chunks": "texts", "reasoning-chunks": "texts", "tool-call-chunks": "args"}
"""Rows that hold several pieces of a stream, and where."""
_SURFACE = frozenset(("user/message", "assistant/message", "tool/result", "system/message"))
_PROMPT = "system-prompt"
"""The id of the item that holds the system's text: it has one place, and its newest content counts."""


class DeepseekHarness(Translator):
    """A session."""

    NAME = NAME
    GROWS = True

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._header: Mapping[str, Any] = {}
        self._seq = -1
        self._calls_at: dict[int, str] = {}
        self._prompts_at: dict[int, str] = {}
        self._pruned: set[str] = set()
        self._summarised = False
        self._of_agent = False
        self._trigger: str | None = None
        self._windows: dict[tuple[str | None, str | None], int] = {}

    def time_of(self, value: Mapping[str, Any]) -> Any:
        return value.get("time") or value.get("createdAt")

    # Sessions.

    def _chain(self, asked: str = "") -> Chain:
        """The file's session. A sub-agent's begins with what it was asked, which says where in its parent that was."""
        if self.main is not None:
            return self.main
        above, name = _plain(self._header.get("parentSession")), _plain(self._header.get("id"))
        if self._of_agent:
            return self.begin(name, relation="subagent", parent=above, asked=asked)
        if not text_of(self._header.get("parentSession")):
            return self.begin(name)
        return self.begin(name, relation="fork", parent=above, asked=asked)

    # Events.

    def record(self, value: dict[str, Any], spot: Spot) -> None:
        kind, data = kind_of(value), map_of(value.get("data"))
        if kind == "session":
            if not self._header and self.main is None:
                self._header = value
                depth = bool(count(value.get("delegationDepth")))
                self._of_agent |= depth or value.get("origin") == "subagent"
                if not text_of(value.get("parentSession")):
                    self._chain()
            return
        self._count(value, kind, data)
        head, stroke, _ = kind.partition("/")
        if kind in _PACKED:
            return
        if not stroke or head not in _FAMILIES:
            if value.get("ignorable") is not True:
                self.unknown(spot, value.get("type"))
            return
        if kind in _SURFACE:
            self._said(value, kind, spot)
        elif head in ("compaction", "compact"):
            self._compacted(kind.rpartition("/")[2], data, spot)
        else:
            self._state(kind, data, spot)

    def _count(self, value: Mapping[str, Any], kind: str, data: Mapping[str, Any]) -> None:
        """The number of an event is told, or it is the next one; a packed row has as many as it holds pieces."""
        held = max(1, len(list_of(data.get(_PACKED[kind])))) if kind in _PACKED else 1
        told = count(value.get("seq0" if kind in _PACKED else "seq"))
        self._seq = (self._seq + 1 if told is None else told) + held - 1

    def _state(self, kind: str, data: Mapping[str, Any], spot: Spot) -> None:
        if (
            kind == "subagent/descriptor"
        ):  # only an agent's own log has one, or what a fork has of it
            self._of_agent |= self._seq >= (count(self._header.get("seedLength")) or 0)
        elif kind == "session/title" and title_of(data.get("title")):
            self.event(self._chain(), spot, SessionDescribed(title_of(data.get("title"))))
        elif kind == "request/context":
            window = count(data.get("contextWindow"))
            route = name_in(data.get("provider")), name_in(data.get("model"))
            if window:
                self._windows[route] = window
            self._routed(*route, spot)
        elif kind == "request/header":
            config = map_of(map_of(data.get("header")).get("config"))
            if config:
                self._routed(name_in(config.get("provider")), name_in(config.get("model")), spot)
            self._prompted(spot)

    def _routed(self, provider: str | None, model: str | None, spot: Spot) -> None:
        if provider or model:
            chain = self._chain()
            route = chain.routed(self._route(provider, model))
            if route is not None:
                self.event(chain, spot, route)

    def _route(self, provider: str | None, model: str | None) -> RouteChanged:
        return RouteChanged(provider, model, self._windows.get((provider, model)))

    def _prompted(self, spot: Spot) -> None:
        """The system's text of a request, where it stands in the header of one."""
        place: Spot | None = spot
        for key in ("data", "header", "system"):
            place = value_in(place, key) if place is not None else None
        if place is None or _plain(place.value) is None:
            return
        self.item(self._chain(), place, _SYSTEM, texts.system(place.value), id=_PROMPT)

    # Messages.

    def _said(self, value: dict[str, Any], kind: str, spot: Spot) -> None:
        reading = reader.reading(value)
        if reading is None:
            return
        words = (part.text for part in reading.parts if part.text)
        chain = self._chain(next(words, "") if kind == "user/message" else "")
        if kind == "system/message":
            self._system(chain, value, reading, spot)
        elif kind == "user/message":
            self._user(chain, value, reading, spot)
        elif reader.replaces(value):
            self._rewritten(chain, kind, reading, spot)
        elif kind == "assistant/message":
            self._assistant(chain, map_of(value.get("data")), reading, spot)
        elif reading.parts:
            call = next((p.call_id for p in reading.parts if p.call_id), None)
            if call:
                self._calls_at[self._seq] = call
            self.item(chain, spot, _READER, reading)

    def _system(self, chain: Chain, value: Mapping[str, Any], reading: Reading, spot: Spot) -> None:
        """The system's text as a message: one that takes the place of another replaces it."""
        operation = map_of(value.get("surfaceOp"))
        earlier = operation.get("startSeq", operation.get("start"))
        ident = f"{_PROMPT}-{self._seq}"
        if reader.replaces(value) and type(earlier) is int:
            ident = self._prompts_at.get(earlier, ident)
        self._prompts_at[self._seq] = ident
        if reading.parts:
            self.item(chain, spot, _READER, reading, id=ident)

    def _user(self, chain: Chain, value: Mapping[str, Any], reading: Reading, spot: Spot) -> None:
        if reader.replaces(value):
            if not self._summarised:
                self._compact(chain, value.get("sourceEventSeqs"), spot)
            self._summarised = False
        source = map_of(reader.message_of(map_of(value.get("data"))).get("source"))
        sender = text_of(source.get("senderSessionId"))
        if sender and sender == self._header.get("parentSession"):
            reading = said_by(reading, Channel.ASSISTANT, of=(Channel.SUBAGENT,))
        if reading.parts:
            self.item(chain, spot, _READER, made_by_agent(reading) if self._of_agent else reading)

    def _assistant(
        self, chain: Chain, data: Mapping[str, Any], reading: Reading, spot: Spot
    ) -> None:
        source = map_of(reader.message_of(data).get("source"))
        provider, model = name_in(source.get("provider")), name_in(source.get("model"))
        route = chain.routed(self._route(provider, model)) if provider or model else None
        told = made_by_agent(reading) if self._of_agent else reading
        chain.apart()
        key = self.item(chain, spot, _READER, told, route=route) if told.parts else spot.key
        self._spent(chain, reading.group or INFERRED + key, data, spot)

    def _spent(self, chain: Chain, message: str, data: Mapping[str, Any], spot: Spot) -> None:
        """What a message took, but for those that a fork has of its parent: there it is told."""
        if self._seq < (count(self._header.get("seedLength")) or 0):
            return
        usage = map_of(data.get("usage"))
        given, made = usage.get("inputTokens"), usage.get("outputTokens")
        read, write = usage.get("cacheReadTokens"), usage.get("cacheWriteTokens")
        report = usage_of(message, given, made, read, write, with_cache=False)
        if report is not None:
            self.event(chain, spot, report)

    # Compactions.

    def _compacted(self, what: str, data: Mapping[str, Any], spot: Spot) -> None:
        if what == "start":
            told = name_in(data.get("trigger"))
            by_hand = "manual" if text_of(data.get("sourceCommandId")) else "auto"
            self._trigger = told or by_hand
        elif what == "summary":
            chain = self._chain()
            self._compact(chain, data.get("shadowedSeqs"), spot)
            self._summarised = True
            self._spent(chain, f"compaction:{id_of(data.get('compactionId'))}", data, spot)
        elif what == "prune":
            self._prune(self._chain(), [
                self._calls_at[seq] for seq in _seqs(data.get("shadowedSeqs")) if seq in self._calls_at
            ], spot)  # fmt: skip

    def _compact(self, chain: Chain, gone: Any, spot: Spot) -> None:
        dropped = tuple(map(str, _seqs(gone)))
        self.event(chain, spot, ForeignCompaction(NAME, "compact", self._trigger, None, dropped))
        self._trigger = None

    def _rewritten(self, chain: Chain, kind: str, reading: Reading, spot: Spot) -> None:
        """Something stands on the surface in another form than it was: what is in the log is the item."""
        calls = [p.call_id for p in reading.parts if p.call_id] if kind == "tool/result" else []
        for call in calls:
            self._calls_at[self._seq] = call
        told = bool(calls) and self._pruned.issuperset(calls)
        self._pruned.difference_update(calls)
        if not told:
            self._prune(chain, calls, spot)
            self._pruned.difference_update(calls)

    def _prune(self, chain: Chain, calls: list[str], spot: Spot) -> None:
        self.event(chain, spot, ForeignCompaction(NAME, "prune", None, None, tuple(calls)))
        self._pruned.update(calls)


def _plain(value: Any) -> str | None:
    """A text that the harness's snapshots did not put a placeholder for."""
    return value if isinstance(value, str) and value and not value.startswith("{{") else None


def _seqs(value: Any) -> list[int]:
    return [each for each in list_of(value) if type(each) is int and each >= 0]


def recognises(head: Head) -> bool:
    """Whether a file looks like a session of the harness, from its first lines."""
    return any(_is_ours(record) for record in head.records[:20])


def _is_ours(record: dict[str, Any]) -> bool:
    kind = record.get("type")
    if kind == "session":
        return "createdAt" in record and "version" in record and isinstance(record.get("id"), str)
    if not isinstance(kind, str) or not is_map(record.get("data")):
        return False
    head, stroke, _ = kind.partition("/")
    return bool(stroke) and head in _FAMILIES and "payload" not in record


FORMAT = Format(
    NAME,
    "DeepSeek Harness",
    "lines",
    DeepseekHarness,
    recognises,
    Tells(
        ids="message ids, call ids",
        groups="message id",
        order="log order; the surface's own is not kept",
        usage="per message, with cache; of compactions",
        errors="isError; exit codes of failures",
        compaction="boundary, trigger, events dropped, summary; pruned results",
        subagents="own files, which name their parent",
        images="named, not held",
    ),
)
