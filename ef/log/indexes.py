"""Compares an index with the records that it should lead to, in space that does not grow with them.

Each row that should be there and each that is there is hashed, and the hashes are added up: the sums agree when the
rows do, in whatever order they came. Only where they differ is it worth to gather all rows and name those that differ.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from ..events import Header
from .rows import KEY, SEQ, U64, stream_hash

_WRAP = 2**64 - 1


class Indexes:
    """The rows of the databases `seq` and `key` that the records call for."""

    def __init__(self) -> None:
        self.records = 0
        self._salt = os.urandom(8)
        self._sums = {SEQ: 0, KEY: 0}
        self._hashes: dict[str, bytes] = {}

    def _rows(self, position: int, h: Header) -> tuple[tuple[bytes, bytes], tuple[bytes, bytes]]:
        name = self._hashes.get(h.stream)
        if name is None:
            name = self._hashes[h.stream] = stream_hash(h.stream)
        at = U64.pack(position)
        return (name + U64.pack(h.seq), at), (h.uuid, at)

    def record(self, position: int, h: Header) -> None:
        """A record was met."""
        (by_seq, at), (by_key, _) = self._rows(position, h)
        self._sums[SEQ] += hash(self._salt + by_seq + at) & _WRAP
        self._sums[KEY] += hash(self._salt + by_key + at) & _WRAP
        self.records += 1

    def agrees(self, name: bytes, rows: Iterable[tuple[bytes, bytes]]) -> bool:
        """Whether these rows of an index are those that the records call for."""
        salt = self._salt
        return sum(hash(salt + key + at) & _WRAP for key, at in rows) == self._sums[name]

    def differences(
        self,
        name: bytes,
        records: Iterable[tuple[int, Header]],
        rows: Iterable[tuple[bytes, bytes]],
    ) -> Iterator[str]:
        """What is wrong with the rows of an index, given all records again."""
        which = (SEQ, KEY).index(name)
        wanted = dict(self._rows(position, h)[which] for position, h in records)
        count = 0
        for key, at in rows:
            count += 1
            if wanted.get(key) != at:
                yield f"the index entry {key.hex()} does not lead to its record"
        if count != len(wanted):
            yield f"it has {count} entries for {len(wanted)} records"
