"""Appends in flight: group commit beside one durable write after another, and beside a JSON line not waited for."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import ef
from ef.events import Channel, ItemAppended
from ef.importers.names import session_stream
from ef.log import Draft

from .appends import message, texts, with_log, with_session, with_sqlite
from .timing import Table, Work, race

Submit = Callable[[int, str], Future[Any]]


def with_fdatasync(payloads: Sequence[str]) -> Work:
    """Raw bytes appended to a file, each synced before the next: what the disk allows to one caller who waits."""

    def work(folder: Path) -> float:
        handle = os.open(folder / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            data = [text.encode() for text in payloads]
            start = time.perf_counter()
            for some in data:
                os.write(handle, some)
                os.fdatasync(handle)
            return time.perf_counter() - start
        finally:
            os.close(handle)

    return work


def _in_flight(submit: Submit, payloads: Sequence[str], most: int) -> float:
    """Seconds until all are durable, with at most so many waiting at any time."""
    waiting: deque[Future[Any]] = deque()
    start = time.perf_counter()
    for n, text in enumerate(payloads):
        if len(waiting) == most:
            waiting.popleft().result()
        waiting.append(submit(n, text))
    for future in waiting:
        future.result()
    return time.perf_counter() - start


def raw(stream: str, n: int, text: str) -> Draft:
    """A record of these bytes that nobody reads."""
    return Draft(stream, str(n), ItemAppended(text.encode()), Channel.OPERATOR)


def log_in_flight(payloads: Sequence[str], most: int) -> Work:
    """Log.append_nowait of raw records, one event each."""

    def work(folder: Path) -> float:
        stream = session_stream("bench")
        with ef.open(folder / "s.ef") as store:
            nowait = store.log.append_nowait
            return _in_flight(lambda n, t: nowait([raw(stream, n, t)]), payloads, most)

    return work


def session_in_flight(payloads: Sequence[str], most: int) -> Work:
    """Session.append_nowait of messages: read, observed, appended."""

    def work(folder: Path) -> float:
        with ef.open(folder / "s.ef") as store:
            session = store.session("bench")
            session.append(message("begin"))
            return _in_flight(lambda n, t: session.append_nowait(message(t)), payloads, most)

    return work


def json_lines(payloads: Sequence[str]) -> Work:
    """A JSON line for each message, written and not synced: lost with the power, and nothing is checked."""

    def work(folder: Path) -> float:
        with (folder / "s.jsonl").open("ab", buffering=0) as file:
            start = time.perf_counter()
            for text in payloads:
                file.write(json.dumps(message(text)).encode() + b"\n")
            return time.perf_counter() - start

    return work


def handed_over(payloads: Sequence[str]) -> Work:
    """The caller's own time for Log.append_nowait; all is durable a little later, and that is not counted."""

    def work(folder: Path) -> float:
        stream = session_stream("bench")
        with ef.open(folder / "s.ef") as store:
            start = time.perf_counter()
            for n, text in enumerate(payloads):
                store.log.append_nowait([raw(stream, n, text)])
            return time.perf_counter() - start

    return work


def tables(*, quick: bool, rounds: int) -> Iterator[Table]:
    """In flight against one at a time; not waiting against a JSON line, at two sizes."""
    one, many = (20, 200) if quick else (300, 6_000)
    single, stream = texts(one, 1024), texts(many, 1024)
    yield race(
        "Durable appends of 1 KiB, waiting for each and in flight",
        "appends/s",
        {
            "raw append + fdatasync": one,
            "eventsourcing, SQLite recorder": one,
            "ef, log, one caller waits": one,
            "ef, session, one caller waits": one,
            "ef, log, 64 in flight": many,
            "ef, log, 1,024 in flight": many,
            "ef, session, 64 in flight": many,
            "ef, session, 1,024 in flight": many,
        },
        {
            "raw append + fdatasync": with_fdatasync(single),
            "eventsourcing, SQLite recorder": with_sqlite(single, 1),
            "ef, log, one caller waits": with_log(single, 1),
            "ef, session, one caller waits": with_session(single),
            "ef, log, 64 in flight": log_in_flight(stream, 64),
            "ef, log, 1,024 in flight": log_in_flight(stream, 1024),
            "ef, session, 64 in flight": session_in_flight(stream, 64),
            "ef, session, 1,024 in flight": session_in_flight(stream, 1024),
        },
        rounds,
    )
    for name, size, count in (("1 KiB", 1024, 4_000), ("20 KiB", 20 * 1024, 800)):
        payloads = texts(count // 40 if quick else count, size)
        yield race(
            f"Appends that nobody waits for, {name}",
            "appends/s",
            len(payloads),
            {
                "JSON line, not synced": json_lines(payloads),
                "ef, log, until all is durable": log_in_flight(payloads, 1 << 30),
                "ef, log, the caller's own time": handed_over(payloads),
            },
            rounds,
        )
