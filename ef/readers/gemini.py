"""Contents of Gemini's API -> parts. Pure; version 1.

A part's thought signature stays in it, whatever the part is. Ids of calls may be absent: the importer names them.
Field names come in both spellings, `functionCall` and `function_call`.
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
    map_of,
    media_part,
    opaque,
    result_part,
    text_of,
    text_part,
    thought,
)

NAME, VERSION = "gemini", 1
_CHANNELS = {
    "user": Channel.USER_TYPED,
    "model": Channel.ASSISTANT,
    "system": Channel.SYSTEM,
    "function": Channel.TOOL,
    "tool": Channel.TOOL,
}
ROLES = frozenset(_CHANNELS)


def read(data: bytes) -> Reading:
    """The reading of a content's bytes."""
    content = parse(data)
    return reading(content) if is_map(content) else Reading("opaque", ())


def reading(content: Mapping[str, Any]) -> Reading:
    """The reading of a content; one without a role is the user's, as the provider takes it."""
    role = text_of(content.get("role")) or "user"
    channel = _CHANNELS.get(role, Channel.IMPORTER)
    parts = content.get("parts")
    blocks = parts if is_list(parts) else [] if parts is None else [parts]
    told = {"model": "assistant", "system": "system"}.get(role, "user")
    return Reading(told, capped([_part(block, channel) for block in blocks]))


def either(block: Mapping[str, Any], snake: str) -> Any:
    """A field in either spelling."""
    first, *rest = snake.split("_")
    camel = first + "".join(word.capitalize() for word in rest)
    return block[camel] if camel in block else block.get(snake)


def _part(block: Any, channel: Channel) -> Part:
    if isinstance(block, str):
        return text_part(channel, block)
    if not is_map(block):
        return opaque(block)
    call, answer = either(block, "function_call"), either(block, "function_response")
    if is_map(call):
        given = call.get("args")
        name = text_of(call.get("name"))
        return call_part(
            channel, id_of(call.get("id")), name, {} if given is None else given, block
        )
    if is_map(answer):
        return _answer(answer, block)
    if isinstance(block.get("text"), str):
        said = thought if block.get("thought") is True else text_part
        return said(channel, block["text"], block)
    data, file = either(block, "inline_data"), either(block, "file_data")
    if is_map(data):
        return media_part(channel, either(data, "mime_type"), data.get("data"), block)
    if is_map(file):
        return linked_part(channel, either(file, "mime_type"), either(file, "file_uri"), block)
    code, ran = either(block, "executable_code"), either(block, "code_execution_result")
    if is_map(code):
        return call_part(channel, id_of(code.get("id")), "code_execution", dict(code), block)
    if is_map(ran):
        failed = text_of(ran.get("outcome")) not in ("OUTCOME_OK", "")
        return result_part(id_of(ran.get("id")), text_of(ran.get("output")), failed, block, form="")
    return opaque(block)


def _answer(answer: Mapping[str, Any], block: Any) -> Part:
    said = answer.get("response")
    failed = is_map(said) and "error" in said and said["error"] is not None
    name = text_of(answer.get("name")) or None
    text = response_text(said)
    return result_part(id_of(answer.get("id")), text, failed, block, name=name, form="gemini-cli")


def response_text(response: Any) -> str:
    """The text of a function's response: its only field's, else all of it as JSON."""
    if isinstance(response, str):
        return response
    given = map_of(response)
    if len(given) == 1:
        (value,) = given.values()
        if isinstance(value, str):
            return value
    if not given:
        return ""
    try:
        return json.dumps(given, ensure_ascii=False)
    except (ValueError, RecursionError):
        return ""
