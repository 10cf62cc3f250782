"""A transaction over the four databases by name, and the gate that keeps the map from being replaced under a reader."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from ..errors import Damaged

DATABASES = (b"log", b"seq", b"key", b"stream")


class Txn:
    """A transaction with the four databases by name. Reads return bytes copies."""

    __slots__ = ("_dbs", "_txn")

    def __init__(self, txn: Any, dbs: dict[bytes, Any]) -> None:
        self._txn, self._dbs = txn, dbs

    def get(self, db: bytes, key: bytes) -> bytes | None:
        """The value of a key, or None."""
        value: bytes | None = self._txn.get(key, db=self._dbs[db])
        return value

    def last(self, db: bytes) -> tuple[bytes, bytes] | None:
        """The entry with the greatest key."""
        cursor = self._txn.cursor(self._dbs[db])
        return (cursor.key(), cursor.value()) if cursor.last() else None

    def scan(self, db: bytes, first: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """Up to `limit` entries with key >= first, in key order."""
        cursor = self._txn.cursor(self._dbs[db])
        return list(islice(cursor, limit)) if cursor.set_range(first) else []

    def many(self, db: bytes, keys: list[bytes]) -> list[tuple[bytes, bytes]]:
        """The entries of keys, in their order; those that are not there are left out. No key may be empty."""
        found: list[tuple[bytes, bytes]] = self._txn.cursor(self._dbs[db]).getmulti(keys)
        return found

    def scan_back(
        self, db: bytes, first: bytes, last: bytes, limit: int
    ) -> list[tuple[bytes, bytes]]:
        """Up to `limit` entries with first <= key <= last, the greatest key first."""
        cursor = self._txn.cursor(self._dbs[db])
        found: list[tuple[bytes, bytes]] = []
        there = (
            cursor.last() if not cursor.set_range(last) else cursor.key() == last or cursor.prev()
        )
        while there and len(found) < limit and cursor.key() >= first:
            found.append((cursor.key(), cursor.value()))
            there = cursor.prev()
        return found

    def prefixes(self, db: bytes, size: int, first: bytes, last: bytes) -> list[bytes]:
        """The different beginnings of `size` bytes that keys have, between `first` and `last`; one look for each."""
        cursor = self._txn.cursor(self._dbs[db])
        found: list[bytes] = []
        while cursor.set_range(first) and (prefix := cursor.key()[:size]) <= last:
            found.append(prefix)
            first = prefix + b"\xff" * 9
        return found

    def names(self) -> list[bytes]:
        """Names of all databases, ours or not."""
        return list(self._txn.cursor().iternext(keys=True, values=False))

    def put(self, db: bytes, key: bytes, value: bytes, *, fresh: bool) -> None:
        """Put an entry; `fresh` demands that the key was not there. LMDB answers False instead of raising."""
        if not self._txn.put(key, value, db=self._dbs[db], overwrite=not fresh):
            raise Damaged(where=f"database {db.decode()}", what=f"key {key.hex()} is there already")


class ReadGate:
    """Counts the open reads of this process. LMDB ends a reader whose map is replaced, so a map grows between reads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._reads = 0
        self._alone = False
        self._own = threading.local()

    def nested(self) -> bool:
        """Whether this thread has a read open."""
        return bool(getattr(self._own, "depth", 0))

    def enter(self) -> None:
        """A read begins; it waits while somebody is alone, unless this thread has a read open already."""
        nested = self.nested()
        with self._lock:
            self._changed.wait_for(lambda: nested or not self._alone)
            self._reads += 1
        self._own.depth = getattr(self._own, "depth", 0) + 1

    def leave(self) -> None:
        """A read has ended."""
        self._own.depth -= 1
        with self._lock:
            self._reads -= 1
            self._changed.notify_all()

    def hold(self, seconds: float) -> None:
        """For a fork: no new reads, and those of other threads are over, if they are so in time. Then `let_go`."""
        own = getattr(self._own, "depth", 0)
        with self._lock:
            self._alone = True
            self._changed.wait_for(lambda: self._reads <= own, seconds)

    def let_go(self) -> None:
        """The fork is over."""
        with self._lock:
            self._alone = False
            self._changed.notify_all()

    @contextmanager
    def alone(self) -> Generator[None, None, None]:
        """Nobody reads meanwhile. Only for who holds the write lock and has no read open."""
        with self._lock:
            self._alone = True
            self._changed.wait_for(lambda: not self._reads)
            try:
                yield
            finally:
                self._alone = False
                self._changed.notify_all()
