"""What an importer says of a line: drafts for session streams, and remarks for the source stream.

Each importer is a pure function of the lines so far: what it says of line n depends on lines 1..n only, so a file that
grew says the same of its old lines. Drafts have keys made of the line's digest, so saying it again adds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..events import Reading
from ..log import Draft


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
    """What an importer made of a whole file: meanings in file order, remarks, and the session ids in order of birth."""

    meanings: list[Meaning] = field(default_factory=list[Meaning])
    remarks: list[Remark] = field(default_factory=list[Remark])
    sessions: list[str] = field(default_factory=list[str])
    records: int = 0
