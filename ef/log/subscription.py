"""Following a store: the records behind a position, then those to come, each once, in the store's order.

Records are read by position, so a subscription cannot miss one: what it has seen is the last position that it was
given, and the next look begins behind that. Between two looks it sleeps; a commit of this process wakes it, and the
commits of other processes are noticed by a look every POLL_SECONDS, which costs one search in the index of positions.
"""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

from ..errors import EfError, NotFound
from . import given
from .base import Record
from .storelog import StoreLog

POLL_SECONDS = 0.2
"""A commit of another process is noticed at most so much later."""


class Subscription(Iterator[Record]):
    """Records of a log after a position, without end. Iterate it in one thread; stop it from any, or leave its `with`.

    `after`: a position (0: all but the genesis; `log.tip_position()`: only what is to come). `prefix`: only records of
    streams whose names begin so. `position` is that of the last record seen, passed over or given: where to go on from
    another time. Closing the log ends the iteration, as `stop` does. Raises what reading the log raises, Damaged among
    it; NotFound for a position that the log has not come to, from which records would be passed over.
    """

    def __init__(self, log: StoreLog, *, after: int = 0, prefix: str = "") -> None:
        end = log.tip_position()
        if given.number("after", after, least=-1) > end:
            remedy = f"Its positions are 0 to {end}."
            raise NotFound(what="position", name=after, where=f"store {log.path}", remedy=remedy)
        self.position = after
        given.text("prefix", prefix, empty=True)
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

    def _over(self) -> bool:
        return self._stopped or self._log.closed

    def __next__(self) -> Record:
        """The next record; waits until there is one. StopIteration after `stop`, and once the log is closed."""
        while not self._over():
            try:
                record = next(self._records, None)
            except EfError:
                if not self._over():
                    raise
                break  # it was closed while it was read
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
