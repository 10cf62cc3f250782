"""OpenAI Responses items (a list, a request, a stored response) -> meanings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..events import ForeignCompaction, Reading, UsageReported
from ..readers import openai_responses as reader
from ..readers.jsoncuts import Path
from ..readers.pieces import id_of, kind_of, map_of, maps_of
from .formats import Format, Head, Tells
from .given import usage_of
from .messages import Messages, found_in, mostly, paths
from .translator import Spot

NAME = reader.NAME
_LISTS = ("input", "output", "items", "data")


class Responses(Messages):
    """Items of the Responses API."""

    NAME = NAME
    KEPT = reader.KEPT
    PROVIDER = "openai"
    READER = (reader.NAME, reader.VERSION)
    ROLES = reader.ROLES
    LISTS = _LISTS
    DESCEND = paths(*_LISTS)

    _response: str | None = None
    _output = False

    def apart(self) -> None:
        super().apart()
        self._response = None

    def cut(self, path: Path, value: Any, spot: Spot) -> None:
        self._output = "output" in path[:-1]
        super().cut(path, value, spot)

    def other(self, path: Path, value: Any, spot: Spot) -> None:
        if path and path[-1] == "id":
            self._response = id_of(value) or None

    def reading(self, value: Mapping[str, Any]) -> Reading:
        return reader.reading(value)

    def message(self, value: Mapping[str, Any], spot: Spot) -> None:
        if not reader.is_known(value):
            self.unknown(spot, value.get("type"))
            return
        reading = self.reading(value)
        if not reading.parts:
            return
        self.known_role(value, spot)
        if reader.kind_in(value) in reader.COMPACTIONS:
            self.event(self.chain(), spot, ForeignCompaction(NAME, "compact", None, None))
        if reading.role == "assistant" and self._output and self._response:
            reading = replace(reading, group=self._response)
        self.add(spot, self.READER, reading)
        if reader.has_results(value):
            results = (reader.RESULTS, reader.VERSION)
            with self.chain().within():
                self.add(spot, results, reader.given_back(value), view="results")

    def usage(self, message: str, usage: Mapping[str, Any]) -> UsageReported | None:
        read = map_of(usage.get("input_tokens_details")).get("cached_tokens")
        given, made = usage.get("input_tokens"), usage.get("output_tokens")
        return usage_of(message, given, made, read, None, with_cache=True)


def recognises(head: Head) -> bool:
    """Whether a file plainly holds items of this API."""
    found = found_in(head, *_LISTS)
    return mostly(_is_item, found) and any(map(_is_own, found)) and not any(map(_is_roo, found))


def _is_item(item: Mapping[str, Any]) -> bool:
    whole = reader.kind_in(item) != "message" or "role" in item
    return whole and reader.is_known(item) and not {"payload", "record_type"} & item.keys()


def _is_roo(item: Mapping[str, Any]) -> bool:
    """Whether an item is of a tool that keeps Anthropic's messages, some of its own among them."""
    kinds = {kind_of(block) for block in maps_of(item.get("content"))}
    return "ts" in item or bool(kinds & {"tool_use", "tool_result"})


def _is_own(item: Mapping[str, Any]) -> bool:
    """Whether an item is of no other provider: its type, or that of a block of a message's content."""
    kind = reader.kind_in(item)
    if kind != "message":
        return reader.is_known(item) and "timestamp" not in item
    kinds = {kind_of(block) for block in maps_of(item.get("content"))}
    return item.get("type") == "message" or bool(kinds & {"input_text", "output_text"})


FORMAT = Format(
    NAME,
    "OpenAI Responses items",
    "document",
    Responses,
    recognises,
    Tells(
        ids="item ids, call ids",
        groups="response id where it is stored, else inferred",
        order="list order",
        usage="where a response is stored",
        errors="exit codes in the output; failed items",
        compaction="where an item says so; kept as it is, encrypted",
        subagents="none",
        images="base64 and addresses",
    ),
)
