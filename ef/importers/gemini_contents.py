"""Gemini contents (a list, a request, a response, or a content a line) -> meanings.

Calls need no id there: a response without one answers the oldest call of its name that waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..events import Part, Reading, UsageReported
from ..events.shapes import is_list, is_map
from ..readers import gemini as reader
from ..readers.jsoncuts import Path
from ..readers.pieces import map_of, text_of
from ..readers.tools import named
from .chains import INFERRED, Chain
from .formats import Format, Head, Tells
from .given import name_in, usage_of
from .messages import Messages, found_in, mostly, paths
from .translator import Spot, count

NAME = "gemini-contents"


class Contents(Messages):
    """Contents of Gemini's API."""

    NAME = NAME
    PROVIDER = "google"
    READER = (reader.NAME, reader.VERSION)
    ROLES = reader.ROLES
    LISTS = ("contents", "history")
    DESCEND = paths("contents", "history", "candidates") | {
        ("candidates", "*"),
        ("response", "candidates", "*"),
    }

    def reading(self, value: Mapping[str, Any]) -> Reading:
        return reader.reading(value)

    def message(self, value: Mapping[str, Any], spot: Spot) -> None:
        if "parts" not in value and "role" not in value:
            self.unknown(spot, value.get("type"))
            return
        reading = self.reading(value)
        if reading.parts:
            self.known_role(value, spot)
            self.add(spot, self.READER, self._paired(reading, self.chain()))

    def other(self, path: Path, value: Any, spot: Spot) -> None:
        key = path[-1] if path else ""
        if key == "content" and is_map(value):
            self.choice(path, value, spot)
        elif key in ("modelVersion", "model_version"):
            self.made_by(name_in(value), spot)

    def _paired(self, reading: Reading, chain: Chain) -> Reading:
        """A response without an id answers the oldest call without one that waits and has its name."""
        waiting = [o.call for o in chain.open_calls if o.call.call_id.startswith(INFERRED)]
        parts: list[Part] = []
        for part in reading.parts:
            block = map_of(part.block)
            if part.result is not None and part.call_id == "":
                name = text_of(map_of(reader.either(block, "function_response")).get("name"))
                call = next((c for c in waiting if c.name == name), None)
                if call is not None:
                    waiting.remove(call)
                    part = named(part, call.call_id)
            parts.append(part)
        return replace(reading, parts=tuple(parts))

    def usage(self, message: str, usage: Mapping[str, Any]) -> UsageReported | None:
        given = reader.either(usage, "prompt_token_count")
        made = count(reader.either(usage, "candidates_token_count"))
        thought = count(reader.either(usage, "thoughts_token_count"))
        if made is not None or thought is not None:
            made = (made or 0) + (thought or 0)
        read = reader.either(usage, "cached_content_token_count")
        return usage_of(message, given, made, read, None, with_cache=True)


def recognises(head: Head) -> bool:
    """Whether a file plainly holds contents of this API."""
    found = found_in(head, "contents", "history")
    if found:
        return mostly(_is_content, found)
    return "candidates" in head.keys


def _is_content(content: Mapping[str, Any]) -> bool:
    role = text_of(content.get("role", "user"))
    return is_list(content.get("parts")) and role in reader.ROLES


FORMAT = Format(
    NAME,
    "Gemini contents",
    "document",
    Contents,
    recognises,
    Tells(
        ids="call ids where given, else by order and name",
        groups="one content a response",
        order="list order",
        usage="where a response is stored",
        errors="an error in the response",
        compaction="none",
        subagents="none",
        images="base64 and addresses",
    ),
)
