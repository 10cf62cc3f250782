"""LangChain messages, as LangGraph's checkpoints hold them, -> parts. Pure; version 1."""

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
    linked_part,
    map_of,
    maps_of,
    media_part,
    opaque,
    result_part,
    text_of,
    text_part,
    thought,
)

NAME, VERSION = "langgraph", 1
_CHANNELS = {
    "human": Channel.USER_TYPED,
    "ai": Channel.ASSISTANT,
    "AIMessageChunk": Channel.ASSISTANT,
    "system": Channel.SYSTEM,
    "developer": Channel.SYSTEM,
}
TYPES = frozenset((*_CHANNELS, "tool", "function", "chat", "remove"))
_CALLS = ("tool_use", "tool_call", "function_call", "input_json_delta")
"""Blocks of an answer that say a call again."""


def read(data: bytes) -> Reading:
    """The reading of a message's bytes."""
    message = parse(data)
    return reading(message) if is_map(message) else Reading("opaque", ())


def reading(message: Mapping[str, Any]) -> Reading:
    """The reading of a message; of a type that is not known it says nothing that counts."""
    kind = kind_of(message)
    content = message.get("content")
    if kind in ("tool", "function"):
        failed = message.get("status") == "error"
        name = text_of(message.get("name")) or None
        call_id = id_of(message.get("tool_call_id"))
        part = result_part(call_id, _text(content), failed, form="", name=name)
        return Reading("user", (part,))
    channel = _CHANNELS.get(kind, Channel.IMPORTER)
    blocks = content if is_list(content) else [content] if content else []
    made = channel is Channel.ASSISTANT
    parts = _thoughts(message) if made else []
    parts += [_block(b, channel) for b in blocks if not (made and kind_of(b) in _CALLS)]
    if made:
        for call in maps_of(message.get("tool_calls")):
            name, given = text_of(call.get("name")), call.get("args", {})
            parts.append(call_part(channel, id_of(call.get("id")), name, given, dict(call)))
        group = id_of(map_of(message.get("response_metadata")).get("id")) or None
        return Reading("assistant", capped(parts), group)
    role = "system" if channel is Channel.SYSTEM else "user"
    return Reading(role, capped(parts))


def _thoughts(message: Mapping[str, Any]) -> list[Part]:
    said = map_of(message.get("additional_kwargs")).get("reasoning_content")
    return [thought(Channel.ASSISTANT, said)] if isinstance(said, str) and said else []


def _block(block: Any, channel: Channel) -> Part:
    if isinstance(block, str):
        return text_part(channel, block)
    given, kind = map_of(block), kind_of(block)
    if kind in ("text", "input_text", "output_text") and isinstance(given.get("text"), str):
        return text_part(channel, given["text"], block)
    if kind in ("thinking", "reasoning", "redacted_thinking"):
        said = given.get("thinking") or given.get("reasoning") or given.get("text")
        return thought(channel, text_of(said), block)
    if kind == "image_url":
        url = given.get("image_url")
        url = url.get("url") if is_map(url) else url
        mime = "" if text_of(url).startswith("data:") else "image/*"
        return linked_part(channel, mime, url, block)
    if kind in ("image", "file", "audio", "video"):
        source = map_of(given.get("source"))
        mime = given.get("mime_type") or source.get("media_type") or f"{kind}/*"
        data = given.get("base64") or given.get("data") or source.get("data")
        if isinstance(data, str):
            return media_part(channel, mime, data, block)
        return linked_part(channel, mime, given.get("url") or source.get("url"), block)
    return opaque(block)


def _text(content: Any) -> str:
    if is_list(content):
        texts = [b if isinstance(b, str) else text_of(map_of(b).get("text")) for b in content]
        return "\n".join(filter(None, texts))
    return text_of(content)
