"""Hostile files of every format, made from its seed: a small valid session of tests/fixtures/seeds, one record a line.

A case says what is done to the seed, which of its records that breaks (the others must come in as before), and how it
may end. What each does end with is committed in tests/golden/formats/hostile.json.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

SEEDS = Path(__file__).resolve().parents[1] / "fixtures" / "seeds"
ASK = b"Mend the kettle, please."
CALL = b"ls kettle"
IMAGE = b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
FORMATS = {
    "codex-old": "codex", "mini-swe-agent-v1": "mini-swe-agent", "mini-swe-agent-v2": "mini-swe-agent",
}  # fmt: skip
"""The format of a seed that is not called so."""
NAMES = {"roo": "api_conversation_history.json", "swe-agent": "kettle.traj"}
"""How a file must be called for its format to be found, where its content alone does not say it."""


@dataclass(frozen=True)
class Seed:
    """A seed: its name, the name of its file, its lines, and which of them are records (by index)."""

    name: str
    file: str
    rows: tuple[bytes, ...]

    @property
    def format(self) -> str:
        return FORMATS.get(self.name, self.name)

    @cached_property
    def records(self) -> tuple[int, ...]:
        return tuple(n for n, row in enumerate(self.rows) if isinstance(_value(row), dict))

    @cached_property
    def is_document(self) -> bool:
        return len(self.records) < len(self.rows)

    @property
    def asked(self) -> int:
        return next(n for n in self.records if ASK in self.rows[n])

    @property
    def called(self) -> int:
        return next(n for n in self.records if CALL in self.rows[n])

    @property
    def last(self) -> int:
        return self.records[-1]

    @property
    def data(self) -> bytes:
        return joined(self.rows)

    def record(self, n: int) -> bytes:
        """A record's bytes, without the comma behind it."""
        return self.rows[n].removesuffix(b",")

    def put(self, n: int, record: bytes) -> list[bytes]:
        """The rows with another record there."""
        rows = list(self.rows)
        rows[n] = record + rows[n][len(self.record(n)) :]
        return rows

    def inserted(self, n: int, record: bytes) -> list[bytes]:
        """The rows with one more record before record `n`."""
        comma = b"," if self.is_document else b""
        return [*self.rows[:n], record + comma, *self.rows[n:]]

    def with_key(self, n: int, value: bytes) -> list[bytes]:
        """The rows with one key more in a record."""
        return self.put(n, b'{"zz":' + value + b"," + self.record(n)[1:])

    def without(self, gone: set[int]) -> list[bytes]:
        """The rows without some records."""
        rows = [row for n, row in enumerate(self.rows) if n not in gone]
        if self.is_document and self.last in gone:
            at = max(n for n, row in enumerate(rows) if row.endswith(b","))
            rows[at] = rows[at].removesuffix(b",")
        return rows

    def said(self, text: bytes) -> list[bytes]:
        """The rows with other words of the user's, as they stand inside a JSON string."""
        return self.put(self.asked, self.record(self.asked).replace(ASK, text))

    def edited(self, change: Change) -> list[bytes]:
        """The rows with each value of each record changed; see `changed`."""
        rows = list(self.rows)
        for n in self.records:
            value = json.dumps(changed(_value(rows[n]), change), separators=(",", ":")).encode()
            rows[n] = value + rows[n][len(self.record(n)) :]
        return rows


Change = Callable[[str, Any, int], Any]
"""(key, value, depth) -> the value instead of it, `KEEP` to look inside, or `GONE`."""
KEEP, GONE = object(), object()


def changed(value: Any, change: Change, depth: int = 0) -> Any:
    """A JSON value whose maps' values went through `change`."""
    if isinstance(value, list):
        return [changed(each, change, depth) for each in value]
    if not isinstance(value, dict):
        return value
    out: dict[str, Any] = {}
    for key, inner in value.items():
        new = change(key, inner, depth)
        if new is not GONE:
            out[key] = changed(inner, change, depth + 1) if new is KEEP else new
    return out


def joined(rows: list[bytes] | tuple[bytes, ...]) -> bytes:
    return b"\n".join(rows) + b"\n"


def _value(row: bytes) -> Any:
    try:
        return json.loads(row.removesuffix(b","))
    except ValueError:
        return None


def seeds() -> list[Seed]:
    """All seeds, by name."""
    found: list[Seed] = []
    for path in sorted(SEEDS.glob("*.json*")):
        rows = tuple(path.read_bytes().removesuffix(b"\n").split(b"\n"))
        found.append(Seed(path.stem, NAMES.get(path.stem, path.name), rows))
    return found


SEED_NAMES = [seed.name for seed in seeds()]
WHOLE = frozenset[int]()
PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")


@dataclass(frozen=True)
class File:
    """A hostile file: its bytes, which records of the seed are not in it as they were (None: not comparable), what it
    unpacks to, where it is packed.
    """

    data: bytes
    broken: frozenset[int] | None = WHOLE
    holds: bytes | None = None

    @property
    def comes_out(self) -> bytes | None:
        """The bytes that an exact export must give; None where what is packed is broken."""
        if self.holds is None and self.data.startswith(PACKED):
            return None
        return self.data if self.holds is None else self.holds


@dataclass(frozen=True)
class Case:
    """What is done to a seed. `ends`: "imported", a kind of note that the import must have, "refused", or "either"."""

    name: str
    make: Callable[[Seed], File]
    ends: str = "imported"


def one(seed: Seed, rows: list[bytes], *broken: int) -> File:
    """A file of rows in which these records are broken."""
    return File(joined(rows), frozenset(broken))


def every(rows: list[bytes]) -> File:
    """A file whose records are all other than the seed's."""
    return File(joined(rows), None)


def kept(found: dict[bytes, set[int]], broken: frozenset[int] | None) -> Iterator[bytes]:
    """The bodies of the seed's items that a file with these broken records must hold too."""
    for body, rows in found.items():
        if broken is not None and not rows & broken:
            yield body
