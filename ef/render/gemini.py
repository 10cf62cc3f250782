"""Turns -> contents in Gemini's form. Pure.

Rules: contents alternate and begin with the user's; the responses to the calls of a `model` content stand first in the
next one, as many, in the order of the calls. Parts of the own dialect are handed back as they came, each with its
thought signature at its place. A result's images follow the responses. System items before all others are the system
instruction.
"""

from __future__ import annotations

import re
from typing import Any

from ..events import Media, Part, PartKind
from ..events.shapes import is_map
from . import media
from .turns import USER, Answer, Piece, Place, Told
from .writer import BEGINNING, Writer, as_object, changed


def _both(*names: str) -> tuple[str, ...]:
    """Names of fields in both spellings, camelCase and snake_case."""
    return tuple(each for name in names for each in (name, re.sub("([A-Z])", r"_\1", name).lower()))


_PAIRED = (*_both("functionCall"), *_both("functionResponse"))
_SIGNED = _both("thoughtSignature")
_CODE, _RAN = _both("executableCode"), _both("codeExecutionResult")
_MEDIA = _both("inlineData", "fileData")
_ASIDE = (*_CODE, *_RAN, *_both("toolCall", "toolResponse"))
_TYPES: dict[str, type] = {
    **dict.fromkeys((*_PAIRED, *_MEDIA, *_ASIDE), dict),
    **dict.fromkeys(_both("videoMetadata", "partMetadata", "mediaResolution"), dict),
    **dict.fromkeys(("text", *_SIGNED), str),
    "thought": bool,
}
"""What the provider names of a part. Tools that record it note other things in it, which the provider refuses."""


class Export(Writer):
    """What the provider takes as a request, from anywhere."""

    dialect = "gemini"

    def __init__(self) -> None:
        super().__init__()
        self._by_itself: set[Place] = set()

    def write(self, told: Told) -> tuple[Any, list[Any]]:
        """(the system instruction or None; the contents)."""
        out: list[Any] = []
        for turn in told.turns:
            ran = {each.call.place: done for each in turn.answers if (done := self._ran(each))}
            said = [[block, ran.get(piece.place)] for piece, block in self.blocks(turn.assistant)]
            _add(out, "model", [part for parts in said for part in parts if part is not None])
            responses = [self._answer(each) for each in turn.answers if each.call.place not in ran]
            aside = [block for answer in turn.answers for _, block in self.aside(answer)]
            _add(out, USER, [*responses, *aside, *(block for _, block in self.blocks(turn.user))])
        if out and out[0]["role"] != USER:
            out.insert(0, {"role": USER, "parts": [self.text(BEGINNING, USER)]})
        head = [block for _, block in self.blocks(told.system)]
        return {"parts": head} if head else None, out

    def text(self, text: str, role: str) -> Any:
        """A text part."""
        return {"text": text}

    def call(self, piece: Piece, call_id: str, name: str, given: Any) -> Any:
        """A function call: the own part as it came, but for an id or a name that is not valid."""
        block = _named(self.own_block(piece))
        if piece.place in self._by_itself:
            return block
        key = next((k for k in _PAIRED[:2] if is_map(block.get(k))), None)
        if key is None:
            return {"functionCall": {"id": call_id, "name": name, "args": as_object(given)}}
        inner = block[key]
        fields: dict[str, Any] = {"name": name}
        if "id" in inner:
            fields["id"] = call_id
        if not is_map(inner.get("args", {})):
            fields["args"] = as_object(given)
        return changed(block, **{key: changed(inner, **fields)})

    def media(self, found: Media, kind: PartKind, role: str) -> Any:
        """A part that holds data, or that says where a file is; the type must be known."""
        if found.mime is None:
            return None
        if found.data:
            return {"inlineData": {"mimeType": found.mime, "data": found.data}}
        return {"fileData": {"mimeType": found.mime, "fileUri": found.url}}

    def own(self, piece: Piece, part: Part) -> Any:
        """The part itself, each field that the provider names; one without text only where it is signed."""
        block = _named(part.block)
        if (
            part.kind is PartKind.TEXT
            and not part.text.strip()
            and not any(k in block for k in _SIGNED)
        ):
            return self._leave(piece)
        if part.kind in (PartKind.TEXT, PartKind.REASONING):
            whole = block.get("text") == part.text
        elif part.kind is PartKind.OPAQUE:
            whole = any(key in block for key in _ASIDE)
        else:
            kept = part.media is not None and (
                not part.media.data or media.usable(part.media) is not None
            )
            held = next((block[key] for key in _MEDIA if key in block), None)
            whole = kept and is_map(held) and all(isinstance(each, str) for each in held.values())
        return block if whole else self._built(piece, part)

    def _ran(self, answer: Answer) -> Any:
        """What the provider's own interpreter gave, for code that it ran; None for any other call."""
        asked, done = _named(self.own_block(answer.call)), _named(self.own_block(answer.result))
        if any(key in asked for key in _CODE) and any(key in done for key in _RAN):
            self._by_itself.add(answer.call.place)
            return done
        return None

    def _answer(self, answer: Answer) -> Any:
        asked = self.call(answer.call, self.id_of(answer.call), self.name_of(answer.call), {})
        asked = next(asked[key] for key in _PAIRED if key in asked)
        named = {name: asked[name] for name in ("id", "name") if name in asked}
        block = _named(self.own_block(answer.result))
        key = next((k for k in _PAIRED[2:] if is_map(block.get(k))), None)
        if key is not None and is_map(block[key].get("response")):
            inner = {k: v for k, v in block[key].items() if k != "id" or "id" in named}
            return changed(block, **{key: changed(inner, **named)})
        said = {"error" if answer.is_error else "output": answer.text}
        return {"functionResponse": {**named, "response": said}}


def _named(block: Any) -> dict[str, Any]:
    """A part without what its provider does not name; the part itself where there is nothing else in it."""
    given = block if is_map(block) else {}
    named = {k: v for k, v in given.items() if k in _TYPES and isinstance(v, _TYPES[k])}
    return given if len(named) == len(given) else named


def _add(out: list[Any], role: str, parts: list[Any]) -> None:
    if parts:
        if out and out[-1]["role"] == role:
            out[-1]["parts"] += parts
        else:
            out.append({"role": role, "parts": list(parts)})
