"""Replay of a long session from its first record, beside json.loads of the lines that its records came from; start-up.

The session is made of recorded sessions, one after another and again under fresh keys, until it has as many records
as EF_BENCH_RECORDS says: items with the sizes of real lines, reports of usage, anchors. Their bodies lie in a source,
as an import puts them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from uuid import UUID

from blake3 import blake3
from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

import ef
from ef.events import (
    AnchorDeclared,
    Cause,
    ItemAppended,
    ItemReplaced,
    Recorded,
    SessionDescribed,
    SessionOpened,
)
from ef.importers.names import session_stream
from ef.log import Draft
from ef.log.items import recorded
from ef.log.rows import LOG
from ef.projections.working import Working
from ef.session.calm import calm

from .reads import SHARED, SHOPCART
from .timing import Table, Work, race, scratch

RECORDS = 1_000_000
STREAM = session_stream("long")
ORIGINATOR = UUID(int=2)
BATCH = 2_000
PAGE = 500


def count(*, quick: bool) -> int:
    """How many records the session gets."""
    return 500 if quick else int(os.environ.get("EF_BENCH_RECORDS", RECORDS))


class Base:
    """Recorded sessions, imported: their events and the bytes of their items."""

    def __init__(self, store: ef.Store, files: Iterable[Path]) -> None:
        self.log = store.log
        self.events: list[tuple[int, Recorded]] = []
        self.lines: dict[bytes, bytes] = {}
        for path in files:
            for name in store.import_file(path).sessions:
                before = len(self.events)
                for each in recorded(store.log, session_stream(name)):
                    self.events.append((before, each))
                    if each.header.item is not None:
                        record = store.log.get(session_stream(name), each.header.seq)
                        self.lines[each.digest] = store.log.body(record)

    def again(self) -> Iterator[tuple[int, int, Recorded]]:
        """The events round after round: the round, how far the seqs move, the event."""
        for n in range(1 << 30):
            for before, each in self.events:
                yield n, n * len(self.events) + before, each

    def line(self, each: Recorded) -> bytes | None:
        """The line that an item's record holds; None for what is no item."""
        return self.lines.get(each.digest)

    def draft(self, n: int, shift: int, each: Recorded) -> Draft:
        """An event as one of the long session."""
        h, event = each.header, each.event
        if isinstance(event, SessionOpened):
            event = replace(event, parent_stream=None, parent_seq=None, parent_digest=None)
            if shift:
                event = SessionDescribed("again")
        elif isinstance(event, AnchorDeclared):
            refs = (
                replace(r, stream=STREAM, seq=r.seq + shift, item_key=f"{n}/{r.item_key}")
                for r in event.anchor.sources
            )
            event = AnchorDeclared(replace(event.anchor, sources=tuple(refs)))
        elif isinstance(event, (ItemAppended, ItemReplaced)):
            event = type(event)(self.lines[each.digest])
        cause = h.cause and Cause(STREAM, h.cause.seq + shift)
        return Draft(
            STREAM, f"{shift}/{h.key}", event, h.channel, h.occurred_at, h.basis, h.origin, cause, h.group, h.item,
            h.reader, h.place,
        )  # fmt: skip


def fill(base: Base, records: int) -> None:
    """The long session of `records` records."""
    drafts = (base.draft(*given) for given in islice(base.again(), records))
    while some := list(islice(drafts, BATCH)):
        base.log.append(some)


def loads(base: Base, records: int) -> Work:
    """json.loads of the lines of the session's items, and nothing else."""
    lines = [base.line(each) for _, _, each in islice(base.again(), records)]

    def work(_: Path) -> None:
        for line in lines:
            if line is not None:
                json.loads(line)

    return work


def raw(base: Base) -> Work:
    """Every row of the log's table through liblmdb, and blake3 of each: what nothing can beat that reads them all."""

    def work(_: Path) -> None:
        at = b"\0"
        with base.log._env.read() as txn:
            while rows := txn.scan(LOG, at, BATCH):
                for _key, frame in rows:
                    blake3(frame).digest()
                at = rows[-1][0] + b"\0"

    return work


def headers(base: Base) -> Work:
    """Every header of the session: decoded and checked, its digest and the chain checked."""

    def work(_: Path) -> None:
        for _record in base.log.read(STREAM):
            pass

    return work


def projection(base: Base, records: int) -> Work:
    """The whole working projection, all reducers, from the first record."""

    def work(_: Path) -> None:
        with calm():
            working = Working(STREAM).apply(recorded(base.log, STREAM))
        assert working.seq == records

    return work


def select(base: Base, records: int, folder: Path) -> Iterator[Work]:
    """The library's SQLite recorder, with the same lines as the states of its rows; yields once, closes behind it."""
    store = SQLiteDatastore(str(folder / "s.sqlite"))
    recorder = SQLiteApplicationRecorder(store)
    recorder.create_table()
    rows = (
        StoredEvent(ORIGINATOR, at, each.header.kind, base.line(each) or b"{}")
        for at, (_, _, each) in enumerate(islice(base.again(), records), 1)
    )
    while some := list(islice(rows, BATCH)):
        recorder.insert_events(some)

    def work(_: Path) -> None:
        for first in range(0, records, PAGE):
            recorder.select_events(ORIGINATOR, gt=first, limit=PAGE)

    try:
        yield work
    finally:
        store.close()


def tables(*, quick: bool, rounds: int) -> Iterator[Table]:
    """Replay of the long session, and start-up."""
    records = count(quick=quick)
    shared = [] if quick or not SHARED.is_dir() else sorted(SHARED.rglob("*.jsonl"))
    with scratch() as folder, ef.open(folder / "s.ef") as store:
        base = Base(store, shared or [SHOPCART])
        fill(base, records)
        lines = [line for _, _, e in islice(base.again(), records) if (line := base.line(e))]
        for library in select(base, records, folder):
            yield race(
                f"Replay of {records:,} records from the first; their {len(lines):,} lines have "
                f"{sum(map(len, lines)) / len(lines):,.0f} bytes on average",
                "records/s",
                records,
                {
                    "json.loads of their lines": loads(base, records),
                    "ef, working projection": projection(base, records),
                    "ef, headers, digests checked": headers(base),
                    "LMDB scan and blake3 alone": raw(base),
                    "eventsourcing, SQLite, select": library,
                },
                rounds,
            )
    yield started(rounds=rounds * 3)


def started(*, rounds: int) -> Table:
    """From nothing to an answer, on a small store."""
    with scratch() as folder:
        with ef.open(folder / "s.ef") as store:
            name = store.import_file(SHOPCART).sessions[0]

        def run(*words: str) -> Work:
            def work(_: Path) -> None:
                subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)

            return work

        state = ("-m", "ef", "--store", str(folder / "s.ef"), "state", name)
        return race(
            "Start-up: each a process of its own (a ratio of 0.25 is four times as long)",
            "starts/s",
            1,
            {
                "python -c pass": run("-c", "pass"),
                "ef --help": run("-m", "ef", "--help"),
                "ef state, a small store": run(*state),
            },
            rounds,
        )
