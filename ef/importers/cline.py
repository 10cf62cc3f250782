"""Sessions of Cline's SDK (`*.messages.json`), and the compacted state that it keeps beside one.

A message is an item, but for one that answers calls: the ids of these change whenever the file is written, so their
`content` is the item. A compacted state is a continuation of its session: its messages have the ids of the session's
and other content.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..events import ForeignCompaction, RouteChanged
from ..events.shapes import is_map
from ..readers import cline as reader
from ..readers.jsoncuts import Path, Paths
from ..readers.pieces import id_of, map_of, text_of
from .chains import INFERRED, Chain
from .documents import DocumentTranslator
from .formats import Format, Head, Tells
from .given import name_in, usage_of, value_in
from .translator import Given, Spot, count

NAME = reader.NAME
_READER = (reader.NAME, reader.VERSION)
_COMPACTED = ("compaction", "compaction_summary")
_COUNTS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")


class Cline(DocumentTranslator):
    """A session, or its compacted state."""

    NAME = NAME
    DESCEND: ClassVar[Paths] = frozenset({(), ("messages",)})

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._name = ""
        self._compacted = False
        self._named: set[str] = set()

    def time_of(self, value: Mapping[str, Any]) -> Any:
        return value.get("ts")

    def cut(self, path: Path, value: Any, spot: Spot) -> None:
        if len(path) == 2 and is_map(value):
            self._message(value, spot)
        elif path[-1:] in (("sessionId",), ("conversation_id",)):
            self._name = self._name or text_of(value)
        elif path == ("source_message_count",):
            self._compacted = True

    def _chain(self, value: Mapping[str, Any]) -> Chain:
        if self.main is not None:
            return self.main
        compacted = self._compacted or map_of(value.get("metadata")).get("kind") in _COMPACTED
        if not compacted or not self._name:
            return self.begin(self._name)
        own = f"{self._name}.compaction"
        return self.begin(own, relation="continuation", parent=self._name)

    def _message(self, value: Mapping[str, Any], spot: Spot) -> None:
        if value.get("role") not in ("user", "assistant"):
            self.unknown(spot, f"message of role {value.get('role')}")
            return
        chain = self._chain(value)
        facts = map_of(value.get("metadata"))
        if facts.get("kind") in _COMPACTED:
            trigger, before = name_in(facts.get("reason")), count(facts.get("tokensBefore"))
            self.event(chain, spot, ForeignCompaction(NAME, "compact", trigger, before))
        reading = reader.reading(value)
        if not reading.parts:
            return
        made_by, route = map_of(value.get("modelInfo")), None
        if reading.role == "assistant" and text_of(made_by.get("id")):
            provider, model = name_in(made_by.get("provider")), name_in(made_by.get("id"))
            route = chain.routed(RouteChanged(provider, model))
        if any(part.result is not None for part in reading.parts):
            content = value_in(spot, "content")
            if content is not None:
                self.item(chain, content, reader.USER, reader.user(value.get("content")))
            return
        name = text_of(value.get("id"))
        known = None if name in self._named else name or None
        self._named.add(name)
        key = self.item(chain, spot, _READER, reading, id=known, route=route)
        if reading.role == "assistant":
            given, made, read, write = (map_of(value.get("metrics")).get(n) for n in _COUNTS)
            group = id_of(value.get("id")) or INFERRED + key
            usage = usage_of(group, given, made, read, write, with_cache=True)
            if usage is not None:
                self.event(chain, spot, usage)


def recognises(head: Head) -> bool:
    """Whether a file looks like a session of the SDK, or its compacted state."""
    if not isinstance(dict(head.cuts).get(("updated_at",)), str):
        return False
    held = [v for p, v in head.cuts if p[:1] == ("messages",) and len(p) == 2]
    named = {"version", "sessionId"} <= head.keys or "source_message_count" in head.keys
    return named and (not held or any(is_map(m) and "role" in m and "content" in m for m in held))


TELLS = Tells(
    ids="message ids, call ids",
    groups="message id",
    order="file order",
    usage="per message, with cache",
    errors="is_error, success of each query; exit codes of commands",
    compaction="reason or tokens before; summary; the compacted state is a session of its own",
    subagents="none",
    images="base64",
)

FORMAT = Format(NAME, "Cline SDK", "document", Cline, recognises, TELLS)
