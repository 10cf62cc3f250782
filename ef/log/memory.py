"""The plain log: a list of frames and two dictionaries. For tests, and for sessions that nobody needs to keep.

It keeps every rule of a log but one: what is acknowledged lives as long as the process.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..codec.digests import event_uuid
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
        self._frames: list[bytes] = []
        self._tip: StoreTip = (-1, b"")
        self._streams: dict[str, list[int]] = {}
        self._keys: dict[bytes, tuple[int, int]] = {}
        genesis = self._genesis(made_by)
        self._put(self._tip, genesis)
        self.store_id = genesis[0].header.key

    def store_tip(self) -> StoreTip:
        """(position, digest) of the newest record."""
        self._must_be_mine()
        return self._tip

    def all(self, *, after: int = -1) -> Iterator[Record]:
        """Records of all streams in the store's order, from position after + 1."""
        self._must_be_mine()
        with self._lock:
            places = {at: (s, n) for s, rows in self._streams.items() for n, at in enumerate(rows)}
            end = len(self._frames)
        for position in range(after + 1, end):
            stream, n = places[position]
            yield self._record(stream, n + 1, position)

    def _record(self, stream: str, seq: int, position: int) -> Record:
        return record_from(position, self._frames[position], stream, seq)

    def _last(self, stream: str) -> Record | None:
        self._must_be_mine()
        with self._lock:
            rows = self._streams.get(stream)
            return self._record(stream, len(rows), rows[-1]) if rows else None

    def _page(self, stream: str, after: int, upto: int) -> list[Record]:
        self._must_be_mine()
        with self._lock:
            rows = self._streams.get(stream, [])[after : min(upto, after + PAGE_RECORDS)]
            return [self._record(stream, after + n, at) for n, at in enumerate(rows, 1)]

    def _of_key(self, stream: str, key: str) -> Record | None:
        self._must_be_mine()
        with self._lock:
            found = self._keys.get(event_uuid(stream, key))
            return None if found is None else self._record(stream, found[0], found[1])

    def _names(self) -> Iterator[str]:
        self._must_be_mine()
        with self._lock:
            names = list(self._streams)
        yield from names

    def _put(self, assumed: StoreTip, new: Sequence[Prepared]) -> bool:
        with self._lock:
            for made in new:
                h = made.header
                position = len(self._frames)
                self._frames.append(made.frame)
                self._streams.setdefault(h.stream, []).append(position)
                self._keys[h.uuid] = (h.seq, position)
                self._tip = (position, made.digest)
        return True
