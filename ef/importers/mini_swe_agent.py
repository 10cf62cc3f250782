"""mini-swe-agent trajectories (one JSON document) -> meanings.

The first user message is the task. A user message behind a call is its result, any other the harness's: it says that
an answer had a bad format. The provider's whole response stands in `extra` again, and is not read twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import Channel, Reading, RouteChanged
from ..events.shapes import is_map
from ..readers import mini_swe_agent as reader
from ..readers.jsoncuts import Path
from ..readers.pieces import map_of, text_of
from ..readers.tools import named
from .chains import INFERRED, Chain
from .documents import DocumentTranslator
from .formats import Format, Head, Tells
from .given import name_in, said_by, usage_of
from .translator import Given, Spot

NAME = reader.NAME
_READER = (reader.NAME, reader.VERSION)
_RESULTS = (reader.RESULTS, reader.VERSION)


class MiniSweAgent(DocumentTranslator):
    """A trajectory."""

    NAME = NAME
    DESCEND = frozenset({(), ("messages",)})

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._asked = False

    def time_of(self, value: Mapping[str, Any]) -> Any:
        extra = map_of(value.get("extra"))
        return extra.get("timestamp") or map_of(extra.get("response")).get("created")

    def cut(self, path: Path, value: Any, spot: Spot) -> None:
        if path[:1] == ("messages",) and is_map(value):
            self._message(value, spot)

    def _chain(self) -> Chain:
        return self.main or self.begin(None)

    def _message(self, value: Mapping[str, Any], spot: Spot) -> None:
        role = text_of(value.get("role"))
        chain = self._chain()
        waits = [o.call.call_id for o in chain.open_calls]
        inferred = bool(waits) and waits[0].startswith(INFERRED)
        if (role == "user" and inferred) or (role == "exit" and waits):
            # What a run ends with is what its last command gave.
            reading = reader.answer(value)
            if not inferred:
                reading = Reading(reading.role, (named(reading.parts[0], waits[0]),))
            self.item(chain, spot, _RESULTS, reading)
            return
        if role == "exit":
            return
        reading = reader.reading(value)
        if not reading.parts:
            if not role and not value.get("type") and value.get("object") != "response":
                self.unknown(spot, value.get("type"))
            return
        if reading.role == "user" and all(part.result is None for part in reading.parts):
            if self._asked:
                reading = said_by(reading, Channel.SYSTEM)
            self._asked = True
        response = map_of(map_of(value.get("extra")).get("response"))
        model = name_in(response.get("model"))
        route = chain.routed(RouteChanged(None, model)) if model else None
        key = self.item(chain, spot, _READER, reading, route=route)
        self._took(response, reading.group or INFERRED + key, chain, spot)

    def _took(self, response: Mapping[str, Any], message: str, chain: Chain, spot: Spot) -> None:
        usage = map_of(response.get("usage"))
        given = usage.get("prompt_tokens", usage.get("input_tokens"))
        made = usage.get("completion_tokens", usage.get("output_tokens"))
        details = usage.get("prompt_tokens_details", usage.get("input_tokens_details"))
        read = map_of(details).get("cached_tokens")
        report = usage_of(message, given, made, read, None, with_cache=True)
        if report is not None:
            self.event(chain, spot, report)


def recognises(head: Head) -> bool:
    """Whether a file looks like a trajectory, from its first values."""
    if any(
        text_of(v).startswith("mini-swe-agent") for p, v in head.cuts if p == ("trajectory_format",)
    ):
        return True
    info = map_of(next((v for p, v in head.cuts if p == ("info",)), None))
    inside = {path[1] for path, _ in head.cuts if len(path) == 2 and path[0] == "info"}
    told = {*info.keys(), *inside}
    return "messages" in head.keys and bool({"mini_version", "model_stats", "exit_status"} & told)


FORMAT = Format(
    NAME,
    "mini-swe-agent trajectories",
    "document",
    MiniSweAgent,
    recognises,
    Tells(
        ids="call ids from version 2 on",
        groups="response id",
        order="list order",
        usage="per response, with cache",
        errors="return codes",
        compaction="none",
        subagents="none",
        images="none",
    ),
)
