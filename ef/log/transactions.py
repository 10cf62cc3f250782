"""A transaction over the four databases by name, and the gate that keeps the map from being replaced under a reader."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from ..errors import Damaged

DATABASES = (b"log", b"seq", b"key", b"stream")
PAUSE_SECONDS = 0.001
"""Between two looks whether a read, or one who is alone, has ended: rare, for a map grows rarely."""


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

    def put(self, db: bytes, key: bytes, value: bytes) -> None:
        """Put an entry in place of the one that the key may have."""
        self._txn.put(key, value, db=self._dbs[db])

    def put_fresh(
        self, db: bytes, entries: list[tuple[bytes, bytes]], *, append: bool = False
    ) -> None:
        """Put entries whose keys are not there yet, else Damaged; `append`: in order, and behind all that are there."""
        cursor = self._txn.cursor(self._dbs[db])
        if cursor.putmulti(entries, overwrite=False, append=append)[1] != len(entries):
            # LMDB only counts: what holds another value was there.
            keys = (key for key, value in entries if self.get(db, key) != value)
            key = next(keys, entries[0][0])
            raise Damaged(where=f"database {db.decode()}", what=f"key {key.hex()} is there already")


class Reading:
    """A read that somebody has open, or the wish to be alone. It ends with whoever holds it, however that one ends."""

    __slots__ = ("__weakref__", "thread")

    def __init__(self) -> None:
        self.thread = threading.get_ident()


class ReadGate:
    """Knows the open reads of this process. LMDB ends a reader whose map is replaced, so a map grows between reads.

    It holds no locks and counts nothing: an interrupt may come between any two steps, and what it leaves behind is
    what nobody holds any more. Who reads is put down first and looks then whether somebody is alone; who wants to be
    alone says so first and looks then for readers: so one of the two sees the other.
    """

    def __init__(self) -> None:
        self._open: set[weakref.ref[Reading]] = set()
        self._alone: weakref.ref[Reading] | None = None
        self._forks: weakref.ref[Reading] | None = None

    def nested(self) -> bool:
        """Whether this thread has a read open."""
        return bool(self._open) and self._own() > 0

    def _own(self) -> int:
        me = threading.get_ident()
        return sum(one is not None and one.thread == me for one in [r() for r in self._open.copy()])

    def enter(self, reading: Reading) -> None:
        """A read begins; it waits while somebody is alone, unless this thread has a read open already."""
        nested = self.nested()
        while True:
            self._open.add(weakref.ref(reading, self._open.discard))
            if nested or not self._closed():
                return
            self.leave(reading)
            time.sleep(PAUSE_SECONDS)

    def leave(self, reading: Reading) -> None:
        """A read has ended, if it had begun."""
        self._open.discard(weakref.ref(reading))

    def _closed(self) -> bool:
        return any(wish is not None and wish() is not None for wish in (self._alone, self._forks))

    def hold(self, seconds: float) -> Reading:
        """For a fork: no new reads, and those of other threads are over, if they are so in time.

        Until nobody holds what it returns.
        """
        wish = Reading()
        own, end = self._own(), time.monotonic() + seconds
        self._forks = weakref.ref(wish)
        while len(self._open) > own and time.monotonic() < end:
            time.sleep(PAUSE_SECONDS)
        return wish

    @contextmanager
    def alone(self) -> Generator[None, None, None]:
        """Nobody reads meanwhile. Only for who holds the write lock and has no read open."""
        wish = Reading()
        try:
            self._alone = weakref.ref(wish)
            while self._open:
                time.sleep(PAUSE_SECONDS)
            yield
        finally:
            self._alone = None
