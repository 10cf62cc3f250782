"""Anthropic-shaped messages ({"role", "content"}) given to `Session.append` -> items and parts. Pure; version 1.

The caller is the host: a user message without tool results is what the user typed, unless the caller names another
channel. Blocks are read as in a transcript.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import Channel, Part, PartKind, Reading
from ..events.shapes import is_map
from . import claude_code, texts
from .jsonvalues import parse

NAME, VERSION = "anthropic", 1


def read(data: bytes, *, channel: Channel | None = None) -> Reading:
    """The reading of a message's bytes; `channel` overrides who speaks in its texts."""
    message = parse(data)
    if not is_map(message):
        return Reading("opaque", ())
    found = reading(message)
    if channel is None:
        return found
    parts = tuple(_spoken(part, channel) for part in found.parts)
    return Reading(found.role, parts, found.group)


def reading(message: Mapping[str, Any]) -> Reading:
    """The reading of a message; some hosts have what the system says among the messages."""
    if message.get("role") == "system":
        return texts.system(message.get("content"))
    return claude_code.reading({"type": message.get("role"), "message": message})


def _spoken(part: Part, channel: Channel) -> Part:
    if part.kind in (PartKind.TOOL_CALL, PartKind.TOOL_RESULT):
        return part
    return Part(part.kind, channel, part.text, part.call_id, part.block, part.call, part.result)
