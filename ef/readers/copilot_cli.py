"""Session events of GitHub Copilot CLI -> items and parts. Pure; version 1.

A `user.message` holds what was typed (`content`) and what the model is given (`transformedContent`): what the harness
put around the words is the harness's. A message that has a `source` other than the user, or that an autopilot sent, was
typed by nobody. Shapes: dist/generated/session-events.d.ts of @github/copilot-sdk 1.0.14.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import Channel, Part, Reading
from ..events.shapes import is_map
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
    result_part,
    text_of,
    text_part,
    thought,
)

NAME, VERSION = "copilot-cli", 1
_TYPED_BY = (None, "", "user")


def read(data: bytes) -> Reading:
    """The reading of an event's bytes."""
    event = parse(data)
    found = reading(event) if is_map(event) else None
    return found or Reading("opaque", ())


def reading(event: Mapping[str, Any]) -> Reading | None:
    """The reading of an event that is delivered to the model; None for one that is not."""
    kind, data = kind_of(event), event.get("data")
    if not is_map(data):
        return None
    if kind == "user.message":
        return _typed(data)
    if kind == "assistant.message":
        return _made(data)
    if kind == "tool.execution_complete":
        return _answer(data)
    text = text_of(data.get("summaryContent" if kind == _COMPACTED else "content"))
    if kind in ("system.message", "system.notification") and text:
        role = "system" if kind == "system.message" else "user"
        return Reading(role, (text_part(Channel.SYSTEM, text, data),))
    if kind == _COMPACTED and text:
        return Reading("user", (text_part(Channel.IMPORTER, text, data),))
    return None


_COMPACTED = "session.compaction_complete"


def _typed(data: Mapping[str, Any]) -> Reading:
    words, given = text_of(data.get("content")), text_of(data.get("transformedContent"))
    typed = data.get("source") in _TYPED_BY and data.get("isAutopilotContinuation") is not True
    channel = Channel.USER_TYPED if typed else Channel.SYSTEM
    before, found, after = given.partition(words) if words else (given, "", "")
    parts = [text_part(Channel.SYSTEM, before, data)] if before.strip() else []
    if words:
        parts.append(text_part(channel, words, data))
    if found and after.strip():
        parts.append(text_part(Channel.SYSTEM, after, data))
    parts += [_attached(channel, each) for each in maps_of(data.get("attachments"))]
    return Reading("user", capped(parts))


def _attached(channel: Channel, block: Mapping[str, Any]) -> Part:
    name = block.get("displayName") or block.get("path")
    if isinstance(block.get("data"), str):
        return media_part(channel, block.get("mimeType"), block["data"], block, name=name)
    return linked_part(channel, block.get("mimeType"), block.get("path"), block, name=name)


def _made(data: Mapping[str, Any]) -> Reading:
    channel = Channel.ASSISTANT
    parts: list[Part] = []
    if text_of(data.get("reasoningText")) or text_of(data.get("reasoningOpaque")):
        parts.append(thought(channel, text_of(data.get("reasoningText")), data))
    if text_of(data.get("content")):
        parts.append(text_part(channel, data["content"], data))
    for block in maps_of(data.get("toolRequests")):
        call_id, name = id_of(block.get("toolCallId")), text_of(block.get("name"))
        parts.append(call_part(channel, call_id, name, block.get("arguments"), block))
    return Reading("assistant", capped(parts), id_of(data.get("messageId")) or None)


def _answer(data: Mapping[str, Any]) -> Reading:
    result, fault = map_of(data.get("result")), map_of(data.get("error"))
    failed = data.get("success") is False
    text = text_of(result.get("content")) or (text_of(fault.get("message")) if failed else "")
    answer = result_part(id_of(data.get("toolCallId")), text, failed, data, form=NAME)
    media = [
        media_part(Channel.TOOL, each.get("mimeType"), each.get("data"), each)
        for each in maps_of(result.get("binaryResultsForLlm"))
    ]
    return Reading("user", capped([answer, *media]))
