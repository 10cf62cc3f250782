"""How a group is written: prepared on the store as it is, put in one transaction, and committed.

Another process may commit between our look and our write: the group is prepared again, and after OPTIMISTIC_TRIES, or
where that happened a moment ago, it is prepared inside the write transaction, so that nobody starves.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import CannotWrite, EfError, OutcomeUnknown, RolledBack
from .ahead import Ahead
from .base import Prepared, Record
from .committer import Committer, Request
from .lmdb_env import CommitFailed, LmdbEnv, Txn
from .points import reached
from .rows import LOG, U64, Memo, put_records, record_at, record_of_key
from .telemetry import Group
from .tipfile import TipFile

OPTIMISTIC_TRIES = 3
CONTENDED_GROUPS = 64
"""For so many groups after another process came first, preparation happens inside the transaction."""

Body = Callable[[Record], bytes]


class _Moved(Exception):
    """Another process committed between our look and our write."""


class StoreWriter:
    """The writing side of one environment, shared by all logs over it in this process."""

    def __init__(self, env: LmdbEnv, body: Body) -> None:
        self._env, self._body = env, body
        self._contended = 0
        self._known: tuple[int, bytes] | None = None
        self._memo = Memo()
        self.tipfile = TipFile(env.path)
        self.listeners: list[Callable[[], None]] = []
        self.committer = Committer(env.path, self._commit)

    @classmethod
    def of(cls, env: LmdbEnv, body: Body) -> StoreWriter:
        """The environment's writer; made for the first log, and anew when the last one has just closed it."""
        with LmdbEnv.registry():
            writer = env.writer
            if not isinstance(writer, cls) or writer.committer.closed:
                writer = env.writer = cls(env, body)
            return writer

    def close(self) -> None:
        """Write what waits and the tip file. The environment calls it before it closes."""
        self.committer.close()
        self.tipfile.flush()

    def _commit(self, group: Sequence[Request[Any]]) -> None:
        """See committer.Commit."""
        try:
            self._write(group)
        except OutcomeUnknown:
            raise
        except EfError:
            if len(group) == 1:
                raise
            self._one_by_one(group)

    def _one_by_one(self, group: Sequence[Request[Any]]) -> None:
        for request in group:
            try:
                self._write([request])
            except Exception as fault:
                request.fault = fault
            request.answer()

    def _write(self, group: Sequence[Request[Any]]) -> None:
        with self._env.write_lock:
            for _ in range(0 if self._contended else OPTIMISTIC_TRIES):
                if self._try(group):
                    return
                self._contended = CONTENDED_GROUPS
            self._write_locked(group)

    def _try(self, group: Sequence[Request[Any]]) -> bool:
        """Whether nobody came between the look and the write."""
        began = time.perf_counter()
        with self._env.read() as txn:
            view = self._look(txn)
            new = _prepare(group, view)
        prepared = time.perf_counter()
        try:
            if new:
                self._put(lambda txn: self._put_on(txn, new, view), new)
                self._committed(view)
        except _Moved:
            return False
        self._tell(group, new, began, prepared)
        return True

    def _write_locked(self, group: Sequence[Request[Any]]) -> None:
        """Under contention: prepare inside the transaction."""
        self._contended -= 1
        new: list[Prepared] = []
        views: list[Ahead] = []
        times = [time.perf_counter()]

        def work(txn: Txn) -> None:
            view = self._look(txn)
            new[:], views[:] = _prepare(group, view), [view]
            times[1:] = [time.perf_counter()]
            if new:
                put_records(txn, new, view.assumed[0] + 1, self._memo)

        self._put(work, new)
        if new:
            self._committed(views[0])
        self._tell(group, new, *times)

    def _look(self, txn: Txn) -> Ahead:
        """A view of the store; it goes on from the history that we know, or its file was written over under us."""
        view = Ahead(txn, self._body, self._memo)
        position, digest = view.assumed
        if self._known is not None and (position, digest) != self._known:
            known, was = self._known
            held = record_at(txn, U64.pack(known)).digest if known < position else digest
            if position < known or held != was:
                what = (
                    f"its data file was written over while it was open: its tip was at position {known}, and it holds "
                    f"another history that ends at position {position}"
                )
                raise RolledBack(where=f"store {self._env.path}", what=what)
        self._known = view.assumed
        return view

    def _tell(
        self,
        group: Sequence[Request[Any]],
        new: Sequence[Prepared],
        began: float,
        prepared: float,
    ) -> None:
        telemetry = self.committer.telemetry
        if telemetry is not None:
            failed = sum(request.fault is not None for request in group)
            size = sum(len(made.frame) for made in new)
            flush = time.perf_counter() - prepared
            with contextlib.suppress(Exception):
                telemetry.group(Group(len(group), len(new), size, failed, prepared - began, flush))

    def _put_on(self, txn: Txn, new: Sequence[Prepared], view: Ahead) -> None:
        reached("group.begun")
        if txn.last(LOG) != view.newest_row:
            raise _Moved
        put_records(txn, new, view.assumed[0] + 1, self._memo)
        reached("group.put")

    def _put(self, work: Callable[[Txn], None], new: Sequence[Prepared]) -> None:
        try:
            self._env.write(work)
        except CommitFailed as fault:
            try:
                kept = self._was_kept(new)
            except Exception as second:
                why = f"{fault}; looking what was kept failed: {second}"
                raise OutcomeUnknown(path=self._env.path, why=why) from None
            if not kept:
                raise CannotWrite(
                    path=self._env.path, why=str(fault), remedy="Free space, then retry."
                ) from None

    def _was_kept(self, new: Sequence[Prepared]) -> bool:
        """After a failed commit and a reopen: is our last record there? A transaction is kept whole or not at all."""
        last = new[-1].header
        with self._env.read() as txn:
            found = record_of_key(txn, last.stream, last.key)
            return found is not None and found.digest == new[-1].digest

    def _committed(self, view: Ahead) -> None:
        """What follows a commit. The position is our own: another process may be further by now."""
        self._known = view.store_tip()
        reached("group.durable")
        self.tipfile.moved(*view.store_tip())
        for notify in list(self.listeners):
            with contextlib.suppress(Exception):
                notify()
        reached("group.told")


def _prepare(group: Sequence[Request[Any]], view: Ahead) -> list[Prepared]:
    for request in group:
        request.prepare(view)
    reached("group.prepared")
    return [made for request in group for made in request.new]
