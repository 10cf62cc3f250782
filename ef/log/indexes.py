"""Compares an index with the records that it should lead to, in space that does not grow with them.

Each row that should be there and each that is there is hashed, and the hashes are added up: the sums agree when the
rows do, in whatever order they came. Only where they differ is it worth to gather all rows and name those that differ.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator

from ..events import Header
from .rows import KEY, SEQ, U64, stream_hash

_TWO = struct.Struct(">QQ").pack


class Indexes:
    """The rows of the databases `seq` and `key` that the records call for."""

    def __init__(self) -> None:
        self._salt = os.urandom(8)
        self._sums = {SEQ: 0, KEY: 0}
        self._hashes: dict[str, bytes] = {}

    def _rows(self, position: int, h: Header) -> tuple[tuple[bytes, bytes], tuple[bytes, bytes]]:
        name = self._hashes.get(h.stream) or self._hash(h.stream)
        at = U64.pack(position)
        return (name + U64.pack(h.seq), at), (h.uuid, at)

    def record(self, position: int, h: Header) -> None:
        """A record was met."""
        stream, salt, sums = h.stream, self._salt, self._sums
        name = self._hashes.get(stream) or self._hash(stream)
        sums[SEQ] += hash(salt + name + _TWO(h.seq, position))
        sums[KEY] += hash(salt + h.uuid + U64.pack(position))

    def _hash(self, stream: str) -> bytes:
        name = self._hashes[stream] = stream_hash(stream)
        return name

    def agrees(self, name: bytes, rows: Iterable[list[bytes]]) -> bool:
        """Whether these rows of an index, key and position as one, are those that the records call for."""
        salt = self._salt
        return sum(sum([hash(salt + row) for row in some]) for some in rows) == self._sums[name]

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
