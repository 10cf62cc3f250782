"""Text for people: cells, colours, lines that fit, tables."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from ..render.visible import visible

BOLD, DIM, RED, GREEN, YELLOW = "1", "2", "31", "32", "33"
_BLANKS = re.compile(r"[ \t\r\n]+")


class Look(NamedTuple):
    """How text may look: columns, and whether colours are welcome."""

    width: int
    color: bool

    def paint(self, text: str, *styles: str) -> str:
        """The text in a style; as it is where colours are not welcome."""
        return f"\x1b[{';'.join(styles)}m{text}\x1b[0m" if self.color and text else text

    def head(self, text: str) -> str:
        """A heading."""
        return self.paint(text, BOLD)

    def dim(self, text: str) -> str:
        """What matters less."""
        return self.paint(text, DIM)


class Column(NamedTuple):
    """A column of a table; the one that is `wide` takes what the others leave."""

    title: str
    right: bool = False
    wide: bool = False


def one_line(text: str) -> str:
    """Text on one line, blanks squeezed, what is hidden made visible."""
    return visible(_BLANKS.sub(" ", text).strip())


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(_cell(char) for char in text)


def _cell(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def fit(text: str, columns: int) -> str:
    """The text, or as much of its beginning as fits with an ellipsis."""
    if cells(text) <= columns:
        return text
    kept: list[str] = []
    room = max(0, columns - 1)
    for char in text:
        room -= _cell(char)
        if room < 0:
            break
        kept.append(char)
    return "".join(kept).rstrip() + "…"


def squeeze(text: str, columns: int) -> str:
    """The text, or its beginning and its end with an ellipsis between them."""
    if cells(text) <= columns:
        return text
    head = fit(text, max(2, columns // 2))
    tail: list[str] = []
    room = columns - cells(head)
    for char in reversed(text):
        room -= _cell(char)
        if room < 0:
            break
        tail.append(char)
    return head + "".join(reversed(tail))


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """The text filled up with blanks to so many columns."""
    blanks = " " * max(0, columns - cells(text))
    return blanks + text if right else text + blanks


def table(look: Look, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table that fits the width. Cells are plain text that is visible already."""
    widths = [
        max([cells(column.title), *(cells(row[n]) for row in rows)])
        for n, column in enumerate(columns)
    ]
    for n, column in enumerate(columns):
        if column.wide:
            others = sum(w for m, w in enumerate(widths) if m != n) + 2 * (len(widths) - 1)
            widths[n] = min(widths[n], max(10, look.width - others))

    def line(row: Sequence[str]) -> str:
        return "  ".join(
            pad(fit(text, w), w, right=c.right)
            for text, w, c in zip(row, widths, columns, strict=True)
        ).rstrip()

    return [look.dim(line([column.title for column in columns])), *(line(row) for row in rows)]


def sides(look: Look, left: str, right: str) -> str:
    """Two texts on one line, the second at the right edge; the first is cut when they do not fit."""
    room = look.width - cells(right) - 2
    left = fit(left, max(room, 10))
    return pad(left, room) + "  " + look.dim(right)
