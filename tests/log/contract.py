"""The kinds of log that the contract is run on: how each is opened, closed, and damaged behind its back."""

from __future__ import annotations

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from eventsourcing.popo import POPOApplicationRecorder
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

from ef.log.base import Log
from ef.log.generic import GenericLog
from ef.log.memory import MemoryLog
from ef.log.rows import U64, stream_hash
from tests.log.build import clock, opened, raw

Change = Callable[[bytes], bytes | None]
"""From a stored frame to what stands in its row from now on; None deletes the row."""
SECONDS_LOCKED_MAX = 60


class Kind(ABC):
    """A store of one kind. `open` may be called again: a second handle on the same store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._closers: list[Callable[[], None]] = []

    def open(self) -> Log:
        log, close = self._open()
        self._closers.append(close)
        return log

    def close(self) -> None:
        """Close every handle."""
        while self._closers:
            self._closers.pop()()

    @abstractmethod
    def _open(self) -> tuple[Log, Callable[[], None]]: ...

    @abstractmethod
    def damage(self, stream: str, seq: int, change: Change) -> None:
        """Change the row of a record. Every handle is closed."""


class Memory(Kind):
    _log: MemoryLog | None = None

    def _open(self) -> tuple[Log, Callable[[], None]]:
        if self._log is None:
            self._log = MemoryLog(now=clock())
        return self._log, lambda: None

    def close(self) -> None:
        """A closed one would be a lost one: it is closed when the test ends."""

    def end(self) -> None:
        if self._log is not None:
            self._log.close()

    def damage(self, stream: str, seq: int, change: Change) -> None:
        assert self._log is not None
        position = self._log._streams[stream][seq - 1]
        changed = change(self._log._frames[position])
        if changed is None:
            self._log._streams[stream].pop(seq - 1)
        else:
            self._log._frames[position] = changed


class Lmdb(Kind):
    def _open(self) -> tuple[Log, Callable[[], None]]:
        log = opened(self.folder / "store")
        return log, log.close

    def damage(self, stream: str, seq: int, change: Change) -> None:
        with raw(self.folder / "store") as store:
            at = store.rows(b"seq")[stream_hash(stream) + U64.pack(seq)]
            changed = change(store.rows(b"log")[at])
            if changed is None:
                store.delete(b"log", at)
            else:
                store.put(b"log", at, changed)


def sqlite_log(path: Path, **how: Any) -> tuple[GenericLog, Callable[[], None]]:
    """A log over the library's SQLite recorder, and what closes both."""
    datastore = SQLiteDatastore(
        str(path), originator_id_type="text", lock_timeout=SECONDS_LOCKED_MAX
    )
    recorder = SQLiteApplicationRecorder(datastore)
    recorder.create_table()
    try:
        log = GenericLog(recorder, **{"now": clock(), "name": str(path), **how})
    except BaseException:
        datastore.close()
        raise

    def close() -> None:
        log.close()
        datastore.close()

    return log, close


class Sqlite(Kind):
    @property
    def path(self) -> Path:
        return self.folder / "store.db"

    def _open(self) -> tuple[Log, Callable[[], None]]:
        return sqlite_log(self.path)

    def damage(self, stream: str, seq: int, change: Change) -> None:
        row = (stream, seq)
        which = "WHERE originator_id = ? AND originator_version = ?"
        with closing(sqlite3.connect(self.path)) as db, db:
            (frame,) = db.execute(f"SELECT state FROM stored_events {which}", row).fetchone()
            changed = change(frame)
            if changed is None:
                db.execute(f"DELETE FROM stored_events {which}", row)
            else:
                db.execute(f"UPDATE stored_events SET state = ? {which}", (changed, *row))


class Popo(Kind):
    """The library's recorder in memory: what stays is the recorder, not the log over it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.recorder = POPOApplicationRecorder()

    def _open(self) -> tuple[Log, Callable[[], None]]:
        log = GenericLog(self.recorder, now=clock())
        return log, log.close

    def damage(self, stream: str, seq: int, change: Change) -> None:
        index = self.recorder._stored_events_index[stream]
        at = index[seq]
        changed = change(self.recorder._stored_events[at].state)
        if changed is None:
            del index[seq]
        else:
            stored = self.recorder._stored_events[at]
            self.recorder._stored_events[at] = type(stored)(stream, seq, stored.topic, changed)
