"""Following a store: the records behind a position, then those to come, each once, in the store's order.

Records are read by position, so a subscription cannot miss one: what it has seen is the last position that it was
given, and the next look begins behind that. Between two looks it sleeps; a commit of this process wakes it, and the
commits of other processes are noticed by a look every POLL_SECONDS, which costs one search in the index of positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from .base import Record
from .lmdb_log import LmdbLog

POLL_SECONDS = 0.2
"""A commit of another process is noticed at most so much later."""


class Subscription(Iterator[Record]):
    """Records of a log after a position, without end. Iterate it in one thread; stop it from any, or leave its `with`.

    `after`: a position (0: all but the genesis; `log.tip_position()`: only what is to come). `prefix`: only records of
    streams whose names begin so. `position` is that of the last record seen, passed over or given: where to go on from
    another time. Raises what reading the log raises, Damaged among it, and StoreUnavailable once the log is closed.
    """

    def __init__(self, log: LmdbLog, *, after: int = 0, prefix: str = "") -> None:
        self.position = after
        self._log, self._prefix = log, prefix
        self._stopped = False
        self._woken = Event()
        self._unlisten = log.on_commit(self._woken.set)
        self._records = log.all(after=after)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End the iteration, also one that waits."""
        self._stopped = True
        self._unlisten()
        self._woken.set()

    def __next__(self) -> Record:
        """The next record; waits until there is one. StopIteration after `stop`."""
        while not self._stopped:
            record = next(self._records, None)
            if record is None:
                # Cleared before the look: a commit during it wakes the wait that follows.
                self._woken.wait(POLL_SECONDS)
                self._woken.clear()
                self._records = self._log.all(after=self.position)
            else:
                self.position = record.position
                if record.header.stream.startswith(self._prefix):
                    return record
        raise StopIteration
