"""Durable appends: one at a time and in batches, beside a SQLite recorder and a plain file that is synced."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import UUID

from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

import ef
from ef.events import Channel, ItemAppended, SessionOpened
from ef.importers.names import facts_of, session_stream
from ef.log import Draft
from ef.log.recorder import LmdbApplicationRecorder
from ef.meter import METER, estimate
from ef.readers import anthropic

from .timing import Table, Work, race

ORIGINATOR = UUID(int=1)
WORDS = "cart price total test discount timeout config import assert return value line file error passed".split()


def texts(count: int, size: int) -> list[str]:
    """Texts of about `size` bytes that compress like transcripts, the same in each run."""
    chance = random.Random(size)
    found = []
    for n in range(count):
        words = [f"{n}:"]
        while sum(map(len, words)) + len(words) < size:
            words.append(chance.choice(WORDS) + str(chance.randrange(1000)))
        found.append(" ".join(words))
    return found


def message(text: str) -> dict[str, str]:
    """A message that the user typed."""
    return {"role": "user", "content": text}


def draft(stream: str, key: str, text: str) -> Draft:
    """The draft that a session makes of a message."""
    data = json.dumps(message(text)).encode()
    reading = anthropic.read(data)
    return Draft(
        stream,
        key,
        ItemAppended(data),
        Channel.OPERATOR,
        item=facts_of(reading, METER, estimate(reading)),
        reader=(anthropic.NAME, anthropic.VERSION),
    )


def batches(of: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Slices of `size`."""
    for start in range(0, len(of), size):
        yield of[start : start + size]


def with_session(payloads: Sequence[str]) -> Work:
    """Session.append: reads the message, runs the observers, appends."""

    def work(folder: Path) -> float:
        with ef.open(folder / "s.ef") as store:
            session = store.session("bench")
            session.append(message("begin"))
            start = time.perf_counter()
            for text in payloads:
                session.append(message(text))
            return time.perf_counter() - start

    return work


def with_log(payloads: Sequence[str], batch: int) -> Work:
    """Log.append of drafts."""

    def work(folder: Path) -> float:
        stream = session_stream("bench")
        with ef.open(folder / "s.ef") as store:
            start = time.perf_counter()
            for n, some in enumerate(batches(payloads, batch)):
                store.log.append([draft(stream, f"{n}/{i}", text) for i, text in enumerate(some)])
            return time.perf_counter() - start

    return work


def stored(payloads: Sequence[str], first: int) -> list[StoredEvent]:
    """The payloads as rows of the eventsourcing library."""
    return [
        StoredEvent(ORIGINATOR, first + n, "Item", json.dumps(message(text)).encode())
        for n, text in enumerate(payloads)
    ]


def with_recorder(payloads: Sequence[str], batch: int) -> Work:
    """The same store through the eventsourcing library's recorder interface."""

    def work(folder: Path) -> float:
        with ef.open(folder / "s.ef") as store:
            recorder = LmdbApplicationRecorder(store.log)
            return _insert(recorder, payloads, batch)

    return work


def with_sqlite(payloads: Sequence[str], batch: int) -> Work:
    """The eventsourcing library's own SQLite recorder, on a file."""

    def work(folder: Path) -> float:
        store = SQLiteDatastore(str(folder / "s.sqlite"))
        try:
            recorder = SQLiteApplicationRecorder(store)
            recorder.create_table()
            return _insert(recorder, payloads, batch)
        finally:
            store.close()

    return work


def _insert(
    recorder: SQLiteApplicationRecorder | LmdbApplicationRecorder,
    payloads: Sequence[str],
    batch: int,
) -> float:
    start = time.perf_counter()
    at = 1
    for some in batches(payloads, batch):
        recorder.insert_events(stored(some, at))
        at += len(some)
    return time.perf_counter() - start


def with_file(payloads: Sequence[str], batch: int) -> Work:
    """JSON lines, written and synced. No key, no chain, no index: what a durable write costs at the least."""

    def work(folder: Path) -> float:
        with (folder / "s.jsonl").open("ab", buffering=0) as file:
            start = time.perf_counter()
            for some in batches(payloads, batch):
                file.write(b"".join(json.dumps(message(text)).encode() + b"\n" for text in some))
                os.fsync(file.fileno())
            return time.perf_counter() - start

    return work


def tables(*, quick: bool, rounds: int) -> Iterator[Table]:
    """Single appends of two sizes, batches, and whether history makes an append slower."""
    count = 5 if quick else 100
    for name, size in (("1 KiB", 1024), ("20 KiB", 20 * 1024)):
        payloads = texts(count, size)
        yield race(
            f"Append one at a time, durable, {name}",
            "appends/s",
            count,
            {
                "JSON lines + fsync": with_file(payloads, 1),
                "eventsourcing, SQLite recorder": with_sqlite(payloads, 1),
                "ef, recorder": with_recorder(payloads, 1),
                "ef, log": with_log(payloads, 1),
                "ef, session with observers": with_session(payloads),
            },
            rounds,
        )
    batch = 10 if quick else 100
    payloads = texts(batch * (2 if quick else 10), 1024)
    yield race(
        f"Append in batches of {batch}, durable, 1 KiB",
        "events/s",
        len(payloads),
        {
            "JSON lines + fsync": with_file(payloads, batch),
            "eventsourcing, SQLite recorder": with_sqlite(payloads, batch),
            "ef, recorder": with_recorder(payloads, batch),
            "ef, log": with_log(payloads, batch),
        },
        rounds,
    )
    yield history(quick=quick, rounds=rounds)


def history(*, quick: bool, rounds: int) -> Table:
    """One append to a session that is short, and to one that is long: the cost must not follow the history."""
    short, long, count = (100, 400, 5) if quick else (1_000, 20_000, 50)
    payloads = texts(count, 1024)

    def at(length: int) -> Work:
        def work(folder: Path) -> float:
            with ef.open(folder / "s.ef") as store:
                fill(store, length)
                session = store.session("bench")
                session.append(message("the first append of a process catches up"))
                start = time.perf_counter()
                for text in payloads:
                    session.append(message(text))
                return time.perf_counter() - start

        return work

    return race(
        "Append to a session with history (session with observers, 1 KiB)",
        "appends/s",
        count,
        {f"after {short:,} events": at(short), f"after {long:,} events": at(long)},
        rounds,
    )


def fill(store: ef.Store, length: int) -> None:
    """A session of `length` events, appended in batches."""
    stream = session_stream("bench")
    opened = Draft(
        stream, "open", SessionOpened(store.log.store_id, "root", anthropic.NAME), Channel.OPERATOR
    )
    store.log.append([opened])
    short = texts(200, 200)
    for start in range(1, length, 500):
        some = range(start, min(start + 500, length))
        store.log.append([draft(stream, f"fill/{n}", f"{n} {short[n % 200]}") for n in some])
