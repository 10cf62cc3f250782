"""Messages of SWE-agent's history, and observations of its trajectory, -> parts. Pure; version 1.

An assistant's `action` is a line of the agent's own words, or of a shell; where the model has tools, the calls say the
same again and have ids. A demonstration is the harness's text, whatever it shows: its calls are none of this session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import Channel, Part, PartKind, Reading
from ..events.shapes import is_map
from . import openai_chat
from .jsonvalues import parse
from .pieces import call_part, id_of, list_of, result_part, text_of, text_part

NAME, VERSION = "swe-agent", 1
RESULTS, OBSERVATION = f"{NAME}/results", f"{NAME}/observation"


def read(data: bytes) -> Reading:
    """The reading of a message's bytes."""
    message = parse(data)
    return reading(message) if is_map(message) else Reading("opaque", ())


def read_results(data: bytes) -> Reading:
    """The reading of a user's message that holds what the action before it gave."""
    message = parse(data)
    return answer(message) if is_map(message) else Reading("opaque", ())


def read_observation(data: bytes) -> Reading:
    """The reading of an observation of the trajectory: a JSON string."""
    return observed(parse(data))


def reading(message: Mapping[str, Any]) -> Reading:
    """The reading of a message of the history."""
    if message.get("is_demo") is True:
        text = openai_chat.text_in(message.get("content"))
        return Reading("system", (text_part(Channel.SYSTEM, text),) if text else ())
    if message.get("role") == "tool":
        ids = list_of(message.get("tool_call_ids"))
        call_id = id_of(ids[0] if ids else message.get("tool_call_id"))
        return Reading("user", (_result(call_id, message),))
    found = openai_chat.reading(message)
    action = text_of(message.get("action"))
    called = any(part.kind is PartKind.TOOL_CALL for part in found.parts)
    if found.role == "assistant" and action.strip() and not called:
        call = call_part(Channel.ASSISTANT, "", "", action)
        return Reading("assistant", (*found.parts, call))
    return found


def answer(message: Mapping[str, Any]) -> Reading:
    """The reading of what the action before it gave."""
    return Reading("user", (_result("", message),))


def observed(value: Any) -> Reading:
    """The reading of an observation."""
    return Reading("user", (result_part("", text_of(value), None, form=""),))


def _result(call_id: str, message: Mapping[str, Any]) -> Part:
    return result_part(call_id, openai_chat.text_in(message.get("content")), None, form="")
