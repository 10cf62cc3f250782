"""What an importer says of a line: drafts for session streams, and remarks for the source stream.

Each importer is a pure function of the lines so far: what it says of line n depends on lines 1..n only, so a file that
grew says the same of its old lines. Drafts have keys made of the line's digest, so saying it again adds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..events import Reading
from ..log import Draft

REMARKS_KEPT = 1000
"""Remarks of one kind on one file: a file whose every line is odd says so, and does not double its size."""


@dataclass(frozen=True, slots=True)
class Remark:
    """Something odd: its kind, where (line from 1, byte offset in the file), and a sentence."""

    kind: str
    line: int
    offset: int
    text: str


@dataclass(slots=True)
class Meaning:
    """What one record of a line means. `key` is the idempotency key of what it mainly is, in stream `stream`.

    When that key is known to the log, all of the meaning is there already. `reading` is set when `drafts[item]` is an
    item, for the observers.
    """

    stream: str
    key: str
    drafts: list[Draft] = field(default_factory=list[Draft])
    item: int | None = None
    reading: Reading | None = None


@dataclass(slots=True)
class Translation:
    """What an importer made of a file so far: meanings in file order and remarks, until they are taken; the session ids
    in order of birth.
    """

    meanings: list[Meaning] = field(default_factory=list[Meaning])
    remarks: list[Remark] = field(default_factory=list[Remark])
    sessions: list[str] = field(default_factory=list[str])
    records: int = 0
    _counts: dict[str, int] = field(default_factory=dict[str, int])
    _last: tuple[str, int] | None = None

    def remark(self, kind: str, line: int, offset: int, text: str) -> None:
        """Keep a remark, once for a place; of one kind no more than `REMARKS_KEPT`, and then one that says so."""
        if self._last == (kind, offset):
            return
        self._last = (kind, offset)
        n = self._counts[kind] = self._counts.get(kind, 0) + 1
        if n < REMARKS_KEPT:
            self.remarks.append(Remark(kind, line, offset, text))
        elif n == REMARKS_KEPT:
            text = f"{text} (further ones of this kind are not listed)"
            self.remarks.append(Remark(kind, line, offset, text))

    def take(self) -> tuple[list[Meaning], list[Remark]]:
        """What was said since it was last taken; remarks in order of their places, each once."""
        once = {(r.offset, r.kind, r.line): r for r in reversed(self.remarks)}
        taken = self.meanings, [once[place] for place in sorted(once)]
        self.meanings, self.remarks = [], []
        return taken
