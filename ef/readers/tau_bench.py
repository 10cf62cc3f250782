"""Messages of tau-bench (chat messages) and tau2-bench (calls as plain objects) -> parts. Pure; version 1.

What the simulated user calls with its own tools, and what those give it, the agent never sees: it says nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import Part, Reading
from ..events.shapes import is_list, is_map
from . import openai_chat
from .jsonvalues import parse
from .pieces import capped, id_of, maps_of, result_part, text_of

NAME, VERSION = "tau-bench", 1


def read(data: bytes) -> Reading:
    """The reading of a message's bytes."""
    message = parse(data)
    return reading(message) if is_map(message) else Reading("opaque", ())


def says(message: Mapping[str, Any]) -> bool:
    """Whether a chunk of a spoken run holds words, a call or a result."""
    said = message.get("content")
    return text_of(message.get("role")) in openai_chat.ROLES and bool(
        (isinstance(said, str) and said) or message.get("tool_calls")
    )


def reading(message: Mapping[str, Any]) -> Reading:
    """The reading of a message. A tool's several answers in one message are as many results."""
    several = message.get("tool_messages")
    answers = maps_of(several) if is_list(several) else [message]
    if is_list(several) or message.get("role") == "tool":
        given = [_answer(each) for each in answers if each.get("requestor") != "user"]
        return Reading("user", capped(given))
    return openai_chat.reading(message)


def _answer(message: Mapping[str, Any]) -> Part:
    call_id = id_of(message.get("tool_call_id")) or id_of(message.get("id"))
    failed = True if message.get("error") is True else None
    text = text_of(message.get("content"))
    return result_part(
        call_id, text, failed, None, form="", name=text_of(message.get("name")) or None
    )
