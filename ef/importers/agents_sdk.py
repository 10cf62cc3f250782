"""Session databases of the OpenAI Agents SDK (`SQLiteSession`) -> meanings.

Each row of `agent_messages` holds one item of the Responses API as JSON; rows of several sessions lie among one another
in the order of their ids. A tool's failure is only told by its output's words, which say nothing for certain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import ForeignCompaction
from ..events.shapes import is_map
from ..readers import openai_responses as reader
from ..readers.pieces import text_of
from .chains import Chain
from .formats import Format, Head, Tells
from .given import value_in
from .translator import Given, Spot, Translator

NAME = "agents-sdk"
TABLE = "agent_messages"
_READER = (reader.NAME, reader.VERSION)
_RESULTS = (reader.RESULTS, reader.VERSION)


class AgentsSdk(Translator):
    """A database of sessions."""

    NAME = NAME
    KEPT = reader.KEPT

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._sessions: dict[str, Chain] = {}

    def time_of(self, value: Mapping[str, Any]) -> Any:
        return value.get("created_at")

    def record(self, value: dict[str, Any], spot: Spot) -> None:
        if value.get("table") != TABLE:
            self.unknown(spot, value.get("table"))
            return
        item = value.get("message_data")
        inner = value_in(spot, "message_data") if is_map(item) else None
        if inner is None or not is_map(item) or not reader.is_known(item):
            self.unknown(spot, item.get("type") if is_map(item) else type(item).__name__)
            return
        chain = self._chain(text_of(value.get("session_id")))
        reading = reader.reading(item)
        if reader.kind_in(item) in reader.COMPACTIONS:
            self.event(chain, inner, ForeignCompaction(NAME, "compact", None, None))
        if reading.parts:
            self.item(chain, inner, _READER, reading)
        if reader.has_results(item):
            with chain.within():
                self.item(chain, inner, _RESULTS, reader.given_back(item), view="results")

    def _chain(self, name: str) -> Chain:
        found = self._sessions.get(name)
        if found is None:
            found = self._sessions[name] = self.begin(name or None)
        return found


def recognises(head: Head) -> bool:
    """Whether a database is one of these."""
    return {"agent_sessions", TABLE} <= head.tables


FORMAT = Format(
    NAME,
    "OpenAI Agents SDK sessions",
    "database",
    AgentsSdk,
    recognises,
    Tells(
        ids="item ids, call ids",
        groups="inferred from order",
        order="row order; branches are not told apart",
        usage="not read",
        errors="exit codes in the output",
        compaction="where an item says so; kept as it is, encrypted",
        subagents="none",
        images="base64 and addresses",
    ),
    tables={TABLE: "id"},
)
