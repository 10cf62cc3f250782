"""Events of OpenHands' agent SDK (V1) -> parts. Pure; version 1.

Each event says by `kind` what it is. An action is a call with the thoughts before it, an observation its result; what
an ACP agent ran stands in one event with what came of it: `read` gives the call, `read_results` the answer. A summary
is the importer's; context that the SDK adds to a message or a result (`extended_content`) the harness's. A user's
message that names its `sender` is another agent's; one that the SDK itself sends has its words, and is the harness's.
Shapes: openhands-sdk/openhands/sdk/event of OpenHands/software-agent-sdk.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..events import Channel, Part, Reading
from ..events.shapes import is_list, is_map
from .jsonvalues import parse
from .pieces import (
    call_part,
    capped,
    id_of,
    kind_of,
    linked_part,
    list_of,
    map_of,
    maps_of,
    opaque,
    result_part,
    text_of,
    text_part,
    thought,
)

NAME, VERSION = "openhands-v1", 1
RESULTS = f"{NAME}/results"
SILENT = frozenset(
    """ConversationStateUpdateEvent ConversationErrorEvent ConversationIterationLimitEvent CondensationRequest
    PauseEvent InterruptEvent TokenEvent LLMCompletionLogEvent HookExecutionEvent StreamingDeltaEvent ServerErrorEvent
    SecurityAnalyzerEvent WarningEvent""".split()
)
"""Events that say nothing to the model."""
KNOWN = SILENT | frozenset(
    """SystemPromptEvent MessageEvent ActionEvent ObservationEvent UserRejectObservation AgentErrorEvent Condensation
    CondensationSummaryEvent ACPToolCallEvent""".split()
)
ENDED = frozenset(("completed", "failed"))
"""How an ACP agent says that a tool has run."""
_UNKNOWN_YET = -1
_OWN_WORDS = re.compile(
    r"The goal is NOT yet complete \(audit iteration \d|Resuming a goal that was paused or interrupted\. Re-check"
    r"|The task appears incomplete \(iteration \d|Your previous response was blocked by the model's content filter\."
    r"|Missing required parameters for function '|Parameter '[^'\n]{1,200}' is (?:not allowed|expected)"
    r"|Function '[^'\n]{1,200}' not found in available tools|<<RESUMED CONVERSATION>>"
)
"""How messages begin that the SDK sends in the user's name: to go on with a goal, after a refusal or a broken call."""
_ANSWERS = frozenset(("ObservationEvent", "UserRejectObservation", "AgentErrorEvent"))


def read(data: bytes) -> Reading:
    """The reading of an event's bytes."""
    event = parse(data)
    found = reading(event) if is_map(event) else None
    return found or Reading("opaque", ())


def read_results(data: bytes) -> Reading:
    """The reading of what a tool gave that stands in the event of its call."""
    event = parse(data)
    return answer(event) if is_map(event) else Reading("opaque", ())


def reading(event: Mapping[str, Any]) -> Reading | None:
    """The reading of an event; None for one that says nothing to the model."""
    kind = text_of(event.get("kind"))
    if kind == "SystemPromptEvent":
        prompts = [event.get("system_prompt"), event.get("dynamic_context")]
        return Reading(
            "system", capped([p for each in prompts for p in _blocks(each, Channel.SYSTEM)])
        )
    if kind == "MessageEvent":
        return _message(event)
    if kind == "ActionEvent":
        return _acted(event)
    if kind in _ANSWERS:
        return _observed(event, kind)
    if kind in ("Condensation", "CondensationSummaryEvent"):
        summary = text_of(event.get("summary"))
        return Reading("user", (text_part(Channel.IMPORTER, summary),)) if summary else None
    if kind == "ACPToolCallEvent":
        name = text_of(event.get("tool_kind")) or text_of(event.get("title"))
        given = event.get("raw_input")
        call = call_part(Channel.ASSISTANT, id_of(event.get("tool_call_id")), name, given or {})
        return Reading("assistant", (call,))
    return None


def answer(event: Mapping[str, Any]) -> Reading:
    """The reading of what an ACP agent's tool gave."""
    output = event.get("raw_output")
    text = "\n".join(filter(None, (_acp_text(each) for each in maps_of(event.get("content")))))
    if not text and output is not None:
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    failed = event.get("is_error") is True or event.get("status") == "failed"
    return Reading("user", (result_part(id_of(event.get("tool_call_id")), text, failed, form=""),))


def _acp_text(block: Mapping[str, Any]) -> str:
    return text_of(map_of(block.get("content")).get("text")) or text_of(block.get("text"))


def _message(event: Mapping[str, Any]) -> Reading:
    message, source = map_of(event.get("llm_message")), text_of(event.get("source"))
    if source == "agent":
        parts = _thoughts(message)
        parts += _blocks(message.get("content"), Channel.ASSISTANT)
        return Reading("assistant", capped(parts), id_of(event.get("llm_response_id")) or None)
    channel = Channel.USER_TYPED if source == "user" else Channel.SYSTEM
    if source == "user" and event.get("sender") not in (None, ""):
        channel = Channel.ASSISTANT
    parts = [_typed(part) for part in _blocks(message.get("content"), channel)]
    parts += _blocks(event.get("extended_content"), Channel.SYSTEM)
    return Reading("user", capped(parts))


def _typed(part: Part) -> Part:
    own = part.channel is Channel.USER_TYPED and _OWN_WORDS.match(part.text)
    return replace(part, channel=Channel.SYSTEM) if own else part


def _acted(event: Mapping[str, Any]) -> Reading:
    parts = [*_thoughts(event), *_blocks(event.get("thought"), Channel.ASSISTANT)]
    call = map_of(event.get("tool_call"))
    name = text_of(event.get("tool_name")) or text_of(call.get("name"))
    given = call.get("arguments")
    if given is None:  # the earliest releases kept the provider's own form
        given = map_of(call.get("function")).get("arguments")
    if given is None:
        given = {k: v for k, v in map_of(event.get("action")).items() if k != "kind"}
    call_id = id_of(event.get("tool_call_id")) or id_of(call.get("id"))
    parts.append(call_part(Channel.ASSISTANT, call_id, name, given, call or None))
    return Reading("assistant", capped(parts), id_of(event.get("llm_response_id")) or None)


def _thoughts(holder: Mapping[str, Any]) -> list[Part]:
    """What the model thought: signed blocks where there are some, else the text alone."""
    made = [
        thought(Channel.ASSISTANT, text_of(block.get("thinking")), block)
        for block in maps_of(holder.get("thinking_blocks"))
    ]
    text = text_of(holder.get("reasoning_content"))
    item = holder.get("responses_reasoning_item")
    if not text:
        told = [*list_of(map_of(item).get("summary")), *list_of(map_of(item).get("content"))]
        text = "\n\n".join(filter(None, map(text_of, told)))
    if made or not (text or is_map(item)):
        return made
    return [thought(Channel.ASSISTANT, text, item)]


def _observed(event: Mapping[str, Any], kind: str) -> Reading:
    call_id, name = id_of(event.get("tool_call_id")), text_of(event.get("tool_name")) or None
    if kind != "ObservationEvent":
        said = event.get("error" if kind == "AgentErrorEvent" else "rejection_reason")
        return Reading("user", (result_part(call_id, text_of(said), True, event, form=""),))
    seen = map_of(event.get("observation"))
    blocks = _blocks(_content(seen), Channel.TOOL)
    text = "\n".join(part.text for part in blocks if part.kind.value == "text")
    code = seen.get("exit_code")
    code = map_of(seen.get("metadata")).get("exit_code") if code is None else code
    code = code if type(code) is int and code != _UNKNOWN_YET else None
    failed = seen.get("is_error") if isinstance(seen.get("is_error"), bool) else None
    form = "openhands" if code is None else ""
    others = [part for part in blocks if part.kind.value != "text"]
    own = None if others else seen  # an image stands once
    result = result_part(call_id, text, failed, own, form=form, name=name, exit_code=code)
    added = _blocks(event.get("extended_content"), Channel.SYSTEM)
    return Reading("user", capped([result, *others, *added]))


def _content(seen: Mapping[str, Any]) -> Any:
    """What an observation holds; the earliest releases had texts where there are blocks now."""
    if seen.get("content"):
        return seen["content"]
    return next(
        (seen[k] for k in ("output", "error", "message", "text") if text_of(seen.get(k))), None
    )


def _blocks(content: Any, channel: Channel) -> list[Part]:
    blocks = content if is_list(content) else [content] if content else []
    return [part for block in blocks for part in _parts(block, channel)]


def _parts(block: Any, channel: Channel) -> list[Part]:
    if isinstance(block, str):
        return [text_part(channel, block)]
    given, kind = map_of(block), kind_of(block)
    if kind in ("text", "") and isinstance(given.get("text"), str):
        return [text_part(channel, given["text"], block)] if given["text"] else []
    if kind in ("image", "image_url"):
        urls = list_of(given.get("image_urls")) or [map_of(given.get("image_url")).get("url")]
        return [_picture(channel, url, block) for url in urls]
    return [opaque(block)]


def _picture(channel: Channel, url: Any, block: Any) -> Part:
    mime = "" if text_of(url).startswith("data:") else "image/*"
    return linked_part(channel, mime, url, block)
