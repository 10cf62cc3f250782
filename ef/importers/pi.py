"""pi sessions (JSON lines) -> meanings.

From version 2 on entries form a tree (`id`, `parentId`). An entry that does not go on where its session stands begins a
session of its own, a fork of the one it leaves. Compactions name the first entry that they keep.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..events import ForeignCompaction, RouteChanged, SessionDescribed
from ..events.shapes import is_map
from ..readers import pi as reader
from ..readers.pieces import id_of, kind_of, map_of, text_of
from .chains import INFERRED, Chain
from .formats import Format, Head, Tells
from .given import calls_of, name_in, title_of, usage_of
from .translator import Given, Spot, Translator, count

NAME = reader.NAME
_READER = (reader.NAME, reader.VERSION)
_KNOWN = frozenset(
    """session message compaction model_change thinking_level_change branch_summary custom custom_message label
    session_info""".split()
)
_ROLES = frozenset(
    """user assistant toolResult bashExecution custom hookMessage branchSummary compactionSummary""".split()
)
_FORKED = re.compile(r"_([0-9A-Za-z-]{8,64})\.jsonl$")


@dataclass(slots=True)
class _Entry:
    """An entry of the file: its id, its session, the key of the newest item up to it, the calls that it holds."""

    id: str
    chain: Chain
    last: str | None
    calls: list[str]


class Pi(Translator):
    """A session: its entries, and the branches in it."""

    NAME = NAME

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._entries: list[_Entry | None] = []
        self._by_id: dict[str, _Entry] = {}
        self._tips: dict[str, str] = {}
        self._dropped: dict[str, int] = {}
        self._name: str | None = None

    def record(self, value: dict[str, Any], spot: Spot) -> None:
        kind = kind_of(value)
        if kind == "session":
            self._entries.append(None)
            self._opens(value)
            return
        name = text_of(value.get("id"))
        if kind not in _KNOWN:
            self.unknown(spot, value.get("type"))
            if not name:
                self._entries.append(None)
                return
        if name in self._by_id:
            self._means(value, kind, spot, self._by_id[name])
            return
        chain = self._chain(value, name, spot)
        entry = _Entry(name, chain, chain.last_key, [])
        self._entries.append(entry)
        self._means(value, kind, spot, entry)
        entry.last = chain.last_key
        if name:
            self._by_id[name] = entry
        self._tips[chain.stream] = name

    # Sessions.

    def _opens(self, value: dict[str, Any]) -> None:
        if self.main is not None:
            return
        self._name = text_of(value.get("id")) or None
        above = text_of(value.get("parentSession")) or text_of(value.get("branchedFrom"))
        found = _FORKED.search(above)
        if found:
            self.begin(self._name, relation="fork", parent=found[1])
        else:
            self.begin(self._name)

    def _chain(self, value: dict[str, Any], name: str, spot: Spot) -> Chain:
        main = self.main or self.begin(self._name)
        if not name:
            return main
        above = text_of(value.get("parentId"))
        parent = self._by_id.get(above)
        if parent is None:
            if above:
                self.remark("dangling-parent", spot, "its parent is not in the file before it")
                return main
            return main if not self._by_id else self._fork(name, main, None)
        if self._tips[parent.chain.stream] == above:
            return parent.chain
        return self._fork(name, parent.chain, parent.last)

    def _fork(self, name: str, above: Chain, key: str | None) -> Chain:
        own = f"{above.stream.partition('/')[2]}.branch-{name[:36]}"
        return self.begin(own, relation="fork", parent=above, parent_key=key)

    # What an entry means.

    def _means(self, value: dict[str, Any], kind: str, spot: Spot, entry: _Entry) -> None:
        chain = entry.chain
        if kind == "model_change":
            route = chain.routed(_route(value.get("provider"), value.get("modelId")))
            if route is not None:
                self.event(chain, spot, route)
        elif kind == "session_info" and title_of(value.get("name")):
            self.event(chain, spot, SessionDescribed(title_of(value.get("name"))))
        elif kind == "compaction":
            before = count(value.get("tokensBefore"))
            dropped = self._drops(value, chain)
            self.event(chain, spot, ForeignCompaction(NAME, "compact", None, before, dropped))
        reading = reader.reading(value)
        if reading is None or not reading.parts:
            role = text_of(map_of(value.get("message")).get("role"))
            if kind == "message" and role not in _ROLES:
                self.unknown(spot, f"message of role {role}")
            return
        message = map_of(value.get("message"))
        route = None
        if reading.role == "assistant" and text_of(message.get("model")):
            route = chain.routed(_route(message.get("provider"), message.get("model")))
        chain.apart()
        key = self.item(chain, spot, _READER, reading, id=entry.id or None, route=route)
        entry.calls = calls_of(reading)
        if reading.role == "assistant":
            self._took(message, reading.group or INFERRED + key, spot, chain)

    def _took(self, message: Any, group: str, spot: Spot, chain: Chain) -> None:
        usage = map_of(message.get("usage"))
        names = ("input", "output", "cacheRead", "cacheWrite")
        given, made, read, write = (usage.get(name) for name in names)
        report = usage_of(group, given, made, read, write, with_cache=False)
        if report is not None:
            self.event(chain, spot, report)

    def _drops(self, value: dict[str, Any], chain: Chain) -> tuple[str, ...]:
        """The calls before the first entry that a compaction keeps, but for those that an earlier one dropped."""
        kept = text_of(value.get("firstKeptEntryId"))
        index = count(value.get("firstKeptEntryIndex"))
        if kept in self._by_id:
            index = self._entries.index(self._by_id[kept])
        if index is None or index > len(self._entries):
            return ()
        begins = self._dropped.get(chain.stream, 0)
        self._dropped[chain.stream] = max(begins, index)
        gone = [e for e in self._entries[begins:index] if e is not None and e.chain is chain]
        return tuple(id_of(call) for entry in gone for call in entry.calls)


def _route(provider: Any, model: Any) -> RouteChanged:
    return RouteChanged(name_in(provider), name_in(model))


def recognises(head: Head) -> bool:
    """Whether a file looks like a session of pi, from its first lines."""
    return any(_is_ours(record) for record in head.records[:20])


def _is_ours(record: dict[str, Any]) -> bool:
    kind = record.get("type")
    if kind == "session":
        return {"id", "timestamp", "cwd"} <= record.keys() and "createdAt" not in record
    message = record.get("message")
    of_claude = "uuid" in record or "sessionId" in record
    return (
        kind == "message"
        and is_map(message)
        and text_of(message.get("role")) in _ROLES
        and "timestamp" in record
        and not of_claude
    )


FORMAT = Format(
    NAME,
    "pi",
    "lines",
    Pi,
    recognises,
    Tells(
        ids="entry ids from version 2 on, call ids",
        groups="one entry a response",
        order="file order; branches are forks",
        usage="per message, with cache",
        errors="isError; exit codes of failures",
        compaction="boundary, tokens before, calls dropped, summary",
        subagents="none",
        images="base64",
    ),
)
