"""GitHub Copilot CLI's session events (JSON lines) -> meanings.

A call stands in the assistant's message (`toolRequests`); the start of its execution says it again and is not read. A
sub-agent's events are in the same file and name the call that asked for it: they become a session of its own.
"""

from __future__ import annotations

from typing import Any

from ..events import ForeignCompaction, RouteChanged, SessionDescribed, UsageReported
from ..events.shapes import is_map
from ..readers import copilot_cli as reader
from ..readers.pieces import id_of, kind_of, map_of, text_of
from .chains import Chain
from .formats import Format, Head, Tells
from .given import calls_of, made_by_agent, name_in, title_of
from .translator import Given, Spot, Translator, count

NAME = reader.NAME
_READER = (reader.NAME, reader.VERSION)
_KNOWN = frozenset(
    """assistant auto_mode_switch capabilities command commands elicitation exit_plan_mode external_tool factory hook
    mcp mcp_app model pending_messages permission sampling session session_limits_exhausted skill subagent system tool
    tool_search ui user user_input""".split()
)
"""What the types of events begin with, up to the point; and `abort`."""


class CopilotCli(Translator):
    """A session, and the sub-agents in it."""

    NAME = NAME

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._asked: dict[str, str] = {}
        self._agents: dict[str, str] = {}

    def record(self, value: dict[str, Any], spot: Spot) -> None:
        kind, data = kind_of(value), map_of(value.get("data"))
        head, point, _ = kind.partition(".")
        if kind != "abort" and not (point and head in _KNOWN):
            self.unknown(spot, value.get("type"))
        if self.main is None:
            name = text_of(data.get("sessionId")) if kind == "session.start" else ""
            self.begin(name)
        if kind == "subagent.started" and text_of(value.get("agentId")):
            self._agents[text_of(value.get("agentId"))] = text_of(data.get("toolCallId"))
        self._means(value, kind, data, spot, self._chain(value, data))

    def _chain(self, value: dict[str, Any], data: Any) -> Chain:
        main = self.main
        assert main is not None
        agent = text_of(value.get("agentId"))
        call = text_of(data.get("parentToolCallId")) or self._agents.get(agent, "")
        if not call and not agent:
            return main
        own = f"{main.stream.partition('/')[2]}.agent-{(call or agent)[:64]}"
        return self.begin(own, relation="subagent", parent=main, parent_key=self._asked.get(call))

    def _means(self, value: dict[str, Any], kind: str, data: Any, spot: Spot, chain: Chain) -> None:
        if kind == "session.model_change" and text_of(data.get("newModel")):
            self._routed(chain, spot, data.get("newModel"))
        elif kind == "session.title_changed" and title_of(data.get("title")):
            self.event(chain, spot, SessionDescribed(title_of(data.get("title"))))
        elif kind == "session.truncation":
            tokens = count(data.get("preTruncationTokensInMessages"))
            by = name_in(data.get("performedBy"))
            self.event(chain, spot, ForeignCompaction(NAME, "truncate", by, tokens))
        elif kind == "session.snapshot_rewind":
            self.event(chain, spot, ForeignCompaction(NAME, "rewind", None, None))
        elif kind == "session.compaction_complete" and data.get("success") is not False:
            tokens = count(data.get("preCompactionTokens"))
            trigger = name_in(data.get("trigger"))
            self.event(chain, spot, ForeignCompaction(NAME, "compact", trigger, tokens))
        reading = reader.reading(value)
        if reading is None or not reading.parts:
            return
        if chain.side:
            reading = made_by_agent(reading)
        route = None
        if reading.role == "assistant" and text_of(data.get("model")):
            route = chain.routed(RouteChanged(None, name_in(data.get("model"))))
        name = text_of(value.get("id")) or None
        key = self.item(chain, spot, _READER, reading, id=name, route=route)
        for call in calls_of(reading):
            self._asked[call] = key
        made = count(data.get("outputTokens"))
        if reading.group and made is not None:
            self.event(chain, spot, UsageReported(reading.group, None, made, None, None))

    def _routed(self, chain: Chain, spot: Spot, model: Any) -> None:
        route = chain.routed(RouteChanged(None, id_of(model)))
        if route is not None:
            self.event(chain, spot, route)


def recognises(head: Head) -> bool:
    """Whether a file looks like a session of this format, from its first lines."""
    return any(_is_ours(record) for record in head.records[:20])


def _is_ours(record: dict[str, Any]) -> bool:
    kind = record.get("type")
    if not isinstance(kind, str) or not is_map(record.get("data")) or "parentId" not in record:
        return False
    head, point, _ = kind.partition(".")
    return bool(point) and head in _KNOWN and isinstance(record.get("id"), str)


FORMAT = Format(
    NAME,
    "GitHub Copilot CLI",
    "lines",
    CopilotCli,
    recognises,
    Tells(
        ids="event ids, message ids, call ids",
        groups="message id",
        order="file order",
        usage="tokens that were made, per message",
        errors="success; exit codes of commands",
        compaction="boundary, trigger, tokens before, summary; truncation",
        subagents="inline, by the call that asked",
        images="base64 or a path",
    ),
)
