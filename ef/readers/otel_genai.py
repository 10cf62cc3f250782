"""Messages of OpenTelemetry's GenAI conventions -> parts. Pure; version 1.

Their shape: https://opentelemetry.io/docs/specs/semconv/gen-ai/ (input and output messages, system instructions).
"""

from __future__ import annotations

import json
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
    list_of,
    map_of,
    media_part,
    opaque,
    result_part,
    text_of,
    text_part,
    thought,
)

NAME, VERSION = "otel-genai", 1
SYSTEM = f"{NAME}/system"
_CHANNELS = {
    "user": Channel.USER_TYPED,
    "assistant": Channel.ASSISTANT,
    "system": Channel.SYSTEM,
    "developer": Channel.SYSTEM,
    "tool": Channel.TOOL,
}


def read(data: bytes) -> Reading:
    """The reading of a message's bytes."""
    message = parse(data)
    return reading(message) if is_map(message) else Reading("opaque", ())


def read_system(data: bytes) -> Reading:
    """The reading of system instructions: a list of parts."""
    return system(parse(data))


def reading(message: Mapping[str, Any]) -> Reading:
    """The reading of a message; who has no known role said nothing that counts."""
    role = text_of(message.get("role"))
    channel = _CHANNELS.get(role, Channel.IMPORTER)
    parts = [_part(part, channel) for part in list_of(message.get("parts"))]
    content = message.get("content")
    if not parts and isinstance(content, str):
        parts = [text_part(channel, content)]
    told = "system" if channel is Channel.SYSTEM else role
    return Reading(told if told in ("assistant", "system") else "user", capped(parts))


def system(value: Any) -> Reading:
    """The reading of system instructions."""
    blocks = value if is_list(value) else [value]
    return Reading("system", capped([_part(block, Channel.SYSTEM) for block in blocks]))


def _part(block: Any, channel: Channel) -> Part:
    if isinstance(block, str):
        return text_part(channel, block)
    given, kind = map_of(block), kind_of(block)
    content = given.get("content")
    if kind == "text" and isinstance(content, str):
        return text_part(channel, content)
    if kind == "reasoning" and isinstance(content, str):
        return thought(channel, content, block)
    if kind == "tool_call":
        arguments: Any = given.get("arguments")
        if arguments is None:
            arguments = {}
        name, call_id = text_of(given.get("name")), id_of(given.get("id"))
        return call_part(Channel.ASSISTANT, call_id, name, arguments, block)
    if kind == "tool_call_response":
        said = given["response"] if "response" in given else given.get("result")
        failed = is_map(said) and said.get("error") is not None
        return result_part(id_of(given.get("id")), _text(said), failed or None, block, form="")
    if kind == "blob":
        return media_part(channel, given.get("mime_type"), content or given.get("data"), block)
    if kind in ("uri", "file"):
        url = given.get("uri") or given.get("file_id")
        return linked_part(channel, given.get("mime_type") or _mime(given), url, block)
    return opaque(block)


def _mime(block: Mapping[str, Any]) -> str:
    modality = text_of(block.get("modality"))
    return f"{modality}/*" if modality in ("image", "audio", "video") else ""


def _text(said: Any) -> str:
    if isinstance(said, str):
        return said
    if said is None:
        return ""
    try:
        return json.dumps(said, ensure_ascii=False)
    except (ValueError, RecursionError):
        return ""
