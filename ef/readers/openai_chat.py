"""Messages of OpenAI's chat completions -> parts. Pure; version 1.

Servers that speak this dialect put reasoning beside `content` (`reasoning_content`, `reasoning`); it is reasoning. The
older `function_call` has no id: its importer names it.
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
    maps_of,
    media_part,
    opaque,
    result_part,
    text_of,
    text_part,
    thought,
)

NAME, VERSION = "openai-chat", 1
_CHANNELS = {
    "user": Channel.USER_TYPED,
    "assistant": Channel.ASSISTANT,
    "system": Channel.SYSTEM,
    "developer": Channel.SYSTEM,
}
ROLES = frozenset((*_CHANNELS, "tool", "function"))
_THOUGHTS = ("reasoning_content", "reasoning")


def read(data: bytes) -> Reading:
    """The reading of a message's bytes."""
    message = parse(data)
    return reading(message) if is_map(message) else Reading("opaque", ())


def reading(message: Mapping[str, Any]) -> Reading:
    """The reading of a message; who has no known role said nothing that counts."""
    role = text_of(message.get("role"))
    content = message.get("content")
    if role in ("tool", "function"):
        call_id = id_of(message.get("tool_call_id"))
        text = text_in(content)
        if content is not None and not isinstance(content, (str, list)):
            text = json.dumps(content, ensure_ascii=False)  # a caller that gave the value itself
        failed = True if message.get("is_error") is True or message.get("error") is True else None
        name = text_of(message.get("name")) or None
        images = [_block(b, Channel.TOOL) for b in maps_of(content) if kind_of(b) == "image_url"]
        part = result_part(call_id, text, failed, dict(message), name=name)
        return Reading("user", capped([part, *images]))
    channel = _CHANNELS.get(role, Channel.IMPORTER)
    parts = [*_thoughts(message)] if role == "assistant" else []
    blocks = content if is_list(content) else [] if content in (None, "") else [content]
    parts += [_block(block, channel) for block in blocks]
    if role == "assistant":
        parts += _made(message)
    told = "system" if role == "developer" else role
    return Reading(told if told in ("user", "assistant", "system") else "user", capped(parts))


def _thoughts(message: Mapping[str, Any]) -> list[Part]:
    held = {name: message[name] for name in (*_THOUGHTS, "reasoning_details") if message.get(name)}
    texts = [text_of(held.get(name)) for name in _THOUGHTS]
    return [thought(Channel.ASSISTANT, next(filter(None, texts), ""), held)] if held else []


def _made(message: Mapping[str, Any]) -> list[Part]:
    """What an assistant's message has beside its content: a refusal, sound, calls."""
    parts: list[Part] = []
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        block = {"type": "refusal", "refusal": refusal}
        parts.append(text_part(Channel.ASSISTANT, refusal, block))
    audio = message.get("audio")
    if is_map(audio):
        parts.append(media_part(Channel.ASSISTANT, "audio/wav", audio.get("data"), audio))
    for call in list_of(message.get("tool_calls")):
        parts.append(_call(call) if is_map(call) else opaque(call))
    legacy = message.get("function_call")
    if is_map(legacy) and text_of(legacy.get("name")):
        name, given = text_of(legacy.get("name")), legacy.get("arguments")
        parts.append(call_part(Channel.ASSISTANT, "", name, "" if given is None else given))
    return parts


def _call(call: Mapping[str, Any]) -> Part:
    custom = call.get("custom")
    inner = map_of(custom) if is_map(custom) else map_of(call.get("function"))
    name = text_of(inner.get("name")) or text_of(call.get("name"))
    given = inner.get("input") if is_map(custom) else inner.get("arguments")
    if not inner:  # some servers leave the wrapper out
        given = call.get("arguments")
    return call_part(Channel.ASSISTANT, id_of(call.get("id")), name, given or {}, dict(call))


def _block(block: Any, channel: Channel) -> Part:
    if isinstance(block, str):
        return text_part(channel, block)
    given, kind = map_of(block), kind_of(block)
    if kind in ("text", "input_text", "output_text") and isinstance(given.get("text"), str):
        own = block if kind == "text" else None
        return text_part(channel, given["text"], own)
    if kind == "refusal" and isinstance(given.get("refusal"), str):
        return text_part(channel, given["refusal"], block)
    if kind == "image_url":
        url = given.get("image_url")
        url = url.get("url") if is_map(url) else url
        return linked_part(
            channel, "" if text_of(url).startswith("data:") else "image/*", url, block
        )
    if kind == "input_audio":
        sound = map_of(given.get("input_audio"))
        mime = f"audio/{text_of(sound.get('format')) or 'wav'}"
        return media_part(channel, mime, sound.get("data"), block)
    if kind == "file":
        file = map_of(given.get("file"))
        name, data = file.get("filename"), file.get("file_data")
        if text_of(data).startswith("data:"):
            return linked_part(channel, None, data, block, name=name)
        return media_part(channel, None, data, block, name=name)
    return opaque(block)


def text_in(content: Any) -> str:
    """A text, or the texts of a list's text blocks joined by line feeds."""
    if is_list(content):
        texts = [b if isinstance(b, str) else text_of(map_of(b).get("text")) for b in content]
        return "\n".join(filter(None, texts))
    return text_of(content)
