"""What a call's own output is among what its vendor put around it, and where it stands in the result's text.

Rule: observers read a command's own output and cite bytes of the result's text; a span of the one is carried over to
the other here. Invariants: pure; linear in the text.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import takewhile

from ...events import ToolResult
from ...events.quick import quick
from ...readers import wrappers

_ESCAPE = re.compile(
    r"\"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\."
)


@quick
@dataclass(frozen=True, slots=True)
class Shown:
    """`text` is the command's own output; `said` is the span of the wrapper's line that gives the exit code, if any.

    `steps` are pairs (byte of it, byte of the result's text) where a run of equal bytes begins.
    """

    text: str
    steps: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    said: tuple[int, int] = (0, 0)

    def place(self, start: int, end: int) -> tuple[int, int]:
        """The span in the result's text of the bytes [start, end) of `text`."""
        return self._at(start), self._at(end)

    def _at(self, byte: int) -> int:
        own, outer = self.steps[bisect_right(self.steps, byte, key=lambda step: step[0]) - 1]
        return outer + byte - own


def shown(result: ToolResult) -> Shown:
    """What a call printed, as far as a vendor's wrapper says where that is; else all of its result."""
    text = result.text
    found = wrappers.around(text, result.is_error)
    if found is None:
        return Shown(text)
    said = _bytes(text, found.said[0]), _bytes(text, found.said[1])
    if found.own is None:
        return Shown(text[found.start : found.end], [(0, _bytes(text, found.start))], said)
    return Shown(found.own, _steps(text), said)


def _bytes(text: str, char: int) -> int:
    return char if text.isascii() else len(text[:char].encode("utf-8", "surrogatepass"))


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _steps(text: str) -> list[tuple[int, int]]:
    """Where the runs of a JSON string begin, the first value of the object that the text is."""
    literal = wrappers.LITERAL.match(text)
    at = literal.end() if literal else 0
    own, outer = 0, at
    steps: list[tuple[int, int]] = [(own, outer)]
    for escape in takewhile(lambda found: found[0] != '"', _ESCAPE.finditer(text, at)):
        plain = _size(text[at : escape.start()])
        own += plain + _size(json.loads(f'"{escape[0]}"'))
        outer += plain + len(escape[0])
        at = escape.end()
        steps.append((own, outer))
    return steps
