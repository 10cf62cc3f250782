"""OpenAI chat messages (a list, a request, a response, or a message a line) -> meanings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import Reading, UsageReported
from ..events.shapes import is_map
from ..readers import openai_chat as reader
from ..readers.jsoncuts import Path
from ..readers.pieces import kind_of, map_of, maps_of, text_of
from .formats import Format, Head, Tells
from .given import usage_of
from .messages import Messages, found_in, mostly, paths
from .translator import Spot

NAME = reader.NAME
_KEYS = ("messages",)


class Chat(Messages):
    """Messages of chat completions."""

    NAME = NAME
    PROVIDER = "openai"
    READER = (reader.NAME, reader.VERSION)
    ROLES = reader.ROLES
    DESCEND = paths("messages", "choices") | {("choices", "*"), ("response", "choices", "*")}

    def reading(self, value: Mapping[str, Any]) -> Reading:
        return reader.reading(value)

    def other(self, path: Path, value: Any, spot: Spot) -> None:
        if path and path[-1] == "message" and is_map(value):
            self.choice(path, value, spot)

    def usage(self, message: str, usage: Mapping[str, Any]) -> UsageReported | None:
        read = map_of(usage.get("prompt_tokens_details")).get("cached_tokens")
        given, made = usage.get("prompt_tokens"), usage.get("completion_tokens")
        return usage_of(message, given, made, read, None, with_cache=True)


def recognises(head: Head) -> bool:
    """Whether a file plainly holds chat messages: one says something that no other provider's do."""
    found = found_in(head, *_KEYS)
    if mostly(_is_message, found):
        if any("ts" in each for each in found) or any(map(_is_anothers, found)):
            return False
        plain = mostly(lambda each: isinstance(each.get("content"), str), found)
        return any(map(_is_chats, found)) or (plain and "system" not in head.keys)
    return "choices" in head.keys and "object" in head.keys


def _is_message(message: Mapping[str, Any]) -> bool:
    return text_of(message.get("role")) in reader.ROLES and "parts" not in message


def _is_anothers(message: Mapping[str, Any]) -> bool:
    """Whether a message holds blocks that only another provider has."""
    kinds = {kind_of(block) for block in maps_of(message.get("content"))}
    return bool(kinds & {"tool_use", "tool_result", "input_text", "output_text"})


def _is_chats(message: Mapping[str, Any]) -> bool:
    if message.get("role") in ("tool", "function", "system", "developer"):
        return True
    kinds = {kind_of(block) for block in maps_of(message.get("content"))}
    return "tool_calls" in message or "function_call" in message or "image_url" in kinds


FORMAT = Format(
    NAME,
    "OpenAI chat messages",
    "document",
    Chat,
    recognises,
    Tells(
        ids="call ids",
        groups="one message a response",
        order="list order",
        usage="where a response is stored",
        errors="exit codes in the output",
        compaction="none",
        subagents="none",
        images="base64 and addresses",
    ),
)
