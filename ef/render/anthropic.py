"""Turns -> messages in Anthropic's form. Pure.

Rules (the turns' own stand in turns.py): the results of a turn stand first in one user message, before other text.
Signed thinking and redacted thinking are handed back as they came. An opaque block that would be taken for a call or a
result, or for no block at all, becomes text. `Export` adds what the provider demands of a request: it begins with the
user, no text is empty, call ids are letters, digits, _ and - and each once, thinking has its signature.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ..events import Media, Part, PartKind
from ..events.shapes import is_list, is_map
from . import media
from .turns import ASSISTANT, USER, Answer, Links, Piece, Shown, Told, told
from .writer import BEGINNING, Writer, as_object, changed

_UNREAD = "[a block that cannot be read; it is kept as it came]"
_SERVED = ("server_tool_use", "container_upload", "search_result")
_PDF = "application/pdf"


class Exact(Writer):
    """What the model would see: blocks of the own dialect exactly as they came, whatever they are."""

    dialect = "anthropic"
    ids = re.compile(r"[a-zA-Z0-9_-]+")
    id_max = 128
    name_max = 128

    def write(self, told: Told) -> tuple[Any, list[Any]]:
        """(text blocks for the field `system`, or None; the messages)."""
        out: list[Any] = []
        for turn in told.turns:
            _add(out, ASSISTANT, [block for _, block in self.blocks(turn.assistant)])
            results = [self._answer(answer) for answer in turn.answers]
            _add(out, USER, [*results, *(block for _, block in self.blocks(turn.user))])
        head = [block for _, block in self.blocks(told.system)]
        return head or None, out

    def text(self, text: str, role: str) -> Any:
        """A text block."""
        return {"type": "text", "text": text}

    def call(self, piece: Piece, call_id: str, name: str, given: Any) -> Any:
        """A tool_use block."""
        block = self._whole(piece)
        if block is not None:
            return block
        return {"type": "tool_use", "id": call_id, "name": name, "input": as_object(given)}

    def media(self, found: Media, kind: PartKind, role: str) -> Any:
        """An image or a document, in a user's message."""
        image = kind is PartKind.IMAGE or found.mime in media.PICTURES
        known = found.mime in media.PICTURES or (image and not found.data)
        if role != USER or not (known or found.mime == _PDF):
            return None
        source: dict[str, Any] = {"type": "url", "url": found.url}
        if found.data:
            source = {"type": "base64", "media_type": found.mime, "data": found.data}
        return {"type": "document" if found.mime == _PDF else "image", "source": source}

    def own(self, piece: Piece, part: Part) -> Any:
        """The block itself, unless it would be taken for what it is not."""
        if part.kind is not PartKind.OPAQUE:
            return super().own(piece, part)
        if _harmless(part.block):
            return part.block
        self.as_text["opaque"] += 1
        return self.text(_UNREAD, piece.role)

    def blocks(self, pieces: Iterable[Piece]) -> list[tuple[Piece, Any]]:
        """All blocks; those that came in the own dialect stay, whatever stands behind them."""
        return [(piece, block) for piece in pieces if (block := self._block(piece)) is not None]

    def _whole(self, call: Piece) -> dict[str, Any] | None:
        """A call's own block where it is one of a call."""
        block = self.own_block(call) or {}
        return block if block.get("type") == "tool_use" and block.get("id") else None

    def _told_id(self, call: Piece) -> str:
        given = (self._whole(call) or {}).get("id")
        return given if isinstance(given, str) else super()._told_id(call)

    def answer_id(self, call: Piece) -> str:
        """The id that a result names: that of the call as it is handed out."""
        return self.id_of(call) if self._whole(call) is None else self._told_id(call)

    def _answer(self, answer: Answer) -> Any:
        call_id, own = self.answer_id(answer.call), self.own_block(answer.result)
        if own is not None and own.get("type") == "tool_result":
            return self._own_result(own, answer, call_id)
        content: Any = answer.text
        images = self.pictures(answer)
        if images and answer.is_error:  # which may hold texts only
            self.left_out["image"] += len(images)
        elif images:
            said = [self.text(answer.text, USER)] if answer.text.strip() else []
            content = [*said, *images]
        block = {"type": "tool_result", "tool_use_id": call_id, "content": content}
        return {**block, "is_error": True} if answer.is_error else block

    def _own_result(self, block: dict[str, Any], answer: Answer, call_id: str) -> Any:
        return changed(block, tool_use_id=call_id)


class Export(Exact):
    """What the provider takes as a request, from anywhere."""

    def write(self, told: Told) -> tuple[Any, list[Any]]:
        """(text blocks for the field `system`, or None; the messages: the first one is the user's)."""
        head, out = super().write(told)
        if out and out[0]["role"] == ASSISTANT:
            out.insert(0, {"role": USER, "content": [self.text(BEGINNING, USER)]})
        if out and out[-1]["role"] == ASSISTANT:
            last = out[-1]["content"][-1]
            if (
                last["type"] == "text"
            ):  # a text that is to be gone on with may not end in white space
                out[-1]["content"][-1] = changed(last, text=last["text"].rstrip())
        return head, out

    def call(self, piece: Piece, call_id: str, name: str, given: Any) -> Any:
        """A tool_use block, the own one with what the provider refuses mended."""
        block = super().call(piece, call_id, name, given)
        return changed(block, id=call_id, name=name, input=as_object(given))

    def own(self, piece: Piece, part: Part) -> Any:
        """The block itself; a text that says nothing and thinking that was not signed are left out."""
        block = part.block
        if part.kind is PartKind.TEXT:
            whole = is_map(block) and block.get("type") == "text" and block.get("text") == part.text
            return block if whole and part.text.strip() else self._built(piece, part)
        if part.kind is PartKind.REASONING:
            key = (
                "data"
                if is_map(block) and block.get("type") == "redacted_thinking"
                else "signature"
            )
            signed = is_map(block) and isinstance(block.get(key), str) and block[key]
            return block if signed else self._leave(piece)
        if part.kind in (PartKind.IMAGE, PartKind.FILE) and not (
            is_map(block) and is_map(block.get("source"))
        ):
            return self._media(piece, part)
        if part.kind is PartKind.OPAQUE and not _taken(block):
            return self._leave(piece)
        return super().own(piece, part)

    def blocks(self, pieces: Iterable[Piece]) -> list[tuple[Piece, Any]]:
        """The blocks; no thinking stands last."""
        return Writer.blocks(self, pieces)

    def answer_id(self, call: Piece) -> str:
        """The id that a result names: the one that is valid here."""
        return self.id_of(call)

    def _own_result(self, block: dict[str, Any], answer: Answer, call_id: str) -> Any:
        content = block.get("content", "")
        if is_list(content):
            content = [each for each in content if not _says_nothing(each)]
            if not all(is_map(each) and isinstance(each.get("type"), str) for each in content):
                content = answer.text
        elif not isinstance(content, str):
            content = answer.text
        kept = changed(block, tool_use_id=call_id)
        return kept if kept.get("content", "") == content else {**kept, "content": content}


def messages(
    nodes: Iterable[Shown], links: Links
) -> tuple[Any, list[dict[str, Any]], dict[str, int]]:
    """The context: (the system's text blocks or None, the messages, how many parts of each kind were left out)."""
    writer = Exact()
    head, out = writer.write(told(nodes, links, once=True))
    return head, out, dict(writer.left_out)


def _add(out: list[Any], role: str, blocks: list[Any]) -> None:
    if blocks:
        if out and out[-1]["role"] == role:
            out[-1]["content"] += blocks
        else:
            out.append({"role": role, "content": list(blocks)})


def _says_nothing(block: Any) -> bool:
    text = block.get("text") if is_map(block) and block.get("type") == "text" else None
    return isinstance(text, str) and not text.strip()


def _taken(block: Any) -> bool:
    """Whether a block that we need not read is of a kind that the provider takes back."""
    kind = block.get("type") if is_map(block) else None
    if kind in ("image", "document"):
        return is_map(block.get("source"))
    return isinstance(kind, str) and (kind in _SERVED or kind.endswith("_tool_result"))


def _harmless(block: Any) -> bool:
    """Whether an unread block can be handed back: it has a kind, and not one that pairing depends on."""
    kind = block.get("type") if is_map(block) else None
    return isinstance(kind, str) and kind not in ("text", "tool_use", "tool_result")
