"""Bytes of a source by range, from the SourceLines records of its stream.

The chunks of a source lie one after another; which record holds which range is read from the headers once per source
and kept up as the source grows. A few unpacked chunks are kept, as items are read in order.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import Damaged, DamageError, NotFound
from ..events import Header, SourceLines
from .base import Log

CHUNKS_KEPT = 16


def source_stream(source: str) -> str:
    """The stream that holds a source's raw lines."""
    return f"source/{source}"


@dataclass(frozen=True, slots=True)
class _Index:
    """Never changed, only replaced: several threads may read one source."""

    seen: int = 0
    starts: tuple[int, ...] = ()
    ends: tuple[int, ...] = ()
    seqs: tuple[int, ...] = ()


class SourceBytes:
    """Reads spans of sources out of a log."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._indexes: dict[str, _Index] = {}
        self._chunks: OrderedDict[tuple[str, int], bytes] = OrderedDict()

    def read(self, source: str, start: int, end: int) -> bytes:
        """The bytes [start, end) of a source; Damaged when a record that holds some of them is missing or broken."""
        index = self._index(source, end)
        pieces: list[bytes] = []
        at = start
        n = max(bisect_right(index.starts, start) - 1, 0)
        while at < end:
            if n >= len(index.starts) or not index.starts[n] <= at < index.ends[n]:
                raise Damaged(
                    where=f"source {source}",
                    what=f"bytes {at} to {end} are in no record of its stream",
                )
            chunk = self._chunk(source, index.seqs[n])
            piece = chunk[at - index.starts[n] : end - index.starts[n]]
            pieces.append(piece)
            at += len(piece)
            n += 1
        return b"".join(pieces)

    def _index(self, source: str, end: int) -> _Index:
        index = self._indexes.get(source, _Index())
        if end <= max(index.ends[-1:], default=0):
            return index
        try:
            headers = [r.header for r in self._log.read(source_stream(source), after=index.seen)]
        except DamageError:
            headers = list(self._readable(source_stream(source), index.seen))
        ends = [h.origin.end for h in headers if h.origin is not None]
        if max([*index.ends[-1:], *ends], default=0) < end:
            # Beyond the tip there may be records still, where the last commit of the file was lost.
            seen = headers[-1].seq if headers else index.seen
            headers += self._each(source_stream(source), seen)
        if headers:
            held = [
                (h.origin.start, h.origin.end, h.seq)
                for h in headers
                if h.kind == SourceLines.__name__ and h.origin is not None
            ]
            index = _Index(
                headers[-1].seq,
                index.starts + tuple(start for start, _, _ in held),
                index.ends + tuple(end for _, end, _ in held),
                index.seqs + tuple(seq for _, _, seq in held),
            )
            self._indexes[source] = index
        return index

    def _readable(self, stream: str, after: int) -> Iterator[Header]:
        """The headers that can be read one by one. What another one holds is in no record, for who asks for it."""
        try:
            last = self._log.tip(stream).seq
        except DamageError:
            last = after
        for seq in range(after + 1, last + 1):
            with contextlib.suppress(DamageError):
                yield self._log.get(stream, seq).header

    def _each(self, stream: str, after: int) -> Iterator[Header]:
        """The headers behind a seq, up to the first that is not to be had."""
        with contextlib.suppress(DamageError, NotFound):
            while True:
                after += 1
                yield self._log.get(stream, after).header

    def _chunk(self, source: str, seq: int) -> bytes:
        name = (source, seq)
        chunk = self._chunks.pop(name, None)
        if chunk is None:
            chunk = self._log.body(self._log.get(source_stream(source), seq))
        self._chunks[name] = chunk
        if len(self._chunks) > CHUNKS_KEPT:
            self._chunks.popitem(last=False)
        return chunk
