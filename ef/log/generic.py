"""A log over any application recorder of the eventsourcing library. Why it is so: docs/design/005-generic-log.md.

Records are stored events: originator id = stream, version = seq, topic = kind, state = the frame. Beside them, in the
same insert, stand index rows: `key/<stream>/<uuid>` (version 1) makes a key unique and says where its record is;
`index/streams` names each stream once; `index/turns` gets one row for each insert, so that two inserts that looked at
the same store cannot both be kept. Invariant: what an insert was prepared on is what it is kept on.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from eventsourcing.persistence import ApplicationRecorder, IntegrityError, Notification, StoredEvent

from ..codec.digests import DIGEST_BYTES, ZERO, event_uuid
from ..errors import Damaged, InputRefused, NotFound, OutcomeUnknown, StoreUnavailable
from ..events import StoreOpened
from . import given
from .base import GENESIS_STREAM, Prepared, Record
from .rowlog import PAGE_RECORDS, Clock, Entropy, RowLog, StoreTip, bad, record_from

STREAMS, TURNS, KEYS = "index/streams", "index/turns", "key/"
OWN = ("index/", KEYS)
"""Streams whose names begin so are the log's own."""
TOPIC = "ef/index"
PAUSE_SECONDS_MAX = 0.004
UNKNOWN_POSITION = -1
_KEY_ROW = struct.Struct(f">q{DIGEST_BYTES}s")
T = TypeVar("T")


class GenericLog(RowLog):
    """A Log (see base.Log) over a recorder, which must take text as originator ids. It does not close the recorder.

    Records that are read by stream have no known position (UNKNOWN_POSITION); `all` gives notification ids.
    """

    def __init__(
        self,
        recorder: ApplicationRecorder,
        *,
        now: Clock,
        entropy: Entropy = os.urandom,
        made_by: str = "ef",
        name: str | None = None,
        create_missing: bool = True,
    ) -> None:
        super().__init__(Path(name or type(recorder).__name__), now, entropy)
        self._recorder = recorder
        datastore = getattr(recorder, "datastore", None)
        if getattr(datastore, "originator_id_type", "text") != "text":
            raise StoreUnavailable(
                path=self.path,
                why="its originator ids are UUIDs",
                remedy='Make its datastore with originator_id_type="text".',
            )
        taken = self._ask(recorder.max_notification_id)
        if not self._page(GENESIS_STREAM, 0, 1):
            self._give_birth(taken, made_by, create_missing)
        genesis = self.get(GENESIS_STREAM, 1).header
        if genesis.kind != StoreOpened.__name__:
            raise bad(GENESIS_STREAM, 1, "it is not the genesis of a store")
        self.store_id = genesis.key

    def _give_birth(self, taken: int | None, made_by: str, create_missing: bool) -> None:
        if taken:
            raise StoreUnavailable(
                path=self.path,
                why="it holds events and is not a store",
                remedy="Give a recorder of its own.",
            )
        if not create_missing:
            raise NotFound(
                what="store",
                name=str(self.path),
                where="the recorder",
                remedy="Import a session first: `ef import PATH`.",
            )
        self._put((0, ZERO), self._genesis(made_by))  # or another process was first

    # Asking the recorder.

    def _ask(self, look: Callable[[], T]) -> T:
        self._must_be_mine()
        try:
            return look()
        except Exception as fault:
            raise StoreUnavailable(
                path=self.path, why=f"its recorder failed: {fault}", remedy="Try again."
            ) from fault

    def _rows(
        self, name: str, after: int, upto: int | None, limit: int, *, desc: bool = False
    ) -> Sequence[StoredEvent]:
        return self._ask(
            lambda: self._recorder.select_events(name, gt=after, lte=upto, desc=desc, limit=limit)
        )

    def _of_stream(
        self, stream: str, after: int, upto: int | None, limit: int, *, desc: bool = False
    ) -> list[Record]:
        if stream.startswith(OWN) or not _is_text(stream):
            return []
        rows = self._rows(stream, after, upto, limit, desc=desc)
        return [
            record_from(UNKNOWN_POSITION, row.state, stream, row.originator_version) for row in rows
        ]

    # What rowlog.RowLog asks for.

    def store_tip(self) -> StoreTip:
        """(number of the newest turn, digest of the newest record)."""
        for row in self._rows(TURNS, 0, None, 1, desc=True):
            if len(row.state) == DIGEST_BYTES:
                return row.originator_version, row.state
            raise bad(TURNS, row.originator_version, "it is no digest")
        raise bad(TURNS, 1, "the row is not there")

    def _last(self, stream: str) -> Record | None:
        found = self._of_stream(stream, 0, None, 1, desc=True)
        return found[0] if found else None

    def _page(self, stream: str, after: int, upto: int) -> list[Record]:
        return self._of_stream(stream, after, upto, PAGE_RECORDS)

    def _of_key(self, stream: str, key: str) -> Record | None:
        if stream.startswith(OWN):
            raise InputRefused(
                where=f"stream {stream[:80]}",
                why="such names are the log's own",
                remedy=f"Use one that does not begin with {' or '.join(OWN)}.",
            )
        where = f"stream {stream}, key {key}"
        for row in self._rows(_key_name(stream, event_uuid(stream, key)), 0, None, 1):
            if len(row.state) != _KEY_ROW.size:
                raise Damaged(where=where, what="its index row cannot be read")
            seq, digest = _KEY_ROW.unpack(row.state)
            for record in self._page(stream, seq - 1, seq):
                if (record.header.key, record.digest) == (key, digest):
                    return record
            raise Damaged(where=where, what="its index row leads to no record of it")
        return None

    def _names(self) -> Iterator[str]:
        seen = 0
        while rows := self._rows(STREAMS, seen, None, PAGE_RECORDS):
            for row in rows:
                seen += 1
                try:
                    name = row.state.decode()
                except UnicodeDecodeError:
                    name = None
                if name is None or row.originator_version != seen:
                    raise bad(STREAMS, seen, "it names no stream")
                yield name

    def _put(self, assumed: StoreTip, new: Sequence[Prepared]) -> bool:
        if not new:
            return self.store_tip() == assumed
        rows = self._rows_of(assumed, new)
        self._must_be_mine()
        try:
            self._recorder.insert_events(rows)
        except IntegrityError:
            time.sleep(PAUSE_SECONDS_MAX * self._entropy(1)[0] / 255)
            return False
        except Exception as fault:
            self._look_after(fault, new[-1])
        return True

    def _rows_of(self, assumed: StoreTip, new: Sequence[Prepared]) -> list[StoredEvent]:
        """The records first, then what finds them, then the turn."""
        records = [
            StoredEvent(made.header.stream, made.header.seq, made.header.kind, made.frame)
            for made in new
        ]
        keys = [
            StoredEvent(
                _key_name(made.header.stream, made.header.uuid),
                1,
                TOPIC,
                _KEY_ROW.pack(made.header.seq, made.digest),
            )
            for made in new
        ]
        born = [made.header.stream for made in new if made.header.seq == 1]
        first = 1
        for row in self._rows(STREAMS, 0, None, 1, desc=True) if born else ():
            first += row.originator_version
        streams = [
            StoredEvent(STREAMS, first + n, TOPIC, name.encode()) for n, name in enumerate(born)
        ]
        turn = StoredEvent(TURNS, assumed[0] + 1, TOPIC, new[-1].digest)
        return [*records, *keys, *streams, turn]

    def _look_after(self, fault: Exception, last: Prepared) -> None:
        """The insert's outcome is unknown: the store says whether it was kept, whole as every insert."""
        why = str(fault)
        try:
            found = self._of_key(last.header.stream, last.header.key)
        except Exception as second:
            found, why = None, f"{fault}; looking it up failed: {second}"
        if found is None or found.digest != last.digest:
            raise OutcomeUnknown(path=self.path, why=why) from fault

    # In the store's order.

    def all(self, *, after: int = 0) -> Iterator[Record]:
        """Records of all streams in the store's order behind a notification id; their positions are notification ids.

        From the first record on (`after` 0) it checks the store's chain and that the newest record is there.
        """
        given.number("after", after)
        end = self.store_tip()[1]
        whole, digest, met = not after, ZERO, False
        while rows := self._notifications(after):
            for row in rows:
                after = row.id
                if row.topic == TOPIC:
                    continue
                stream = str(row.originator_id)
                record = record_from(row.id, row.state, stream, row.originator_version)
                if whole and record.header.prev_store != digest:
                    what = "it does not follow the record before it in the store"
                    raise bad(stream, record.header.seq, what)
                digest = record.digest
                met = met or digest == end
                yield record
        if whole and not met:
            raise Damaged(where=f"store {self.path}", what="its newest record is not there")

    def _notifications(self, after: int) -> Sequence[Notification]:
        return self._ask(
            lambda: self._recorder.select_notifications(
                after, PAGE_RECORDS, inclusive_of_start=False
            )
        )


def _key_name(stream: str, uuid: bytes) -> str:
    return f"{KEYS}{stream}/{uuid.hex()}"


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
