"""The log on LMDB, natively: batch, precondition, keys and chain inside one write transaction.

The rows of its four databases: rows.py. All but `log` can be rebuilt from `log`. How appends are grouped and written:
committer.py and writer.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from ..codec.digests import ZERO
from ..errors import (
    CannotWrite,
    Damaged,
    DamageError,
    NotFound,
    OtherStore,
    RolledBack,
    StoreUnavailable,
)
from ..events import StoreOpened
from . import given
from .base import Prepared, Record, Tip
from .birth import give_birth, is_there, missing
from .committer import Request
from .lmdb_env import ONLY_ASKED, LmdbEnv, Txn
from .requests import Clock, Entropy, Requests
from .rows import LOG as LOG
from .rows import (
    SEQ,
    SEQS,
    STORED,
    View,
    follows,
    position_of,
    record_at,
    record_in,
    record_of_key,
    record_of_seq,
    records_between,
    stream_hash,
    stream_row,
    tip_row,
    tip_rows,
)
from .rows import U64 as U64
from .sources import SourceBytes
from .writer import StoreWriter

PAGE_RECORDS = 256


def _bad(stream: str, seq: int, what: str = "the record is not there") -> Damaged:
    return Damaged(where=f"stream {stream}, seq {seq}", what=what)


class LmdbLog(Requests):
    """A Log (see base.Log) in a folder. Open with `LmdbLog.open`; close it, or use it as a context manager."""

    def __init__(
        self, env: LmdbEnv, now: Clock, entropy: Entropy, *, readonly: bool = False
    ) -> None:
        self._env, self._now, self._entropy = env, now, entropy
        self._readonly = readonly
        self.path = env.path
        self._sources = SourceBytes(self)
        self._writer = StoreWriter.of(env, self.body)
        self.tipfile, self.committer = self._writer.tipfile, self._writer.committer
        self._closed = False
        genesis = self.at(0)
        if genesis.header.kind != StoreOpened.__name__:
            raise Damaged(where="position 0", what="the first record is not the genesis of a store")
        self.store_id = genesis.header.key
        self.rolled_back: str | None = None
        other = self.tipfile.names_another(self.store_id)
        if other is not None:
            what = f"it is the store {self.store_id}; the file tip is of the store {other}"
            raise OtherStore(where=str(self.path / "data.mdb"), what=what)
        self.tipfile.store_id = self.store_id
        known = self.tipfile.read()
        if known is not None:
            self._compare(*known)

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        now: Clock,
        entropy: Entropy = os.urandom,
        create_missing: bool = True,
        made_by: str = "ef",
        map_size: int | None = None,
        plain: str | None = None,
        readonly: bool = False,
    ) -> LmdbLog:
        """Open the store in folder `path`; make it if it is not there (and `create_missing`).

        `now` gives microseconds since 1970 UTC. `plain` says what is wrong with the data file when LMDB must not see
        it; it is then read without LMDB. `readonly`: it is only read, and its opening waits for no writer. Raises
        StoreUnavailable, CannotWrite, Damaged.
        """
        path = Path(path).absolute()
        if not is_there(path):
            if not create_missing:
                raise missing(path)
            give_birth(path, now=now, entropy=entropy, made_by=made_by)
        env = LmdbEnv.acquire(path, map_size=map_size, plain=plain, readonly=readonly)
        try:
            return cls(env, now, entropy, readonly=readonly)
        except BaseException:
            env.release()
            raise

    def close(self) -> None:
        """Write what waits, and the tip file, and let the environment go."""
        self.committer.flush()
        closed, self._closed = self._closed, True
        if not closed:
            try:
                self.tipfile.flush()
            finally:
                self._env.release()

    @property
    def on_disk(self) -> bool:
        """It lies in a folder."""
        return True

    @property
    def closed(self) -> bool:
        """Whether this handle was closed."""
        return self._closed

    def __enter__(self) -> LmdbLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Writing.

    def write(self, build: Callable[[View], list[Prepared]], *, size: int = 0) -> int:
        """Put what `build` prepares from a view of the store; the first position. Durable when it returns.

        `build` may run again when another process committed in between, so it must have no effects but its result;
        `size` is what it holds in memory, in bytes. Raises RolledBack when the store was older than its tip file as it
        was opened.
        """
        self._must_take_appends()
        return self.committer.run(Request(self.path, build, lambda first: first, size))

    def _must_take_appends(self) -> None:
        if self._closed:
            raise StoreUnavailable(path=self.path, why="it is closed", remedy="Open it again.")
        if self._readonly:
            why, remedy = ONLY_ASKED
            raise CannotWrite(path=self.path, why=why, remedy=remedy)
        if self.rolled_back is not None:
            what = (
                f"{self.rolled_back}; nothing is appended until the newer copy is put back, or the file tip is "
                "deleted because this copy is wanted"
            )
            raise RolledBack(where=f"store {self.path}", what=what)

    def _compare(self, position: int, digest: bytes) -> None:
        """Compare the store with what the tip file says of it. What the store does not hold, the file keeps naming."""
        at = U64.pack(min(position, SEQS - 1))
        try:
            with self._env.read() as txn:
                last, frame = txn.last(LOG), txn.get(LOG, at)
            end = position_of(last[0]) if last else -1
            held = record_in(at, frame).digest if frame is not None else None
        except DamageError:
            self.tipfile.keep()
            return
        if held != digest:
            self.tipfile.keep()
        if end < position:
            self.rolled_back = f"it ends at position {end}, and its tip was once at {position}"
        elif held not in (None, digest):
            self.rolled_back = f"its position {position} held another record once"

    def on_commit(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Call `notify` after each commit of this process; returns what ends that."""
        listeners = self._writer.listeners
        listeners.append(notify)
        return lambda: listeners.remove(notify) if notify in listeners else None

    # Reading.

    def tip(self, stream: str) -> Tip:
        """See base.Log.tip."""
        given.text("stream", stream, empty=True)
        with self._env.read() as txn:
            return tip_row(txn, stream)

    def store_tip(self) -> tuple[int, bytes]:
        """(position, digest) of the newest record of the store."""
        with self._env.read() as txn:
            return View(txn, self.body).store_tip()

    def tip_position(self) -> int:
        """The position of the newest record; the genesis has position 0."""
        return self.store_tip()[0]

    def at(self, position: int) -> Record:
        """The record at a position of the global order; Damaged if it is not there."""
        given.number("position", position, most=SEQS - 1)
        with self._env.read() as txn:
            return record_at(txn, U64.pack(position))

    def get(self, stream: str, seq: int) -> Record:
        """See base.Log.get."""
        given.text("stream", stream, empty=True)
        given.number("seq", seq, least=-given.NUMBER_MAX)
        with self._env.read() as txn:
            at = txn.get(SEQ, stream_hash(stream) + U64.pack(seq)) if 0 <= seq < SEQS else None
            if at is not None:
                return record_of_seq(txn, stream, seq, at)
            if 0 < seq <= tip_row(txn, stream).seq:
                raise _bad(stream, seq)
        raise NotFound(
            what="event", name=seq, where=f"stream {stream}", remedy="Its seqs begin at 1."
        )

    def read(self, stream: str, *, after: int = 0, upto: int | None = None) -> Iterator[Record]:
        """See base.Log.read. Reads in pages, so that no reader stays open while the caller works."""
        given.number("after", after)
        if upto is not None:
            given.number("upto", upto, least=-given.NUMBER_MAX)
        tip = self.tip(stream)
        return self._walk(stream, after, tip.seq if upto is None else min(upto, tip.seq), tip)

    def _walk(self, stream: str, after: int, last: int, tip: Tip) -> Iterator[Record]:
        digest = self._digest_before(stream, after + 1) if after < last else None
        size = PAGE_RECORDS
        while after < last:
            try:
                with self._env.read() as txn:
                    page = self._page(txn, stream, after + 1, min(size, last - after))
            except Damaged:
                if size == 1:
                    raise
                size = 1  # what is sound before it is given out first
                continue
            for record in page:
                after += 1
                frame = record.frame
                header = frame.header
                if header.seq != after:
                    raise _bad(stream, after)
                linked = digest is None or header.prev_stream == digest or follows(record, digest)
                if not linked:
                    raise _bad(stream, after, "it does not follow the record before it")
                digest = frame.digest
                if after == tip.seq and digest != tip.digest and header.kind != STORED:
                    raise _bad(stream, after, "it is not the record that its tip row names")
                yield record
            if not page:
                raise _bad(stream, after + 1)

    def _digest_before(self, stream: str, seq: int) -> bytes | None:
        """The digest that this record must name; None when the one before it cannot be read: that is its own damage."""
        if seq <= 1:
            return ZERO
        try:
            return self.get(stream, seq - 1).digest
        except DamageError:
            return None

    def stored(
        self,
        stream: str,
        first: int = 0,
        last: int = SEQS - 1,
        *,
        back: bool = False,
        page: int = PAGE_RECORDS,
    ) -> Iterator[Record]:
        """Records with first <= seq <= last in seq order, or `back` from the last, gaps allowed: for streams that a
        recorder filled. Read `page` at a time."""
        while first <= last:
            try:
                with self._env.read() as txn:
                    found = records_between(txn, stream, first, last, page, back=back)
            except Damaged:
                if page == 1:
                    raise
                page = 1  # what is sound before it is given out first
                continue
            yield from found
            if not found:
                return
            if back:
                last = found[-1].header.seq - 1
            else:
                first = found[-1].header.seq + 1

    def _page(self, txn: Txn, stream: str, first: int, limit: int) -> list[Record]:
        return records_between(txn, stream, first, SEQS - 1, limit, back=False)

    def all(self, *, after: int = -1, page: int = PAGE_RECORDS) -> Iterator[Record]:
        """Records of all streams in the store's order, from position after + 1; the genesis is position 0. Read `page`
        at a time."""
        given.number("after", after, least=-1)
        while after + 1 < SEQS:
            with self._env.read() as txn:
                found = txn.scan(LOG, U64.pack(after + 1), page)
            for row in found:
                after, record = after + 1, record_in(*row)
                if record.position != after:
                    raise Damaged(where=f"position {after}", what="the record is not there")
                yield record
            if not found:
                return

    def find(self, stream: str, key: str) -> int | None:
        """See base.Log.find."""
        given.text("stream", stream, empty=True)
        given.text("key", key, empty=True)
        with self._env.read() as txn:
            record = record_of_key(txn, stream, key)
            return None if record is None else record.header.seq

    def streams(self, prefix: str = "") -> Iterator[tuple[str, Tip]]:
        """See base.Log.streams; in no particular order."""
        given.text("prefix", prefix, empty=True)
        lost: list[str] = []
        page: list[tuple[bytes, bytes]] = []
        while True:
            with self._env.read() as txn:
                page, without = tip_rows(txn, page[-1][0] if page else b"", PAGE_RECORDS)
            for key, row in page:
                name, tip = stream_row(row, key.hex())
                if stream_hash(name) != key:
                    raise Damaged(
                        where=f"stream {name}", what="its tip row is that of another stream"
                    )
                if name.startswith(prefix):
                    yield name, tip
            lost += [name for name in without if "/" not in name or name.startswith(prefix)]
            if len(page) < PAGE_RECORDS:
                break
        if lost:
            raise Damaged(where=f"stream {lost[0]}", what="its tip row is not there")

    def copy_to(self, folder: Path) -> None:
        """Put a compact copy of the data file, as of one moment, into a folder. Raises OSError, Damaged."""
        self._env.copy_to(folder)

    def databases(self) -> list[bytes]:
        """Names of all databases in the data file, for verify."""
        return self._env.names()

    def moment(self) -> AbstractContextManager[Txn]:
        """One moment of the store, held so that its pages stay as they are, for verify."""
        return self._env.read()
