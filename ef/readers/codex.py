"""Codex rollout lines -> items and parts. Pure; version 1.

A line's payload is an item of the Responses API (in files of before 0.4 the line itself is). A message of role `user`
that opens with one of the harness's wrappers was put there by it, whoever typed such words; an editor's state stands
before what was typed; the summary that a compaction leaves is the importer's. Text may lower a part's authority, never
raise it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..events import Channel, Part, PartKind, Reading
from ..events.shapes import is_map
from . import openai_responses as responses
from .jsonvalues import parse
from .pieces import capped, map_of, text_part

NAME, VERSION = "codex", 1
SUMMARY = f"{NAME}/summary"
_HARNESS = re.compile(
    r"\s*(?:<(?:environment_context|user_instructions|turn_aborted|skill|skills_instructions|user_shell_command"
    r"|subagent_notification|apps_instructions|plugins_instructions|permissions instructions|collaboration_mode"
    r"|model_switch|personality_spec|token_budget|context_window|realtime_conversation|multi_agent_mode"
    r"|goal_context|hook_prompt|user_action|INSTRUCTIONS)\b"
    r"|# AGENTS\.md instructions\b|<!-- AGENTS\.md|Warning: apply_patch was requested via "
    r"|Warning: The maximum number of)"
)
_SUMMARY = re.compile(
    r"\s*(?:Another language model started to solve this problem and produced a summary"
    r"|You were originally given instructions from a user over one or more turns)"
)
_IMAGE = re.compile(r"\s*</?image(?: [^<>]{0,4096})?>\s*\Z")
"""What stands around an image."""
_EDITOR = re.compile(r"\s*# Context from my IDE setup:")
_REQUEST = "\n## My request for Codex:\n"


def read(data: bytes) -> Reading:
    """The reading of a line's bytes, or of an item's inside one."""
    value = parse(data)
    return reading(value) if is_map(value) else Reading("opaque", ())


def read_summary(data: bytes) -> Reading:
    """The reading of what a compaction left, a message or its text alone: nobody typed it."""
    value = parse(data)
    if isinstance(value, str):
        return Reading("user", (text_part(Channel.IMPORTER, value),))
    return _told(read(data), Channel.IMPORTER)


def read_results(data: bytes) -> Reading:
    """What the server's own tool gave, of the line of its call."""
    value = parse(data)
    return responses.given_back(item_of(value)) if is_map(value) else Reading("opaque", ())


def item_of(line: Mapping[str, Any]) -> Mapping[str, Any]:
    """The Responses item of a line, or of the item itself."""
    payload = line.get("payload")
    return map_of(payload) if line.get("type") == "response_item" else line


def reading(line: Mapping[str, Any]) -> Reading:
    """The reading of a line that holds an item."""
    item = item_of(line)
    if item.get("type") == "agent_message":
        return _agents(item)
    found = responses.reading(item, form="codex")
    if found.role != "user" or responses.kind_in(item) != "message":
        return found
    images = any(part.kind is PartKind.IMAGE for part in found.parts)
    return replace(found, parts=capped([p for part in found.parts for p in _user(part, images)]))


def is_summary(item: Mapping[str, Any]) -> bool:
    """Whether a message is what a compaction left of what was before."""
    texts = [part.text for part in responses.message(item).parts if part.kind is PartKind.TEXT]
    return bool(texts) and _SUMMARY.match(texts[0]) is not None


def _user(part: Part, images: bool) -> list[Part]:
    """A part of a user's message: one, or two where an editor's state stands before what was typed."""
    if part.channel is not Channel.USER_TYPED or part.kind is not PartKind.TEXT:
        return [part]
    if _SUMMARY.match(part.text):
        return [replace(part, channel=Channel.IMPORTER)]
    if _EDITOR.match(part.text):
        return _behind_state(part)
    if _HARNESS.match(part.text) or (images and _IMAGE.match(part.text)):
        return [replace(part, channel=Channel.SYSTEM)]
    return [part]


def _behind_state(part: Part) -> list[Part]:
    """What an editor says of itself, which may quote anything, and behind the last heading what was typed."""
    state, heading, typed = part.text.rpartition(_REQUEST)
    if not heading or not typed.strip():
        return [replace(part, channel=Channel.SYSTEM)]
    return [text_part(Channel.SYSTEM, state + heading), text_part(Channel.USER_TYPED, typed)]


def _agents(item: Mapping[str, Any]) -> Reading:
    """A message from another agent: that agent's words."""
    content = item.get("content") or item.get("message")
    found = responses.message({"role": "user", "content": content})
    return _told(found, Channel.SUBAGENT)


def _told(found: Reading, channel: Channel) -> Reading:
    kinds = (PartKind.TOOL_CALL, PartKind.TOOL_RESULT, PartKind.OPAQUE)
    parts = tuple(p if p.kind in kinds else replace(p, channel=channel) for p in found.parts)
    return Reading(found.role, parts, found.group)


__all__ = ["NAME", "SUMMARY", "VERSION", "read", "read_summary", "reading"]
