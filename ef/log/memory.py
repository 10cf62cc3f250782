"""The plain log: a list of frames and two dictionaries. For tests, and for sessions that nobody needs to keep.

It keeps every rule of a log but one: what is acknowledged lives as long as the process.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..codec.digests import event_uuid
from ..errors import StoreUnavailable
from . import given
from .base import Prepared, Record
from .rowlog import PAGE_RECORDS, Clock, Entropy, RowLog, StoreTip, record_from


class MemoryLog(RowLog):
    """A Log (see base.Log) in memory; positions are places in its list, the genesis has position 0."""

    def __init__(
        self,
        *,
        now: Clock,
        entropy: Entropy = os.urandom,
        made_by: str = "ef",
        name: str = ":memory:",
    ) -> None:
        super().__init__(Path(name), now, entropy)
        self._lock = threading.Lock()
        self._listeners: list[Callable[[], None]] = []
        self._frames: list[bytes] = []
        self._places: list[tuple[str, int]] = []
        self._tip: StoreTip = (-1, b"")
        self._streams: dict[str, list[int]] = {}
        self._keys: dict[bytes, tuple[int, int]] = {}
        genesis = self._genesis(made_by)
        self._put(self._tip, genesis)
        self.store_id = genesis[0].header.key

    def close(self) -> None:
        """Write what waits; then it holds nothing any more."""
        super().close()
        with self._lock:
            self._frames, self._places, self._streams, self._keys = [], [], {}, {}

    def _must_be_mine(self) -> None:
        super()._must_be_mine()
        if self.closed:
            why = "it was in memory, it is closed, and what it held is gone"
            raise StoreUnavailable(path=self.path, why=why, remedy="Open a new one.")

    @contextmanager
    def _rows(self) -> Generator[None, None, None]:
        """What it holds, as it is at one moment: nobody closes it meanwhile."""
        self._must_be_mine()
        with self._lock:
            self._must_be_mine()
            yield

    def _must_take_appends(self) -> None:
        self._must_be_mine()

    def on_commit(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Call `notify` after each commit; returns what ends that."""
        listeners = self._listeners
        listeners.append(notify)
        return lambda: listeners.remove(notify) if notify in listeners else None

    def tip_position(self) -> int:
        """The position of the newest record; the genesis has position 0."""
        return self.store_tip()[0]

    def store_tip(self) -> StoreTip:
        """(position, digest) of the newest record."""
        self._must_be_mine()
        return self._tip

    def all(self, *, after: int = -1) -> Iterator[Record]:
        """Records of all streams in the store's order, from position after + 1."""
        given.number("after", after, least=-1)
        end = self.tip_position() + 1
        for position in range(after + 1, end):
            with self._rows():
                record = self._record(*self._places[position], position)
            yield record

    def _record(self, stream: str, seq: int, position: int) -> Record:
        return record_from(position, self._frames[position], stream, seq)

    def _last(self, stream: str) -> Record | None:
        with self._rows():
            rows = self._streams.get(stream)
            return self._record(stream, len(rows), rows[-1]) if rows else None

    def _page(self, stream: str, after: int, upto: int) -> list[Record]:
        with self._rows():
            rows = self._streams.get(stream, [])[after : min(upto, after + PAGE_RECORDS)]
            return [self._record(stream, after + n, at) for n, at in enumerate(rows, 1)]

    def _of_key(self, stream: str, key: str) -> Record | None:
        with self._rows():
            found = self._keys.get(event_uuid(stream, key))
            return None if found is None else self._record(stream, found[0], found[1])

    def _names(self) -> Iterator[str]:
        with self._rows():
            names = list(self._streams)
        yield from names

    def _put(self, assumed: StoreTip, new: Sequence[Prepared]) -> bool:
        with self._lock:
            for made in new:
                h = made.header
                position = len(self._frames)
                self._frames.append(made.frame)
                self._places.append((h.stream, h.seq))
                self._streams.setdefault(h.stream, []).append(position)
                self._keys[h.uuid] = (h.seq, position)
                self._tip = (position, made.digest)
        for notify in list(self._listeners):
            notify()
        return True
