"""What the writers of all provider formats share: parts become blocks, and all that is left out is counted. Pure.

Rules: a block of the writer's own dialect is handed back as it is, byte for byte as a JSON value; a part of another one
is built anew from its neutral form. Reasoning of another dialect is left out: its signature cannot be valid elsewhere.
So is reasoning that nothing follows, a text that says nothing, an opaque part of another dialect. What a format cannot
carry in its own form becomes text.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar

from ..events import Media, Part, PartKind
from ..events.shapes import is_map
from . import media
from .limits import CallIds, tool_name
from .safejson import dumps
from .turns import SYSTEM, USER, Answer, Piece, Told

BEGINNING = "[what came before is not in sight]"
"""What the user says first, for providers that demand it, where a history begins with the assistant."""


class Writer(ABC):
    """Writes turns in one provider's form. Used once: it counts what it left out, shows as text, and renamed."""

    dialect: ClassVar[str]
    ids: ClassVar[re.Pattern[str]] = re.compile(r"[\x21-\x7e]+")
    """Which call ids the provider takes."""
    id_max: ClassVar[int] = 64
    name_max: ClassVar[int] = 64

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self.as_text: Counter[str] = Counter()
        self.renamed: Counter[str] = Counter()
        self._ids = CallIds(self.ids, self.id_max)

    @abstractmethod
    def write(self, told: Told) -> tuple[Any, list[Any]]:
        """(what goes in a field of its own for the system's words, None where it needs none; the messages)."""

    # What a provider's writer says of its blocks.

    @abstractmethod
    def text(self, text: str, role: str) -> Any:
        """A block that is text."""

    @abstractmethod
    def call(self, piece: Piece, call_id: str, name: str, given: Any) -> Any:
        """A block that calls: in its own dialect, or with what was given (an object, free text, another JSON value)."""

    def media(self, found: Media, kind: PartKind, role: str) -> Any:
        """A block that is an image or a file; None where the format has no form for it."""
        return None

    def own(self, piece: Piece, part: Part) -> Any:
        """A part of the own dialect that is no call and no result, as it is handed back; None to leave it out."""
        return part.block if part.block is not None else self._built(piece, part)

    # Pieces.

    def is_own(self, piece: Piece | None) -> bool:
        """Whether a piece is of the own dialect."""
        return piece is not None and piece.part is not None and piece.dialect == self.dialect

    def own_block(self, piece: Piece | None) -> dict[str, Any] | None:
        """A piece's block where it is an object of the own dialect."""
        block = piece.part.block if piece and piece.part and self.is_own(piece) else None
        return block if is_map(block) else None

    def blocks(self, pieces: Iterable[Piece]) -> list[tuple[Piece, Any]]:
        """The blocks of pieces that are handed over, in order; no reasoning stands last."""
        found = [(piece, block) for piece in pieces if (block := self._block(piece)) is not None]
        while found and found[-1][0].kind is PartKind.REASONING:
            self._leave(found.pop()[0])
        return found

    def _block(self, piece: Piece) -> Any:
        part = piece.part
        if part is None:
            self.as_text[piece.kind.value] += 1
            return self.text(piece.note, piece.role)
        if part.kind is PartKind.TOOL_CALL:
            return self._call(piece, part)
        if self.is_own(piece):
            return self.own(piece, part)
        return self._built(piece, part)

    def _built(self, piece: Piece, part: Part) -> Any:
        """A block made of a part's neutral form; None, counted, where there is nothing to hand over."""
        if part.kind in (PartKind.IMAGE, PartKind.FILE):
            return self._media(piece, part)
        if part.kind is PartKind.REASONING or not part.text.strip():
            return self._leave(piece)
        return self.text(part.text, piece.role)

    def _leave(self, piece: Piece) -> Any:
        """None: count a piece that is not handed over."""
        kind = "empty_text" if piece.kind is PartKind.TEXT else piece.kind.value
        self.left_out[kind] += 1
        return None

    def _media(self, piece: Piece, part: Part) -> Any:
        found = media.usable(part.media)
        block = self.media(found, part.kind, piece.role) if found and piece.role != SYSTEM else None
        if block is None:
            self.as_text[part.kind.value] += 1
            return self.text(media.words(part), piece.role)
        return block

    # Calls and results.

    def _call(self, piece: Piece, part: Part) -> Any:
        call = part.call
        given = call.input if call else None
        return self.call(
            piece, self.id_of(piece), self.name_of(piece), {} if given is None else given
        )

    def id_of(self, call: Piece) -> str:
        """The id that a call and its result have here."""
        return self._ids.of(call.place, self._told_id(call))

    def _told_id(self, call: Piece) -> str:
        return (call.part.call_id or "") if call.part else ""

    def name_of(self, call: Piece) -> str:
        """The name that a call's tool has here."""
        found = call.part.call if call.part else None
        return tool_name(found.name if found else "", self.name_max)

    def note_renamed(self, told: Told) -> None:
        """Count the calls that have another id or name here than they came with."""
        for answer in (answer for turn in told.turns for answer in turn.answers):
            call = answer.call.part.call if answer.call.part else None
            self.renamed["call_ids"] += self.id_of(answer.call) != self._told_id(answer.call)
            self.renamed["tool_names"] += (
                call is not None and self.name_of(answer.call) != call.name
            )

    def pictures(self, answer: Answer) -> list[Any]:
        """The images of a result that did not come in the own dialect."""
        result = answer.result
        if result is None or result.part is None or self.own_block(result) is not None:
            return []
        found = media.pictures(result.part, result.beside)
        blocks = [self.media(each, PartKind.IMAGE, USER) for each in found]
        kept = [block for block in blocks if block is not None]
        if len(kept) < len(blocks):
            self.left_out["image"] += len(blocks) - len(kept)
        return kept

    def aside(self, answer: Answer) -> list[tuple[Piece, Any]]:
        """For formats whose results are text: the images of a result, behind a text that says whose they are."""
        found = self.pictures(answer)
        if not found or answer.result is None:
            return []
        piece = replace(answer.result, part=None, role=USER)
        head = self.text(f"[images of the result of call {self.id_of(answer.call)}]", USER)
        return [(piece, block) for block in (head, *found)]


def changed(block: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The block itself where these fields are so already, else a copy with them."""
    if all(block.get(name) == value for name, value in fields.items()):
        return block
    return {**block, **fields}


def as_object(given: Any) -> dict[str, Any]:
    """What a call was given, as the object that most formats demand: free text and other values as its `input`."""
    return given if is_map(given) else {"input": given}


def as_json(value: Any) -> str:
    """JSON text for a field that holds text: readable in every script."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except ValueError:
        return dumps(value)
    return text


def joined(blocks: list[Any]) -> Any:
    """The content of a chat message: the text itself where there is one text and nothing else."""
    first = blocks[0]
    plain = len(blocks) == 1 and is_map(first) and first.keys() == {"type", "text"}
    return first["text"] if plain else blocks
