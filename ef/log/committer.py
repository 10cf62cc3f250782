"""Group commit: one writer for all logs and sessions of a process that share a store.

Requests wait in a queue; whoever commits takes what waits, prepares each request on the store as the ones before it
will leave it, and commits them together. A request whose preparation fails is answered and leaves no trace in the
group; a group that cannot be committed is tried again one by one, so that it fails only whose fault it is.
A caller that finds nobody committing and nothing waiting commits for itself, at once. Else the writer thread does: it
waits a moment for the callers of the group before, but never when one caller waits alone.
Bounds: requests that wait hold at most IN_FLIGHT_BYTES_MAX together; a caller beyond it waits.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from ..errors import OutcomeUnknown, StoreUnavailable, UsageError
from .ahead import Ahead
from .base import Prepared
from .points import reached
from .telemetry import Telemetry

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
IN_FLIGHT_BYTES_MAX = 64 << 20
GROUP_BYTES_MAX = 16 << 20
GATHER_SECONDS = 0.001
WAKE_SECONDS = 1.0
EXIT_SECONDS = 10.0
NOBODY = 0
"""Stands for the thread that writes, where none does and none may."""

Build = Callable[[Ahead], list[Prepared]]


class Pending(Future[T]):
    """The future of a request. In a forked child it is settled only if it was when the child began."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path, self._pid, self._settled = path, os.getpid(), False
        self.writer: Committer | None = None
        self.set_running_or_notify_cancel()

    def settle(self, result: T) -> None:
        """Give the result, once."""
        if not self.done():
            self.writer = None
            self.set_result(result)
            self._settled = True

    def fail(self, fault: BaseException) -> None:
        """Give the fault instead."""
        if not self.done():
            self.writer = None
            self.set_exception(fault)
            self._settled = True

    def result(self, timeout: float | None = None) -> T:
        """Wait for the result. Raises OutcomeUnknown in a forked child that asks for its parent's append."""
        self._must_be_mine()
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the fault, None when there is none. Raises as `result` does."""
        self._must_be_mine()
        return super().exception(timeout)

    def _must_be_mine(self) -> None:
        if self._pid != os.getpid() and not self._settled:
            raise OutcomeUnknown(path=self._path, why="the process that appends is another one")
        if self.writer is not None:
            self.writer.not_inside()


class Request(Generic[T]):
    """What a caller wants written: `build` prepares it (it may run again, so it has no effects but its result);
    `settle` makes the result out of the position of its first record, once the group is durable."""

    __slots__ = (
        "_path", "_result", "_told", "accepted", "build", "fault", "first", "future", "new", "settle", "size",
    )  # fmt: skip

    def __init__(self, path: Path, build: Build, settle: Callable[[int], T], size: int) -> None:
        self.build, self.settle, self.size = build, settle, size
        self.new: list[Prepared] = []
        self.first = 0
        self.accepted = 0.0
        self.fault: BaseException | None = None
        self.future: Pending[T] | None = None
        """For who does not wait; made when the request is queued."""

        self._path = path
        self._told = False
        self._result: T

    def prepare(self, view: Ahead) -> None:
        """Build on a view, and let the view take the records in. A fault is kept for its caller."""
        before = (len(self.new), type(self.fault)) if self.first else None
        self.new, self.fault, self.first = [], None, view.store_tip()[0] + 1
        try:
            self.new = self.build(view)
        except Exception as fault:
            self.fault = fault
        else:
            view.take_in(self.new)
        if before not in (None, (len(self.new), type(self.fault))):
            view.strayed = True

    def answer(self) -> None:
        """Tell the caller; the group is durable."""
        if self._told:
            return
        if self.fault is None:
            try:
                self._result = self.settle(self.first)
            except Exception as fault:
                self.fault = fault
        self._told = True
        if self.future is not None:
            if self.fault is None:
                self.future.settle(self._result)
            else:
                self.future.fail(self.fault)

    def fail(self, fault: BaseException) -> None:
        """Tell the caller that nothing is known to be durable, and why."""
        if not self._told:
            self._told, self.fault = True, fault
            if self.future is not None:
                self.future.fail(fault)

    def outcome(self) -> T:
        """What the caller was told."""
        if self.fault is not None:
            raise self.fault
        return self._result

    def queued(self, writer: Committer) -> Pending[T]:
        """Its future, now that it waits for a writer."""
        future = self.future = Pending(self._path)
        future.writer = writer
        return future


Commit = Callable[[Sequence[Request[Any]]], None]
"""Prepare, put and commit a group, and set the fault of each request that failed. Raises what fails them all."""


class Committer:
    """The queue and the writer of one store in this process. `commit` does the work, one call at a time."""

    _all: ClassVar[weakref.WeakSet[Committer]] = weakref.WeakSet()

    def __init__(self, path: Path, commit: Commit) -> None:
        self._path, self._commit = path, commit
        self.telemetry: Telemetry | None = None
        self._closed = False
        self._start()
        self._all.add(self)

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._queue: deque[Request[Any]] = deque()
        self._bytes = 0
        self._busy: int | None = None
        self._awaited = 1
        self._thread: threading.Thread | None = None
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self.groups = self.requests = self.largest = 0

    @classmethod
    def forked(cls) -> None:
        """In a forked child: its own locks and queue; what waited is the parent's to write."""
        for committer in cls._all:
            committer._start()

    @classmethod
    def at_exit(cls) -> None:
        """The interpreter ends: write what waits, for a while."""
        end = time.monotonic() + EXIT_SECONDS
        for committer in list(cls._all):
            committer.close(max(0.0, end - time.monotonic()))

    # For callers.

    def run(self, request: Request[T]) -> T:
        """Have a request written; its result. It is written here and now where nobody else writes or waits."""
        self.not_inside()
        me = threading.get_ident()
        alone = False
        try:
            alone = self._take_turn()
            if alone:
                if self.telemetry is not None:
                    request.accepted = time.perf_counter()
                reached("append.accepted")
                self._write([request])
        finally:
            if self._busy == me:  # in one step: an interrupt must not leave the turn taken
                self._busy = None
                self._wake_all()
        return request.outcome() if alone else self.submit(request).result()

    def submit(self, request: Request[T]) -> Pending[T]:
        """Queue a request; waits while too many bytes are in flight."""
        with self._lock:
            while not self._has_room(request.size):
                self._changed.wait()
            return self._enqueue(request)

    async def awaited(self, request: Request[T]) -> T:
        """Queue a request and await its result. Where too many bytes are in flight only this task waits."""
        import asyncio

        loop = asyncio.get_running_loop()
        while True:
            with self._lock:
                if self._has_room(request.size):
                    future = self._enqueue(request)
                    break
                room: asyncio.Future[None] = loop.create_future()
                self._waiting.append((loop, room))
            await room
        return await asyncio.wrap_future(future)

    def flush(self) -> None:
        """Wait until what waits now is written."""
        self.not_inside()
        with self._lock:
            if self._closed or (not self._queue and self._busy is None):
                return
            last: Request[None] = Request(self._path, lambda view: [], lambda first: None, 0)
            future = self._enqueue(last)
        future.exception()

    @property
    def closed(self) -> bool:
        """Whether it takes nothing more."""
        return self._closed

    @property
    def in_flight(self) -> tuple[int, int]:
        """(requests, bytes) that wait for their turn."""
        with self._lock:
            return len(self._queue), self._bytes

    @contextlib.contextmanager
    def alone(self) -> Generator[None, None, None]:
        """Nothing is written meanwhile. Who is alone may queue requests, and must not wait for them."""
        with self._lock:
            self._changed.wait_for(lambda: self._busy is None)
            self._busy = NOBODY
        try:
            yield
        finally:
            self._end_turn()

    def close(self, timeout: float | None = None) -> None:
        """Write what waits, then take nothing more. What is not written after `timeout` fails as outcome unknown."""
        self.not_inside()
        end = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            self._closed = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._queue and self._busy is None, timeout)
            left = [*self._queue]
            self._queue.clear()
            self._bytes = 0
            thread, self._thread = self._thread, None
            self._changed.notify_all()
        for request in left:
            request.fail(OutcomeUnknown(path=self._path, why="the process ends"))
        if thread is not None:
            thread.join(None if end is None else max(0.0, end - time.monotonic()))

    # Under the lock.

    def _has_room(self, size: int) -> bool:
        self._must_be_open()
        if not self._bytes or self._bytes + size <= IN_FLIGHT_BYTES_MAX:
            return True
        return self._busy == threading.get_ident()  # a future's callback cannot wait for itself

    def _must_be_open(self) -> None:
        if self._closed:
            raise StoreUnavailable(path=self._path, why="it is closed", remedy="Open it again.")

    def not_inside(self) -> None:
        """Raises UsageError where the caller is called by an append of this store: a future's callback, a listener."""
        if self._busy == threading.get_ident():
            raise UsageError(detail="an append cannot wait for another one inside itself")

    def _enqueue(self, request: Request[T]) -> Pending[T]:
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="ef-writer", daemon=True)
            thread.start()
            self._thread = thread
        if self.telemetry is not None:
            request.accepted = time.perf_counter()
        future = request.queued(self)
        self._queue.append(request)
        self._bytes += request.size
        reached("append.accepted")
        if len(self._queue) >= self._awaited:
            self._changed.notify_all()
        return future

    # Turns.

    def _take_turn(self) -> bool:
        """Whether the turn was free for the caller: nobody writes and nothing waits."""
        with self._lock:
            self._must_be_open()
            if self._busy is not None or self._queue:
                return False
            self._busy = threading.get_ident()
            return True

    def _end_turn(self) -> None:
        self._busy = None
        self._wake_all()

    def _wake_all(self) -> None:
        with self._lock:
            self._changed.notify_all()

    def _work(self) -> None:
        """The writer thread."""
        before = 1
        while before:
            before = self._one_group(before)

    def _one_group(self, before: int) -> int:
        """How many the next group held; 0 when nothing comes any more. What it held is not held on to."""
        with self._lock:
            self._awaited = 1
            while not self._may_write():  # who was interrupted as he ended his turn woke nobody
                self._changed.wait(WAKE_SECONDS if self._queue else None)
            if not self._queue:
                return 0
            self._busy = threading.get_ident()
            if before > 1:
                self._gather(before)
            group = self._group()
        # Who waits hears of every fault; what is left is raised by a callback, in a thread of ours.
        with contextlib.suppress(BaseException):
            self._write(group)
        self._end_turn()
        return len(group)

    def _may_write(self) -> bool:
        return self._busy is None and (bool(self._queue) or self._thread is None)

    def _gather(self, before: int) -> None:
        """Those who were in the group before come back soon, most likely."""
        self._awaited = before
        end = time.monotonic() + GATHER_SECONDS
        while len(self._queue) < before and (left := end - time.monotonic()) > 0:
            if not self._changed.wait(left):
                return

    def _group(self) -> list[Request[Any]]:
        group: list[Request[Any]] = []
        size = 0
        while self._queue and (not group or size + self._queue[0].size <= GROUP_BYTES_MAX):
            request = self._queue.popleft()
            group.append(request)
            size += request.size
        self._bytes -= size
        waiting, self._waiting = self._waiting, []
        for loop, room in waiting:
            with contextlib.suppress(RuntimeError):  # its event loop is closed
                loop.call_soon_threadsafe(_wake, room)
        self._changed.notify_all()
        return group

    def _write(self, group: Sequence[Request[Any]]) -> None:
        """Have a group written and its callers told."""
        self.groups += 1
        self.requests += len(group)
        self.largest = max(self.largest, len(group))
        try:
            self._commit(group)
        except BaseException as fault:
            for request in group:
                request.fail(fault)
            return
        raised: BaseException | None = None
        for request in group:  # each is answered, whatever a callback raises
            try:
                request.answer()
            except BaseException as fault:
                raised = fault
        if raised is not None:
            raise raised
        reached("append.acknowledged")
        telemetry = self.telemetry
        if telemetry is not None:
            now = time.perf_counter()
            with contextlib.suppress(Exception):
                for request in group:
                    telemetry.appended(now - request.accepted)


def _wake(room: asyncio.Future[None]) -> None:
    if not room.done():
        room.set_result(None)


atexit.register(Committer.at_exit)
os.register_at_fork(after_in_child=Committer.forked)
