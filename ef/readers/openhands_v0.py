"""Events of OpenHands' first architecture (V0) -> parts. Pure; version 1.

An action of the agent is a call, an observation with the metadata of a call (or with a `cause`) its result; events from
before there were such metadata are paired by `event-<id of the action>`. The provider's whole response stands in each
action that it asked for: `read` gives its words and the call, `read_more` the call alone, for the further actions of a
response. `read_answer` takes an observation for the result of a call without an id, `read_told` for words that answer
none. What a human ran is no word to the agent: its line is the harness's text, its output the tool's.
Shapes: openhands/events/serialization/{event,action,observation}.py of release 1.0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..events import Channel, Part, Reading
from ..events.shapes import is_map
from .jsonvalues import parse
from .openai_chat import text_in
from .pieces import (
    call_part,
    capped,
    id_of,
    linked_part,
    list_of,
    map_of,
    maps_of,
    result_part,
    text_of,
    text_part,
    thought,
)

NAME, VERSION = "openhands-v0", 1
MORE, ANSWER, TOLD = f"{NAME}/more", f"{NAME}/answer", f"{NAME}/told"
ACTIONS = frozenset(
    """start read write edit run run_ipython browse browse_interactive call_tool_mcp mcp delegate think finish reject
    push send_pr add_task modify_task save task_tracking search summarize""".split()
)
"""Actions that are calls."""
SILENT_ACTIONS = frozenset(
    "null pause resume stop change_agent_state recall condensation_request loop_recovery init".split()
)
"""Actions that say nothing to the model."""
OBSERVATIONS = frozenset(
    """read write edit browse run run_ipython chat delegate message error success think user_rejected mcp download
    task_tracking recall microagent workspace_context search""".split()
)
_LOOKED_UP = frozenset(("recall", "microagent", "workspace_context"))
"""Observations that the harness puts before the model: what it looked up itself."""
SILENT_OBSERVATIONS = frozenset(
    "null agent_state_changed condense loop_detection server_ready status".split()
)
_FAILED = ("error", "user_rejected")
_UNKNOWN_YET = -1
"""What stands for the exit code of a command that still runs, or that nobody waited for."""


def read(data: bytes) -> Reading:
    """The reading of an event's bytes."""
    return _read(data)


def read_more(data: bytes) -> Reading:
    """The reading of an action whose response's words stand with an earlier one."""
    return _read(data, more=True)


def read_answer(data: bytes) -> Reading:
    """The reading of an observation that answers the action before it, whatever it says."""
    return _read(data, answers=True)


def read_told(data: bytes) -> Reading:
    """The reading of an observation that answers no call."""
    return _read(data, answers=False)


def _read(data: bytes, *, more: bool = False, answers: bool | None = None) -> Reading:
    event = parse(data)
    found = reading(event, more=more, answers=answers) if is_map(event) else None
    return found or Reading("opaque", ())


def reading(
    event: Mapping[str, Any], *, more: bool = False, answers: bool | None = None
) -> Reading | None:
    """The reading of an event; None for one that says nothing to the model.

    `more`: without the words of its response. `answers`: whether an observation is a result; None where its own
    metadata say so.
    """
    action, observation = text_of(event.get("action")), text_of(event.get("observation"))
    if action:
        return _acted(event, action, more=more)
    return _observed(event, observation, answers) if observation else None


def response_of(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """The provider's response that an event goes back to, empty where there is none."""
    return map_of(map_of(event.get("tool_call_metadata")).get("model_response"))


def pair_id(number: Any) -> str:
    """The call id of the action with this number, "" for none."""
    return f"event-{number}" if type(number) is int and abs(number) < 1 << 63 else ""


def call_id_of(event: Mapping[str, Any]) -> str:
    """The call id that the metadata of an event say, "" where there are none."""
    return id_of(map_of(event.get("tool_call_metadata")).get("tool_call_id"))


# Actions.


def _acted(event: Mapping[str, Any], action: str, *, more: bool) -> Reading | None:
    args, source = map_of(event.get("args")), text_of(event.get("source"))
    called = is_map(event.get("tool_call_metadata"))
    if action == "condensation":
        summary = text_of(args.get("summary"))
        return Reading("user", (text_part(Channel.IMPORTER, summary, args),)) if summary else None
    if action == "system":
        return _words(event, args, "system", Channel.SYSTEM)
    if action == "message" and source != "agent":
        typed = Channel.USER_TYPED if source == "user" else Channel.SYSTEM
        return _words(event, args, "user", typed)
    if action == "message" and not call_id_of(event):
        return _words(event, args, "assistant", Channel.ASSISTANT)
    if action in SILENT_ACTIONS and not called:
        return None
    if source == "user" and not called:
        line = text_of(args.get("command")) or text_of(event.get("message"))
        return Reading("user", (text_part(Channel.SYSTEM, line, args),)) if line else None
    return _called(event, action, args, more=more)


def _words(
    event: Mapping[str, Any], args: Mapping[str, Any], role: str, channel: Channel
) -> Reading:
    said = args.get("content") or event.get("message")
    text = text_in(said)
    parts = [text_part(channel, text, args)] if text else []
    parts += [_picture(channel, url) for url in list_of(args.get("image_urls"))]
    group = id_of(response_of(event).get("id")) or None
    return Reading(role, capped(parts), group if role == "assistant" else None)


def _called(
    event: Mapping[str, Any], action: str, args: Mapping[str, Any], *, more: bool
) -> Reading:
    meta, response = map_of(event.get("tool_call_metadata")), response_of(event)
    call_id = call_id_of(event) or pair_id(event.get("id"))
    message = _message_of(response)
    parts: list[Part] = []
    if not more:
        thinking = text_of(message.get("reasoning_content"))
        if thinking:
            parts.append(thought(Channel.ASSISTANT, thinking))
        text = text_in(message.get("content")) if response else text_of(args.get("thought"))
        if text and (response or action != "think"):
            parts.append(text_part(Channel.ASSISTANT, text))
    name = text_of(meta.get("function_name")) or action
    calls = maps_of(message.get("tool_calls"))
    asked = next((each for each in calls if id_of(each.get("id")) == call_id), args)
    given = map_of(asked.get("function")).get("arguments") if asked is not args else None
    if given is None:
        given = {k: v for k, v in args.items() if k != "thought" or action == "think"}
    parts.append(call_part(Channel.ASSISTANT, call_id, name, given, asked))
    return Reading("assistant", capped(parts), id_of(response.get("id")) or None)


def _message_of(response: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = list_of(response.get("choices"))
    return map_of(map_of(choices[0]).get("message")) if choices else {}


def _picture(channel: Channel, url: Any) -> Part:
    mime = "" if text_of(url).startswith("data:") else "image/*"
    return linked_part(channel, mime, url, {"image_url": url})


# Observations.


def _observed(event: Mapping[str, Any], observation: str, answers: bool | None) -> Reading | None:
    extras = map_of(event.get("extras"))
    call_id = call_id_of(event)
    if observation in SILENT_OBSERVATIONS and not call_id:
        return None
    if observation in _LOOKED_UP and not call_id:
        return Reading("user", _recalled(event, extras))
    if not call_id and answers is not True:
        call_id = pair_id(event.get("cause"))
    text = text_in(event.get("content"))
    if answers is False or (answers is None and not call_id):
        return Reading("user", (text_part(Channel.TOOL, text, extras),)) if text else None
    result = _result(event, observation, extras, call_id, text)
    shown = [
        extras.get("set_of_marks") or extras.get("screenshot"),
        *list_of(extras.get("image_urls")),
    ]
    pictures = [_picture(Channel.TOOL, url) for url in shown if text_of(url)]
    return Reading("user", capped([result, *pictures]))


def _result(
    event: Mapping[str, Any], observation: str, extras: Mapping[str, Any], call_id: str, text: str
) -> Part:
    code = map_of(extras.get("metadata")).get("exit_code", extras.get("exit_code"))
    code = code if type(code) is int and code != _UNKNOWN_YET else None
    success = event.get("success")
    failed = True if observation in _FAILED else None
    if failed is None and isinstance(success, bool):
        failed = not success
    if failed is None and code is not None:
        failed = code != 0
    form = "openhands" if observation == "run" and code is None else ""
    return result_part(call_id, text, failed, extras, form=form, exit_code=code)


def _recalled(event: Mapping[str, Any], extras: Mapping[str, Any]) -> tuple[Part, ...]:
    """What the harness looked up and put before the model: instructions of the repository, knowledge, skills."""
    known = [map_of(each).get("content") for each in list_of(extras.get("microagent_knowledge"))]
    names = (
        "repo_instructions", "additional_agent_instructions", "conversation_instructions",
    )  # fmt: skip
    texts = [*(extras.get(name) for name in names), *known]
    secrets = extras.get("custom_secrets_descriptions")
    if is_map(secrets) and secrets:
        texts.append(json.dumps(secrets, ensure_ascii=False))
    said = [text for text in texts if isinstance(text, str) and text.strip()]
    said = said or [text_in(event.get("content"))]
    return capped([text_part(Channel.SYSTEM, text, extras) for text in said if text])
