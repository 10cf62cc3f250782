"""The rows of the four databases, and what one transaction knows of the store.

`log` position -> frame; `seq` stream hash + seq -> position; `key` event uuid -> position; `stream` stream hash ->
[name, seq, digest]. Invariant: a record that is reached through an index is the one that the index names, else Damaged.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from blake3 import blake3

from ..codec import cbor
from ..codec.digests import DIGEST_BYTES, recent_uuid
from ..codec.record import NoFrame, frame_of
from ..errors import Damaged
from ..events import StoredEvent
from ..events.shapes import is_list
from .base import EMPTY, Prepared, Record, Tip
from .transactions import DATABASES, Txn

LOG, SEQ, KEY, STREAM = DATABASES
U64 = struct.Struct(">Q")
SEQS = 2**64
"""Seqs and positions are below this."""

MEMO_STREAMS = 1024
STORED = StoredEvent.__name__
_SEQ_AND_POSITION = struct.Struct(">QQ").unpack


@lru_cache(maxsize=64)
def stream_hash(name: str) -> bytes:
    """16 bytes that stand for a stream's name in keys (names may be longer than LMDB's keys)."""
    return blake3(name.encode("utf-8", "surrogatepass")).digest()[:16]


def position_of(at: bytes) -> int:
    """The position that a key of `log`, or a value of an index, spells; Damaged when it spells none."""
    if len(at) != U64.size:
        raise Damaged(where="the data file", what=f"{at.hex() or 'nothing'} stands for a position")
    position: int = U64.unpack(at)[0]
    return position


def record_in(key: bytes, frame: bytes) -> Record:
    """The record in a row of `log`."""
    position = position_of(key)
    try:
        return Record(position, frame_of(frame))
    except NoFrame as fault:
        raise Damaged(where=f"position {position}", what=str(fault)) from None


def record_at(txn: Txn, at: bytes) -> Record:
    """The record at a position, given as it stands in an index."""
    position = position_of(at)
    frame = txn.get(LOG, at)
    if frame is None:
        raise Damaged(where=f"position {position}", what="the record is not there")
    return record_in(at, frame)


def record_of_seq(txn: Txn, stream: str, seq: int, at: bytes) -> Record:
    """The record that the index `seq` names for a stream and seq."""
    try:
        record = record_at(txn, at)
    except Damaged as fault:
        where = f"stream {stream}, seq {seq} ({fault.where})"
        raise Damaged(where=where, what=fault.what) from None
    if (record.header.stream, record.header.seq) != (stream, seq):
        raise Damaged(where=f"stream {stream}, seq {seq}", what="its index row leads elsewhere")
    return record


def records_between(
    txn: Txn, stream: str, first: int, last: int, limit: int, *, back: bool
) -> list[Record]:
    """Up to `limit` records of a stream, first <= seq <= last, in seq order or `back` from the last; gaps allowed."""
    name = stream_hash(stream)
    low, high = name + U64.pack(first), name + U64.pack(last)
    rows = txn.scan_back(SEQ, low, high, limit) if back else txn.scan(SEQ, low, limit)
    wanted = [row for row in rows if low <= row[0] <= high and len(row[0]) == len(low)]
    return _records_of(txn, stream, wanted)


def _records_of(txn: Txn, stream: str, rows: list[tuple[bytes, bytes]]) -> list[Record]:
    """The records that rows of the index `seq` name, looked up at once."""
    frames = txn.many(LOG, [at for _, at in rows if len(at) == U64.size])
    found: list[Record] = []
    try:
        for (key, _), (at, data) in zip(rows, frames, strict=True):
            frame = frame_of(data)
            header = frame.header
            seq, position = _SEQ_AND_POSITION(key[16:] + at)
            if header.seq != seq or header.stream != stream:
                raise NoFrame
            found.append(Record(position, frame))
    except (NoFrame, ValueError):  # ValueError: some are not there
        # One by one: that says which one is not there, or not sound.
        return [record_of_seq(txn, stream, U64.unpack(key[16:])[0], at) for key, at in rows]
    return found


def record_of_key(txn: Txn, stream: str, key: str) -> Record | None:
    """The record that an idempotency key names; None when it names none."""
    at = txn.get(KEY, recent_uuid(stream, key))
    if at is None:
        return None
    record = record_at(txn, at)
    if (record.header.stream, record.header.key) != (stream, key):
        raise Damaged(where=f"stream {stream}, key {key}", what="its index row leads elsewhere")
    return record


def stream_row(row: bytes, stream: str) -> tuple[str, Tip]:
    """Name and tip out of a row of the database `stream`; Damaged when it cannot be read."""
    try:
        value: Any = cbor.decode(row)
    except cbor.Malformed:
        value = None
    if is_list(value) and list(map(type, value)) == [str, int, bytes]:
        name, seq, digest = value
        if seq >= 0 and len(digest) == DIGEST_BYTES:
            return name, Tip(seq, digest)
    raise Damaged(where=f"stream {stream}", what="its tip row cannot be read")


def tip_row(txn: Txn, stream: str, known: Mapping[str, tuple[bytes, Tip]] | None = None) -> Tip:
    """The tip that the database `stream` holds for a stream; EMPTY for a stream that does not exist.

    `known`: rows of streams, and the tips that they spell.
    """
    key = stream_hash(stream)
    row = txn.get(STREAM, key)
    if row is None:
        if any(found.startswith(key) for found, _ in txn.scan(SEQ, key, 1)):
            raise Damaged(where=f"stream {stream}", what="its tip row is not there")
        return EMPTY
    if known and stream in known and known[stream][0] == row:
        return known[stream][1]
    name, tip = stream_row(row, stream)
    if name != stream:
        raise Damaged(where=f"stream {stream}", what="its tip row is that of another stream")
    return tip


def tip_rows(txn: Txn, after: bytes, limit: int) -> tuple[list[tuple[bytes, bytes]], list[str]]:
    """Up to `limit` rows of `stream` behind a key, and the names of streams between them whose row is not there."""
    rows = txn.scan(STREAM, after + b"\0", limit)
    last = rows[-1][0] if len(rows) == limit else b"\xff" * 17
    known = {key for key, _ in rows}
    hashes = txn.prefixes(SEQ, 16, after + b"\xff" * 9 if after else b"\0", last)
    return rows, [_name_behind(txn, found) for found in hashes if found not in known]


def _name_behind(txn: Txn, hash_: bytes) -> str:
    """The name that a stream's first record gives it; its hash when that cannot be read."""
    try:
        name = record_at(txn, txn.scan(SEQ, hash_, 1)[0][1]).header.stream
    except Damaged:
        return hash_.hex()
    return name if stream_hash(name) == hash_ else hash_.hex()


def follows(record: Record, digest: bytes) -> bool:
    """Whether a record follows the one with this digest in its stream.

    What a recorder stored follows in the order of storing. A first event of a session may continue another session.
    """
    h = record.header
    return h.prev_stream == digest or h.kind == STORED or (h.seq == 1 and h.kind == "SessionOpened")


class Newest(NamedTuple):
    """What appends must know of the newest record of the store."""

    position: int
    stream: str
    seq: int
    digest: bytes


class Memo:
    """What the rows spell that this process put last: where a look finds the same bytes, they need not be read again.

    Nothing rests on it: what was put and never committed is not found.
    """

    def __init__(self) -> None:
        self.row: tuple[bytes, bytes] | None = None
        self.newest = Newest(-1, "", 0, b"")
        """What `row`, of the database `log`, spells."""

        self.tips: dict[str, tuple[bytes, Tip]] = {}
        """For each stream its row of the database `stream`, and what that one spells."""


def put_records(txn: Txn, new: Sequence[Prepared], position: int, memo: Memo | None = None) -> None:
    """Put records and their index rows, the first one at `position`."""
    frames: list[tuple[bytes, bytes]] = []
    seqs: list[tuple[bytes, bytes]] = []
    keys: list[tuple[bytes, bytes]] = []
    last: dict[str, Prepared] = {}
    for made in new:
        at = U64.pack(position)
        h = made.header
        frames.append((at, made.frame))
        seqs.append((stream_hash(h.stream) + U64.pack(h.seq), at))
        keys.append((h.uuid, at))
        last[h.stream] = made
        position += 1
    txn.put_fresh(LOG, frames, append=True)
    txn.put_fresh(SEQ, seqs)
    txn.put_fresh(KEY, keys)
    rows: dict[str, tuple[bytes, Tip]] = {}
    for stream, made in last.items():
        seq = made.header.seq
        row = cbor.dumps([stream, seq, made.digest])
        txn.put(STREAM, stream_hash(stream), row)
        rows[stream] = row, Tip(seq, made.digest)
    if memo is not None:
        h = new[-1].header
        memo.row, memo.newest = frames[-1], Newest(position - 1, h.stream, h.seq, new[-1].digest)
        if len(memo.tips) > MEMO_STREAMS:
            memo.tips.clear()
        memo.tips.update(rows)


class View:
    """What one transaction knows of the store. Satisfies base.Known."""

    def __init__(self, txn: Txn, body: Callable[[Record], bytes], memo: Memo | None = None) -> None:
        self._txn, self._body, self._memo = txn, body, memo
        self.newest_row: tuple[bytes, bytes] | None = None
        self._newest: Newest | None = None

    def tip(self, stream: str) -> Tip:
        """The tip of a stream; Damaged when its last record is not the one that its tip row names."""
        tip = tip_row(self._txn, stream, None if self._memo is None else self._memo.tips)
        if tip is not EMPTY:
            at = self._txn.get(SEQ, stream_hash(stream) + U64.pack(tip.seq))
            if at is not None and self._is_newest(at, stream, tip):
                return tip
            if at is None or record_of_seq(self._txn, stream, tip.seq, at).digest != tip.digest:
                raise Damaged(where=f"stream {stream}", what="its tip row names no record of it")
        return tip

    def _is_newest(self, at: bytes, stream: str, tip: Tip) -> bool:
        """Whether that record is the newest of the store, which was read and checked already."""
        new = self._newest
        return (
            new is not None
            and at == U64.pack(new.position)
            and (new.stream, new.seq, new.digest) == (stream, tip.seq, tip.digest)
        )

    def record_of(self, stream: str, key: str) -> tuple[Record, bytes] | None:
        """The record that a key names, with its plain body."""
        record = record_of_key(self._txn, stream, key)
        return None if record is None else (record, self._body(record))

    def has(self, stream: str, seq: int) -> bool:
        """Whether a stream has a record of this seq."""
        return self._txn.get(SEQ, stream_hash(stream) + U64.pack(seq)) is not None

    def store_tip(self) -> tuple[int, bytes]:
        """(position, digest) of the newest record."""
        last = self.newest_row = self._txn.last(LOG)
        if last is None:
            raise Damaged(where="position 0", what="the genesis record is not there")
        memo = self._memo
        if memo is not None and last == memo.row:
            self._newest = memo.newest
        else:
            record = record_in(*last)
            h = record.header
            self._newest = Newest(record.position, h.stream, h.seq, record.digest)
        return self._newest.position, self._newest.digest
