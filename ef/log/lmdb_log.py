"""The log on LMDB, natively: batch, precondition, keys and chain inside one write transaction.

The rows of its four databases: rows.py. All but `log` can be rebuilt from `log`.
A write goes in three steps: read what is known; prepare the records; then, inside the write transaction, check that
the store's tip is still the one that was read (every write moves it, so nothing else needs checking) and put.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from ..codec.digests import SALT_BYTES, ZERO
from ..codec.record import unpack_body
from ..errors import CannotWrite, Damaged, DamageError, NotFound, RolledBack
from ..events import Place, StoreOpened
from .base import Appended, Draft, Prepared, Record, Tip, prepare
from .birth import give_birth, is_there, missing
from .lmdb_env import CommitFailed, LmdbEnv, Txn
from .rows import LOG as LOG
from .rows import (
    SEQ,
    SEQS,
    STORED,
    View,
    follows,
    position_of,
    put_records,
    record_at,
    record_in,
    record_of_key,
    record_of_seq,
    stream_hash,
    stream_row,
    tip_row,
    tip_rows,
)
from .rows import U64 as U64
from .sources import SourceBytes
from .tipfile import TipFile

PAGE_RECORDS = 256
OPTIMISTIC_TRIES = 3
Clock = Callable[[], int]
Entropy = Callable[[int], bytes]


class _Moved(Exception):
    """Another process committed between our look and our write."""


def _bad(stream: str, seq: int, what: str = "the record is not there") -> Damaged:
    return Damaged(where=f"stream {stream}, seq {seq}", what=what)


class LmdbLog:
    """A Log (see base.Log) in a folder. Open with `LmdbLog.open`; close it, or use it as a context manager."""

    def __init__(self, env: LmdbEnv, now: Clock, entropy: Entropy) -> None:
        self._env, self._now, self._entropy = env, now, entropy
        self.path = env.path
        self.tipfile = TipFile(env.path)
        self._sources = SourceBytes(self)
        self._listeners: list[Callable[[], None]] = []
        self._closed = False
        genesis = self.at(0)
        if genesis.header.kind != StoreOpened.__name__:
            raise Damaged(where="position 0", what="the first record is not the genesis of a store")
        self.store_id = genesis.header.key
        self._rolled_back: str | None = None
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
    ) -> LmdbLog:
        """Open the store in folder `path`; make it if it is not there (and `create_missing`).

        `now` gives microseconds since 1970 UTC. Raises StoreUnavailable, CannotWrite, Damaged.
        """
        path = Path(path).absolute()
        if not is_there(path):
            if not create_missing:
                raise missing(path)
            give_birth(path, now=now, entropy=entropy, made_by=made_by)
        env = LmdbEnv.acquire(path, map_size=map_size)
        try:
            return cls(env, now, entropy)
        except BaseException:
            env.release()
            raise

    def close(self) -> None:
        """Write the tip file and let the environment go."""
        if not self._closed:
            self._closed = True
            self.tipfile.flush()
            self._env.release()

    def __enter__(self) -> LmdbLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Writing.

    def append(
        self, drafts: Sequence[Draft], *, expect: Mapping[str, Tip] | None = None
    ) -> list[Appended]:
        """See base.Log.append. Raises TipConflict, KeyConflict, CannotWrite, OutcomeUnknown, InputRefused."""
        results: list[Appended] = []
        self.write(lambda view: self._built(view, drafts, expect or {}, results))
        return results

    def append_in_turn(
        self, make: Callable[[], tuple[Sequence[Draft], Mapping[str, Tip]]]
    ) -> list[Appended]:
        """Append what `make` gives while the store's write lock is held: nobody can come between its look and the
        commit.

        For drafts that rest on how a stream is, when others keep appending to it. `make` may read the log; it may run
        again, so it must have no effects but its result.
        """
        results: list[Appended] = []
        self._refuse_older_copy()
        with self._env.write_lock:
            self._write_locked(lambda view: self._built(view, *make(), results))
        return results

    def _built(
        self,
        view: View,
        drafts: Sequence[Draft],
        expect: Mapping[str, Tip],
        results: list[Appended],
    ) -> list[Prepared]:
        results[:], new = prepare(
            drafts,
            view,
            store_digest=view.store_tip()[1],
            recorded_at=self._now(),
            salt=self.salt,
            expect=expect,
        )
        return new

    def salt(self) -> bytes:
        """Fresh bytes that keep a body's commitment from being guessed."""
        return self._entropy(SALT_BYTES)

    def now(self) -> int:
        """The log's clock, in microseconds since 1970 UTC."""
        return self._now()

    def write(self, build: Callable[[View], list[Prepared]]) -> int:
        """Put what `build` prepares from a view of the store; the first position. Durable when it returns.

        `build` may run again when another process committed in between, so it must have no effects but its result.
        Raises RolledBack when the store was older than its tip file as it was opened.
        """
        self._refuse_older_copy()
        with self._env.write_lock:
            for _ in range(OPTIMISTIC_TRIES):
                with self._env.read() as txn:
                    view = View(txn, self.body)
                    tip, new = view.store_tip(), build(view)
                if not new:
                    return tip[0] + 1
                try:
                    self._commit(lambda txn, new=new, tip=tip: self._put(txn, new, tip), new)  # type: ignore[misc]
                except _Moved:
                    continue
                return self._committed(tip[0] + 1, new)
            return self._write_locked(build)

    def _refuse_older_copy(self) -> None:
        if self._rolled_back is not None:
            what = (
                f"{self._rolled_back}; nothing is appended until the newer copy is put back, or the file tip is "
                "deleted because this copy is wanted"
            )
            raise RolledBack(where=f"store {self.path}", what=what)

    def _write_locked(self, build: Callable[[View], list[Prepared]]) -> int:
        """Under contention: prepare while holding the write lock, so that nobody starves."""
        new: list[Prepared] = []
        first = [0]

        def work(txn: Txn) -> None:
            view = View(txn, self.body)
            tip = view.store_tip()
            new[:], first[0] = build(view), tip[0] + 1
            self._put(txn, new, tip)

        self._commit(work, new)
        return self._committed(first[0], new)

    def _put(self, txn: Txn, new: Sequence[Prepared], assumed: tuple[int, bytes]) -> None:
        if View(txn, self.body).store_tip() != assumed:
            raise _Moved
        put_records(txn, new, assumed[0] + 1)

    def _commit(self, work: Callable[[Txn], None], new: Sequence[Prepared]) -> None:
        try:
            self._env.write(work)
        except CommitFailed as fault:
            if not self._was_kept(new):
                raise CannotWrite(
                    path=self.path, why=str(fault), remedy="Free space, then retry."
                ) from None

    def _committed(self, first: int, new: Sequence[Prepared]) -> int:
        """What follows a commit. The position is our own: another process may be further by now."""
        if new:
            self.tipfile.moved(first + len(new) - 1, new[-1].digest)
        for notify in list(self._listeners):
            notify()
        return first

    def _was_kept(self, new: Sequence[Prepared]) -> bool:
        """After a failed commit and a reopen: is our last record there? A transaction is kept whole or not at all."""
        last = new[-1]
        with self._env.read() as txn:
            found = record_of_key(txn, last.header.stream, last.header.key)
            return found is not None and found.digest == last.digest

    def _compare(self, position: int, digest: bytes) -> None:
        """Compare the store with what the tip file says of it. What the store does not hold, the file keeps naming."""
        at = U64.pack(min(position, SEQS - 1))
        with self._env.read() as txn:
            last, frame = txn.last(LOG), txn.get(LOG, at)
        try:
            end = position_of(last[0]) if last else -1
            held = record_in(at, frame).digest if frame is not None else None
        except DamageError:
            self.tipfile.keep()
            return
        if held != digest:
            self.tipfile.keep()
        if end < position:
            self._rolled_back = f"it ends at position {end}, and its tip was once at {position}"
        elif held not in (None, digest):
            self._rolled_back = f"its position {position} held another record once"

    def on_commit(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Call `notify` after each commit of this process; returns what ends that."""
        self._listeners.append(notify)
        return lambda: self._listeners.remove(notify) if notify in self._listeners else None

    # Reading.

    def tip(self, stream: str) -> Tip:
        """See base.Log.tip."""
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
        with self._env.read() as txn:
            return record_at(txn, U64.pack(position))

    def get(self, stream: str, seq: int) -> Record:
        """See base.Log.get."""
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
        tip = self.tip(stream)
        last = tip.seq if upto is None else min(upto, tip.seq)
        digest = self._digest_before(stream, after + 1) if after < last else None
        while after < last:
            with self._env.read() as txn:
                page = self._page(txn, stream, after + 1, min(PAGE_RECORDS, last - after))
            for record in page:
                after += 1
                if record.header.seq != after:
                    raise _bad(stream, after)
                if digest is not None and not follows(record, digest):
                    raise _bad(stream, after, "it does not follow the record before it")
                digest = record.digest
                if after == tip.seq and digest != tip.digest and record.header.kind != STORED:
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

    def stored(self, stream: str, first: int = 0) -> Iterator[Record]:
        """Records of a stream in seq order from seq `first`, gaps allowed: for streams that a recorder filled."""
        while first < SEQS:
            with self._env.read() as txn:
                page = self._page(txn, stream, first, PAGE_RECORDS)
            yield from page
            if not page:
                return
            first = page[-1].header.seq + 1

    def _page(self, txn: Txn, stream: str, first: int, limit: int) -> list[Record]:
        name = stream_hash(stream)
        return [
            record_of_seq(txn, stream, U64.unpack(key[16:])[0], at)
            for key, at in txn.scan(SEQ, name + U64.pack(first), limit)
            if key.startswith(name) and len(key) == len(name) + U64.size
        ]

    def all(self, *, after: int = -1) -> Iterator[Record]:
        """Records of all streams in the store's order, from position after + 1; the genesis is position 0."""
        while after + 1 < SEQS:
            with self._env.read() as txn:
                page = [record_in(*row) for row in txn.scan(LOG, U64.pack(after + 1), PAGE_RECORDS)]
            for record in page:
                after += 1
                if record.position != after:
                    raise Damaged(where=f"position {after}", what="the record is not there")
                yield record
            if not page:
                return

    def find(self, stream: str, key: str) -> int | None:
        """See base.Log.find."""
        with self._env.read() as txn:
            record = record_of_key(txn, stream, key)
            return None if record is None else record.header.seq

    def streams(self, prefix: str = "") -> Iterator[tuple[str, Tip]]:
        """See base.Log.streams; in no particular order."""
        lost: list[str] = []
        page: list[tuple[bytes, bytes]] = []
        while True:
            with self._env.read() as txn:
                page, without = tip_rows(txn, page[-1][0] if page else b"", PAGE_RECORDS)
            for key, row in page:
                name, tip = stream_row(row, key.hex())
                if name.startswith(prefix):
                    yield name, tip
            lost += [name for name in without if "/" not in name or name.startswith(prefix)]
            if len(page) < PAGE_RECORDS:
                break
        if lost:
            raise Damaged(where=f"stream {lost[0]}", what="its tip row is not there")

    def databases(self) -> list[bytes]:
        """Names of all databases in the data file, for verify."""
        return self._env.names()

    def rows(self, db: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Raw entries of one database, for verify."""
        first = b"\0"
        while True:
            with self._env.read() as txn:
                page = txn.scan(db, first, PAGE_RECORDS)
            yield from page
            if not page:
                return
            first = page[-1][0] + b"\0"

    def body(self, record: Record) -> bytes:
        """See base.Log.body."""
        h, frame = record.header, record.frame
        where = f"stream {h.stream}, seq {h.seq}"
        stored = frame.body
        if h.place is not Place.INLINE:
            if h.origin is None or h.place is not Place.SOURCE:
                raise Damaged(where=where, what="its body's place cannot be read")
            stored = self._sources.read(h.origin.source, h.origin.start, h.origin.end)
        return unpack_body(h, frame.salt, stored, where=where)
