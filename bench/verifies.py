"""Verify of a long store, quick and full, beside what the library's SQLite recorder can say of as many rows.

The stores are those of cold.py; figures are per million records, with all files in the caches.
"""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from contextlib import closing
from pathlib import Path

from ef.session import open_store

from .timing import Table, Work, race

ROUNDS = 3
"""A round of a million records takes about a minute."""

ASKED = {
    "PRAGMA quick_check": "PRAGMA quick_check",
    "PRAGMA integrity_check": "PRAGMA integrity_check",
    "select of all rows": "SELECT rowid, * FROM stored_events ORDER BY rowid",
}
SAID = """\
  ef quick: digests and both chains; full: bytes, structure, bodies, references, projections, tip, modes
  SQLite has no content digests. quick_check: the form of pages and rows; integrity_check: the indexes too;
  select: every value is read, and not compared with anything. None of them can tell a changed value from a sound one"""


def asks(path: Path, query: str) -> Work:
    """All rows of an answer of SQLite."""

    def work(_: Path) -> float:
        with closing(sqlite3.connect(path)) as database:
            begun = time.perf_counter()
            (last,) = deque(database.execute(query), maxlen=1)
            taken = time.perf_counter() - begun
        assert query.startswith("SELECT") or last == ("ok",)
        return taken

    return work


def verifies(path: Path, *, quick: bool) -> Work:
    """A verify of a store that is open."""

    def work(_: Path) -> float:
        with open_store(path, create=False) as store:
            begun = time.perf_counter()
            assert store.verify(quick=quick).ok
            return time.perf_counter() - begun

    return work


def table(own: Path, sqlite: Path, rows: int, rounds: int) -> Table:
    """All of them side by side: our store, and the file of the SQLite recorder, which has so many rows."""
    with open_store(own, create=False) as store:
        records = store.log.tip_position() + 1
    contestants = {
        "ef, quick": verifies(own, quick=True),
        "ef, full": verifies(own, quick=False),
        **{f"SQLite, {name}": asks(sqlite, query) for name, query in ASKED.items()},
    }
    rounds = min(rounds, ROUNDS)
    amounts = {name: records if name.startswith("ef") else rows for name in contestants}
    found = race("", "records/s", amounts, contestants, rounds)
    each = (f"{row.name} {row.seconds / row.amount * 1e6:.2f} s" for row in found.rows)
    found.title = (
        f"Verify of {records:,} records, and of {rows:,} rows of SQLite: medians of {rounds} rounds\n"
        f"  per million: {'; '.join(each)}\n{SAID}"
    )
    return found
