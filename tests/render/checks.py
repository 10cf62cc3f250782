"""Whether providers would take an export: by their SDKs' types, and by validators of pairs and roles that are not ours.

`mistral-common` refuses a chat whose roles, calls and results are out of order. Other forms reach it through converters
that are not ours either (langchain-core for Anthropic's, the OpenAI Agents SDK for Responses), which have checks of
their own; only that of Gemini's contents, for which there is none, stands here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any

from agents.exceptions import AgentsException
from agents.models.chatcmpl_converter import Converter
from agents.run_internal.items import drop_orphan_function_calls
from anthropic.types import MessageParam, TextBlockParam
from google.genai import chats
from google.genai import types as genai
from langchain_core.messages import convert_to_messages, convert_to_openai_messages
from mistral_common.exceptions import MistralCommonException
from mistral_common.protocol.instruct.converters import convert_openai_messages
from mistral_common.protocol.instruct.validator import MistralRequestValidatorV13, ValidationMode
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import ConfigDict, TypeAdapter

from ef.session.views import Export
from ef.testing.pairing import violations

NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
HOSTED = (
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
    "mcp_call",
    "image_generation_call",
)
FAULTS = (
    ValueError,
    AssertionError,
    LookupError,
    TypeError,
    AgentsException,
    MistralCommonException,
)
THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details")
_STRICT = ConfigDict(extra="forbid")


def refusals(export: Export) -> list[str]:
    """What is wrong with an export, in the words of whoever refuses it; nothing where a provider would take it."""
    if not export.messages:
        return []
    found: list[str] = []
    for check in CHECKS[export.format]:
        try:
            check(export)
        except FAULTS as fault:
            found.append(f"{check.__name__}: {type(fault).__name__}: {str(fault)[:600]}")
    return found


# -- types -------------------------------------------------------------------------------------------------------


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind, config=_STRICT)


def _typed(kind: Any, value: Any) -> None:
    """Each value against a TypedDict of an SDK; no key that it does not name. What is validated lazily is walked."""
    _walk(adapter(kind).validate_python(value))


def _walk(value: Any) -> None:
    if isinstance(value, str | bytes):
        return
    if isinstance(value, Mapping):
        for each in value.values():
            _walk(each)
    elif hasattr(value, "__iter__"):
        for each in value:
            _walk(each)


def anthropic_types(export: Export) -> None:
    _typed(list[MessageParam], export.messages)
    if export.system is not None:
        _typed(list[TextBlockParam], export.system)


def chat_types(export: Export) -> None:
    assert export.system is None
    # Reasoning goes back to the servers that put it beside `content`; the SDK of OpenAI knows nothing of it.
    bare = [{k: v for k, v in m.items() if k not in THOUGHTS} for m in export.messages]
    _typed(list[ChatCompletionMessageParam], bare)


def responses_types(export: Export) -> None:
    assert export.system is None
    _typed(list[ResponseInputItemParam], [_as_typed(item) for item in export.messages])


def _as_typed(item: dict[str, Any]) -> dict[str, Any]:
    """Codex sends its reasoning and searches without an id, and `content: null`: they are handed back as they came."""
    if item["type"] not in ("reasoning", *HOSTED):
        return item
    return {"id": "rs_1", **{k: v for k, v in item.items() if v is not None}}


def gemini_types(export: Export) -> None:
    head = [] if export.system is None else [export.system]
    for content in (*head, *export.messages):
        genai.Content.model_validate(content)
    chat = chats._BaseChat(
        model="m", history=export.messages
    )  # whose own rules take what is valid only
    assert chat.get_history(curated=True) == chat.get_history(), "the SDK leaves contents out"


# -- pairs and roles ---------------------------------------------------------------------------------------------


def _chat_order(messages: list[dict[str, Any]]) -> None:
    """Strict order of roles, and each call answered behind it, once, by its id."""
    shown: list[dict[str, Any]] = []
    if messages[0]["role"] == "assistant":  # it does not look at the calls of the first message
        shown.append({"role": "user", "content": "go on"})
    for message in messages:
        # It takes a system's words first only; those that stand later are like a user's for the order of roles.
        later = message["role"] == "system" and any(m["role"] != "system" for m in shown)
        shown.append({**message, "role": "user"} if later else dict(message))
    if shown[-1]["role"] == "assistant":  # a request for an answer ends with something to answer
        shown.append({"role": "user", "content": "go on"})
    for message in shown:
        for name in THOUGHTS:
            message.pop(name, None)
        if isinstance(message.get("content"), list):  # blocks that it has no form for
            texts = [b for b in message["content"] if b.get("type") == "text"]
            message["content"] = texts or "(no text)"
        if message.get("tool_calls"):
            message["tool_calls"] = [_function(call) for call in message["tool_calls"]]
    taken = convert_openai_messages(shown)
    MistralRequestValidatorV13(ValidationMode.serving).validate_messages(taken)


def _function(call: dict[str, Any]) -> dict[str, Any]:
    inner = call[call["type"]]
    given = inner["input"] if call["type"] == "custom" else inner["arguments"]
    made = {
        "name": inner["name"][:64],
        "arguments": given,
    }  # longer ones are the business of others
    return {"id": call["id"], "type": "function", "function": made}


def anthropic_pairs(export: Export) -> None:
    assert violations(export.messages) == []
    ids = [b["id"] for m in export.messages for b in m["content"] if b["type"] == "tool_use"]
    assert len(ids) == len(set(ids)), "an id stands twice"
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]+", each) for each in ids), ids


def anthropic_roles(export: Export) -> None:
    messages = export.messages
    assert messages[0]["role"] == "user", "it begins with the assistant"
    for message in messages:
        assert message["content"], "an empty message"
        texts = [b["text"] for b in message["content"] if b["type"] == "text"]
        assert all(text.strip() for text in texts), "an empty text"
        thinks = message["content"][-1]["type"] in ("thinking", "redacted_thinking")
        assert not thinks, "thinking stands last"
        for block in message["content"]:
            assert block["type"] != "tool_use" or NAME.fullmatch(block["name"]), block["name"]
            assert block["type"] != "thinking" or block["signature"], "unsigned"
    last = messages[-1]["content"][-1]
    ends = messages[-1]["role"] == "assistant" and last["type"] == "text"
    assert not ends or last["text"] == last["text"].rstrip(), "white space at the end"


def anthropic_converted(export: Export) -> None:
    bare = []
    for message in export.messages:
        said: list[Any] = [{"type": "text", "text": "said"}] if message["content"] else []
        calls = [b for b in message["content"] if b["type"] == "tool_use"]
        results = [b for b in message["content"] if b["type"] == "tool_result"]
        if results:  # the converter hands results out behind what stands beside them
            bare.append({**message, "content": results})
            said = said if len(message["content"]) > len(results) else []
        if said:
            bare.append({**message, "content": [*said, *calls]})
    _chat_order(convert_to_openai_messages(convert_to_messages(bare), text_format="block"))


def chat_pairs(export: Export) -> None:
    _chat_order(export.messages)


def chat_limits(export: Export) -> None:
    calls = [call for m in export.messages for call in m.get("tool_calls", ())]
    assert all(0 < len(call["id"]) <= 64 for call in calls)
    assert len({call["id"] for call in calls}) == len(calls), "an id stands twice"
    names = [call[call["type"]]["name"] for call in calls]
    assert all(NAME.fullmatch(name) and len(name) <= 64 for name in names), names
    for message in export.messages:
        said = message["content"] or message.get("tool_calls") or set(THOUGHTS) & set(message)
        assert said or message["role"] == "tool", "a message that says nothing"


def responses_pairs(export: Export) -> None:
    assert drop_orphan_function_calls(export.messages) == export.messages, "calls without an output"
    asked = [i for i in export.messages if i["type"].endswith("_call") and i["type"] not in HOSTED]
    calls = [i["call_id"] for i in asked]
    assert len(calls) == len(set(calls)), "an id stands twice"
    assert all(0 < len(each) <= 64 for each in calls)
    given = [i["call_id"] for i in export.messages if i["type"].endswith("_call_output")]
    assert len(given) == len(set(given)), "two outputs of a call"
    back = list(reversed(export.messages))
    mirrored = [{**i, "type": _MIRROR[i["type"]]} if i["type"] in _MIRROR else i for i in back]
    assert drop_orphan_function_calls(mirrored) == mirrored, "outputs without a call"


_MIRROR = {
    "function_call": "function_call_output",
    "function_call_output": "function_call",
    "custom_tool_call": "custom_tool_call_output",
    "custom_tool_call_output": "custom_tool_call",
}


def responses_roles(export: Export) -> None:
    behind = None
    for item in reversed(export.messages):
        if item["type"] == "reasoning":
            said = behind is not None and (
                behind["type"].endswith("_call") or behind["type"] in ("reasoning", "compaction")
                or behind.get("role") == "assistant"
            )  # fmt: skip
            assert said, "reasoning without what it led to"
        behind = item


def responses_converted(export: Export) -> None:
    items = []
    for item in export.messages:
        if item["type"] in ("reasoning", "compaction", *HOSTED):
            continue
        if item["type"] == "custom_tool_call":
            made = {"type": "function_call", "arguments": item["input"]}
            item = {**made, "call_id": item["call_id"], "name": item["name"]}
        elif item["type"] == "custom_tool_call_output":
            item = {**item, "type": "function_call_output"}
        items.append(item)
    messages: list[Any] = [dict(m) for m in Converter.items_to_messages(items)]
    for message in messages:
        if message["role"] == "developer":
            message["role"] = "system"
    if messages:
        _chat_order(messages)


def gemini_pairs(export: Export) -> None:
    messages: list[dict[str, Any]] = []
    waiting: list[tuple[str, str]] = []
    roles = [content["role"] for content in export.messages]
    assert roles[0] == "user" and all(a != b for a, b in pairwise(roles)), roles
    for n, content in enumerate(export.messages):
        calls = [p["functionCall"] for p in content["parts"] if "functionCall" in p]
        answers = [p["functionResponse"] for p in content["parts"] if "functionResponse" in p]
        assert ["functionResponse" in p for p in content["parts"][: len(answers)]] == [True] * len(
            answers
        )
        assert [(a.get("id"), a["name"]) for a in answers] == waiting, "responses unlike the calls"
        assert all(NAME.fullmatch(call["name"]) for call in calls), calls
        waiting = [(call.get("id"), call["name"]) for call in calls]
        if content["role"] == "model":
            assert not answers
            made = [
                {"id": f"{n}.{k}", "type": "function", "function": {"name": c["name"], "arguments": c["args"]}}
                for k, c in enumerate(calls)
            ]  # fmt: skip
            messages.append({"role": "assistant", "content": "said", "tool_calls": made or None})
            continue
        assert not calls
        messages += [
            {"role": "tool", "tool_call_id": f"{n - 1}.{k}", "content": "done"}
            for k in range(len(answers))
        ]
        if len(content["parts"]) > len(answers):
            messages.append({"role": "user", "content": "said"})
    assert not waiting, "calls without responses"
    _chat_order(messages)


CHECKS: dict[str, tuple[Callable[[Export], None], ...]] = {
    "anthropic": (anthropic_types, anthropic_pairs, anthropic_roles, anthropic_converted),
    "openai": (chat_types, chat_pairs, chat_limits),
    "responses": (responses_types, responses_pairs, responses_roles, responses_converted),
    "gemini": (gemini_types, gemini_pairs),
}
