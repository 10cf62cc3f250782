"""Session entries of pi (packages/coding-agent of pi-mono) -> items and parts. Pure; version 1.

A message of role `user` is the human's; one that opens with a skill was expanded by the harness. A command that the
human ran (`bashExecution`) is no word to the agent: its line is the harness's text, its output the tool's. Summaries of
compactions and of branches are the importer's, messages of extensions the harness's.
Shapes: packages/coding-agent/src/core/{session-manager,messages}.ts at 83378aad7e74a0e2bb8f37c007a9685fb4609d8a.
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
    joined,
    kind_of,
    list_of,
    map_of,
    media_part,
    opaque,
    result_part,
    text_of,
    text_part,
    thought,
)

NAME, VERSION = "pi", 1
_SUMMARIES = ("compactionSummary", "branchSummary")
_CUSTOM = ("custom", "hookMessage")


def read(data: bytes) -> Reading:
    """The reading of an entry's bytes."""
    entry = parse(data)
    found = reading(entry) if is_map(entry) else None
    return found or Reading("opaque", ())


def reading(entry: Mapping[str, Any]) -> Reading | None:
    """The reading of an entry that is delivered to the model; None for one that is not."""
    kind = kind_of(entry)
    if kind in ("compaction", "branch_summary"):
        text = text_of(entry.get("summary"))
        return Reading("user", (text_part(Channel.IMPORTER, text, entry),)) if text else None
    if kind == "custom_message":
        return Reading("user", _blocks(entry.get("content"), Channel.SYSTEM))
    message = entry.get("message")
    return _message(message, entry) if kind == "message" and is_map(message) else None


def _message(message: Mapping[str, Any], entry: Mapping[str, Any]) -> Reading | None:
    role = message.get("role")
    if role == "user":
        return Reading("user", _blocks(message.get("content"), Channel.USER_TYPED))
    if role == "assistant":
        parts = [_made(block) for block in list_of(message.get("content"))]
        group = id_of(message.get("responseId")) or id_of(entry.get("id"))
        return Reading("assistant", capped(parts), group or None)
    if role == "toolResult":
        return Reading("user", capped(_answer(message)))
    if role == "bashExecution":
        return None if message.get("excludeFromContext") is True else _ran(message)
    if role in _SUMMARIES:
        summary = text_of(message.get("summary"))
        return Reading("user", (text_part(Channel.IMPORTER, summary, message),))
    if role in _CUSTOM:
        return Reading("user", _blocks(message.get("content"), Channel.SYSTEM))
    return None


def _blocks(content: Any, channel: Channel) -> tuple[Part, ...]:
    blocks = content if is_list(content) else [{"type": "text", "text": content}]
    return capped([_block(block, channel) for block in blocks])


def _block(block: Any, channel: Channel) -> Part:
    if kind_of(block) == "text" and isinstance(block.get("text"), str):
        text: str = block["text"]
        expanded = channel is Channel.USER_TYPED and text.lstrip().startswith("<skill name=")
        return text_part(Channel.SYSTEM if expanded else channel, text, block)
    if kind_of(block) == "image":
        return media_part(channel, block.get("mimeType"), block.get("data"), block)
    return opaque(block)


def _made(block: Any) -> Part:
    kind, channel = kind_of(block), Channel.ASSISTANT
    if kind == "text" and isinstance(block.get("text"), str):
        return text_part(channel, block["text"], block)
    if kind == "thinking":
        return thought(channel, text_of(block.get("thinking")), block)
    if kind == "toolCall":
        name = text_of(block.get("name"))
        return call_part(channel, id_of(block.get("id")), name, block.get("arguments"), block)
    return opaque(block)


def _answer(message: Mapping[str, Any]) -> list[Part]:
    content = message.get("content")
    answer = result_part(
        id_of(message.get("toolCallId")),
        joined(content),
        message.get("isError") is True,
        message,
        form=NAME,
        name=text_of(message.get("toolName")),
    )
    images = [b for b in list_of(content) if kind_of(b) == "image"]
    return [answer, *(_block(image, Channel.TOOL) for image in images)]


def _ran(message: Mapping[str, Any]) -> Reading:
    """What the model is told of a command that the human ran."""
    output, code = text_of(message.get("output")), message.get("exitCode")
    told = f"```\n{output}\n```" if output else "(no output)"
    if message.get("cancelled") is True:
        told += "\n\n(command cancelled)"
    elif type(code) is int and code != 0 and abs(code) < 1 << 31:
        told += f"\n\nCommand exited with code {code}"
    path = text_of(message.get("fullOutputPath"))
    if message.get("truncated") is True and path:
        told += f"\n\n[Output truncated. Full output: {path}]"
    line = f"Ran `{text_of(message.get('command'))}`"
    block = map_of(message)
    return Reading(
        "user", (text_part(Channel.SYSTEM, line, block), text_part(Channel.TOOL, told, block))
    )
