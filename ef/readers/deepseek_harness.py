"""Messages of DeepSeek Harness' session events -> parts. Pure; version 1.

Who speaks in a `user/message` its `source` says: the user, a plugin of the harness, another agent, or a compaction. A
message that takes the place of others is a summary, whatever its source says. Earlier releases keep a tool's result as
a block of a user's message, later ones as a message of the role `tool`; some keep a message's fields in `data` itself.
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

NAME, VERSION = "deepseek-harness", 1
_SOURCES = {
    "user": Channel.USER_TYPED,
    "coordinator": Channel.ASSISTANT,
    "agent-message": Channel.SUBAGENT,
    "subagent-settled": Channel.SUBAGENT,
    "tool": Channel.TOOL,
}
"""Whose words a user's message is, by the kind of its source; of all others the harness's."""
_COMPACTED = ("compaction", "compact", "compact-checkpoint")


def read(data: bytes) -> Reading:
    """The reading of an event's bytes."""
    event = parse(data)
    found = reading(event) if is_map(event) else None
    return found or Reading("opaque", ())


def reading(event: Mapping[str, Any]) -> Reading | None:
    """The reading of an event that is delivered to the model; None for one that is not."""
    kind, data = kind_of(event), map_of(event.get("data"))
    if kind == "user/message":
        channel = Channel.IMPORTER if replaces(event) else _speaks(message_of(data))
        return Reading("user", _blocks(message_of(data).get("content"), channel))
    if kind == "assistant/message":
        message = message_of(data)
        return Reading("assistant", _blocks(message.get("content"), Channel.ASSISTANT), response_of(event))  # fmt: skip
    if kind == "tool/result":
        return Reading("user", _results(data))
    if kind == "system/message":
        return Reading("system", _blocks(message_of(data).get("content"), Channel.SYSTEM))
    return None


def message_of(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message of an event's data: a field of it, or the data themselves."""
    message = data.get("message")
    return message if is_map(message) else data


def response_of(event: Mapping[str, Any]) -> str | None:
    """The id of an assistant's message."""
    return id_of(message_of(map_of(event.get("data"))).get("id")) or None


def replaces(event: Mapping[str, Any]) -> bool:
    """Whether an event takes the place of others on the surface."""
    return map_of(event.get("surfaceOp")).get("op") == "replace"


def _speaks(message: Mapping[str, Any]) -> Channel:
    source = map_of(message.get("source"))
    kind = text_of(source.get("kind"))
    if kind in _COMPACTED or "compactionId" in source:
        return Channel.IMPORTER
    return _SOURCES.get(kind, Channel.SYSTEM)


def _blocks(content: Any, channel: Channel) -> tuple[Part, ...]:
    blocks = content if is_list(content) else [content] if content else []
    return capped([_block(block, channel) for block in blocks])


def _block(block: Any, channel: Channel) -> Part:
    given, kind = map_of(block), kind_of(block)
    if isinstance(block, str):
        return text_part(channel, block)
    if kind == "text" and isinstance(given.get("text"), str):
        return text_part(channel, given["text"], block)
    if kind == "reasoning":
        return thought(channel, text_of(given.get("text")), block)
    if kind == "tool-call" and channel is Channel.ASSISTANT:
        name, call_id = text_of(given.get("name")), id_of(given.get("id"))
        return call_part(channel, call_id, name, given.get("arguments") or "", block)
    if kind == "image":
        held = map_of(given.get("attachment")) or given
        mime = held.get("mediaType") or held.get("mimeType") or "image/*"
        return media_part(channel, mime, held.get("data"), block, name=held.get("name"))
    return opaque(block)


def _results(data: Mapping[str, Any]) -> tuple[Part, ...]:
    """A tool's answer, in whichever of its shapes, and the images in it."""
    message = message_of(data)
    blocks = [b for b in maps_of(message.get("content")) if kind_of(b) == "tool-result"]
    parts: list[Part] = []
    for block in blocks or [message]:
        source = map_of(message.get("source"))
        named = block.get("toolCallId") or block.get("callId") or source.get("callId")
        call_id = id_of(named) or id_of(data.get("callId"))
        failed = block.get("isError")
        failed = failed if isinstance(failed, bool) else is_map(data.get("error"))
        content = block.get("content")
        images = [b for b in maps_of(content) if kind_of(b) == "image"]
        own = None if images else block  # an image stands once
        parts.append(result_part(call_id, "\n".join(_texts(content)), failed, own, form=NAME))
        parts += [_block(image, Channel.TOOL) for image in images]
    return capped(parts)


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [text_of(b.get("text")) for b in maps_of(list_of(content)) if kind_of(b) == "text"]
