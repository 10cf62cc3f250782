"""Messages of Cline and of Roo Code -> items and parts. Pure; version 1.

An item is a message of a session of Cline's SDK (`cline`), or the `content` of a message of the extensions, whose role
is not in it: a reader for each. Older extensions have no tool calls of the provider's: the assistant's text holds them
as XML, and the next message's texts hold what they gave, behind a line `[tool for 'argument'] Result:` (`xmlcalls`).

In the extensions all that a user message holds is the harness's, but for what stands at the very beginning of a block
between <task>, <user_message> or <feedback> and the first end of it. What is mentioned may be brought in behind that;
blocks behind a `Result:` are the tool's, whatever they say. In the SDK a user's text is what was typed, unless it opens
with one of the harness's wrappers.
Shapes: sdk/packages/shared/src/{llms/messages,prompt/format}.ts and apps/vscode/src/shared/messages/content.ts of
cline/cline at 21cb8d2525bcedf1f4b6890b27a74a14fe7451e4; src/core/{task/Task,condense/index}.ts and
src/core/task-persistence/apiMessages.ts of RooCodeInc/Roo-Code at cb836567180a3ff1da6d082f3178b90c3bd22a70.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..events import Channel, Part, PartKind, Reading
from ..events.shapes import is_list, is_map
from . import xmlcalls
from .jsonvalues import parse
from .pieces import (
    call_part,
    capped,
    id_of,
    kind_of,
    map_of,
    maps_of,
    media_part,
    opaque,
    result_part,
    text_of,
    text_part,
    thought,
)

NAME, VERSION = "cline", 1
USER, ASSISTANT = ("cline/user", 1), ("cline/assistant", 1)
_TYPED = re.compile(r"<(task|user_message|feedback)>\n?([\s\S]*?)\n?</\1>")
_WRAPPED = re.compile(
    r"\s*<(?:SYSTEM_NOTICE|system-reminder|environment_details|mode_notice|file_content|user_command)\b"
)
_INPUT = re.compile(r'<user_input mode="\w{1,16}">([\s\S]*)</user_input>')
_SUMMARIES = ("<SYSTEM_NOTICE>\nEarlier context was compacted", "Context summary:\n\n")
_FAILED = ("The tool execution failed with the following error:", '{"status":"error"')


def read(data: bytes) -> Reading:
    """The reading of a message of the SDK."""
    message = parse(data)
    if not is_map(message):
        return Reading("opaque", ())
    return reading(message)


def read_user(data: bytes) -> Reading:
    """The reading of the content of an extension's user message."""
    return user(parse(data))


def read_assistant(data: bytes) -> Reading:
    """The reading of the content of an extension's assistant message."""
    return assistant(parse(data))


def reading(message: Mapping[str, Any]) -> Reading:
    """The reading of a message of the SDK."""
    blocks = blocks_of(message.get("content"))
    if message.get("role") == "assistant":
        parts = [_made(block) for block in blocks]
        return Reading("assistant", capped(parts), id_of(message.get("id")) or None)
    told: list[Part] = []
    for block in blocks:
        told += _input(block) if kind_of(block) == "text" else _given(block, Channel.USER_TYPED)
    return Reading("user", capped(told))


def blocks_of(content: Any) -> list[Any]:
    """Content as blocks: a bare text is one."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if kind_of(content) == "reasoning":  # a message that is nothing else
        return [content]
    return content if is_list(content) else []


def assistant(content: Any) -> Reading:
    """The reading of the content of an extension's assistant message."""
    blocks = blocks_of(content)
    native = any(kind_of(block) == "tool_use" for block in blocks)
    parts: list[Part] = []
    for block in blocks:
        text = block.get("text") if kind_of(block) == "text" else None
        if isinstance(text, str) and not native:
            parts += _said(text, block)
        else:
            parts.append(_made(block))
    return Reading("assistant", capped(parts))


def user(content: Any) -> Reading:
    """The reading of the content of an extension's user message."""
    parts: list[Part] = []
    answers: list[str] | None = None
    held: Any = None

    def answered() -> None:
        if answers is not None:
            text = "\n".join(answers)
            parts.append(result_part("", text, text.startswith(_FAILED), held, form=NAME))

    for block in blocks_of(content):
        text = block.get("text") if kind_of(block) == "text" else None
        if not isinstance(text, str):
            parts += _given(block, Channel.TOOL if answers is not None else Channel.USER_TYPED)
            continue
        told = xmlcalls.result_of(text)
        if told is not None:
            answered()
            answers, held = ([told] if told else []), block
        elif text.startswith("<environment_details>"):
            answered()
            answers = None
            parts.append(text_part(Channel.SYSTEM, text, block))
        elif answers is not None:
            answers.append(text)
        else:
            parts += _told(text, block)
    answered()
    return Reading("user", capped(parts))


def _told(text: str, block: Any) -> list[Part]:
    """A text of an extension's user message: what was typed, and what the harness wrote."""
    typed = _TYPED.match(text)
    if typed is None:
        return [text_part(Channel.SYSTEM, text, block)]
    rest = text[typed.end() :]
    parts = [text_part(Channel.USER_TYPED, typed[2], block)]
    return [*parts, text_part(Channel.SYSTEM, rest, block)] if rest.strip() else parts


def _input(block: Mapping[str, Any]) -> list[Part]:
    """A text of a user message of the SDK."""
    text = block.get("text")
    if not isinstance(text, str):
        return [opaque(block)]
    if text.startswith(_SUMMARIES):
        return [text_part(Channel.IMPORTER, text, block)]
    typed = _INPUT.fullmatch(text)
    if typed is None:
        channel = Channel.SYSTEM if _WRAPPED.match(text) else Channel.USER_TYPED
        return [text_part(channel, text, block)]
    return [text_part(Channel.USER_TYPED, typed[1], block)]


def _said(text: str, block: Any) -> list[Part]:
    """An assistant's text, and the calls that stand in it."""
    parts: list[Part] = []
    at = 0
    for call in xmlcalls.calls(text):
        if text[at : call.start].strip():
            parts.append(text_part(Channel.ASSISTANT, text[at : call.start], block))
        parts.append(call_part(Channel.ASSISTANT, "", call.name, call.given, block))
        at = call.end
    if text[at:].strip() or not parts:
        parts.append(text_part(Channel.ASSISTANT, text[at:], block))
    return parts


def _made(block: Any) -> Part:
    kind, channel = kind_of(block), Channel.ASSISTANT
    if kind == "text" and isinstance(block.get("text"), str):
        return text_part(channel, block["text"], block)
    if kind in ("thinking", "redacted_thinking", "reasoning"):
        said = text_of(block.get("thinking")) or text_of(block.get("text"))
        return thought(channel, said, block)
    if kind == "tool_use":
        name = text_of(block.get("name"))
        return call_part(channel, id_of(block.get("id")), name, block.get("input"), block)
    if kind in ("image", "media", "file"):
        return _media(block, channel)
    return opaque(block)


def _given(block: Any, channel: Channel) -> list[Part]:
    kind = kind_of(block)
    if kind == "tool_result":
        return _answer(block)
    if kind in ("image", "media", "document"):
        return [_media(block, channel)]
    if kind == "file":
        return [_media(block, Channel.SYSTEM)]
    return [opaque(block)]


def _media(block: Mapping[str, Any], channel: Channel) -> Part:
    """An image or a file: Anthropic's form, the SDK's, or a file's text."""
    source = map_of(block.get("source") or block.get("media"))
    mime = block.get("mediaType") or source.get("media_type") or source.get("mediaType")
    data = block.get("data") or source.get("data")
    part = media_part(channel, mime, data, block, name=block.get("path"))
    if kind_of(block) == "image":
        return Part(PartKind.IMAGE, channel, "", block=block, media=part.media)
    text = text_of(block.get("content"))
    return Part(PartKind.FILE, channel, text, block=block, media=part.media)


def _answer(block: Mapping[str, Any]) -> list[Part]:
    content = block.get("content")
    outputs = maps_of(content)
    texts = [_output(each) for each in outputs]
    text = "\n".join(t for t in texts if t) if is_list(content) else text_of(content)
    failed = block.get("is_error") is True or text.startswith(_FAILED)
    failed = failed or any(each.get("success") is False for each in outputs)
    name = text_of(block.get("name")) or None
    call_id = id_of(block.get("tool_use_id"))
    answer = result_part(call_id, text, failed, block, form=NAME, name=name)
    images = [_media(b, Channel.TOOL) for b in outputs if kind_of(b) == "image"]
    return [answer, *images]


def _output(block: Mapping[str, Any]) -> str:
    """What a piece of an answer says: a text, or what one of several queries gave."""
    if kind_of(block) == "text":
        return text_of(block.get("text"))
    said = [block.get(key) for key in ("result", "error") if block.get(key)]
    return "\n".join(
        each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in said
    )
