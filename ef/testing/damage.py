"""Controls that damage a store on purpose: what is deleted here must be noticed there."""

from __future__ import annotations

import shutil
from pathlib import Path

from ..log.lmdb_env import LmdbEnv, Txn
from ..log.lmdb_log import LOG, U64


class _Deleting(Txn):
    """A transaction that can also delete, which the log never does."""

    @classmethod
    def of(cls, txn: Txn) -> _Deleting:
        return cls(txn._txn, txn._dbs)

    def delete(self, db: bytes, key: bytes) -> bool:
        return bool(self._txn.delete(key, db=self._dbs[db]))


def copy_of(store: Path, at: Path) -> Path:
    """A copy of a store's folder; the store must not be open for writing."""
    shutil.copytree(store, at)
    return at


def delete_record(store: Path, position: int) -> None:
    """Delete the row of a record from the database `log`, and nothing else: indexes, tips and tip file stay."""
    env = LmdbEnv.acquire(store)
    try:
        if not env.write(lambda txn: _Deleting.of(txn).delete(LOG, U64.pack(position))):
            raise LookupError(f"the store has no record at position {position}")
    finally:
        env.release()
