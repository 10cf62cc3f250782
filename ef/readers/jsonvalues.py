"""JSON from a stranger: what a line of a transcript holds, and what is odd about it.

Differences to the standard reader: NaN and Infinity are not JSON; of a key that stands twice the first value counts
(a later one may be forged) and that is remarked; integers of any length are read; nesting that the reader cannot
bear is a fault of its own kind. Offsets are bytes of the line.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

DEPTH_REMARKED = 64
DEPTH_READ_MAX = 256
"""A value that nests deeper is not read, however much the interpreter's stack would bear here and now."""
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_WHITE = b" \t\r\n"
_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Value:
    """One JSON value of a line: its bytes are line[start:end]."""

    value: Any
    start: int
    end: int


@dataclass(slots=True)
class Line:
    """What a line holds: values in order, remarks on it, and `rest`, where a part begins that is not JSON."""

    values: list[Value] = field(default_factory=list[Value])
    remarks: set[str] = field(default_factory=set[str])
    rest: int | None = None


class Decoder:
    """Reads one value, and remarks doubled keys. Making one takes longer than to read a line: they are used again."""

    spare: ClassVar[list[Decoder]] = []

    def __init__(self) -> None:
        self.doubled = False
        self._decoder = json.JSONDecoder(object_pairs_hook=self.pairs, parse_constant=_constant)

    @classmethod
    def taken(cls) -> Decoder:
        """One that nobody else uses, and that has remarked nothing."""
        try:
            found = cls.spare.pop()
        except IndexError:
            return cls()
        found.doubled = False
        return found

    def release(self) -> None:
        """Somebody else may use it."""
        self.spare.append(self)

    def decode(self, text: str, at: int) -> tuple[Any, int]:
        """(value, where it ends). Raises ValueError for no value, RecursionError for one that nests too deep."""
        try:
            value, end = self._decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            raise
        except ValueError:
            longer = json.JSONDecoder(
                object_pairs_hook=self.pairs, parse_constant=_constant, parse_int=_long_int
            )
            value, end = longer.raw_decode(text, at)
        if end - at > 2 * DEPTH_READ_MAX:
            opened = text.count("[", at, end) + text.count("{", at, end)
            if opened > DEPTH_READ_MAX and is_deeper(value, DEPTH_READ_MAX):
                raise RecursionError
        return value, end

    def pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """A map of its pairs; the first of a doubled key counts."""
        found = dict(pairs)
        if len(found) != len(pairs):
            self.doubled = True
            found = dict(reversed(pairs))
        return found


def _constant(name: str) -> Any:
    raise json.JSONDecodeError(f"{name} is not JSON", name, 0)


def _long_int(digits: str) -> Any:
    """Python refuses to read integers beyond some thousand digits: they stay text."""
    return int(digits) if len(digits) <= 4000 else digits


def read_line(line: bytes) -> Line:
    """The JSON values of one line (without its line feed). Whatever the bytes are, it does not raise."""
    found = Line()
    start = len(_BOM) if line.startswith(_BOM) else 0
    if start:
        found.remarks.add("encoding")
    try:
        text = line[start:].decode("utf-8")
    except UnicodeDecodeError:
        text = line[start:].decode("utf-8", "surrogateescape")
        found.remarks.add("encoding")
    decoder = Decoder.taken()
    at = _skip(text, 0)
    while at < len(text):
        try:
            value, end = decoder.decode(text, at)
        except RecursionError:
            if not too_deep(text, at):
                raise  # not the text is too deep but the caller's stack: what is read must not depend on that
            found.remarks.add("too-deep")
            found.rest = start + _byte_length(text[:at])
            break
        except ValueError:
            found.rest = start + _byte_length(text[:at])
            break
        if at == 0 and end == len(text):  # nearly always
            found.values.append(Value(value, start, len(line)))
            break
        before = start + _byte_length(text[:at])
        found.values.append(Value(value, before, before + _byte_length(text[at:end])))
        at = _skip(text, end)
    if len(found.values) > 1 or (found.values and found.rest is not None):
        found.remarks.add("glued")
    if decoder.doubled:
        found.remarks.add("duplicate-keys")
    decoder.release()
    return found


def parse(data: bytes) -> Any:
    """The one value of an item's bytes; None when they hold none."""
    values = read_line(data).values
    return values[0].value if values else None


def too_deep(text: str, at: int) -> bool:
    """Whether what begins at `at` opens more brackets than are read, outside of strings."""
    level = 0
    for token in _TOKENS.finditer(text, at):
        if token[0] in "[{":
            level += 1
            if level > DEPTH_READ_MAX:
                return True
        elif token[0] in "]}":
            level -= 1
    return False


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))


def is_deeper(value: Any, most: int) -> bool:
    """Whether a value nests deeper than `most`, without recursion: a scalar does not nest, a flat list nests 1 deep."""
    layer: list[Any] = [value] if isinstance(value, (dict, list)) else []
    for _ in range(most):
        if not layer:
            return False
        inner: list[Any] = []
        for each in layer:
            inner += each.values() if isinstance(each, dict) else each
        layer = [each for each in inner if isinstance(each, (dict, list))]
    return bool(layer)


def has_lone_surrogate(text: str) -> bool:
    """Whether a text cannot be written as UTF-8."""
    if text.isascii():
        return False
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False
