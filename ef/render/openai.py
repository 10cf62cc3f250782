"""Turns -> messages of OpenAI's chat completions. Pure.

Rules: an assistant's turn is one message with its calls; each call is answered by one `tool` message right behind it,
in the order of the calls; images of results follow as a user's. System items are `system` messages at their place.
Reasoning has no form here: it is handed back only where it came in this one (`reasoning_content` and its like).
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

from ..events import Media, Part, PartKind
from ..events.shapes import is_list, is_map
from . import media
from .turns import ASSISTANT, USER, Answer, Piece, Told
from .writer import Writer, as_json, as_object, joined

_SOUNDS = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details")
"""Where servers that speak this dialect put reasoning, beside `content`."""
_BLOCKS = {
    ASSISTANT: ("text", "refusal"),
    USER: ("text", "image_url", "input_audio", "file"),
    "system": ("text",),
}


class Export(Writer):
    """What the provider takes as a request, from anywhere."""

    dialect = "openai"

    def write(self, told: Told) -> tuple[Any, list[Any]]:
        """(None; the messages, the system's among them)."""
        out = self._said(self.blocks(told.system))
        for turn in told.turns:
            out += self._assistant(self.blocks(turn.assistant))
            out += [self._answer(answer) for answer in turn.answers]
            aside = [each for answer in turn.answers for each in self.aside(answer)]
            out += self._said([*aside, *self.blocks(turn.user)])
        return None, out

    def text(self, text: str, role: str) -> Any:
        """A text block."""
        return {"type": "text", "text": text}

    def call(self, piece: Piece, call_id: str, name: str, given: Any) -> Any:
        """A tool call; the own one with its arguments as they came, whether they are JSON or not."""
        block = self.own_block(piece) or {}
        custom, function = block.get("custom"), block.get("function")
        if is_map(custom) and isinstance(custom.get("input"), str):
            made = {"name": name, "input": custom["input"]}
            return {"id": call_id, "type": "custom", "custom": made}
        held = function.get("arguments") if is_map(function) else None
        arguments = held if isinstance(held, str) else as_json(as_object(given))
        made = {"name": name, "arguments": arguments}
        return {"id": call_id, "type": "function", "function": made}

    def media(self, found: Media, kind: PartKind, role: str) -> Any:
        """An image, a sound or a file, in a user's message."""
        if role != USER:
            return None
        if found.mime in media.PICTURES or (found.url and kind is PartKind.IMAGE):
            return {"type": "image_url", "image_url": {"url": media.data_url(found)}}
        if found.mime in _SOUNDS and found.data:
            return {
                "type": "input_audio",
                "input_audio": {"data": found.data, "format": _SOUNDS[found.mime]},
            }
        if found.data and kind is PartKind.FILE:
            file = {"filename": found.name or "file", "file_data": media.data_url(found)}
            return {"type": "file", "file": file}
        return None

    def own(self, piece: Piece, part: Part) -> Any:
        """A content block as it came; reasoning as the fields that it came in."""
        block = part.block
        if part.kind is PartKind.REASONING:
            fields = (
                {name: block[name] for name in _THOUGHTS if name in block} if is_map(block) else {}
            )
            return fields if fields else self._leave(piece)
        kind = next(
            (k for k in _BLOCKS[piece.role] if is_map(block) and block.get("type") == k), None
        )
        if kind is None:
            return self._built(piece, part)
        held = block.get(kind)
        if part.kind is PartKind.TEXT:
            whole = held == part.text and bool(part.text.strip())
        else:
            whole = (
                is_map(held) and bool(held) and all(isinstance(each, str) for each in held.values())
            )
        return block if whole else self._built(piece, part)

    def _assistant(self, found: list[tuple[Piece, Any]]) -> list[Any]:
        if not found:
            return []
        message: dict[str, Any] = {"role": ASSISTANT, "content": None}
        calls, content = list[Any](), list[Any]()
        for piece, block in found:
            if piece.part is not None and piece.kind is PartKind.TOOL_CALL:
                calls.append(block)
            elif piece.kind is PartKind.REASONING:
                _join(message, block)
            else:
                content.append(block)
        if content:
            message["content"] = joined(content)
        if calls:
            message["tool_calls"] = calls
        return [message]

    def _answer(self, answer: Answer) -> Any:
        call_id = self.id_of(answer.call)
        own = self.own_block(answer.result)
        content = own.get("content") if own is not None and own.get("role") == "tool" else None
        content = content if _texts(content) else answer.text
        return {"role": "tool", "tool_call_id": call_id, "content": content}

    def _said(self, found: list[tuple[Piece, Any]]) -> list[Any]:
        runs = groupby(found, key=lambda each: each[0].role)
        return [
            {"role": role, "content": joined([block for _, block in run])} for role, run in runs
        ]


def _texts(content: Any) -> bool:
    """Whether a tool's message may hold this: a text, or blocks that are texts."""
    blocks = content if is_list(content) else [None]
    return isinstance(content, str) or all(is_map(b) and b.get("type") == "text" for b in blocks)


def _join(message: dict[str, Any], fields: dict[str, Any]) -> None:
    """Put reasoning fields in a message that may hold some of another item of the same response."""
    for name, value in fields.items():
        held = message.get(name)
        if is_list(held) and is_list(value):
            message[name] = [*held, *value]
        else:
            texts = isinstance(held, str) and isinstance(value, str)
            message[name] = f"{held}{value}" if texts else value
