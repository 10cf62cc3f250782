"""OpenCode message parts -> items and parts. Pure; version 1.

An item is one part of a message, as an export has it or as a row of the table `part`. The message's role is not in it:
a reader for each. A tool part is a call and its answer, two items of the same bytes.

What is `synthetic` or `ignored` was written by the harness, and a subtask's prompt is what a command expands to. The
text of a message that `info.summary` marks is a compaction's: its importer says so.
Shapes: packages/opencode/src/session/{message-v2,session.sql}.ts of anomalyco/opencode at
007a9409bafea06d6b9084ff1f6d1fe9f5e3a803, and files written by opencode-ai 1.18.33.
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
    opaque,
    result_part,
    text_of,
    text_part,
    thought,
)

USER, ASSISTANT, RESULTS = ("opencode/user", 1), ("opencode/assistant", 1), ("opencode/results", 1)
ENDED = ("completed", "error")
"""What the state of a tool part is when its answer is there."""


def read_user(data: bytes) -> Reading:
    """The reading of a part of a user message."""
    return user(part_of(parse(data)))


def read_assistant(data: bytes) -> Reading:
    """The reading of a part of an assistant message; of a tool part, the call."""
    return assistant(part_of(parse(data)))


def read_results(data: bytes) -> Reading:
    """The reading of a tool part's answer."""
    return results(part_of(parse(data)))


def part_of(value: Any) -> Mapping[str, Any]:
    """A part, of an export or of a row."""
    row = map_of(value)
    if row.get("table") != "part":
        return row
    held = map_of(row.get("data"))
    return {**held, "id": row.get("id"), "messageID": row.get("message_id")}


def user(part: Mapping[str, Any]) -> Reading:
    """The reading of a part of a user message."""
    kind = kind_of(part)
    ours = part.get("synthetic") is True or part.get("ignored") is True
    channel = Channel.SYSTEM if ours else Channel.USER_TYPED
    if kind == "text":
        return Reading("user", (text_part(channel, text_of(part.get("text")), part),))
    if kind == "file":
        return Reading("user", (_file(channel, part),))
    if kind == "subtask":
        return Reading("user", (text_part(Channel.SYSTEM, text_of(part.get("prompt")), part),))
    return Reading("user", (opaque(part),))


def assistant(part: Mapping[str, Any]) -> Reading:
    """The reading of a part of an assistant message."""
    return Reading("assistant", (_made(part),), id_of(part.get("messageID")) or None)


def _made(part: Mapping[str, Any]) -> Part:
    kind, channel = kind_of(part), Channel.ASSISTANT
    if kind == "text":
        return text_part(channel, text_of(part.get("text")), part)
    if kind == "reasoning":
        return thought(channel, text_of(part.get("text")), part)
    if kind == "file":
        return _file(channel, part)
    if kind == "tool":
        given = map_of(part.get("state")).get("input")
        return call_part(channel, id_of(part.get("callID")), text_of(part.get("tool")), given, part)
    return opaque(part)


def results(part: Mapping[str, Any]) -> Reading:
    """The reading of a tool part's answer: its text, then the images that came with it."""
    state = map_of(part.get("state"))
    facts = map_of(state.get("metadata"))
    failed = state.get("status") == "error"
    text = text_of(state.get("error" if failed else "output"))
    if failed and facts.get("interrupted") is True and isinstance(facts.get("output"), str):
        text = facts["output"]  # what the model is shown of a command that was stopped
    answer = result_part(
        id_of(part.get("callID")),
        text,
        failed,
        part,
        form="",
        name=text_of(part.get("tool")),
        exit_code=facts.get("exit"),
    )
    media = [_file(Channel.TOOL, each) for each in maps_of(state.get("attachments"))]
    return Reading("user", capped([answer, *media]))


def _file(channel: Channel, part: Mapping[str, Any]) -> Part:
    return linked_part(channel, part.get("mime"), part.get("url"), part, name=part.get("filename"))


def is_ended(part: Mapping[str, Any]) -> bool:
    """Whether a tool part holds its answer."""
    state = part.get("state")
    return is_map(state) and state.get("status") in ENDED
