"""One JSON document -> its values with their bytes: named containers are walked into, each other value is whole. Pure.

A value that cannot be read (not JSON, nested too deep) is passed over, to the next comma or bracket of its container,
and said; where no such place is found, the rest of the document is not read.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

from .jsonvalues import Decoder, too_deep

Path = tuple[str | int, ...]
Paths = frozenset[tuple[str, ...]]
_BOM = b"\xef\xbb\xbf"
_WHITE = re.compile(r"[ \t\r\n]*")
_SOUND: frozenset[str] = frozenset()
_WHITES = frozenset(" \t\r\n")
_STEPS = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{},]', re.DOTALL)


@dataclass(slots=True)
class Cut:
    """A value at `path`: document[start:end] are its bytes, `line` (from 1) is where it begins.

    `fault` says why there is no value: not-json, too-deep, torn-tail (it reaches to the end of the document), or
    duplicate-keys (its key stands before).
    `remarks` are what is odd about it.
    """

    path: Path
    value: Any
    start: int
    end: int
    line: int
    fault: str | None = None
    remarks: frozenset[str] = frozenset()


def cuts(data: bytes, descend: Paths) -> Iterator[Cut]:
    """The values of a document in order, containers at the paths of `descend` walked into (() is the top; "*" is any
    key or index, "#" any index).
    """
    return _Walk(data, descend).run()


Cuts = Generator[Cut, None, int]
"""Cuts, and then the place where what was walked ends."""


class _Walk:
    def __init__(self, data: bytes, descend: Paths) -> None:
        self._base = len(_BOM) if data.startswith(_BOM) else 0
        self._odd: set[str] = {"encoding"} if self._base else set()
        try:
            self._text = data[self._base :].decode("utf-8")
        except UnicodeDecodeError:
            self._text = data[self._base :].decode("utf-8", "surrogateescape")
            self._odd.add("encoding")
        self._ascii = self._text.isascii()
        self._descend = descend
        self._decoder = Decoder.taken()
        self._char, self._byte, self._line = 0, self._base, 1
        self._ended = False
        self._fault = ""

    def run(self) -> Iterator[Cut]:
        at = self._white(0)
        if at < len(self._text):
            at = yield from self._value((), at, () in self._descend)
        at = self._white(at)
        if at < len(self._text):
            yield self._cut((), None, at, len(self._text), "not-json")
        self._decoder.release()

    def _value(self, path: Path, at: int, walked: bool) -> Cuts:
        if walked and self._text[at] in "{[":
            return (yield from self._container(path, at))
        cut, end = self._whole(path, at)
        if cut is None:
            return (yield from self._broken(path, at, self._fault))
        yield cut
        return end

    def _whole(self, path: Path, at: int) -> tuple[Cut | None, int]:
        """A value that is not walked into, and where it ends; None where it cannot be read, for what `_fault` says."""
        try:
            value, end = self._decoder.decode(self._text, at)
        except RecursionError:
            if not too_deep(self._text, at):
                raise
            self._fault = "too-deep"
            return None, at
        except ValueError:
            self._fault = "not-json"
            return None, at
        if self._decoder.doubled:
            self._odd.add("duplicate-keys")
            self._decoder.doubled = False
        return self._cut(path, value, at, end), end

    def _inside(self, path: Path) -> frozenset[str]:
        """The last steps of the paths that are walked into in the container at a path."""
        return frozenset(
            wanted[-1]
            for wanted in self._descend
            if len(wanted) == len(path) + 1
            and all(
                w in ("*", p) or (w == "#" and isinstance(p, int))
                for w, p in zip(wanted[:-1], path, strict=True)
            )
        )

    def _container(self, path: Path, at: int) -> Cuts:
        text, named = self._text, self._text[at] == "{"
        closing = "}" if named else "]"
        seen: set[str] = set()
        count = 0
        inside = self._inside(path)
        each = "*" in inside or (not named and "#" in inside)
        at = self._white(at + 1)
        while not self._ended and text[at : at + 1] != closing:
            step: str | int | None = count
            begins = at
            if named:
                step, begins = self._key(at)
            if step is None or begins >= len(text):
                at = yield from self._broken(path, at, "not-json")
            elif step in seen:
                at = yield from self._passed((*path, step), begins)
            else:
                if isinstance(step, str):
                    seen.add(step)
                count += 1
                place = (*path, step)
                cut = None
                if not (each or step in inside) or text[begins] not in "{[":
                    cut, at = self._whole(place, begins)
                if cut is not None:
                    yield cut
                else:
                    at = yield from self._value(place, begins, each or step in inside)
            at = self._white(at)
            if text[at : at + 1] not in (",", closing):
                at = yield from self._behind(path, at)
            if text[at : at + 1] == ",":
                at = self._white(at + 1)
            elif text[at : at + 1] != closing:
                break  # a bracket of the other kind, or the end
        return min(at + 1, len(text))

    def _behind(self, path: Path, at: int) -> Cuts:
        """Something else than a comma stands behind a value."""
        return at if self._ended else (yield from self._broken(path, at, "not-json"))

    def _passed(self, path: Path, at: int) -> Cuts:
        """The value of a key that stands twice: its first value counts."""
        try:
            end = self._decoder.decode(self._text, at)[1]
        except (ValueError, RecursionError):
            return (yield from self._broken(path, at, "not-json"))
        yield self._cut(path, None, at, end, "duplicate-keys")
        return end

    def _key(self, at: int) -> tuple[str | None, int]:
        """(key, where its value begins); (None, at) where there is none."""
        if self._text[at : at + 1] != '"':
            return None, at
        try:
            key, end = self._decoder.decode(self._text, at)
        except ValueError:
            return None, at
        end = self._white(end)
        return (key, self._white(end + 1)) if self._text[end : end + 1] == ":" else (None, at)

    def _broken(self, path: Path, at: int, fault: str) -> Cuts:
        """Pass over what cannot be read, to where its container goes on."""
        level = 0
        for token in _STEPS.finditer(self._text, at):
            what = token[0]
            if what in "[{":
                level += 1
            elif what in "]}":
                level -= 1
            if level < 0 or (what == "," and level == 0):
                yield self._cut(path, None, at, token.start(), fault)
                return token.start()
        self._ended = True
        fault = "torn-tail" if fault == "not-json" else fault
        yield self._cut(path, None, at, len(self._text), fault)
        return len(self._text)

    def _white(self, at: int) -> int:
        if self._text[at : at + 1] not in _WHITES:
            return at
        found = _WHITE.match(self._text, at)
        return found.end() if found else at

    def _cut(self, path: Path, value: Any, at: int, end: int, fault: str | None = None) -> Cut:
        start = self._byte_at(at)
        line = self._line
        odd = _SOUND
        if self._odd:
            odd = frozenset(self._odd)
            self._odd.clear()
        return Cut(path, value, start, self._byte_at(end), line, fault, odd)

    def _byte_at(self, char: int) -> int:
        """The byte of a character, and the line that it is in; characters are asked for in order."""
        assert char >= self._char
        self._line += self._text.count("\n", self._char, char)
        passed = self._text[self._char : char] if not self._ascii else ""
        count = char - self._char if self._ascii else len(passed.encode("utf-8", "surrogateescape"))
        self._char, self._byte = char, self._byte + count
        return self._byte
