"""Message contents of goose -> items and parts. Pure; version 1.

An item is the `content` of a message: a list of blocks. The message's role is not in it: a reader for each. Blocks that
speak to the interface (notices, confirmations) are not the model's. Who typed a text the importer says, from what the
message's `metadata` tells: a text that both the human and the agent see.
Shapes: crates/goose/src/conversation/{message,tool_result_serde}.rs of block/goose at
05132966065f7dd80b97af7d080a41328d103073.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import Channel, Part, Reading
from ..events.shapes import is_list, is_map
from .jsonvalues import parse
from .pieces import (
    call_part,
    capped,
    id_of,
    kind_of,
    list_of,
    map_of,
    maps_of,
    media_part,
    opaque,
    result_part,
    text_of,
    text_part,
    thought,
)

USER, ASSISTANT = ("goose/user", 1), ("goose/assistant", 1)
_CALLS = ("toolRequest", "frontendToolRequest")


def read_user(data: bytes) -> Reading:
    """The reading of a user message's content."""
    return reading(parse(data), "user")


def read_assistant(data: bytes) -> Reading:
    """The reading of an assistant message's content."""
    return reading(parse(data), "assistant")


def reading(content: Any, role: str) -> Reading:
    """The reading of a message's content."""
    channel = Channel.ASSISTANT if role == "assistant" else Channel.USER_TYPED
    if isinstance(content, str):  # a database's cell of more than one line
        content = parse(content.encode("utf-8", "surrogatepass"))
    parts: list[Part] = []
    for block in list_of(content):
        parts += _block(block, channel)
    return Reading(role, capped(parts))


def _block(block: Any, channel: Channel) -> list[Part]:
    kind = kind_of(block)
    if kind == "text" and isinstance(block.get("text"), str):
        return [text_part(channel, block["text"], block)]
    if kind == "image":
        return [media_part(channel, block.get("mimeType"), block.get("data"), block)]
    if kind in ("thinking", "redactedThinking", "reasoning"):
        said = text_of(block.get("thinking")) or text_of(block.get("text"))
        return [thought(channel, said, block)]
    if kind in _CALLS:
        call = map_of(map_of(block.get("toolCall")).get("value"))
        name = text_of(call.get("name"))
        return [call_part(channel, id_of(block.get("id")), name, call.get("arguments"), block)]
    if kind == "toolResponse":
        return _answer(block)
    if kind in ("systemNotification", "toolConfirmationRequest", "actionRequired"):
        said = text_of(block.get("msg")) or text_of(block.get("prompt"))
        return [text_part(Channel.SYSTEM, said, block)]
    return [opaque(block)]


def _answer(block: Mapping[str, Any]) -> list[Part]:
    told = map_of(block.get("toolResult"))
    failed, value = told.get("status") == "error", told.get("value")
    blocks = value
    if is_map(value):
        blocks, failed = value.get("content"), failed or value.get("isError") is True
    seen = [b for b in maps_of(blocks) if _for_model(b)]
    text = "\n".join(_said(b) for b in seen if kind_of(b) in ("text", "resource"))
    if not is_list(blocks):
        text = text_of(told.get("error"))
    answer = result_part(id_of(block.get("id")), text, failed, block, form="")
    media = [
        media_part(Channel.TOOL, b.get("mimeType"), b.get("data"), b)
        for b in seen
        if kind_of(b) == "image"
    ]
    return [answer, *media]


def _for_model(block: Mapping[str, Any]) -> bool:
    """Whether a piece of an answer is for the model: the same output often comes twice, once for the human."""
    audience = map_of(block.get("annotations")).get("audience")
    return not is_list(audience) or not audience or "assistant" in audience


def _said(block: Mapping[str, Any]) -> str:
    held = map_of(block.get("resource")) if kind_of(block) == "resource" else block
    return text_of(held.get("text"))
