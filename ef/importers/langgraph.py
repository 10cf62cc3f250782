"""LangGraph checkpoints (the tables of `SqliteSaver`) -> meanings.

A checkpoint holds all messages of its thread; a message comes in with the first checkpoint that has it. What a later
one has no more was removed (`RemoveMessage`, a summary in its place): a compaction, and the messages stay. Nothing in a
checkpoint is revived: of what was packed as a class only its fields are read, by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import InputRefused
from ..events import ForeignCompaction, RouteChanged
from ..events.shapes import is_list, is_map
from ..readers import langgraph as reader
from ..readers.pieces import id_of, kind_of, list_of, map_of, text_of
from .chains import INFERRED, Chain
from .formats import Format, Head, Tells
from .given import name_in, usage_of, value_in
from .translator import Given, Spot, Translator

if TYPE_CHECKING:
    import sqlite3

NAME = reader.NAME
_READER = (reader.NAME, reader.VERSION)
DEPTH_MAX = 48
"""Values packed in values: more than any checkpoint has."""
_CONSTRUCTED = frozenset((0, 1, 2, 3, 4, 5))
"""Codes of what was packed as [module, name, what it is made of, …]."""


class LangGraph(Translator):
    """A database of checkpoints."""

    NAME = NAME

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._threads: dict[tuple[str, str], Chain] = {}

    def time_of(self, value: Mapping[str, Any]) -> Any:
        return value.get("ts")

    def record(self, value: dict[str, Any], spot: Spot) -> None:
        if "unread" in value:
            self.remark("unread", spot, f"a checkpoint that is not read: {value['unread']}")
            return
        chain = self._chain(text_of(value.get("thread_id")), text_of(value.get("checkpoint_ns")))
        removed = list_of(value.get("removed"))
        if removed:
            dropped = tuple(id_of(each) for each in removed if id_of(each))
            self.event(chain, spot, ForeignCompaction(NAME, "removed", None, None, dropped))
        message = value.get("message")
        inner = value_in(spot, "message") if is_map(message) else None
        if inner is None or not is_map(message):
            return
        if kind_of(message) not in reader.TYPES:
            self.unknown(spot, message.get("type"))
        reading = reader.reading(message)
        if not reading.parts:
            return
        told = map_of(message.get("response_metadata"))
        model = name_in(told.get("model_name") or told.get("model"))
        route = chain.routed(RouteChanged(None, model)) if model else None
        key = self.item(
            chain, inner, _READER, reading, id=text_of(message.get("id")) or None, route=route
        )
        usage = map_of(message.get("usage_metadata"))
        details = map_of(usage.get("input_token_details"))
        name = reading.group or id_of(message.get("id")) or INFERRED + key
        given, made = usage.get("input_tokens"), usage.get("output_tokens")
        read, write = details.get("cache_read"), details.get("cache_creation")
        report = usage_of(name, given, made, read, write, with_cache=True)
        if report is not None:
            self.event(chain, spot, report)

    def _chain(self, thread: str, inside: str) -> Chain:
        found = self._threads.get((thread, inside))
        if found is None:
            if inside:
                above = self._chain(thread, "")
                name = f"{thread}.{inside.partition(':')[0]}"
                found = self.begin(name, relation="subagent", parent=above)
            else:
                found = self.begin(thread or None)
            self._threads[thread, inside] = found
        return found


def rows(database: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    """What the checkpoints hold, in the order in which they were made: each message once, and what was removed."""
    found = database.execute(
        "SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint"
        " FROM checkpoints ORDER BY checkpoint_id, thread_id, checkpoint_ns"
    )
    known: dict[tuple[str, str], dict[str, str]] = {}
    held: dict[tuple[str, str, str], list[str]] = {}
    for thread, inside, name, parent, kind, data in found:
        told = {"thread_id": str(thread), "checkpoint_ns": str(inside), "checkpoint_id": str(name)}
        if kind not in ("msgpack", "json") or not isinstance(data, bytes):
            yield {**told, "unread": f"it is of type {str(kind)[:40]!r}"}
            continue
        value = map_of(_msgpack(data) if kind == "msgpack" else _json(data))
        told["ts"] = text_of(value.get("ts"))
        seen = known.setdefault((told["thread_id"], told["checkpoint_ns"]), {})
        names: list[str] = []
        for message in _messages(map_of(value.get("channel_values"))):
            text = json.dumps(message, sort_keys=True, default=str)
            id_ = text_of(message.get("id")) or text
            names.append(id_)
            if seen.get(id_) != text:
                seen[id_] = text
                yield {**told, "message": message}
        before = held.get((told["thread_id"], told["checkpoint_ns"], str(parent)), [])
        gone = [each for each in before if each not in names]
        if gone:
            yield {**told, "removed": [each for each in gone if not each.startswith("{")]}
        held[told["thread_id"], told["checkpoint_ns"], told["checkpoint_id"]] = names


def _messages(channels: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The messages of all channels that hold a list of them."""
    for value in channels.values():
        if is_list(value) and value and all(is_map(m) and _is_message(m) for m in value):
            yield from value


def _is_message(value: Mapping[str, Any]) -> bool:
    return kind_of(value) in reader.TYPES and "content" in value


def _json(data: bytes) -> Any:
    try:
        return _plain(json.loads(data), 0)
    except (ValueError, RecursionError):
        return None


def _plain(value: Any, depth: int) -> Any:
    """A JSON value in which what was packed as a class is its fields."""
    if depth > DEPTH_MAX:
        return None
    if is_map(value):
        inner = value.get("kwargs") if value.get("type") == "constructor" else value
        return {str(k): _plain(v, depth + 1) for k, v in map_of(inner).items()}
    return [_plain(each, depth + 1) for each in value] if is_list(value) else value


def _msgpack(data: bytes, depth: int = 0) -> Any:
    """A packed value as JSON: no class is looked up, imported or made."""
    try:
        import msgpack  # type: ignore[import-untyped,unused-ignore]
    except ModuleNotFoundError:
        raise InputRefused(
            where="the checkpoints",
            why="they are packed with MessagePack, which needs a package that is not installed",
            remedy='pip install "epistemic-fold[langgraph]".',
        ) from None

    def extended(code: int, inner: bytes) -> Any:
        if code not in _CONSTRUCTED or depth >= DEPTH_MAX:
            return None
        parts = list_of(_msgpack(inner, depth + 1))
        return parts[2] if len(parts) > 2 else None

    try:
        value: Any = msgpack.unpackb(  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            data, ext_hook=extended, strict_map_key=False, unicode_errors="surrogateescape"
        )
    except Exception:  # the package raises errors of many kinds for bytes that are none of its
        return None
    return _listed(value, 0)


def _listed(value: Any, depth: int) -> Any:
    """A value that JSON has: what it lacks becomes text, keys too; what nests too deep is left out."""
    if depth > DEPTH_MAX:
        return None
    if is_map(value):
        return {str(k): _listed(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple | set):
        several: list[Any] = [*value]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return [_listed(each, depth + 1) for each in several]
    if isinstance(value, bytes):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def recognises(head: Head) -> bool:
    """Whether a database holds checkpoints."""
    return {"checkpoints", "writes"} <= head.tables


FORMAT = Format(
    NAME,
    "LangGraph checkpoints (SQLite)",
    "database",
    LangGraph,
    recognises,
    Tells(
        ids="message ids, call ids",
        groups="one message a response",
        order="order of the checkpoints",
        usage="per message, with cache",
        errors="status of tool messages",
        compaction="messages that were removed",
        subagents="subgraphs with checkpoints of their own",
        images="base64 and addresses",
    ),
    feed=rows,
)
