"""The string literals of a text that is JSON, was JSON once, or holds some: where they stand, and what they say. Pure.

Where a character of a literal's text stands in the literal is known, so that a piece of it can be replaced in place.
Whatever the text is, nothing raises, and the time is linear in its length.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import NamedTuple

_BODY = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+\\?', re.DOTALL)
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|[\"\\/bfnrt])"
)
_GAP = re.compile(
    r"\ufeff?[\s\[\]{},:]*+(?:(?:true|false|null|NaN|-?Infinity|[-+.\deE]+)[\s\[\]{},:]*+)*+"
)
_SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_DECODER = json.JSONDecoder(strict=False)


class Lexed(NamedTuple):
    """The string literals of a text, as [start, end) between their quotes. `json`: what stands between them is
    JSON's own. `torn`: the last one has no end."""

    literals: list[tuple[int, int]]
    json: bool
    torn: bool


def lex(text: str) -> Lexed:
    """The string literals of a text, in order."""
    literals: list[tuple[int, int]] = []
    plain, brackets, at = True, False, 0
    while True:
        quote = text.find('"', at)
        gap = text[at:quote] if quote >= 0 else text[at:]
        plain = plain and _GAP.fullmatch(gap) is not None
        brackets = brackets or any(c in gap for c in "{}[]")
        if quote < 0:
            return Lexed(literals, plain and (brackets or bool(literals)), torn=False)
        body = _BODY.match(text, quote + 1)
        end = body.end() if body else len(text)
        if end == len(text):
            literals.append((quote + 1, end))
            return Lexed(literals, plain, torn=True)
        literals.append((quote + 1, end))
        at = end + 1


def sound_until(text: str) -> int:
    """Up to where a text that may go on is JSON: as far as a bracket or a comma, and white space behind it.

    What is added to the text changes nothing of that, and no value is parted from its key.
    """
    at = sound = 0
    while True:
        quote = text.find('"', at)
        gap = text[at:quote] if quote >= 0 else text[at:]
        plain = _GAP.match(gap)
        end = plain.end() if plain else 0
        structure = max(gap.rfind(c, 0, end) for c in "{}[],") + 1
        if structure:
            sound = at + end - len(gap[structure:end].lstrip())
        body = _BODY.match(text, quote + 1) if quote >= 0 and end == len(gap) else None
        if body is None or body.end() == len(text):
            return sound
        at = body.end() + 1


def key_before(text: str, lexed: Lexed, n: int) -> str | None:
    """The key whose value the n-th literal is, as it stands; None where it is no value of a key."""
    if not n:
        return None
    (start, end), (value, _) = lexed.literals[n - 1], lexed.literals[n]
    return text[start:end] if text[end + 1 : value - 1].strip() == ":" else None


class Unescaped:
    """What a literal says: `text`, its characters with the escapes read."""

    def __init__(self, raw: str) -> None:
        self._raw = raw
        try:
            self.text: str = _DECODER.decode(f'"{raw}"') if "\\" in raw else raw
        except ValueError:
            self.text = _ESCAPE.sub(_character, raw)
        self._ends: list[tuple[int, int]] = []

    def raw(self, offset: int) -> int:
        """Where the character at an offset of the text begins in the literal."""
        if not self._ends:  # most strings are never asked
            self._ends, shorter = [(0, 0)], 0
            for escape in _ESCAPE.finditer(self._raw):
                shorter += len(escape[0]) - 1
                self._ends.append((escape.end() - shorter, escape.end()))
        at = bisect_right(self._ends, (offset, len(self._raw))) - 1
        text_end, raw_end = self._ends[at]
        return raw_end + offset - text_end


def _character(escape: re.Match[str]) -> str:
    """An escape as the one character that it stands for."""
    said = escape[0]
    if len(said) == 12:
        high, low = int(said[2:6], 16), int(said[8:], 16)
        return chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)
    if len(said) == 6:
        return chr(int(said[2:], 16))
    return _SHORT.get(said[1], said[1])
