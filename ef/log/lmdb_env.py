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
from typing import Any, ClassVar, Protocol, TypeVar

import lmdb

from ..errors import Busy, CannotWrite, Damaged, OutcomeUnknown, StoreUnavailable
from . import databytes, folder
from .folder import LOCK_BYTES as LOCK_BYTES
from .openfiles import OpenFiles
from .transactions import DATABASES, ReadGate, Reading
from .transactions import Txn as Txn

T = TypeVar("T")
FORK_SECONDS_MAX = 2.0
"""A fork waits so long for those who are in the engine, and a child for the engine that it inherited."""

MAP_SIZES = (64 << 30, 4 << 30, 256 << 20)
"""Address space to ask for, largest first: it costs nothing but address space, which containers may limit."""

READERS_MAX = 1022
_ONLY_READ = (
    "the disk or its rights let it be read only",
    "Copy the store to a folder that can be written.",
)
ONLY_ASKED = ("it was opened to be read only", "Open it without `readonly`.")
_CORRUPT = (
    lmdb.CorruptedError,
    lmdb.PageNotFoundError,
    lmdb.InvalidError,
    lmdb.VersionMismatchError,
)


class Closes(Protocol):
    """What can be closed."""

    def close(self) -> None:
        """Finish, and let go."""
        ...


class CommitFailed(Exception):
    """A commit raised; the environment has been opened again, so the caller can look what was kept."""


class LmdbEnv:
    """One open environment, shared by everybody in this process who opens the same store."""

    _open: ClassVar[dict[tuple[int, int], LmdbEnv]] = {}
    _registry_lock: ClassVar[threading.RLock] = threading.RLock()

    def __init__(self, path: Path, map_size: int | None, *, readonly: bool = False) -> None:
        self.path = path
        self._only_reads = readonly
        self._sizes = (map_size,) if map_size else MAP_SIZES
        self._users = 0
        self._files = OpenFiles(path)
        self._new_locks()
        self._start()

    def _new_locks(self) -> None:
        self.write_lock = threading.RLock()
        self._gate = ReadGate()

    @classmethod
    def forks(cls) -> None:
        """Before a fork: nobody is in the engine meanwhile, or a child could not close what it inherits."""
        held: list[LmdbEnv | Reading] = []
        cls._forking.held = held
        for env in list(cls._open.values()):
            if env.write_lock.acquire(timeout=FORK_SECONDS_MAX):
                held.append(env)
                held.append(env._gate.hold(FORK_SECONDS_MAX))

    @classmethod
    def has_forked(cls) -> None:
        """In the parent, after a fork."""
        held, cls._forking.held = cls._forking.held, []
        for each in held:  # with the list go the gates' wishes
            if isinstance(each, LmdbEnv):
                each.write_lock.release()

    @classmethod
    def forked(cls) -> None:
        """In a forked child: its environments are the parent's, its locks may be held by threads that are gone."""
        cls._registry_lock = threading.RLock()
        for env in cls._open.values():
            env._new_locks()
            env._stale = env._inherited = True

    @classmethod
    def acquire(
        cls,
        path: Path,
        *,
        map_size: int | None = None,
        plain: str | None = None,
        readonly: bool = False,
    ) -> LmdbEnv:
        """The process's environment for the store at `path`; each acquire needs one release.

        A file that liblmdb refuses, or that it must not see (`plain` or its bytes say why), is read in plain Python.
        `readonly`: nobody writes, and its opening waits for no writer, until somebody opens it without.
        """
        data = path / "data.mdb"
        try:
            inode = data.stat()
            if not stat.S_ISREG(inode.st_mode):
                raise OSError(0, "its data.mdb is not a file")
            why = plain or databytes.unsafe(data)
        except OSError as fault:
            raise StoreUnavailable(
                path=path, why=fault.strerror, remedy="Give the folder of a store that ef made."
            ) from None
        name = (inode.st_dev, inode.st_ino)
        with cls._registry_lock:
            env = cls._open.get(name)
            if env is None:
                env = cls._open[name] = cls._made(path, map_size, why, readonly)
                env._name = name
            elif env._only_reads and not readonly:
                env._let_write()
            env._users += 1
            return env

    @classmethod
    def _made(cls, path: Path, map_size: int | None, why: str | None, readonly: bool) -> LmdbEnv:
        from .plain import PlainEnv  # it is one of us

        if why is None:
            try:
                return cls(path, map_size, readonly=readonly)
            except Damaged as fault:
                why = str(fault.what)
        return PlainEnv(path, why)

    def release(self) -> bool:
        """Give the environment back; True when this was the last user and it is now closed."""
        try:
            if self._users == 1 and self.writer is not None:
                self.writer.close()  # without the registry's lock: what it writes may call who opens a store
        finally:
            with self._registry_lock:
                self._users -= 1
                if not self._users:
                    self._open.pop(self._name, None)
                    if not self._stale:
                        self._env.close()
                    self._files.let_go()
        return not self._users

    def _let_write(self) -> None:
        """It was opened only to be read; from now on it is written too."""
        with self.write_lock:
            self._only_reads = False
            self._stale = True

    @classmethod
    def registry(cls) -> threading.RLock:
        """Held while an environment, or what is shared with it, is made or given back."""
        return cls._registry_lock

    _name: tuple[int, int] = (0, 0)
    writer: Closes | None = None
    """What writes here for all logs of this process; closed with the environment."""

    readonly = False
    """The store may be read here and not written. Without a lock file that can be written it is read without locks."""

    stale_readers = 0
    """How many readers that had died were cleared as it was opened."""

    _forking: ClassVar[threading.local] = threading.local()

    _inherited = False
    """Its environment is that of the process that this one was forked from."""

    _stale = False
    """Its environment cannot be used: a parent's, or one that lost its map. It is opened anew when it is next used."""

    def _start(self) -> None:
        try:
            self._env = self._lmdb_open()
            try:
                self._look_around()
            except BaseException:
                self._env.close()
                raise
        except BaseException:
            self._files.let_go()
            raise

    def _look_around(self) -> None:
        flags = self._env.flags()
        if not (flags["sync"] and flags["metasync"]) or flags["writemap"] or flags["map_async"]:
            raise StoreUnavailable(
                path=self.path, why="LMDB would not be durable here", remedy="Report this, please."
            )
        self.stale_readers = self._env.reader_check()
        self._files.opened(readonly=self.readonly)
        self._dbs: dict[bytes, Any] = {}
        # LMDB's binding takes the write lock for this, and waits for whoever has it; not where it only reads.
        for name in DATABASES:
            try:
                self._dbs[name] = self._env.open_db(name, create=False)
            except lmdb.Error as fault:
                raise Damaged(
                    where=str(self.path / "data.mdb"),
                    what=f"database {name.decode()} is not there: {fault}",
                ) from None

    def _lmdb_open(self) -> Any:
        self._files.claim(self._name[1])
        locks = os.access(self.path / "lock.mdb", os.W_OK)
        writes = locks and os.access(self.path / "data.mdb", os.W_OK)
        self.readonly = self._only_reads or not writes
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
        """The environment; opened anew when it cannot be used any more, once those who read in it have ended that."""
        if self._stale and not self._gate.nested():
            with self.write_lock, self._gate.alone():
                if self._stale:
                    self._close_engine()
                    self._start()
                    self._stale = False
        return self._env

    def _close_engine(self) -> None:
        if self._inherited:  # it waits for ever for a thread of the parent that was in it
            closing = threading.Thread(target=self._env.close, daemon=True)
            closing.start()
            closing.join(FORK_SECONDS_MAX)
            if closing.is_alive():
                raise StoreUnavailable(
                    path=self.path,
                    why="the process was forked while another thread was in a transaction",
                    remedy="Fork when nothing is read or written, or start processes by `spawn`.",
                )
            self._inherited = False
        else:
            self._env.close()

    @contextlib.contextmanager
    def read(self) -> Generator[Txn, None, None]:
        """A read transaction: one consistent moment of the store. Keep it short."""
        reading = Reading()
        try:
            with self._begin_read(reading) as txn:
                yield Txn(txn, self._dbs)
        except lmdb.Error as fault:
            raise self._unusable(fault) from None
        finally:
            self._gate.leave(reading)

    def names(self) -> list[bytes]:
        """Names of all databases that the data file holds."""
        with self.read() as txn:
            return txn.names()

    def condition(self) -> dict[str, Any]:
        """What LMDB says of the environment, for doctor: flags, map, pages in use, and the readers of all processes.

        A reader is (pid, transactions that it is behind). `pages` counts those of the file, `used` those of the trees.
        """
        with self.read():
            env = self._env
            info, main = env.info(), env.stat()
            with env.begin() as txn:
                stats = [main, *(txn.stat(db) for db in self._dbs.values())]
                own = txn.id()
            kinds = ("branch_pages", "leaf_pages", "overflow_pages")
            lines = [line.split() for line in env.readers().splitlines()[1:]]
        readers = [(int(pid), own - int(at)) for pid, _, at in lines if at.isdecimal()]
        return {
            "flags": {name: bool(on) for name, on in env.flags().items()},
            "map_size": int(info["map_size"]),
            "page_size": int(main["psize"]),
            "pages": int(info["last_pgno"]) + 1,
            "used": 2 + sum(int(stat[kind]) for stat in stats for kind in kinds),
            "readers": readers,
            "stale": self.stale_readers,
            "readonly": self.readonly,
        }

    def try_write_lock(self) -> None:
        """Take LMDB's write lock and give it back; it waits for as long as somebody holds it."""
        self._begin_write(self._mine()).abort()

    def copy_to(self, target: Path) -> None:
        """A compact copy of one moment of the data file, in a folder that holds none. Raises OSError, Damaged."""
        env = self._mine()
        try:
            env.copy(os.fsencode(target), compact=True)
        except _CORRUPT as fault:
            raise Damaged(where=str(self.path / "data.mdb"), what=str(fault)) from None
        except lmdb.Error as fault:
            raise (_of_system(fault) if self._users else self._unusable(fault)) from None

    def _begin_read(self, reading: Reading) -> Any:
        while True:
            env = self._mine()
            self._gate.enter(reading)
            if env is not self._env:  # it was opened anew in between
                self._gate.leave(reading)
                continue
            try:
                return env.begin()
            except lmdb.MapResizedError:
                self._gate.leave(reading)
                if self._gate.nested():
                    why = "another process has just enlarged it"
                    raise Busy(path=self.path, why=why) from None
                with self.write_lock:
                    self._follow(env)

    def _begin_write(self, env: Any) -> Any:
        while True:
            try:
                return env.begin(write=True)
            except lmdb.MapResizedError:
                self._follow(env)
            except lmdb.Error as fault:
                raise self._unusable(fault) from None

    def _unusable(self, fault: lmdb.Error) -> Exception:
        if isinstance(fault, (*_CORRUPT, lmdb.BadTxnError)):  # bad: a page of it was
            return Damaged(where=str(self.path / "data.mdb"), what=str(fault))
        if not self._users:
            return StoreUnavailable(path=self.path, why="it is closed", remedy="Open it again.")
        why = str(fault).rstrip(".")
        return StoreUnavailable(path=self.path, why=why, remedy="Close it, then open it again.")

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
                why, remedy = ONLY_ASKED if self._only_reads else _ONLY_READ
                raise CannotWrite(path=self.path, why=why, remedy=remedy)
            self._files.are_ours(self._name[1])
            while True:
                try:
                    result = self._attempt(env, work)
                    self._files.grown()
                    return result
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


def _of_system(fault: lmdb.Error) -> OSError:
    """What the system said to the engine, by its number: the engine passes on the words alone."""
    said = str(fault)
    number = next((n for n in errno.errorcode if said.endswith(os.strerror(n))), 0)
    return OSError(number, os.strerror(number) if number else said)


def engine() -> tuple[str, bool]:
    """The version of the LMDB engine, and whether it has the binding's own patches; a system's LMDB has not."""
    return ".".join(map(str, lmdb.version()[:3])), len(lmdb.version(subpatch=True)) > 3


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
            why, remedy = folder.told(_of_system(fault) if isinstance(fault, lmdb.Error) else fault)
            raise CannotWrite(path=path, why=why, remedy=remedy) from None


os.register_at_fork(
    before=LmdbEnv.forks, after_in_parent=LmdbEnv.has_forked, after_in_child=LmdbEnv.forked
)
