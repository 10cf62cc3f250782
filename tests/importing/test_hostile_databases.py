"""Sessions in a database: whatever stands in a cell, and however the file itself is broken: no traceback, no half.

Each column holds each hostile value in turn (a sixth of them, but in a long run: HYPOTHESIS_PROFILE=long); then the
file is cut, spoilt, or made of other things.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
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
FORGED = "I never said that."
VALUES: dict[str, Any] = {
    "null": None, "number": 5, "2^63-1": 2**63 - 1, "float": 1e308, "infinity": float("inf"), "empty": "",
    "words": "kettle", "list": "[5,[5],{}]", "map": '{"a":{"b":5}}', "json null": "null", "NaN": '{"type":NaN}',
    "digits": '{"n":' + "9" * 5000 + "}", "depth 65": "[" * 65 + "]" * 65,
    "depth 100,000": '{"a":' * 100_000 + "1" + "}" * 100_000, "surrogate": '{"role":"user","content":"\\ud800"}',
    "twice": '{"role":"assistant","role":"user","content":"' + FORGED + '"}', "lines": '{"a":\n1}',
    "NUL": "a\0b", "bytes": b"\xff\xfe\x00kettle", "pickle": b"\x80\x04\x95kettle.", "long": "w" * 300_000,
}  # fmt: skip
LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
LINES = 20_000 if LONG else 1_000
UNREAD = {"migration", "data_migration", "event", "event_sequence", "project", "project_directory"}
"""Tables that no importer reads."""


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
    return [each for each in found if each[0] not in UNREAD]


def spoilt(path: Path, table: str, column: str, values: list[Any]) -> tuple[int, list[Any]]:
    """Put the first of the values into a column, one a row; how many the database took, and what is left of them."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        rows = database.execute(f'SELECT rowid FROM "{table}"').fetchall()
        took = 0
        for (rowid,), value in zip(rows, values, strict=False):
            with suppress(
                sqlite3.Error, OverflowError
            ):  # a key, or a column that must hold something
                database.execute(
                    f'UPDATE "{table}" SET "{column}" = ? WHERE rowid = ?', (value, rowid)
                )
                took += 1
        database.commit()
    return took, values[len(rows) :]


def survives(path: Path) -> str:
    """What became of a database; what came in is whole, and comes in once."""
    with ef.open(":memory:") as store:
        try:
            done = store.import_file(path)
        except InputRefused as refusal:
            return "refused" if refusal.facts["why"] and not store.log.store_tip()[0] else "half"
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
    tried, ends = 0, Counter[str]()
    for n, (table, column) in enumerate(cells(whole)):
        left = list(VALUES.values())[0 if LONG else n % 6 :: 1 if LONG else 6]
        while left:
            shutil.copyfile(whole, path)
            took, left = spoilt(path, table, column, left)
            tried += took
            try:
                ends[survives(path)] += 1
            except Exception as fault:
                raise AssertionError(f"{table}.{column}, {len(left)} left: {fault!r}") from fault
    figure(f"hostile: {name}: {tried} values in cells of {ends.total()} files: {dict(ends)}")
    assert ends["refused"] <= 0.1 * ends.total()


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
            assert survives(path) in ("imported", "refused")
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
    deeds = [f'ALTER TABLE "{t}" RENAME COLUMN "{c}" TO "zz"' for t, c in cells(whole)]
    for table in sorted({table for table, _ in cells(whole)}):
        deeds += [
            f'DELETE FROM "{table}"',
            f'DROP TABLE "{table}"',
            f'ALTER TABLE "{table}" RENAME TO "was"; CREATE VIEW "{table}" AS SELECT * FROM "was"',
        ]
    for number, deed in enumerate(deeds):
        path = tmp_path / f"{number}.db"
        shutil.copyfile(whole, path)
        with closing(sqlite3.connect(path)) as database, suppress(sqlite3.Error):
            database.executescript(deed)
        try:
            assert survives(path) in ("imported", "refused")
        except Exception as fault:
            raise AssertionError(f"{deed}: {fault!r}") from fault


@pytest.mark.parametrize("name", DATABASES)
def test_a_second_role_in_a_cell_makes_nobody_a_user(name: str, tmp_path: Path) -> None:
    whole = made(name, tmp_path / "whole.db")
    for number, (table, column) in enumerate(cells(whole)):
        path = tmp_path / f"{number}.db"
        shutil.copyfile(whole, path)
        spoilt(path, table, column, [VALUES["twice"]])
        with ef.open(":memory:") as store, suppress(InputRefused):
            assert FORGED not in tally(store, store.import_file(path).sessions).typed


# -- a database that is being written ---------------------------------------------------------------------------


def _kept(path: Path, mode: str) -> sqlite3.Connection:
    """An Agents SDK database of 200 committed messages, and a connection to it."""
    made = sqlite3.connect(path, isolation_level=None)
    made.execute(f"PRAGMA journal_mode = {mode}")
    made.execute(
        "CREATE TABLE agent_sessions (session_id TEXT PRIMARY KEY, created_at TEXT, updated_at TEXT)"
    )
    made.execute(
        "CREATE TABLE agent_messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, message_data TEXT, "
        "created_at TEXT)"
    )
    made.execute(
        "INSERT INTO agent_sessions VALUES ('s1', '2026-01-01 00:00:00', '2026-01-01 00:00:00')"
    )
    made.execute("BEGIN")
    for n in range(200):
        said = json.dumps({"role": "user", "content": f"committed {n} " + "c" * 400})
        row = ("s1", said, "2026-01-01 00:00:00")
        made.execute(
            "INSERT INTO agent_messages (session_id, message_data, created_at) VALUES (?, ?, ?)",
            row,
        )
    made.execute("COMMIT")
    return made


def _texts(path: Path, folder: Path) -> list[str]:
    with ef.open(folder / f"{path.stem}.ef") as store:
        result = store.import_file(path)
        messages = store.session(result.sessions[0]).context().messages
        return [block["text"] for message in messages for block in message["content"]]


@pytest.mark.parametrize("mode", ["delete", "wal"])
def test_what_is_not_committed_is_not_read(mode: str, tmp_path: Path) -> None:
    """A writer has changed each row, and much of that is in the file; the second file is what its death leaves."""
    path, left = tmp_path / "open.db", tmp_path / "left.db"
    writer = _kept(path, mode)
    writer.execute("PRAGMA cache_size = 3")
    writer.execute("BEGIN")
    writer.execute(
        "UPDATE agent_messages SET message_data = replace(message_data, 'committed', 'UNCOMMITTED')"
    )
    sidecar = {"delete": "-journal", "wal": "-wal"}[mode]
    before = {name: (tmp_path / name).read_bytes() for name in ("open.db", f"open.db{sidecar}")}
    assert b"UNCOMMITTED" in b"".join(before.values())
    for name, data in before.items():
        (tmp_path / name.replace("open", "left")).write_bytes(data)
    for each in (path, left):
        texts = _texts(each, tmp_path)
        assert len(texts) == 200
        assert all(text.startswith("committed") for text in texts)
    # Nothing was written to what was read.
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    writer.execute("ROLLBACK")
    writer.close()
