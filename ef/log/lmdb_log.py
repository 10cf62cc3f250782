"""The log on LMDB, natively: batch, precondition, keys and chain inside one write transaction.

Databases: `log` position -> frame; `seq` stream hash + seq -> position; `key` event uuid -> position;
`stream` stream hash -> [name, seq, digest]. The last three can be rebuilt from the first.
A write goes in three steps: read what is known; prepare the records; then, inside the write transaction, check that
the store's tip is still the one that was read (every write moves it, so nothing else needs checking) and put.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from blake3 import blake3

from ..codec import cbor
from ..codec.digests import SALT_BYTES, ZERO, event_uuid
from ..codec.record import decode_frame, unpack_body
from ..errors import CannotWrite, Damaged, NotFound, StoreUnavailable
from ..events import Channel, Place, StoreOpened
from .base import EMPTY, GENESIS_STREAM, Appended, Draft, Prepared, Record, Tip, prepare
from .lmdb_env import CommitFailed, LmdbEnv, Txn, create
from .sources import SourceBytes
from .tipfile import TipFile

LOG, SEQ, KEY, STREAM = b"log", b"seq", b"key", b"stream"
U64 = struct.Struct(">Q")
PAGE_RECORDS = 256
OPTIMISTIC_TRIES = 3
Clock = Callable[[], int]
Entropy = Callable[[int], bytes]


class _Moved(Exception):
    """Another process committed between our look and our write."""


def stream_hash(name: str) -> bytes:
    """16 bytes that stand for a stream's name in keys (names may be longer than LMDB's keys)."""
    return blake3(name.encode()).digest()[:16]


class View:
    """What one transaction knows of the store. Satisfies base.Known."""

    def __init__(self, txn: Txn, log: LmdbLog) -> None:
        self._txn, self._log = txn, log

    def tip(self, stream: str) -> Tip:
        """The tip of a stream."""
        row = self._txn.get(STREAM, stream_hash(stream))
        return _stream_row(row, stream)[1] if row else EMPTY

    def record_of(self, stream: str, key: str) -> tuple[Record, bytes] | None:
        """The record that a key names, with its plain body."""
        at = self._txn.get(KEY, event_uuid(stream, key))
        if at is None:
            return None
        record = _record_at(self._txn, at)
        return record, self._log.body(record)

    def has(self, stream: str, seq: int) -> bool:
        """Whether a stream has a record of this seq."""
        return self._txn.get(SEQ, stream_hash(stream) + U64.pack(seq)) is not None

    def store_tip(self) -> tuple[int, bytes]:
        """(position, digest) of the newest record."""
        last = self._txn.last(LOG)
        if last is None:
            raise Damaged(where="position 0", what="the genesis record is not there")
        return U64.unpack(last[0])[0], _record(last[0], last[1]).digest


def _record(key: bytes, frame: bytes) -> Record:
    (position,) = U64.unpack(key)
    return Record(position, decode_frame(frame, where=f"position {position}"))


def _record_at(txn: Txn, at: bytes) -> Record:
    frame = txn.get(LOG, at)
    if frame is None:
        raise Damaged(where=f"position {U64.unpack(at)[0]}", what="the record is not there")
    return _record(at, frame)


def _stream_row(row: bytes, stream: str) -> tuple[str, Tip]:
    try:
        name, seq, digest = cbor.decode(row)
    except (cbor.Malformed, TypeError, ValueError):
        raise Damaged(where=f"stream {stream}", what="its tip row cannot be read") from None
    return name, Tip(seq, digest)


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
        if not (path / "data.mdb").exists():
            if path.exists() and (not path.is_dir() or any(path.iterdir())):
                raise StoreUnavailable(
                    path=path,
                    why="it exists and is not a store"
                    if not path.is_dir()
                    else "the folder holds no data.mdb",
                    remedy="Give a new path, or the folder of a store.",
                )
            if not create_missing:
                raise NotFound(
                    what="store",
                    name=str(path),
                    where="the file system",
                    remedy="Import a session first: `ef import PATH`.",
                )
            _create(path, now, entropy, made_by)
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

        def build(view: View) -> list[Prepared]:
            results[:], new = prepare(
                drafts,
                view,
                store_digest=view.store_tip()[1],
                recorded_at=self._now(),
                salt=self.salt,
                expect=expect or {},
            )
            return new

        self.write(build)
        return results

    def salt(self) -> bytes:
        """Fresh bytes that keep a body's commitment from being guessed."""
        return self._entropy(SALT_BYTES)

    def now(self) -> int:
        """The log's clock, in microseconds since 1970 UTC."""
        return self._now()

    def write(self, build: Callable[[View], list[Prepared]]) -> int:
        """Put what `build` prepares from a view of the store; the first position. Durable when it returns.

        `build` may run again when another process committed in between, so it must have no effects but its result.
        """
        with self._env.write_lock:
            for _ in range(OPTIMISTIC_TRIES):
                with self._env.read() as txn:
                    view = View(txn, self)
                    tip, new = view.store_tip(), build(view)
                if not new:
                    return tip[0] + 1
                try:
                    self._commit(lambda txn, new=new, tip=tip: self._put(txn, new, tip), new)  # type: ignore[misc]
                except _Moved:
                    continue
                return tip[0] + 1
            return self._write_locked(build)

    def _write_locked(self, build: Callable[[View], list[Prepared]]) -> int:
        """Under contention: prepare while holding the write lock, so that nobody starves."""
        new: list[Prepared] = []
        first = [0]

        def work(txn: Txn) -> None:
            view = View(txn, self)
            tip = view.store_tip()
            new[:], first[0] = build(view), tip[0] + 1
            self._put(txn, new, tip)

        self._commit(work, new)
        return first[0]

    def _put(self, txn: Txn, new: Sequence[Prepared], assumed: tuple[int, bytes]) -> None:
        if View(txn, self).store_tip() != assumed:
            raise _Moved
        _put_records(txn, new, assumed[0] + 1)

    def _commit(self, work: Callable[[Txn], None], new: Sequence[Prepared]) -> None:
        try:
            self._env.write(work)
        except CommitFailed as fault:
            if not self._was_kept(new):
                raise CannotWrite(
                    path=self.path, why=str(fault), remedy="Free space, then retry."
                ) from None
        if new:
            self.tipfile.moved(self.tip_position(), new[-1].digest)
        for notify in self._listeners:
            notify()

    def _was_kept(self, new: Sequence[Prepared]) -> bool:
        """After a failed commit and a reopen: is our last record there? A transaction is kept whole or not at all."""
        with self._env.read() as txn:
            at = txn.get(KEY, new[-1].header.uuid)
            return at is not None and _record_at(txn, at).digest == new[-1].digest

    def on_commit(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Call `notify` after each commit of this process; returns what ends that."""
        self._listeners.append(notify)
        return lambda: self._listeners.remove(notify) if notify in self._listeners else None

    # Reading.

    def tip(self, stream: str) -> Tip:
        """See base.Log.tip."""
        with self._env.read() as txn:
            return View(txn, self).tip(stream)

    def store_tip(self) -> tuple[int, bytes]:
        """(position, digest) of the newest record of the store."""
        with self._env.read() as txn:
            return View(txn, self).store_tip()

    def tip_position(self) -> int:
        """The position of the newest record; the genesis has position 0."""
        return self.store_tip()[0]

    def at(self, position: int) -> Record:
        """The record at a position of the global order; Damaged if it is not there."""
        with self._env.read() as txn:
            return _record_at(txn, U64.pack(position))

    def get(self, stream: str, seq: int) -> Record:
        """See base.Log.get."""
        with self._env.read() as txn:
            at = txn.get(SEQ, stream_hash(stream) + U64.pack(seq))
            if at is None:
                if 0 < seq <= View(txn, self).tip(stream).seq:
                    raise Damaged(
                        where=f"stream {stream}, seq {seq}", what="the record is not there"
                    )
                raise NotFound(
                    what="event", name=seq, where=f"stream {stream}", remedy="Its seqs begin at 1."
                )
            return _record_at(txn, at)

    def read(self, stream: str, *, after: int = 0, upto: int | None = None) -> Iterator[Record]:
        """See base.Log.read. Reads in pages, so that no reader stays open while the caller works."""
        last = self.tip(stream).seq
        last = last if upto is None else min(upto, last)
        name = stream_hash(stream)
        while after < last:
            with self._env.read() as txn:
                rows = txn.scan(SEQ, name + U64.pack(after + 1), min(PAGE_RECORDS, last - after))
                page = [(k, _record_at(txn, at)) for k, at in rows if k.startswith(name)]
            for key, record in page:
                after += 1
                if U64.unpack(key[16:])[0] != after or record.header.seq != after:
                    raise Damaged(
                        where=f"stream {stream}, seq {after}", what="the record is not there"
                    )
                yield record
            if not page:
                raise Damaged(
                    where=f"stream {stream}, seq {after + 1}", what="the record is not there"
                )

    def all(self, *, after: int = -1) -> Iterator[Record]:
        """Records of all streams in the store's order, from position after + 1; the genesis is position 0."""
        while True:
            with self._env.read() as txn:
                page = [_record(k, v) for k, v in txn.scan(LOG, U64.pack(after + 1), PAGE_RECORDS)]
            yield from page
            if not page:
                return
            after = page[-1].position

    def find(self, stream: str, key: str) -> int | None:
        """See base.Log.find."""
        with self._env.read() as txn:
            at = txn.get(KEY, event_uuid(stream, key))
            return None if at is None else _record_at(txn, at).header.seq

    def streams(self, prefix: str = "") -> Iterator[tuple[str, Tip]]:
        """See base.Log.streams; in no particular order."""
        first = bytes(16)
        while True:
            with self._env.read() as txn:
                rows = txn.scan(STREAM, first, PAGE_RECORDS)
            for key, row in rows:
                name, tip = _stream_row(row, key.hex())
                if name.startswith(prefix):
                    yield name, tip
            if not rows:
                return
            first = rows[-1][0] + b"\0"

    def stored(self, stream: str, first: int = 0) -> Iterator[Record]:
        """Records of a stream in seq order from seq `first`, gaps allowed: for streams that a recorder filled."""
        name = stream_hash(stream)
        while True:
            with self._env.read() as txn:
                rows = txn.scan(SEQ, name + U64.pack(first), PAGE_RECORDS)
                page = [_record_at(txn, at) for key, at in rows if key.startswith(name)]
            yield from page
            if not page:
                return
            first = page[-1].header.seq + 1

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


def _put_records(txn: Txn, new: Sequence[Prepared], position: int) -> None:
    tips: dict[str, Tip] = {}
    for made in new:
        at = U64.pack(position)
        h = made.header
        txn.put(LOG, at, made.frame, fresh=True)
        txn.put(SEQ, stream_hash(h.stream) + U64.pack(h.seq), at, fresh=True)
        txn.put(KEY, h.uuid, at, fresh=True)
        tips[h.stream] = Tip(h.seq, made.digest)
        position += 1
    for stream, tip in tips.items():
        txn.put(
            STREAM, stream_hash(stream), cbor.encode([stream, tip.seq, tip.digest]), fresh=False
        )


class _Nothing:
    """The knowledge of a store that does not exist yet."""

    def tip(self, stream: str) -> Tip:
        return EMPTY

    def record_of(self, stream: str, key: str) -> None:
        return None


def _create(path: Path, now: Clock, entropy: Entropy, made_by: str) -> None:
    store_id = entropy(16).hex()
    draft = Draft(GENESIS_STREAM, store_id, StoreOpened(store_id, made_by), Channel.OPERATOR)
    _, new = prepare(
        [draft],
        _Nothing(),
        store_digest=ZERO,
        recorded_at=now(),
        salt=lambda: entropy(SALT_BYTES),
        expect={},
    )
    create(path, lambda txn: _put_records(txn, new, 0))
