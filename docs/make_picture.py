"""Draw docs/images/demo.svg from a run of the demo: python docs/make_picture.py

Every line of the picture is a line that the demo printed; SECTIONS says which parts are shown. No font and
nothing else is fetched when it is looked at.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PICTURE = DOCS / "images" / "demo.svg"
SECTIONS = ("State", "Replay", "A summary", "Crash", "What this run showed")
COLUMNS, CELL, ROW, MARGIN, TOP = 80, 8.4, 19, 18, 44
STYLES = {
    "": "#d8dee9", "1": "#ffffff", "2": "#7b8794", "36": "#7fd1e0", "33": "#e6c07b", "32": "#8fd694", "1;31": "#ff7b72",
}  # fmt: skip
BOLD = ("1", "1;31")
SGR = re.compile(r"\x1b\[([\d;]*)m")


def demo_output() -> str:
    """What the demo prints on a terminal with colour."""
    done = subprocess.run(
        [sys.executable, str(DOCS.parent / "examples" / "demo.py"), "--color", "always"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        cwd=DOCS.parent,
        env={**os.environ, "PYTHONPATH": str(DOCS.parent), "PYTHONUTF8": "1"},
    )
    return done.stdout


def chosen(output: str) -> list[str]:
    """The lines of the picture: the title and the chosen sections."""
    head, *sections = re.split(r"\n(?=\x1b\[2m─ )", output)
    picked = [head.strip("\n").split("\n")[:2]]
    for section in sections:
        plain = SGR.sub("", section).removeprefix("─ ")
        if plain.startswith(SECTIONS):
            picked.append(["", *section.rstrip("\n").split("\n")])
    return [line for part in picked for line in part]


def spans(line: str) -> Iterator[tuple[int, str, str]]:
    """(column, style, text) of the pieces of a line."""
    column, style = 0, ""
    for n, piece in enumerate(SGR.split(line)):
        if n % 2:
            style = "" if piece in ("", "0") else piece
            continue
        for cell in re.finditer(r"\S+(?: \S+)*", piece):  # what two spaces part stands in columns
            yield column + cell.start(), style, cell.group()
        column += len(piece)


def draw(lines: list[str]) -> str:
    """The SVG. Each piece of text is given its width, so that columns stand whatever font is there."""
    width = round(COLUMNS * CELL + 2 * MARGIN)
    height = len(lines) * ROW + TOP + MARGIN
    out = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
            ' role="img" aria-label="The demo on a terminal">'
        ),
        (
            "<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
            "white-space:pre}</style>"
        ),
        f'<rect width="{width}" height="{height}" rx="10" fill="#161b22"/>',
    ]
    out += [
        f'<circle cx="{MARGIN + 6 + 20 * n}" cy="20" r="6" fill="{fill}"/>'
        for n, fill in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    ]
    middle = width / 2
    out.append(
        f'<text x="{middle:.0f}" y="25" text-anchor="middle" fill="#7b8794">make demo</text>'
    )
    for n, line in enumerate(lines):
        y = TOP + (n + 1) * ROW - 5
        for column, style, text in spans(line):
            weight = ' font-weight="bold"' if style in BOLD else ""
            out.append(
                f'<text x="{MARGIN + column * CELL:.1f}" y="{y}" fill="{STYLES[style]}"{weight}'
                f' textLength="{len(text) * CELL:.1f}" lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
            )
    return "\n".join([*out, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(draw(chosen(demo_output())), encoding="utf-8")
    print(f"{PICTURE.relative_to(DOCS.parent)} written")
