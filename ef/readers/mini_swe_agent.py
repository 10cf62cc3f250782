"""Messages of mini-swe-agent trajectories -> parts. Pure; version 1.

In version 1 an assistant's message with exactly one ```bash block calls a shell, without an id, and the next message
holds what it printed, whatever that looks like: `read_results` reads it so. Version 2 has tool calls and `tool`
messages. Who speaks in other user messages (the task, or the harness on a bad format) is the importer's to say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..events import Channel, Part, PartKind, Reading
from ..events.shapes import is_list, is_map
from . import openai_chat
from . import openai_responses as responses
from .jsonvalues import parse
from .pieces import call_part, capped, id_of, map_of, maps_of, result_part, text_of

NAME, VERSION = "mini-swe-agent", 1
RESULTS = f"{NAME}/results"
_BLOCK = re.compile(r"```(?:bash|sh|mswea_bash_command)[ \t]*\r?\n(.*?)\r?\n?```", re.DOTALL)


def read(data: bytes) -> Reading:
    """The reading of a message's bytes."""
    message = parse(data)
    return reading(message) if is_map(message) else Reading("opaque", ())


def read_results(data: bytes) -> Reading:
    """The reading of a user's message that holds what the call before it printed."""
    message = parse(data)
    return answer(message) if is_map(message) else Reading("opaque", ())


def reading(message: Mapping[str, Any]) -> Reading:
    """The reading of a message."""
    if message.get("object") == "response":  # of runs with a model of the Responses API
        made = [responses.reading(item) for item in maps_of(message.get("output"))]
        group = id_of(message.get("id")) or None
        return Reading("assistant", capped([p for each in made for p in each.parts]), group)
    if message.get("type"):
        said = responses.reading(message, form="mini-swe-agent")
        return replace(said, parts=tuple(_coded(part, message) for part in said.parts))
    if message.get("role") == "tool":
        extra = map_of(message.get("extra"))
        part = _result(id_of(message.get("tool_call_id")), message, extra.get("returncode"))
        return Reading("user", (part,))
    found = openai_chat.reading(message)
    if found.role != "assistant":
        return found
    group = id_of(map_of(map_of(message.get("extra")).get("response")).get("id")) or None
    parts = found.parts
    if all(part.kind is not PartKind.TOOL_CALL for part in parts):
        parts = (*parts, *_asked(message, parts))
    return Reading("assistant", parts, group)


def _asked(message: Mapping[str, Any], parts: tuple[Part, ...]) -> list[Part]:
    """The commands of a text: those that the run took out of it, else its only block."""
    taken = map_of(message.get("extra")).get("actions")
    commands = [text_of(action.get("command")) for action in maps_of(taken)]
    if not is_list(taken):
        commands = _BLOCK.findall("".join(p.text for p in parts if p.kind is PartKind.TEXT))
        commands = commands if len(commands) == 1 else []
    return [call_part(Channel.ASSISTANT, "", "bash", {"command": each}) for each in commands]


def _coded(part: Part, message: Mapping[str, Any]) -> Part:
    """A result with the code that the run noted beside it."""
    code = map_of(message.get("extra")).get("returncode")
    if part.result is None or type(code) is not int:
        return part
    return replace(part, result=replace(part.result, exit_code=code, is_error=code != 0))


def answer(message: Mapping[str, Any]) -> Reading:
    """The reading of what the call before it printed."""
    code = map_of(message.get("extra")).get("returncode")
    return Reading("user", (_result("", message, code),))


def _result(call_id: str, message: Mapping[str, Any], code: Any) -> Part:
    text = openai_chat.text_in(message.get("content"))
    failed = code != 0 if type(code) is int else None
    return result_part(call_id, text, failed, form="mini-swe-agent", exit_code=code)


__all__ = ["NAME", "RESULTS", "VERSION", "answer", "read", "read_results", "reading"]
