"""Turns -> input items of OpenAI's Responses. Pure.

Rules: calls and outputs are items of their own, a turn's outputs behind its calls, in the same order. Items of the own
dialect are handed back as they came, each value of a field that the provider names: reasoning with its encrypted
content, calls of every kind whose output has a form here. Free text that a tool was given is a custom tool call. System
items are `developer` messages at their place.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

from ..events import Media, Part, PartKind
from ..events.shapes import is_list, is_map
from . import media
from .turns import ASSISTANT, SYSTEM, USER, Answer, Piece, Told, Turn
from .writer import Writer, as_json, as_object, changed

_OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
}
"""Calls that are answered by an item, and what that is."""
_TEXTED = ("function_call", "custom_tool_call")
"""Calls whose output may be any text."""
_CALL, _OUTPUT = "type id call_id caller", "type id call_id output caller"
_FIELDS = {
    "function_call": f"{_CALL} name arguments namespace status",
    "custom_tool_call": f"{_CALL} name input namespace",
    "function_call_output": f"{_OUTPUT} status",
    "custom_tool_call_output": _OUTPUT,
    "reasoning": "type id summary content encrypted_content status",
    "web_search_call": "type id status action",
    "compaction": "type id encrypted_content",
}
"""What the provider names of an item. Tools that record it note other things in it, which the provider refuses."""
_NEEDED = {"function_call": "arguments", "custom_tool_call": "input"}
_BLOCKS = {
    ASSISTANT: ("output_text", "refusal"),
    USER: ("input_text", "input_image", "input_file"),
    SYSTEM: ("input_text", "input_image", "input_file"),
}
_HOSTED = frozenset(
    """web_search_call file_search_call code_interpreter_call mcp_call image_generation_call""".split()
)
"""Calls that the provider ran by itself: the item holds what they gave."""
_SEALED = frozenset(
    ("compaction", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response")
)
"""Items that nobody need read to hand them back."""
_ROLES = {ASSISTANT: ASSISTANT, USER: USER, SYSTEM: "developer"}


class Export(Writer):
    """What the provider takes as a request, from anywhere."""

    dialect = "responses"
    name_max = 128

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[Any, str] = {}

    def write(self, told: Told) -> tuple[Any, list[Any]]:
        """(None; the items, the system's messages among them)."""
        out = self._messages(told.system)
        for turn in told.turns:
            self._choose(turn.answers)
            out += self._assistant(turn)
            out += self._messages(turn.user)
        return None, out

    def _assistant(self, turn: Turn) -> list[Any]:
        """A turn's items with their outputs: behind its calls, and before what it said after them."""
        out: list[Any] = []
        thoughts: list[Any] = []  # stay with what they led to
        answers = {answer.call.place: answer for answer in turn.answers}
        waiting: list[Answer] = []
        for piece, block in self.blocks(turn.assistant):
            if piece.kind is PartKind.REASONING:
                thoughts.append(block)
                continue
            if piece.part is None or piece.kind is not PartKind.TOOL_CALL:
                out += self._outputs(waiting)
                waiting = []
                block = _message(ASSISTANT, [block]) if _role_in(piece, block) else block
            else:
                waiting.append(answers[piece.place])
            out += [*thoughts, block]
            thoughts = []
        return out + self._outputs(waiting)

    def _outputs(self, answers: list[Answer]) -> list[Any]:
        kept = self._kept
        return [self._answer(each) for each in answers if kept.get(each.call.place) not in _HOSTED]

    def text(self, text: str, role: str) -> Any:
        """A content block that is text."""
        return {"type": "output_text" if role == ASSISTANT else "input_text", "text": text}

    def media(self, found: Media, kind: PartKind, role: str) -> Any:
        """An image or a file, in a user's message or a tool's output."""
        if role != USER:
            return None
        if found.mime in media.PICTURES or (found.url and kind is PartKind.IMAGE):
            return {"type": "input_image", "image_url": media.data_url(found), "detail": "auto"}
        if found.url and kind is PartKind.FILE:
            return {"type": "input_file", "file_url": found.url}
        if kind is PartKind.FILE:
            return {
                "type": "input_file",
                "filename": found.name or "file",
                "file_data": media.data_url(found),
            }
        return None

    def call(self, piece: Piece, call_id: str, name: str, given: Any) -> Any:
        """A call: the own item as it came, but for an id or a name that is not valid."""
        block = self.own_block(piece)
        kind = self._kept.get(piece.place, "")
        if block is not None and kind in _HOSTED:
            return _named(block)
        if block is not None and kind:
            named = {"name": name} if kind in _NEEDED else {}
            return changed(_named(block), call_id=call_id, **named)
        if isinstance(given, str):
            return {"type": "custom_tool_call", "call_id": call_id, "name": name, "input": given}
        arguments = as_json(as_object(given))
        return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}

    def own(self, piece: Piece, part: Part) -> Any:
        """An item or a content block as it came."""
        block = part.block
        kind = block.get("type") if is_map(block) else None
        if part.kind is PartKind.REASONING:
            return _named(block) if is_map(block) and _sealed(block) else self._leave(piece)
        if part.kind is PartKind.TEXT and not part.text.strip():
            return self._leave(piece)
        if kind == "input_image":  # which SDKs demand to say how closely it is looked at
            held = block.get("image_url") or block.get("file_id")
            whole = changed(block, detail=block.get("detail") or "auto")
            return whole if isinstance(held, str) else self._built(piece, part)
        if kind in _BLOCKS[piece.role] and part.kind in (PartKind.TEXT, PartKind.FILE):
            said = [block[name] for name in ("text", "refusal") if name in block]
            if part.kind is PartKind.FILE:
                kept = all(isinstance(v, str) for k, v in block.items() if k.startswith("file"))
            else:
                kept = part.text in said
            return block if kept else self._built(piece, part)
        sealed = part.kind is PartKind.OPAQUE and isinstance(kind, str) and kind in _SEALED
        return _named(block) if sealed else self._built(piece, part)

    def _choose(self, answers: list[Answer]) -> None:
        """Note the own calls that go back as they came: those whose output is its own, or may be any text."""
        for answer in answers:
            block, output = self.own_block(answer.call), self.own_block(answer.result)
            kind = block.get("type") if block else None
            if not block or not isinstance(kind, str):
                continue
            if kind in _HOSTED and (answer.result is None or self.is_own(answer.result)):
                self._kept[answer.call.place] = kind
            if kind not in _OUTPUTS:
                continue
            needed = _NEEDED.get(kind)
            whole = needed is None or isinstance(block.get(needed), str)
            if whole and (kind in _TEXTED or (output and output.get("type") == _OUTPUTS[kind])):
                self._kept[answer.call.place] = kind

    def _messages(self, pieces: list[Piece]) -> list[Any]:
        out: list[Any] = []
        for role, run in groupby(self.blocks(pieces), key=lambda each: _role_in(*each)):
            blocks = [block for _, block in run]
            out += blocks if role is None else [_message(role, blocks)]
        return out

    def _answer(self, answer: Answer) -> Any:
        call_id = self.id_of(answer.call)
        kind = self._kept.get(answer.call.place)
        call = answer.call.part.call if answer.call.part else None
        if kind is None:
            kind = "custom_tool_call" if call and isinstance(call.input, str) else "function_call"
        output = self.own_block(answer.result)
        if output is not None and output.get("type") == _OUTPUTS[kind] and _told(output):
            return changed(_named(output), call_id=call_id)
        return {"type": _OUTPUTS[kind], "call_id": call_id, "output": self._output(answer)}

    def _output(self, answer: Answer) -> Any:
        images = self.pictures(answer)
        return [self.text(answer.text, USER), *images] if images else answer.text


def _named(block: dict[str, Any]) -> dict[str, Any]:
    """An item without what its provider does not name, and without what is null."""
    fields = _FIELDS.get(block["type"])
    if fields is None:
        return block
    known = fields.split()
    return {name: value for name, value in block.items() if name in known and value is not None}


def _sealed(block: dict[str, Any]) -> bool:
    """Whether a block is reasoning that the provider can open again."""
    seal = block.get("encrypted_content")
    whole = all(_maps(block.get(name, [])) for name in ("summary", "content"))
    return block.get("type") == "reasoning" and isinstance(seal, str) and bool(seal) and whole


def _maps(value: Any) -> bool:
    return value is None or (is_list(value) and all(is_map(each) for each in value))


def _told(output: dict[str, Any]) -> bool:
    """Whether an own output has what its type demands."""
    said = output.get("output")
    return (
        isinstance(said, str)
        or is_map(said)
        or (is_list(said) and all(is_map(each) for each in said))
    )


def _role_in(piece: Piece, block: dict[str, Any]) -> str | None:
    """Whose message a block is content of; None for an item of its own."""
    return piece.role if block.get("type") in _BLOCKS[piece.role] else None


def _message(role: str, blocks: list[Any]) -> dict[str, Any]:
    first = blocks[0]
    if (
        role == ASSISTANT and first["type"] == "output_text"
    ):  # blocks of output belong to a stored message with an id
        return {"type": "message", "role": role, "content": first["text"]}
    if role == ASSISTANT:
        return {"type": "message", "role": role, "content": first.get("refusal") or "[refused]"}
    return {"type": "message", "role": _ROLES[role], "content": blocks}
