"""Messages of Gemini CLI's chat recordings -> items and parts. Pure; version 1.

A `gemini` message is one response: its thoughts, its words, the calls that it made. The same message holds what the
calls gave: a second item of the same bytes. Newer files keep the whole response in `content`, and then that counts.

A `user` message is the human's where its text is one: what a file mention brought in, what hooks and the harness wrote,
and commands of the interface (which the vendor itself passes over) are not. `displayContent` says what was typed where
it is there. Shapes: packages/core/src/services/chatRecording{Types,Service}.ts and utils/sessionUtils.ts at
5411f113cafae26161b4969b0237b8e1e024e2c2, and files written by @google/gemini-cli-core 0.61.0.
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

NAME, VERSION = "gemini-cli", 1
RESULTS = ("gemini-cli/results", 1)
ANSWERED = ("success", "error", "cancelled")
"""What a call's status is when it will not change any more."""
_REFERENCED = "--- Content from referenced files ---"
_OURS = ("<session_context>", "<hook_context>", "System: Please continue.", "/", "?")
_SUMMARY = "<state_snapshot>"


def read(data: bytes) -> Reading:
    """The reading of a message's bytes: what was said and called."""
    message = parse(data)
    found = reading(message) if is_map(message) else None
    return found or Reading("opaque", ())


def read_results(data: bytes) -> Reading:
    """The reading of what a message's calls gave."""
    return results(map_of(parse(data)))


def reading(message: Mapping[str, Any]) -> Reading | None:
    """The reading of a message that is delivered to the model; None for a notice of the interface."""
    kind = message.get("type")
    if kind == "user":
        return Reading("user", capped(_typed(message)))
    if kind == "gemini":
        return Reading("assistant", capped(_made(message)), id_of(message.get("id")) or None)
    return None


def results(message: Mapping[str, Any]) -> Reading:
    """What the calls of a message gave; no parts where none has an answer."""
    parts: list[Part] = []
    for call in maps_of(message.get("toolCalls")):
        status, given = call.get("status"), list_of(call.get("result"))
        if not given and status not in ANSWERED:
            continue
        failed = status in ("error", "cancelled")
        answers = [r for r in maps_of(given) if is_map(r.get("functionResponse"))]
        found = _response(answers[0]["functionResponse"]) if answers else None
        if found is None:
            found = text_of(call.get("resultDisplay"))
        name = text_of(call.get("name"))
        call_id = id_of(call.get("id"))
        parts.append(result_part(call_id, found, failed, call, form=NAME, name=name))
        parts += [_part(r, Channel.TOOL) for r in maps_of(given) if _is_media(r)]
    return Reading("user", capped(parts))


def pieces(content: Any) -> list[Any]:
    """Content as a list: it may be one text or one part."""
    if is_list(content):
        return content
    return [content] if isinstance(content, str) or is_map(content) else []


def _response(block: Any) -> str:
    """What the model was told: its text, else all of it as JSON."""
    response = map_of(map_of(block).get("response"))
    for key in ("output", "error"):
        if isinstance(response.get(key), str):
            return str(response[key])
    return json.dumps(response, ensure_ascii=False, sort_keys=True) if response else ""


def _is_media(part: Mapping[str, Any]) -> bool:
    return is_map(part.get("inlineData")) or is_map(part.get("fileData"))


def _part(part: Mapping[str, Any], channel: Channel) -> Part:
    """One part of the provider's form, but for calls and their answers."""
    inline, linked = part.get("inlineData"), part.get("fileData")
    if is_map(inline):
        return media_part(channel, inline.get("mimeType"), inline.get("data"), part)
    if is_map(linked):
        return linked_part(channel, linked.get("mimeType"), linked.get("fileUri"), part)
    text = part.get("text")
    if isinstance(text, str):
        made = channel is Channel.ASSISTANT and part.get("thought") is True
        return thought(channel, text, part) if made else text_part(channel, text, part)
    return opaque(part)


def _typed(message: Mapping[str, Any]) -> list[Part]:
    shown = [_words(each) for each in pieces(message.get("displayContent"))]
    parts: list[Part] = []
    referenced = False
    for each in pieces(message.get("content")):
        part = {"text": each} if isinstance(each, str) else map_of(each)
        answer = part.get("functionResponse")
        if is_map(answer):
            response = map_of(answer.get("response"))
            failed = "error" in response and "output" not in response
            name, call_id = text_of(answer.get("name")), id_of(answer.get("id"))
            parts.append(
                result_part(call_id, _response(answer), failed, part, form=NAME, name=name)
            )
            continue
        text = text_of(part.get("text"))
        referenced = referenced or text.lstrip().startswith(_REFERENCED)
        channel = Channel.USER_TYPED
        if referenced or (shown and text and text not in shown):
            channel = Channel.SYSTEM
        elif text.lstrip().startswith(_SUMMARY):
            channel = Channel.IMPORTER
        elif text.strip().startswith(_OURS):
            channel = Channel.SYSTEM
        parts.append(_part(part, channel))
    return parts


def _words(part: Any) -> str:
    return part if isinstance(part, str) else text_of(map_of(part).get("text"))


def _made(message: Mapping[str, Any]) -> list[Part]:
    channel = Channel.ASSISTANT
    content = [
        {"text": each} if isinstance(each, str) else map_of(each)
        for each in pieces(message.get("content"))
    ]
    parts: list[Part] = []
    if not any(part.get("thought") is True for part in content):
        parts += [_thought(each) for each in maps_of(message.get("thoughts"))]
    called = False
    for part in content:
        call = part.get("functionCall")
        if is_map(call):
            called = True
            name, call_id = text_of(call.get("name")), id_of(call.get("id"))
            parts.append(call_part(channel, call_id, name, call.get("args"), part))
        elif part.get("text") != "":
            parts.append(_part(part, channel))
    if not called:
        for call in maps_of(message.get("toolCalls")):
            name, call_id = text_of(call.get("name")), id_of(call.get("id"))
            parts.append(call_part(channel, call_id, name, call.get("args"), call))
    return parts


def _thought(block: Mapping[str, Any]) -> Part:
    subject, rest = text_of(block.get("subject")), text_of(block.get("description"))
    said = f"**{subject}**\n{rest}" if subject and rest else subject or rest
    return thought(Channel.ASSISTANT, said, block)
