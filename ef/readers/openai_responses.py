"""Items of OpenAI's Responses API -> parts. Pure; version 1.

Each item is one item here. Items that a server ran by itself hold the call and what it gave: `read` gives the call,
`read_results` the answer of the same bytes. What is encrypted stays as it is.
"""

from __future__ import annotations

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
    list_of,
    map_of,
    maps_of,
    media_part,
    opaque,
    result_part,
    text_of,
    text_part,
    thought,
)

NAME, VERSION = "openai-responses", 1
RESULTS = f"{NAME}/results"
_CHANNELS = {
    "user": Channel.USER_TYPED,
    "assistant": Channel.ASSISTANT,
    "system": Channel.SYSTEM,
    "developer": Channel.SYSTEM,
}
ROLES = frozenset((*_CHANNELS, "tool"))
_TEXTS = frozenset(("input_text", "output_text", "text", "summary_text", "reasoning_text"))
_CALLS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "shell_call": "action",
    "computer_call": "action",
    "apply_patch_call": "operation",
    "tool_search_call": "arguments",
    "web_search_call": "action",
    "mcp_call": "arguments",
    "code_interpreter_call": "code",
    "file_search_call": "queries",
    "image_generation_call": "revised_prompt",
}
"""Type of a call -> where what it was given stands."""
_NAMES = {
    "local_shell_call": "local_shell",
    "shell_call": "shell",
    "computer_call": "computer",
    "apply_patch_call": "apply_patch",
    "tool_search_call": "tool_search",
    "web_search_call": "web_search",
    "code_interpreter_call": "code_interpreter",
    "file_search_call": "file_search",
    "image_generation_call": "image_generation",
}
_OUTPUTS = frozenset(
    """function_call_output custom_tool_call_output local_shell_call_output shell_call_output computer_call_output
    apply_patch_call_output tool_search_output""".split()
)
KEPT = frozenset(
    """compaction compaction_summary compaction_trigger context_compaction item_reference mcp_list_tools
    mcp_approval_request mcp_approval_response program program_output additional_tools configuration_update
    ghost_snapshot""".split()
)
"""Items that are kept as they are: nothing in them is for us to read."""
COMPACTIONS = frozenset(("compaction", "compaction_summary", "context_compaction"))
"""Items that stand for what was before them."""
_KNOWN = frozenset(("message", "reasoning", *_CALLS, *_OUTPUTS, *KEPT))
_FAILED = frozenset(("failed", "incomplete", "error"))


def read(data: bytes) -> Reading:
    """The reading of an item's bytes."""
    item = parse(data)
    return reading(item) if is_map(item) else Reading("opaque", ())


def read_results(data: bytes) -> Reading:
    """What the server's own tool gave, of the bytes of its call."""
    item = parse(data)
    return given_back(item) if is_map(item) else Reading("opaque", ())


def is_known(item: Mapping[str, Any]) -> bool:
    """Whether an item is of a type that is read, or kept on purpose."""
    return kind_in(item) in _KNOWN


def kind_in(item: Mapping[str, Any]) -> str:
    """An item's type; one with a role and none is a message."""
    kind = item.get("type")
    return text_of(kind) or ("message" if "role" in item else "")


def reading(item: Mapping[str, Any], *, form: str | None = None) -> Reading:
    """The reading of an item; `form` is how its vendor wraps the output of commands (see tools.outcome)."""
    kind = kind_in(item)
    if kind == "message":
        return message(item)
    if kind == "reasoning":
        texts = [text_of(b.get("text")) for b in maps_of(item.get("summary"))]
        texts += [text_of(b.get("text")) for b in maps_of(item.get("content"))]
        return Reading("assistant", (thought(Channel.ASSISTANT, "\n".join(texts), item),))
    if kind in _CALLS:
        return Reading("assistant", (_call(item, kind),))
    if kind in _OUTPUTS:
        return Reading("user", (_output(item, form),))
    role = "assistant" if kind in KEPT else "user"
    return Reading(role, (opaque(item),))


def message(item: Mapping[str, Any]) -> Reading:
    """The reading of a message; who has no known role said nothing that counts."""
    role = text_of(item.get("role"))
    channel = _CHANNELS.get(role, Channel.IMPORTER)
    content = item.get("content")
    blocks = content if is_list(content) else [] if content is None else [content]
    parts = [_block(block, channel) for block in blocks]
    told = {"developer": "system", "tool": "user"}.get(role, role)
    return Reading(told if told in ("user", "assistant", "system") else "user", capped(parts))


def _block(block: Any, channel: Channel) -> Part:
    if isinstance(block, str):
        return text_part(channel, block)
    given = map_of(block)
    kind = text_of(given.get("type"))
    if kind in _TEXTS and isinstance(given.get("text"), str):
        return text_part(channel, given["text"], block)
    if kind == "refusal" and isinstance(given.get("refusal"), str):
        return text_part(channel, given["refusal"], block)
    if kind in ("input_image", "output_image", "image"):
        url = given.get("image_url")
        url = map_of(url).get("url") if is_map(url) else url
        return linked_part(channel, _mime(url), url, block)
    if kind in ("input_file", "file"):
        return _file(given, channel)
    if kind in ("input_audio", "output_audio"):
        inner = map_of(given.get("input_audio")) or given
        mime = f"audio/{text_of(inner.get('format')) or 'wav'}"
        return media_part(channel, mime, inner.get("data"), block)
    return opaque(block)


def _mime(url: Any) -> str:
    """What an image at an address is, as far as the address says."""
    return "" if text_of(url).startswith("data:") else "image/*"


def _file(block: Mapping[str, Any], channel: Channel) -> Part:
    name, data = block.get("filename"), text_of(block.get("file_data"))
    if data.startswith("data:"):
        return linked_part(channel, None, data, block, name=name)
    if data:
        return media_part(channel, None, data, block, name=name)
    return linked_part(channel, None, block.get("file_url"), block, name=name)


def _call(item: Mapping[str, Any], kind: str) -> Part:
    name = text_of(item.get("name")) or _NAMES.get(kind, kind)
    given = item.get(_CALLS[kind])
    if kind == "local_shell_call":
        given = {**map_of(given), "cwd": map_of(given).get("working_directory")}
    elif kind == "shell_call":
        given = {"command": "\n".join(map(text_of, list_of(map_of(given).get("commands"))))}
    elif kind == "file_search_call":
        given = {"query": "\n".join(map(text_of, list_of(given)))}
    elif kind == "code_interpreter_call":
        given = {"code": given}
    elif kind == "image_generation_call":
        given = {"prompt": given}
    if given is None:
        given = {}
    return call_part(Channel.ASSISTANT, _call_id(item), name, given, dict(item))


def _call_id(item: Mapping[str, Any]) -> str:
    return id_of(item.get("call_id")) or id_of(item.get("id"))


def _output(item: Mapping[str, Any], form: str | None) -> Part:
    output = item.get("output")
    kind = text_of(item.get("type"))
    if kind == "tool_search_output":
        names = (text_of(tool.get("name")) for tool in maps_of(item.get("tools")))
        return result_part(_call_id(item), "\n".join(names), False, dict(item), form="")
    code = item.get("exit_code")
    if is_map(output):  # older ones: {"content": …, "success": …}
        failed = output.get("success") is False
        text = output_text(output.get("content"))
        return result_part(_call_id(item), text, failed or None, dict(item), form=form)
    status = text_of(item.get("status")) in _FAILED
    if kind == "shell_call_output":
        text, code = _shell(list_of(output))
        return result_part(_call_id(item), text, None, dict(item), form="", exit_code=code)
    text = output_text(output)
    return result_part(_call_id(item), text, status or None, dict(item), form=form, exit_code=code)


def _shell(outputs: list[Any]) -> tuple[str, int | None]:
    """What the commands of a shell call printed, and the code of the last that has one."""
    texts: list[str] = []
    code: int | None = None
    for each in map(map_of, outputs):
        texts += [text_of(each.get(name)) for name in ("stdout", "stderr") if each.get(name)]
        ended = map_of(each.get("outcome")).get("exit_code")
        code = ended if type(ended) is int else code
    return "\n".join(texts), code


def output_text(output: Any) -> str:
    """The text of an output: its own, or that of its text blocks joined by line feeds."""
    if is_list(output):
        return "\n".join(
            text_of(block.get("text"))
            for block in maps_of(output)
            if isinstance(block.get("text"), str)
        )
    return text_of(output)


def has_results(item: Mapping[str, Any]) -> bool:
    """Whether a call of the server's own holds what it gave."""
    kind = kind_in(item)
    if kind == "mcp_call":
        return item.get("output") is not None or item.get("error") is not None
    if kind == "code_interpreter_call":
        return is_list(item.get("outputs"))
    if kind == "file_search_call":
        return is_list(item.get("results"))
    return kind == "image_generation_call" and isinstance(item.get("result"), str)


def given_back(item: Mapping[str, Any]) -> Reading:
    """The reading of what a server's own tool gave."""
    kind, call_id = kind_in(item), _call_id(item)
    if kind == "mcp_call":
        fault = item.get("error")
        told = map_of(fault)
        said = (told.get("message") or output_text(told.get("content"))) if told else fault
        text = output_text(item.get("output")) or text_of(said)
        part = result_part(call_id, text, fault is not None, dict(item), form="")
    elif kind == "image_generation_call":
        part = result_part(call_id, "", False, None, form="")
        image = media_part(Channel.TOOL, "image/png", item.get("result"), None)
        return Reading("user", (part, image))
    else:
        rows = maps_of(item.get("outputs") or item.get("results"))
        texts = [text_of(row.get("logs")) or text_of(row.get("text")) for row in rows]
        part = result_part(call_id, "\n".join(filter(None, texts)), False, dict(item), form="")
    return Reading("user", (part,))


__all__ = ["NAME", "RESULTS", "VERSION", "read", "read_results", "reading"]
