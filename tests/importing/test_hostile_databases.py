"""Sessions in a database: whatever stands in a cell, and however the file itself is broken, nothing ends in a traceback.

Each text or blob of each table holds each hostile value in turn; then the file is cut, spoilt, or made of other things.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.errors import InputRefused
from ef.importers.formats import format_of, names
from ef.log.items import reading_of
from ef.testing.mutations import MUTATIONS
from ef.testing.pairing import violations
from ef.testing.tallies import items, tally

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
DATABASES = {
    "agents-sdk": FIXTURES / "agents_sdk" / "sessions.db",
    "goose-db": FIXTURES / "seeds" / "goose-db.sql",
    "langgraph": FIXTURES / "langgraph" / "checkpoints.db",
    "opencode-db": FIXTURES / "opencode" / "opencode.db",
}
VALUES: dict[str, Any] = {
    "null": None, "number": 5, "2^63-1": 2**63 - 1, "float": 1e308, "infinity": float("inf"), "empty": "",
    "words": "kettle", "list": "[5,[5],{}]", "map": '{"a":{"b":5}}', "json null": "null", "NaN": '{"type":NaN}',
    "digits": '{"n":' + "9" * 5000 + "}", "depth 65": "[" * 65 + "]" * 65, "depth 100,000": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "surrogate": '{"role":"user","content":"\\ud800"}', "twice": '{"role":"user","role":"assistant","content":"I never said that."}',
    "NUL": "a\0b", "lines": '{"a":\n1}', "bytes": b"\xff\xfe\x00kettle", "pickle": b"\x80\x04\x95kettle.", "long": "w" * 300_000,
}  # fmt: skip
LINES = 2_000


def made(name: str, at: Path) -> Path:
    """The database in a file of its own."""
    source = DATABASES[name]
    if source.suffix == ".sql":
        with closing(sqlite3.connect(at)) as database:
            database.executescript(source.read_text("utf-8"))
    else:
        shutil.copyfile(source, at)
    return at


def cells(path: Path) -> list[tuple[str, str]]:
    """The columns of all tables that hold rows and that are no key of theirs."""
    found: list[tuple[str, str]] = []
    with closing(sqlite3.connect(path)) as database:
        tables = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        for (table,) in tables:
            if table.startswith("sqlite_"):
                continue
            if database.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]:
                info = database.execute(f'PRAGMA table_info("{table}")').fetchall()
                found += [(table, column[1]) for column in info]
    return found


def spoilt(path: Path, table: str, column: str, value: Any) -> bool:
    """Put a value into a column of every row; whether the database takes it."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        try:
            database.execute(f'UPDATE OR IGNORE "{table}" SET "{column}" = ?', (value,))
        except (sqlite3.Error, OverflowError):
            return False
        database.commit()
    return True


def survives(path: Path) -> str:
    """What became of a database; what came in is whole, and comes in once."""
    with ef.open(":memory:") as store:
        try:
            done = store.import_file(path)
        except InputRefused as refusal:
            assert store.log.store_tip()[0] == 0
            assert refusal.facts["why"]
            return "refused"
        assert "I never said that." not in tally(store, done.sessions).typed
        for name in done.sessions:
            for record in items(store, name):
                reading_of(store.log, record)
            assert violations(store.session(name).context().messages) == []
        assert store.export_original(done.source)
        tip = store.log.store_tip()
        assert store.import_file(path).new_events == {}
        assert store.log.store_tip() == tip
        assert store.verify().verdict == "sound"
        return "imported"


def test_each_database_format_is_tried() -> None:
    forms = [form for name in names() if (form := format_of(name)) is not None]
    assert {form.name for form in forms if form.form == "database"} == set(DATABASES)


@pytest.mark.parametrize("name", DATABASES)
def test_a_database_is_a_session_of_its_format(name: str, tmp_path: Path) -> None:
    path = made(name, tmp_path / "s.db")
    with ef.open(":memory:") as store:
        done = store.import_file(path)
        told = tally(store, done.sessions)
    assert done.format == name
    assert told.typed
    assert told.calls
    assert told.results
    assert survives(path) == "imported"


@pytest.mark.parametrize("name", DATABASES)
def test_any_value_in_any_cell_is_survived(
    name: str, tmp_path: Path, figure: Callable[[str], None]
) -> None:
    whole = made(name, tmp_path / "whole.db")
    path = tmp_path / "s.db"
    ends: dict[str, int] = {}
    for table, column in cells(whole):
        for what, value in VALUES.items():
            shutil.copyfile(whole, path)
            if not spoilt(path, table, column, value):
                continue
            try:
                end = survives(path)
            except Exception as fault:
                raise AssertionError(f"{table}.{column}, {what}: {fault!r}") from fault
            ends[end] = ends.get(end, 0) + 1
    figure(f"hostile: {name}: {sum(ends.values())} values in cells: {ends}")
    assert ends.get("refused", 0) <= 0.1 * sum(ends.values())


@pytest.mark.parametrize("name", DATABASES)
def test_broken_texts_in_cells_are_survived(
    name: str, tmp_path: Path, figure: Callable[[str], None]
) -> None:
    chosen = random.Random(f"mutants of {name}")
    path = made(name, tmp_path / "s.db")
    with closing(sqlite3.connect(path)) as database:
        texts: list[tuple[str, str, int, bytes]] = []
        for table, column in cells(path):
            found = database.execute(f'SELECT rowid, "{column}" FROM "{table}"').fetchall()
            for rowid, value in found:
                text = value.encode() if isinstance(value, str) else value
                if isinstance(text, bytes) and len(text) > 20:
                    texts.append((table, column, rowid, text))
        lines = 0
        while lines < LINES:
            for table, column, rowid, text in texts:
                value = chosen.choice(MUTATIONS)(chosen, text)
                cast = "CAST(? AS TEXT)" if chosen.random() < 0.8 else "?"
                database.execute(
                    f'UPDATE OR IGNORE "{table}" SET "{column}" = {cast} WHERE rowid = ?',
                    (value, rowid),
                )
                lines += 1
            database.commit()
            survives(path)
    figure(f"hostile: {name}: {lines} broken cells")


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def header_alone(data: bytes) -> bytes:
    return data[:100]


def zeroed(data: bytes) -> bytes:
    return data[:4096] + bytes(len(data) - 4096)


def flipped(data: bytes) -> bytes:
    chosen = random.Random(len(data))
    found = bytearray(data)
    for _ in range(200):
        found[chosen.randrange(100, len(found))] ^= 1 << chosen.randrange(8)
    return bytes(found)


def another(data: bytes) -> bytes:
    return b"SQLite format 3\0" + b"kettle" * 500


@pytest.mark.parametrize("how", [cut, header_alone, zeroed, flipped, another])
@pytest.mark.parametrize("name", DATABASES)
def test_a_broken_file_is_refused_or_read_as_far_as_it_goes(
    name: str, how: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = made(name, tmp_path / "s.db")
    path.write_bytes(how(path.read_bytes()))
    assert survives(path) in ("imported", "refused")


@pytest.mark.parametrize("name", DATABASES)
def test_a_database_without_its_rows_or_columns_or_of_views_is_survived(
    name: str, tmp_path: Path
) -> None:
    whole = made(name, tmp_path / "whole.db")
    for number, (table, column) in enumerate(cells(whole)):
        for deed in (
            f'DELETE FROM "{table}"',
            f'DROP TABLE "{table}"',
            f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "zz"',
            f'ALTER TABLE "{table}" RENAME TO "was"; CREATE VIEW "{table}" AS SELECT * FROM "was"',
        ):
            path = tmp_path / f"{number}.db"
            shutil.copyfile(whole, path)
            with closing(sqlite3.connect(path)) as database:
                try:
                    database.executescript(deed)
                except sqlite3.Error:
                    continue
            try:
                survives(path)
            except Exception as fault:
                raise AssertionError(f"{deed}: {fault!r}") from fault
