"""How the demo draws: headings, rows, tables and marks, 80 columns wide.

Colour on a terminal only; plain ASCII where the output cannot take more. Text from a transcript is shown on one line
with its control characters made visible.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TextIO

from ef.render.visible import visible

WIDTH = 80
STYLES = {
    "title": "1", "dim": "2", "key": "36", "value": "1", "quote": "33", "good": "32", "bad": "1;31",
}  # fmt: skip
VERDICTS = {"passed": "good", "failed": "bad", "error,": "bad"}
PLAIN = str.maketrans(
    {
        "✔": "+",
        "✘": "x",
        "─": "-",
        "━": "=",
        "“": '"',
        "”": '"',
        "…": "~",
        "→": ">",
        "←": "<",
        "·": "-",
    }
)


def cut(text: str, most: int) -> str:
    """At most `most` characters, the end given up."""
    return text if len(text) <= most else text[: max(most - 1, 0)] + "…"


def cut_middle(text: str, most: int) -> str:
    """At most `most` characters, the middle given up."""
    if len(text) <= most:
        return text
    head = (most - 1) // 2
    return text[:head] + "…" + text[len(text) - (most - 1 - head) :]


def wrap(text: str, most: int) -> list[str]:
    """Lines of at most `most` characters, broken at spaces."""
    rows = [""]
    for word in text.split(" "):
        if rows[-1] and len(rows[-1]) + 1 + len(word) > most:
            rows.append(word)
        else:
            rows[-1] = f"{rows[-1]} {word}".lstrip()
    return rows


class Screen:
    """Writes to `out`. `colour` None: on a terminal that does not refuse it."""

    def __init__(self, out: TextIO, *, colour: bool | None = None) -> None:
        self.out = out
        if colour is None:
            colour = (
                out.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
            )
        self.colour = colour
        try:
            "✔✘─━“”…→←·".encode(out.encoding or "utf-8")
            self.plain = False
        except (UnicodeEncodeError, LookupError):
            self.plain = True

    def paint(self, text: str, style: str) -> str:
        """The text in a style, where there is colour."""
        return f"\033[{STYLES[style]}m{text}\033[0m" if self.colour and text else text

    def line(self, text: str = "") -> None:
        """One line as it is."""
        if self.plain:
            text = text.translate(PLAIN).encode("ascii", "backslashreplace").decode()
        self.out.write(text.rstrip() + "\n")
        self.out.flush()

    def title(self, left: str, right: str) -> None:
        """The first lines."""
        self.line()
        self.line(self.paint(left, "title") + right.rjust(WIDTH - len(left)))
        self.line(self.paint("━" * WIDTH, "dim"))

    def heading(self, text: str, right: str = "") -> None:
        """A section begins."""
        rule = "─" * (WIDTH - len(text) - len(right) - (6 if right else 4))
        tail = f" {right} " if right else ""
        self.line()
        self.line(
            self.paint("─ ", "dim")
            + self.paint(text, "title")
            + " "
            + self.paint(rule + tail, "dim")
        )

    def say(self, text: str) -> None:
        """A sentence in the margin of a section, wrapped at the width."""
        for row in wrap(text, WIDTH - 2):
            self.line("  " + row)

    def rows(
        self, table: Sequence[Sequence[str]], widths: Sequence[int], styles: Sequence[str] = ()
    ) -> None:
        """A table without borders; a cell that is too long is cut at its end, a style given per column."""
        for cells in table:
            shown = []
            for n, (cell, width) in enumerate(zip(cells, widths, strict=True)):
                text = cut(visible(cell), width)
                style = styles[n] if n < len(styles) else ""
                if style in ("", "value"):
                    style = VERDICTS.get(text.split(" ")[0], style)
                pad = " " * (width - len(text))
                shown.append((self.paint(text, style) if style else text) + pad)
            self.line("  " + "  ".join(shown))

    def mark(self, good: bool, text: str) -> None:
        """A verdict."""
        first, *more = wrap(text, WIDTH - 4)
        self.line("  " + self.paint("✔" if good else "✘", "good" if good else "bad") + " " + first)
        for row in more:
            self.line("    " + row)
