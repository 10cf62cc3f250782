"""SQLite databases that tools keep sessions in: their rows as lines, so that one that grew is a source that grew.

A line is a JSON object: the table, the rowid, then the columns. A cell that is JSON text of one line stands in it as it
is, byte for byte; other text is a JSON string, bytes are {"base64": …}. The database is opened for reading only; its
own triggers and functions are not trusted.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ..errors import InputRefused
from ..importers.formats import Format
from ..importers.meaning import Remark
from .content import Content, spooled

if TYPE_CHECKING:
    from ..importers.redaction import Redaction

ROWS_AT_ONCE = 100


def tables_of(path: Path) -> frozenset[str]:
    """The names of a database's tables. Raises InputRefused."""
    with _Reading(path) as database:
        return frozenset(
            str(name)
            for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        )


def rows_of(plain: Content, form: Format, redaction: Redaction | None) -> Content:
    """A database's rows as lines. Raises InputRefused."""
    text = "the file is a database; the source is its rows, one a line"
    return spooled(plain, _lines(Path(plain.path), form), redaction, Remark("rows", 1, 0, text))


def _lines(path: Path, form: Format) -> Iterator[bytes]:
    with _Reading(path) as database:
        if form.feed is not None:
            for row in form.feed(database):
                yield (
                    json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode(
                        "utf-8", "surrogatepass"
                    )
                    + b"\n"
                )
            return
        there = tables_of(path)
        for table, order in form.tables.items():
            if table in there:
                yield from _rows(database, table, order)


def _rows(database: sqlite3.Connection, table: str, order: str) -> Iterator[bytes]:
    found = database.execute(
        f"SELECT rowid, * FROM {_named(table)} ORDER BY {_named(order)}, rowid"
    )
    names = [str(column[0]) for column in found.description][1:]
    while rows := found.fetchmany(ROWS_AT_ONCE):
        for rowid, *cells in rows:
            head = json.dumps({"table": table, "rowid": rowid}).encode()[:-1]
            each = [
                json.dumps(name).encode() + b":" + _cell(value)
                for name, value in zip(names, cells, strict=True)
                if value is not None
            ]
            yield b",".join([head, *each]) + b"}\n"


def _named(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _cell(value: Any) -> bytes:
    if isinstance(value, bytes):
        text = _text(value)
        if text is None:
            return json.dumps({"base64": base64.b64encode(value).decode()}).encode()
        value = text
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogateescape")
        return data if _is_json(value, data) else json.dumps(value).encode()
    return json.dumps(value).encode()


def _text(value: bytes) -> str | None:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _is_json(value: str, data: bytes) -> bool:
    """Whether a text is a JSON object or list that fits on a line."""
    if data[:1] not in (b"{", b"[") or b"\n" in data:
        return False
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        return False
    return True


def _waits(path: str) -> bool:
    """Whether a file of a database's newest changes is there and holds some."""
    return _state(path)[:1] > (0,)


def _state(path: str) -> tuple[int, ...]:
    try:
        facts = os.stat(path)
    except OSError:
        return ()
    return facts.st_size, facts.st_mtime_ns, facts.st_ino


class _Reading:
    """A database, open for reading only. Faults of SQLite are refusals of the file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> sqlite3.Connection:
        path = self._path
        if _waits(f"{path}-journal"):
            path = self._copy()
        # Without either, nothing but the file is looked at: it is neither locked nor written to.
        still = "" if path is not self._path or _waits(f"{path}-wal") else "&immutable=1"
        mode = "ro" if path is self._path else "rw"
        address = f"file:{quote(os.fspath(path.absolute()))}?mode={mode}{still}"
        try:
            self._database = sqlite3.connect(address, uri=True, isolation_level=None)
            self._database.text_factory = _lenient
            self._database.execute("PRAGMA trusted_schema = OFF")
            self._database.execute("PRAGMA query_only = ON")
            self._database.execute("BEGIN")
        except sqlite3.Error as fault:
            self._forget()
            raise self._refused(fault) from None
        self._before = _state(str(path)) if still else ()
        return self._database

    def _copy(self) -> Path:
        """A database whose last change was not finished, or is not yet: a copy, in which SQLite takes that back.

        Raises InputRefused while somebody changes it.
        """
        self._folder = tempfile.TemporaryDirectory(prefix="ef-")
        copy = Path(self._folder.name) / self._path.name
        before = [_state(f"{self._path}{end}") for end in ("", "-journal")]
        try:
            for end in ("", "-journal"):
                shutil.copyfile(f"{self._path}{end}", f"{copy}{end}")
        except OSError as fault:
            self._forget()
            raise self._refused(fault) from None
        if before != [_state(f"{self._path}{end}") for end in ("", "-journal")]:
            self._forget()
            raise self._refused("somebody is writing to it") from None
        return copy

    def _forget(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def __exit__(self, kind: Any, fault: BaseException | None, _: Any) -> None:
        self._database.close()
        self._forget()
        if self._before and self._before != _state(str(self._path)):
            raise self._refused("somebody wrote to it meanwhile") from None
        if isinstance(fault, sqlite3.Error):
            raise self._refused(fault) from None

    def _refused(self, fault: sqlite3.Error | OSError | str) -> InputRefused:
        return InputRefused(
            where=str(self._path),
            why=f"it is a database that cannot be read: {fault}",
            remedy="Import it when nobody writes to it, or check it with sqlite3's PRAGMA integrity_check.",
        )


def _lenient(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")
