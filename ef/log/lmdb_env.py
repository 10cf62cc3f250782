"""The LMDB environment of a store: the only module that imports lmdb.

Rules (each is here because a measurement forces it): `sync` and `metasync` on, never `writemap` or `map_async`,
asserted from the environment's own flags; a store is born in a temporary folder and moved into place; the lock
file's inode is compared before each commit; an exception from a commit means that its outcome is unknown, so the
environment is closed and opened again; a map that is full grows; a forked process opens its own environment. What
the medium or the rights do not let us write is opened for reading.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import lmdb

from ..errors import Busy, CannotWrite, Damaged, OutcomeUnknown, StoreUnavailable
from . import databytes, folder
from .folder import LOCK_BYTES as LOCK_BYTES
from .transactions import DATABASES, ReadGate
from .transactions import Txn as Txn

T = TypeVar("T")
MAP_SIZES = (64 << 30, 4 << 30, 256 << 20)
"""Address space to ask for, largest first: it costs nothing but address space, which containers may limit."""

READERS_MAX = 1022
_MAY_ONLY_BE_READ = (errno.EROFS, errno.EACCES, errno.EPERM)
_CORRUPT = (
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.InvalidError,
    lmdb.VersionMismatchError,
)


class CommitFailed(Exception):
    """A commit raised; the environment has been opened again, so the caller can look what was kept."""


class LmdbEnv:
    """One open environment, shared by everybody in this process who opens the same store."""

    _open: ClassVar[dict[tuple[int, int], LmdbEnv]] = {}
    _registry_lock: ClassVar[threading.RLock] = threading.RLock()

    def __init__(self, path: Path, map_size: int | None) -> None:
        self.path = path
        self._sizes = (map_size,) if map_size else MAP_SIZES
        self._users = 0
        self._new_locks()
        self._start()

    def _new_locks(self) -> None:
        self.write_lock = threading.RLock()
        self._gate = ReadGate()

    @classmethod
    def forked(cls) -> None:
        """In a forked child: its environments are the parent's, its locks may be held by threads that are gone."""
        cls._registry_lock = threading.RLock()
        for env in cls._open.values():
            env._new_locks()
            env._stale = True

    @classmethod
    def acquire(cls, path: Path, *, map_size: int | None = None) -> LmdbEnv:
        """The process's environment for the store at `path`; each acquire needs one release."""
        data = path / "data.mdb"
        try:
            inode = data.stat()
            if not stat.S_ISREG(inode.st_mode):
                raise OSError(0, "its data.mdb is not a file")
            why = databytes.too_short(data)
        except OSError as fault:
            raise StoreUnavailable(
                path=path, why=fault.strerror, remedy="Give the folder of a store that ef made."
            ) from None
        if why is not None:
            raise Damaged(where=str(data), what=why)
        name = (inode.st_dev, inode.st_ino)
        with cls._registry_lock:
            env = cls._open.get(name)
            if env is None:
                env = cls._open[name] = cls(path, map_size)
                env._name = name
            env._users += 1
            return env

    def release(self) -> bool:
        """Give the environment back; True when this was the last user and it is now closed."""
        with self._registry_lock:
            self._users -= 1
            if self._users:
                return False
            self._open.pop(self._name, None)
            if not self._stale:
                self._env.close()
            return True

    _name: tuple[int, int] = (0, 0)
    readonly = False
    """The store may be read here and not written. Without a lock file that can be written it is read without locks."""

    _stale = False
    """Its environment cannot be used: a parent's, or one that lost its map. It is opened anew when it is next used."""

    def _start(self) -> None:
        self._env = self._lmdb_open()
        flags = self._env.flags()
        if not (flags["sync"] and flags["metasync"]) or flags["writemap"] or flags["map_async"]:
            self._env.close()
            raise StoreUnavailable(
                path=self.path, why="LMDB would not be durable here", remedy="Report this, please."
            )
        self._env.reader_check()
        self._lock_inode = 0 if self.readonly else os.stat(self.path / "lock.mdb").st_ino
        self._dbs: dict[bytes, Any] = {}
        for name in DATABASES:
            try:
                self._dbs[name] = self._env.open_db(name, create=False)
            except lmdb.Error as fault:
                self._env.close()
                raise Damaged(
                    where=str(self.path / "data.mdb"),
                    what=f"database {name.decode()} is not there: {fault}",
                ) from None

    def _lmdb_open(self) -> Any:
        try:
            folder.write_lock_file(self.path)
        except OSError as fault:
            if fault.errno not in _MAY_ONLY_BE_READ:
                raise StoreUnavailable(
                    path=self.path,
                    why=f"its lock file is not there and cannot be made: {fault.strerror}",
                    remedy="Check the folder's rights and its disk.",
                ) from None
        locks = os.access(self.path / "lock.mdb", os.W_OK)
        self.readonly = not (locks and os.access(self.path / "data.mdb", os.W_OK))
        for size in self._sizes:
            try:
                return lmdb.open(
                    os.fsencode(self.path), map_size=size, max_dbs=8, mode=0o600, create=False, readahead=False,
                    sync=True, metasync=True, writemap=False, map_async=False, max_readers=READERS_MAX,
                    readonly=self.readonly, lock=locks,
                )  # fmt: skip
            except lmdb.MemoryError:
                continue
            except _CORRUPT as fault:
                raise Damaged(where=str(self.path / "data.mdb"), what=str(fault)) from None
            except lmdb.Error as fault:
                raise StoreUnavailable(
                    path=self.path, why=str(fault), remedy="Check the folder's rights and its disk."
                ) from None
        raise StoreUnavailable(
            path=self.path,
            why=f"not even {self._sizes[-1] >> 20} MiB of address space could be had",
            remedy="Raise the process's memory limit (ulimit -v).",
        )

    def _mine(self) -> Any:
        if self._stale:
            with self.write_lock:
                if self._stale:
                    self._env.close()
                    self._start()
                    self._stale = False
        return self._env

    @contextlib.contextmanager
    def read(self) -> Generator[Txn, None, None]:
        """A read transaction: one consistent moment of the store. Keep it short."""
        txn = self._begin_read(self._mine())
        try:
            with txn:
                yield Txn(txn, self._dbs)
        except lmdb.Error as fault:
            raise self._unusable(fault) from None
        finally:
            self._gate.leave()

    def names(self) -> list[bytes]:
        """Names of all databases that the data file holds."""
        with self.read() as txn:
            return txn.names()

    def _begin_read(self, env: Any) -> Any:
        while True:
            self._gate.enter()
            try:
                return env.begin()
            except lmdb.MapResizedError:
                self._gate.leave()
                if self._gate.nested():
                    why = "another process has just enlarged it"
                    raise Busy(path=self.path, why=why) from None
                with self.write_lock:
                    self._follow(env)
            except lmdb.Error as fault:
                self._gate.leave()
                raise self._unusable(fault) from None

    def _begin_write(self, env: Any) -> Any:
        while True:
            try:
                return env.begin(write=True)
            except lmdb.MapResizedError:
                self._follow(env)
            except lmdb.Error as fault:
                raise self._unusable(fault) from None

    def _unusable(self, fault: lmdb.Error) -> Exception:
        if isinstance(fault, _CORRUPT):
            return Damaged(where=str(self.path / "data.mdb"), what=str(fault))
        return StoreUnavailable(
            path=self.path, why=str(fault), remedy="Close it, then open it again."
        )

    def _resize(self, env: Any, size: int) -> lmdb.Error | None:
        """Why the map could not be replaced; the environment has none then, and is opened anew when it is next used."""
        with self._gate.alone():
            try:
                env.set_mapsize(size)
            except lmdb.Error as fault:
                self._stale = True
                return fault
        return None

    def _follow(self, env: Any) -> None:
        """Another process enlarged the map: do so too."""
        fault = self._resize(env, 0)
        if fault is not None:
            raise self._unusable(fault)

    def write(self, work: Callable[[Txn], T]) -> T:
        """Run `work` in one write transaction and commit it durably. Raises CannotWrite, CommitFailed."""
        with self.write_lock:
            env = self._mine()
            if self.readonly:
                raise CannotWrite(
                    path=self.path,
                    why="the disk or its rights let it be read only",
                    remedy="Copy the store to a folder that can be written.",
                )
            self._lock_file_is_ours()
            while True:
                try:
                    return self._attempt(env, work)
                except lmdb.MapFullError:
                    self._grow(env)

    def _attempt(self, env: Any, work: Callable[[Txn], T]) -> T:
        txn = self._begin_write(env)
        try:
            result = work(Txn(txn, self._dbs))
        except lmdb.MapFullError:
            txn.abort()
            raise
        except _CORRUPT as fault:
            txn.abort()
            raise Damaged(where=str(self.path / "data.mdb"), what=str(fault)) from None
        except lmdb.Error as fault:
            txn.abort()
            raise CannotWrite(
                path=self.path, why=str(fault), remedy="Free space, then retry."
            ) from None
        except BaseException:
            txn.abort()
            raise
        try:
            txn.commit()
        except lmdb.MapFullError:
            raise
        except lmdb.Error as fault:
            self._reopen(fault)
            raise CommitFailed(str(fault)) from None
        return result

    def _reopen(self, fault: Exception) -> None:
        self._stale = True
        try:
            self._mine()
        except Exception as second:
            raise OutcomeUnknown(
                path=self.path, why=f"{fault}; opening it again failed: {second}"
            ) from None

    def _grow(self, env: Any) -> None:
        fault = self._resize(env, env.info()["map_size"] * 2)
        if fault is not None:
            raise CannotWrite(
                path=self.path,
                why=f"the memory map is full and cannot grow: {fault}",
                remedy="Raise the process's memory limit (ulimit -v), then retry.",
            )

    def _lock_file_is_ours(self) -> None:
        try:
            same = os.stat(self.path / "lock.mdb").st_ino == self._lock_inode
        except OSError:
            same = False
        if not same:
            raise StoreUnavailable(
                path=self.path,
                why="its lock file was deleted or replaced while it was open",
                remedy="Close every process that uses the store, then run `ef verify`.",
            )


def create(path: Path, fill: Callable[[Txn], None]) -> None:
    """Make a store at `path` (or where it links to): born in a temporary folder with what `fill` puts, then moved.

    Losing a race against another creator is no error: the other's store is there then.
    """
    target = path
    try:
        target = Path(os.path.realpath(path))
        with folder.birthplace(target) as birth:
            folder.write_lock_file(birth)
            folder.new_file(birth / "data.mdb")
            env = lmdb.open(
                os.fsencode(birth), map_size=1 << 20, max_dbs=8, mode=0o600, max_readers=READERS_MAX
            )
            try:
                dbs = {name: env.open_db(name) for name in DATABASES}
                with env.begin(write=True) as txn:
                    fill(Txn(txn, dbs))
            finally:
                env.close()
            folder.settle(birth, target)
    except (OSError, ValueError, lmdb.Error) as fault:
        if not os.path.exists(target / "data.mdb"):
            raise CannotWrite(
                path=path, why=str(fault), remedy="Give a folder that can be written."
            ) from None


os.register_at_fork(after_in_child=LmdbEnv.forked)
