"""What logs over plain rows share: all of a Log but how a row is found and how rows are put.

A log of this kind gives six functions: the store's tip, a stream's last record, records by seq, the record of a key,
the names of streams, and `_put`: keep these records unless somebody came between the look and now. Appends are
grouped as in every log (committer.py). A forked child must open its own.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from ..codec.digests import ZERO
from ..codec.record import decode_frame
from ..errors import Busy, Damaged, NotFound, StoreUnavailable
from ..events import Channel, StoreOpened
from . import given
from .ahead import Ahead
from .base import EMPTY, GENESIS_STREAM, Draft, Prepared, Record, Tip, prepare
from .committer import Committer, Request
from .requests import Clock as Clock
from .requests import Entropy as Entropy
from .requests import Requests
from .rows import SEQS, View, follows
from .sources import SourceBytes
from .transactions import Txn

PAGE_RECORDS = 256
PUT_TRIES = 200
"""How often a group is prepared anew because another process came first, before its callers are told Busy."""

StoreTip = tuple[int, bytes]
"""A number that grows with each commit, and the digest of the newest record."""


def bad(stream: str, seq: int, what: str = "the record is not there") -> Damaged:
    """The error for a record that is not as it must be."""
    return Damaged(where=f"stream {stream}, seq {seq}", what=what)


def record_from(position: int, frame: Any, stream: str, seq: int) -> Record:
    """The record in the row of this stream and seq, checked; Damaged when it is another one."""
    if type(frame) is not bytes:
        raise bad(stream, seq, "its row holds no bytes")
    record = Record(position, decode_frame(frame, where=f"stream {stream}, seq {seq}"))
    if (record.header.stream, record.header.seq) != (stream, seq):
        raise bad(stream, seq, "its row holds another record")
    return record


class RowLog(Requests, ABC):
    """A Log (see base.Log) over rows. `store_id` names the store; `path` says in messages where it is."""

    store_id: str
    path: Path

    def __init__(self, path: Path, now: Clock, entropy: Entropy) -> None:
        self.path, self._now, self._entropy = path, now, entropy
        self._pid = os.getpid()
        self._sources = SourceBytes(self)
        self.committer = Committer(path, self._commit)

    @property
    def on_disk(self) -> bool:
        """It has no folder of ours, to keep something beside it."""
        return False

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self.committer.closed

    def close(self) -> None:
        """Write what waits; nothing is appended after that."""
        self.committer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, _: TracebackType | None
    ) -> None:
        self.close()

    # What a log of this kind gives.

    @abstractmethod
    def store_tip(self) -> StoreTip:
        """A number that grows with each commit, and the digest of the store's newest record."""

    @abstractmethod
    def _last(self, stream: str) -> Record | None:
        """The last record of a stream."""

    @abstractmethod
    def _page(self, stream: str, after: int, upto: int) -> list[Record]:
        """The first PAGE_RECORDS records that there are of after < seq <= upto, in order."""

    @abstractmethod
    def _of_key(self, stream: str, key: str) -> Record | None:
        """The record that a key names."""

    @abstractmethod
    def _names(self) -> Iterator[str]:
        """The names of all streams."""

    @abstractmethod
    def _put(self, assumed: StoreTip, new: Sequence[Prepared]) -> bool:
        """Keep all records (or none), durably, if the store's tip is still the assumed one; else False."""

    def _must_be_mine(self) -> None:
        """What a forked child would share with its parent are connections, or a copy that nobody else sees."""
        if self._pid != os.getpid():
            raise StoreUnavailable(
                path=self.path,
                why="this process was forked from the one that opened it",
                remedy="Open it in this process.",
            )

    # Writing.

    def _commit(self, group: Sequence[Request[Any]]) -> None:
        for _ in range(PUT_TRIES):
            view = _RowsAhead(self)
            for request in group:
                request.prepare(view)
            if self._put(view.assumed, [made for request in group for made in request.new]):
                return
        raise Busy(path=self.path, why="other processes kept appending first")

    def _genesis(self, made_by: str) -> list[Prepared]:
        """The first record of a new store."""
        store_id = self._entropy(16).hex()
        draft = Draft(GENESIS_STREAM, store_id, StoreOpened(store_id, made_by), Channel.OPERATOR)
        _, new = prepare(
            [draft],
            self,
            store_digest=ZERO,
            recorded_at=self._now(),
            salt=self.salt,
            expect={},
        )
        return new

    # Reading.

    def tip(self, stream: str) -> Tip:
        """See base.Log.tip."""
        given.text("stream", stream, empty=True)
        last = self._last(stream)
        return EMPTY if last is None else Tip(last.header.seq, last.digest)

    def get(self, stream: str, seq: int) -> Record:
        """See base.Log.get."""
        given.text("stream", stream, empty=True)
        given.number("seq", seq, least=-given.NUMBER_MAX)
        if 0 < seq < SEQS // 2:
            for record in self._page(stream, seq - 1, seq):
                return record
            if seq <= self.tip(stream).seq:
                raise bad(stream, seq)
        raise NotFound(
            what="event", name=seq, where=f"stream {stream}", remedy="Its seqs begin at 1."
        )

    def read(self, stream: str, *, after: int = 0, upto: int | None = None) -> Iterator[Record]:
        """See base.Log.read. Reads in pages."""
        given.number("after", after)
        if upto is not None:
            given.number("upto", upto, least=-given.NUMBER_MAX)
        end = self.tip(stream).seq
        return self._walk(stream, after, end if upto is None else min(upto, end))

    def _walk(self, stream: str, after: int, last: int) -> Iterator[Record]:
        digest = ZERO
        if 0 < after < last:
            digest = self.get(stream, after).digest
        upto = last
        while after < last:
            try:
                page = self._page(stream, after, max(upto, after + 1))
            except Damaged:
                if upto <= after + 1:
                    raise
                upto = after + 1  # what is sound before it is given out first
                continue
            for record in page:
                after += 1
                if record.header.seq != after:
                    raise bad(stream, after)
                if not follows(record, digest):
                    raise bad(stream, after, "it does not follow the record before it")
                digest = record.digest
                yield record
            if not page:
                raise bad(stream, after + 1)

    def find(self, stream: str, key: str) -> int | None:
        """See base.Log.find."""
        given.text("stream", stream, empty=True)
        given.text("key", key, empty=True)
        record = self._of_key(stream, key)
        return None if record is None else record.header.seq

    def record_of(self, stream: str, key: str) -> tuple[Record, bytes] | None:
        """The record that a key names, with its plain body. See base.Known."""
        record = self._of_key(stream, key)
        return None if record is None else (record, self.body(record))

    def streams(self, prefix: str = "") -> Iterator[tuple[str, Tip]]:
        """See base.Log.streams; in the order of their births."""
        given.text("prefix", prefix, empty=True)
        for name in self._names():
            if name.startswith(prefix):
                tip = self.tip(name)
                if not tip.seq:
                    raise Damaged(where=f"stream {name}", what="its records are not there")
                yield name, tip


class _Rows(View):
    """What the rows of a log say, instead of a transaction."""

    log: RowLog

    def tip(self, stream: str) -> Tip:
        return self.log.tip(stream)

    def record_of(self, stream: str, key: str) -> tuple[Record, bytes] | None:
        return self.log.record_of(stream, key)

    def has(self, stream: str, seq: int) -> bool:
        return 0 < seq <= self.tip(stream).seq

    def store_tip(self) -> StoreTip:
        return self.log.store_tip()


class _RowsAhead(Ahead, _Rows):
    """What they will say when the group is kept. The store's tip is looked at first: `_put` needs no other check."""

    def __init__(self, log: RowLog) -> None:
        self.log = log
        super().__init__(cast("Txn", None), log.body)
