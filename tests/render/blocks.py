"""Parts as readers of each dialect make them, and as readers of formats of their own make them (dialect "")."""

from __future__ import annotations

import json
from typing import Any

from ef.events import Channel, Media, Part, PartKind, ToolResult
from ef.readers.tools import neutral

DIALECTS = ("anthropic", "openai", "responses", "gemini", "")
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
URL = "https://example.org/a.png"
SPEAKS = {"assistant": Channel.ASSISTANT, "system": Channel.SYSTEM, "user": Channel.USER_TYPED}


def text(dialect: str, role: str, said: str) -> Part:
    block: Any = {
        "anthropic": {"type": "text", "text": said},
        "openai": {"type": "text", "text": said},
        "responses": {"type": "output_text" if role == "assistant" else "input_text", "text": said},
        "gemini": {"text": said},
        "": {"kind": "words", "words": said},
    }[dialect]
    return Part(PartKind.TEXT, SPEAKS[role], said, block=block)


def reasoning(dialect: str, seal: str) -> Part:
    block: Any = {
        "anthropic": {"type": "thinking", "thinking": "hm", "signature": seal},
        "openai": {"reasoning_content": seal},
        "responses": {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": seal},
        "gemini": {"text": "hm", "thought": True, "thoughtSignature": seal},
        "": {"kind": "thought", "words": seal},
    }[dialect]
    return Part(PartKind.REASONING, Channel.ASSISTANT, "hm", block=block)


def call(dialect: str, call_id: str, name: str, given: Any) -> Part:
    free = isinstance(given, str)
    arguments = given if free else json.dumps(given)
    block: Any = {
        "anthropic": {"type": "tool_use", "id": call_id, "name": name, "input": given},
        "openai": {
            "id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}
        },
        "responses": {"type": "custom_tool_call", "call_id": call_id, "name": name, "input": given}
        if free
        else {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments},
        "gemini": {"functionCall": {"name": name, "args": given}, "thoughtSignature": PNG},
        "": {"kind": "call", "tool": name},
    }[dialect]  # fmt: skip
    if dialect == "gemini" and len(name) % 2:
        block["functionCall"]["id"] = call_id
    found = neutral(call_id, name, given)
    return Part(PartKind.TOOL_CALL, Channel.ASSISTANT, "", call_id, block, call=found)


def result(
    dialect: str, call_id: str, said: str, *, image: bool = False, error: bool = False,
    free: bool = False, name: str = "Bash",
) -> Part:  # fmt: skip
    picture: Any = {
        "anthropic": {
            "type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}
        },
        "responses": {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
    }.get(dialect)  # fmt: skip
    content: Any = said
    if image and picture:
        content = [text(dialect, "user", said or "see").block, picture]
    kind = "custom_tool_call_output" if free else "function_call_output"
    block: Any = {
        "anthropic": {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": error},
        "openai": {"role": "tool", "tool_call_id": call_id, "content": said},
        "responses": {"type": kind, "call_id": call_id, "output": content},
        "gemini": {"functionResponse": {"name": name, "response": {"output": said}}},
        "": {"kind": "done", "content": [{"type": "image", "mimeType": "image/png", "data": PNG}] if image else said},
    }[dialect]  # fmt: skip
    told = ToolResult(call_id, said, error, None)
    return Part(PartKind.TOOL_RESULT, Channel.TOOL, said, call_id, block, result=told)


def image(dialect: str, role: str, media: Media) -> Part:
    url = media.url or f"data:{media.mime};base64,{media.data}"
    source = {"type": "base64", "media_type": media.mime, "data": media.data}
    block: Any = {
        "anthropic": {"type": "image", "source": {"type": "url", "url": media.url} if media.url else source},
        "openai": {"type": "image_url", "image_url": {"url": url}},
        "responses": {"type": "input_image", "image_url": url, "detail": "auto"},
        "gemini": {"inlineData": {"mimeType": media.mime or "image/png", "data": media.data or PNG}},
        "": None,
    }[dialect]  # fmt: skip
    return Part(PartKind.IMAGE, SPEAKS[role], block=block, media=media)


def opaque(dialect: str, role: str) -> Part:
    assistant = role == "assistant"
    block: Any = {
        "anthropic": {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
        if assistant
        else {"type": "container_upload", "file_id": "file_1"},
        "openai": {"type": "refusal", "refusal": "no"} if assistant else {"type": "novel"},
        "responses": {"type": "compaction", "encrypted_content": "sealed"},
        "gemini": {"executableCode": {"code": "1", "language": "PYTHON"}},
        "": [1, {"x": None}],
    }[dialect]  # fmt: skip
    return Part(PartKind.OPAQUE, Channel.IMPORTER, block=block)
