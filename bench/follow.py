"""What a line more costs in a file that is followed, by the file's length; beside it, importing the file again.

The bar: the same cost at 1 and at 500 MB. Without EF_BENCH_FULL=1 the longest has 50 MB, as each is taken in first.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ef
from ef.testing.transcripts import transcript

from .reads import SHARED
from .timing import Row, Table, scratch

MB = 1 << 20
LINES = 25


def tables(*, quick: bool, rounds: int) -> Iterator[Table]:
    """One table: lines at each length, and importing again at the shorter ones."""
    sizes = [MB] if quick else [MB, 10 * MB, 50 * MB]
    if os.environ.get("EF_BENCH_FULL"):
        sizes.append(500 * MB)
    table = Table("a line more in a file that is followed (until it is durable)", "lines/s")
    again: list[Row] = []
    with scratch() as folder, ef.open(folder / "s.ef") as store:
        path = folder / "followed.jsonl"
        source = _lines()
        watcher = store.watch(path)
        for size in sizes:
            with path.open("ab") as file:
                while file.tell() < size:
                    file.write(next(source))
            list(watcher.poll())
            table.rows.append(_row(f"file of {size // MB} MB", _followed(path, watcher, source)))
            if size <= 10 * MB:
                times = _imported(path, folder, source, rounds)
                again.append(_row(f"file of {size // MB} MB, imported again", times))
    table.rows += again
    yield table


def _row(name: str, times: list[float]) -> Row:
    return Row(name, statistics.median(times), 1, min(times), max(times))


def _followed(path: Path, watcher: Any, source: Iterator[bytes]) -> list[float]:
    times: list[float] = []
    for _ in range(LINES):
        with path.open("ab") as file:
            file.write(next(source))
        began = time.perf_counter()
        changes = list(watcher.poll())
        times.append(time.perf_counter() - began)
        assert len(changes) == 1 and changes[0].error is None, changes
    return times


def _imported(path: Path, folder: Path, source: Iterator[bytes], rounds: int) -> list[float]:
    """The control: a line more, and the whole file imported."""
    other = folder / "again.jsonl"
    other.write_bytes(path.read_bytes())
    times: list[float] = []
    with ef.open(folder / f"again-{other.stat().st_size}.ef") as store:
        store.import_file(other)
        for _ in range(min(rounds, 3)):
            with other.open("ab") as file:
                file.write(next(source))
            began = time.perf_counter()
            store.import_file(other)
            times.append(time.perf_counter() - began)
    return times


def _lines() -> Iterator[bytes]:
    """Lines of a recorded session, again and again under other ids; of a made-up one where there is none."""
    recorded = SHARED / "entireio-cli" / "cd__95adddad32__0__full.jsonl"
    data = recorded.read_bytes() if recorded.is_file() else transcript(200)
    records = [json.loads(line) for line in data.splitlines() if line.startswith(b'{"')]
    turn = 0
    while True:
        for record in records:
            text = json.dumps(record, separators=(",", ":"))
            for name in ("toolu_", "msg_"):
                text = text.replace(f'"{name}', f'"{name}{turn}_')
            again = json.loads(text)
            if isinstance(again.get("uuid"), str):
                again["uuid"] = f"{again['uuid']}-{turn}"
                again["parentUuid"] = None
            again["sessionId"] = "followed"
            yield json.dumps(again, separators=(",", ":")).encode() + b"\n"
        turn += 1
