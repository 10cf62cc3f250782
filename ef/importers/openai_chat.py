"""OpenAI chat messages (a list, a request, a response, or a message a line) -> meanings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import UsageReported
from ..events.shapes import is_list, is_map
from ..readers import openai_chat as reader
from ..readers.jsoncuts import Path
from ..readers.pieces import map_of, maps_of
from .formats import Format, Head, Tells
from .given import usage_of
from .messages import Messages, found_in, paths
from .translator import Spot

NAME = reader.NAME
_KEYS = ("messages",)


class Chat(Messages):
    """Messages of chat completions."""

    NAME = NAME
    PROVIDER = "openai"
    READER = (reader.NAME, reader.VERSION)
    DESCEND = paths("messages", "choices") | {("choices", "*"), ("response", "choices", "*")}

    def other(self, path: Path, value: Any, spot: Spot) -> None:
        if path and path[-1] == "message" and is_map(value):
            self.message(value, spot)

    def usage(self, message: str, usage: Mapping[str, Any]) -> UsageReported | None:
        read = map_of(usage.get("prompt_tokens_details")).get("cached_tokens")
        given, made = usage.get("prompt_tokens"), usage.get("completion_tokens")
        return usage_of(message, given, made, read, None, with_cache=True)


def recognises(head: Head) -> bool:
    """Whether a file plainly holds chat messages: one says something that no other provider's do."""
    found = found_in(head, *_KEYS)
    if found and all(each.get("role") in reader.ROLES for each in found):
        plain = all(isinstance(each.get("content"), str | None) for each in found)
        return any(map(_is_chats, found)) or (plain and not _has(head, "system"))
    return "choices" in head.keys and "object" in head.keys


def _has(head: Head, key: str) -> bool:
    return key in head.keys


def _is_chats(message: Mapping[str, Any]) -> bool:
    if message.get("role") in ("tool", "function", "system", "developer"):
        return "parts" not in message
    blocks = message.get("content")
    kinds = {block.get("type") for block in maps_of(blocks)} if is_list(blocks) else set[Any]()
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
