"""A data file that liblmdb cannot or must not open, read in plain Python, so that what is sound in it is still served.

Every record that comes out was checked like any other. A page that cannot be read is an error where it is needed.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Generator, Iterator
from itertools import islice, takewhile
from pathlib import Path
from typing import TypeVar

from ..errors import Damaged
from .gathered import Gathered
from .lmdb_env import LmdbEnv
from .pages import DataFile, Entry
from .tipfile import TipFile
from .transactions import DATABASES, Txn

T = TypeVar("T")


class PlainTxn(Txn):
    """A Txn that can only be read. A record that the trees do not lead to is looked for on all pages."""

    __slots__ = ("_env",)

    def __init__(self, env: PlainEnv) -> None:
        super().__init__(None, env.roots)
        self._env = env

    def _entries(self, db: bytes, first: bytes) -> Iterator[Entry]:
        root = self._dbs.get(db)
        if root is None:
            raise Damaged(where=str(self._env.path / "data.mdb"), what=self._env.why)
        yield from self._env.file.entries(root, first)

    def get(self, db: bytes, key: bytes) -> bytes | None:
        """See Txn.get."""
        damage: Damaged | None = None
        try:
            entry = next(self._entries(db, key), None)
            if entry is not None and entry.key == key:
                return entry.value
        except Damaged as fault:
            damage = fault
        found = self._env.gathered().get(db, key)
        if found is None and damage is not None:
            raise damage
        return found

    def last(self, db: bytes) -> tuple[bytes, bytes] | None:
        """See Txn.last."""
        try:
            entry = self._env.file.last(self._dbs[db])
        except (Damaged, KeyError):
            return self._env.gathered().last()
        return None if entry is None else entry[:2]

    def scan(self, db: bytes, first: bytes, limit: int) -> list[tuple[bytes, bytes]]:
        """See Txn.scan."""
        return [entry[:2] for entry in islice(self._entries(db, first), limit)]

    def many(self, db: bytes, keys: list[bytes]) -> list[tuple[bytes, bytes]]:
        """See Txn.many."""
        return [(key, value) for key in keys if (value := self.get(db, key)) is not None]

    def scan_back(
        self, db: bytes, first: bytes, last: bytes, limit: int
    ) -> list[tuple[bytes, bytes]]:
        """See Txn.scan_back. It reads all that is between."""
        below = takewhile(lambda e: e.key <= last, self._entries(db, first))
        return [entry[:2] for entry in deque(below, limit)][::-1]

    def prefixes(self, db: bytes, size: int, first: bytes, last: bytes) -> list[bytes]:
        """See Txn.prefixes."""
        return list(self._prefixes(db, size, first, last))

    def _prefixes(self, db: bytes, size: int, first: bytes, last: bytes) -> Iterator[bytes]:
        while found := self.scan(db, first, 1):
            prefix = found[0][0][:size]
            if prefix > last:
                return
            yield prefix
            first = prefix + b"\xff" * 9

    def names(self) -> list[bytes]:
        """See Txn.names."""
        return list(self._dbs)


class PlainEnv(LmdbEnv):
    """An environment that can only be read, for a file of which `why` says what is wrong."""

    def __init__(self, path: Path, why: str) -> None:
        self.why = why
        super().__init__(path, None)

    def _start(self) -> None:
        self.readonly = True
        data = self.path / "data.mdb"
        try:
            self.file = DataFile(data)
        except Damaged:
            raise Damaged(where=str(data), what=self.why) from None
        self._env = self.file
        self.roots = self.file.roots(_pass)
        self._gathered: Gathered | None = None
        if not {*DATABASES} <= {*self.roots} and self.gathered().last() is None:
            self.file.close()
            raise Damaged(where=str(data), what=self.why)

    def gathered(self) -> Gathered:
        """The records that are on any page; looked for once."""
        if self._gathered is None:
            self._gathered = Gathered(self.file, TipFile(self.path).read())
        return self._gathered

    @contextlib.contextmanager
    def read(self) -> Generator[Txn, None, None]:
        """See LmdbEnv.read."""
        self._mine()
        yield PlainTxn(self)

    def write(self, work: Callable[[Txn], T]) -> T:
        """Raises Damaged: nothing is written to such a file."""
        raise Damaged(where=str(self.path / "data.mdb"), what=self.why)

    def copy_to(self, target: Path) -> None:
        """Raises Damaged: such a file has no sound copy."""
        raise Damaged(where=str(self.path / "data.mdb"), what=self.why)


def _pass(damage: Damaged) -> None:
    """A page that cannot be read is an error where it is needed."""
