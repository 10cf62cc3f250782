"""Anthropic messages (a list, a request, or a message a line) -> meanings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import ForeignCompaction, Reading, UsageReported
from ..events.shapes import is_list, is_map
from ..readers import anthropic as reader
from ..readers.jsoncuts import Path
from ..readers.pieces import kind_of, maps_of, text_of
from .formats import Format, Head, Tells
from .given import usage_of
from .messages import Messages, found_in, mostly, paths
from .translator import Spot

NAME = "anthropic-messages"
_KINDS = frozenset(
    """text image document thinking redacted_thinking tool_use tool_result server_tool_use search_result
    web_search_tool_result web_fetch_tool_result code_execution_tool_result mcp_tool_use mcp_tool_result
    container_upload compaction""".split()
)
_OWN = _KINDS - {"text", "image", "document"}


class Anthropic(Messages):
    """Messages of Anthropic's API."""

    NAME = NAME
    KEPT = _OWN
    PROVIDER = "anthropic"
    READER = (reader.NAME, reader.VERSION)
    ROLES = frozenset(("user", "assistant", "system"))
    DESCEND = paths("messages") - {("response",)}

    def other(self, path: Path, value: Any, spot: Spot) -> None:
        if path == ("response",) and is_map(value) and "role" in value:
            self.message(value, spot)

    def reading(self, value: Mapping[str, Any]) -> Reading:
        return reader.reading(value)

    def message(self, value: Mapping[str, Any], spot: Spot) -> None:
        if "compaction" in _kinds(value):
            self.event(self.chain(), spot, ForeignCompaction(NAME, "compact", None, None))
        super().message(value, spot)

    def usage(self, message: str, usage: Mapping[str, Any]) -> UsageReported | None:
        given, made = usage.get("input_tokens"), usage.get("output_tokens")
        read, write = (usage.get(f"cache_{n}_input_tokens") for n in ("read", "creation"))
        return usage_of(message, given, made, read, write, with_cache=False)


def recognises(head: Head) -> bool:
    """Whether a file plainly holds messages of this API."""
    if _is_answer(head):
        return True
    found = found_in(head, "messages")
    if not mostly(_is_message, found) or any("ts" in each for each in found):
        return False
    kinds = set[str]().union(*map(_kinds, found))
    blocks = mostly(lambda each: is_list(each.get("content")), found)
    model = next((v for path, v in head.cuts if path in (("model",), ("request", "model"))), "")
    own = bool(_OWN & kinds) or "system" in head.keys or str(model).startswith("claude")
    return own or (blocks and kinds <= _KINDS)


def _is_answer(head: Head) -> bool:
    """Whether a file is one answer, as the provider gives it."""
    told = {path[0]: value for path, value in head.cuts if len(path) == 1}
    blocks = [value for path, value in head.cuts if len(path) == 2 and path[0] == "content"]
    own = told.get("type") == "message" and told.get("role") == "assistant" and "model" in told
    return own and bool(blocks) and all(kind_of(block) in _KINDS for block in blocks)


def _kinds(message: Mapping[str, Any]) -> set[str]:
    return {kind_of(block) for block in maps_of(message.get("content"))}


def _is_message(message: Mapping[str, Any]) -> bool:
    role = text_of(message.get("role")) in ("user", "assistant")
    return role and _kinds(message) <= _KINDS and "tool_calls" not in message


FORMAT = Format(
    NAME,
    "Anthropic messages",
    "document",
    Anthropic,
    recognises,
    Tells(
        ids="call ids",
        groups="one message a response",
        order="list order",
        usage="where a response is stored",
        errors="is_error; exit codes of failures",
        compaction="where a block says so; kept as it is",
        subagents="none",
        images="base64 and addresses",
    ),
)
