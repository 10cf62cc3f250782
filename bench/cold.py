"""Cold: a process that has just begun, and files that no cache holds. Open and the last 100, and any moment's state.
Then, of the same stores, the verify of verifies.py.

A store of a million small records is built once by batches (minutes), with an anchor every 50 events on 200 keys, so
200 hold at any time; `python -m bench.cold --events N` runs this alone, of another length. Each figure is taken in a
process of its own, imports excluded, after the caches were dropped as far as the rights allow (said in the title).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

import ef
import ef.codec
import ef.log
import ef.readers
import ef.session
from ef.codec.digests import anchor_id
from ef.events import (
    Anchor,
    AnchorDeclared,
    AnchorKey,
    Authority,
    Channel,
    Event,
    Kind,
    Rule,
    SessionOpened,
    SourceRef,
)
from ef.importers.names import session_stream
from ef.log import Draft
from ef.log.base import Assigned, LateEvent
from ef.readers import anthropic
from ef.session import open_store

from . import verifies
from .appends import ORIGINATOR, draft, stored, texts
from .timing import Row, Table, Work, race, scratch, show

NAME = "bench"
STREAM = session_stream(NAME)
SHORT, LONG, QUICK = 1_000, 1_000_000, 3_000
KEYS, ANCHOR_EVERY, BATCH, LAST, MOMENTS = 200, 50, 500, 100, 40
DROP = Path("/proc/sys/vm/drop_caches")


# ---------------------------------------------------------------------------------------------------------- the stores


def declares(key: AnchorKey, cited: str, quote: str, value: int) -> LateEvent:
    """An anchor that cites an item of its own batch."""

    def made(assigned: Assigned) -> Event:
        tip = assigned[STREAM, cited]
        user = Channel.USER_TYPED
        ref = SourceRef(STREAM, tip.seq, 0, 0, len(quote), tip.digest, user, "text", cited)
        name = anchor_id(STREAM, "value", str(key), [[cited, 0, 0, len(quote)]], ["bench", 1])
        rule = Rule("bench", 1)
        return AnchorDeclared(
            Anchor(name, Kind.VALUE, key, value, Authority.NORMATIVE, user, rule, sources=(ref,))
        )

    return made


def build(path: Path, events: int) -> None:
    """A store with one session of at least so many events, and the snapshots that a rebuild keeps."""
    opened = SessionOpened("bench", "root", anthropic.NAME)
    words = texts(200, 200)
    with ef.open(path) as store:
        store.log.append([Draft(STREAM, "open", opened, Channel.OPERATOR)])
        n = anchors = 0
        while n + anchors < events:
            drafts: list[Draft] = []
            for _ in range(BATCH):
                n += 1
                drafts.append(draft(STREAM, f"i/{n}", f"{n} {words[n % 200]}"))
                if n % ANCHOR_EVERY == 0:
                    anchors += 1
                    key = AnchorKey("config", f"service{anchors % KEYS}", "timeout")
                    late = declares(key, f"i/{n}", str(n), anchors)
                    drafts.append(Draft(STREAM, f"a/{n}", late, Channel.OBSERVER))
            store.log.append(drafts)
        store.rebuild()


def build_sqlite(path: Path, events: int) -> None:
    """As many rows of the library's own SQLite recorder."""
    words = texts(200, 200)
    store = SQLiteDatastore(str(path))
    try:
        recorder = SQLiteApplicationRecorder(store)
        recorder.create_table()
        for start in range(1, events + 1, 5_000):
            some = [f"{n} {words[n % 200]}" for n in range(start, min(start + 5_000, events + 1))]
            recorder.insert_events(stored(some, start))
    finally:
        store.close()


# ------------------------------------------------------------------------------------------------------ in the child


def dropped(folder: Path, *, gently: bool) -> str:
    """Drop what is cached of the files in a folder (`gently`: of nothing else on this machine): how."""
    try:
        if gently:
            raise PermissionError
        os.sync()
        DROP.write_text("3")
    except OSError:
        if not hasattr(os, "posix_fadvise"):
            return "not dropped"
        for file in (folder, *folder.rglob("*")):
            if file.is_file():
                handle = os.open(file, os.O_RDONLY)
                os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(handle)
        return "dropped by posix_fadvise"
    return "dropped by the kernel"


def anonymous() -> float:
    """Anonymous memory of this process in MiB; 0 where nobody says."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def last_of_ef(path: Path) -> tuple[int, float]:
    """Open and read the last records of the session, items with their bodies: how many, the memory then."""
    with open_store(path, create=False) as store:
        tip = store.log.tip(STREAM).seq
        records = list(store.log.read(STREAM, after=max(0, tip - LAST)))
        return sum(len(store.log.body(record)) > 0 for record in records), anonymous()


def last_of_sqlite(path: Path) -> tuple[int, float]:
    """Open and read the last rows: how many, the memory then."""
    store = SQLiteDatastore(str(path))
    try:
        recorder = SQLiteApplicationRecorder(store)
        rows = recorder.select_events(ORIGINATOR, desc=True, limit=LAST)
        return len(rows), anonymous()
    finally:
        store.close()


def opening(path: Path, *, quick: bool) -> dict[str, Any]:
    """Seconds and memory of an open and the last 100."""
    how = dropped(path if path.is_dir() else path.parent, gently=quick)
    before, begun = anonymous(), time.perf_counter()
    read, after = last_of_ef(path) if path.is_dir() else last_of_sqlite(path)
    seconds = time.perf_counter() - begun
    assert read == LAST
    return {"seconds": seconds, "memory": after - before, "how": how}


def moments(path: Path, *, quotes: bool, quick: bool) -> dict[str, Any]:
    """Seconds of the state at random moments. Before each the caches are dropped and the store is opened anew: what a
    process has mapped stays in the cache."""
    chance, how, heads = random.Random(7), "", 0
    taken: list[float] = []
    with open_store(path, create=False) as store:
        seq = store.session(NAME).seq
    for _ in range(3 if quick else MOMENTS):
        at = chance.randint(seq // 2 if seq < 20_000 else 10_001, seq)
        how = dropped(path, gently=quick)
        with open_store(path, create=False) as store:
            session = store.session(NAME)
            begun = time.perf_counter()
            state = session.state(at, quotes=quotes)
            taken.append(time.perf_counter() - begun)
        heads = len(state.heads)
    taken.sort()
    return {"seconds": taken[len(taken) // 2], "most": taken[-1], "heads": heads, "how": how}


def child(mode: str, path: Path, *, quick: bool) -> dict[str, Any]:
    """What a fresh process measures."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.cold", "--child", mode, str(path), *(["--quick"] if quick else [])],
        cwd=Path(__file__).resolve().parent.parent, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def measured(mode: str, path: Path, *, quick: bool) -> dict[str, Any]:
    """In the child, when all that it needs is imported."""
    for package in (ef.log, ef.session, ef.codec, ef.readers):
        for module in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            importlib.import_module(module.name)
    if mode == "open":
        return opening(path, quick=quick)
    return moments(path, quotes=mode == "quotes", quick=quick)


# ------------------------------------------------------------------------------------------------------------ tables


def tables(*, quick: bool, rounds: int, events: int = LONG) -> Iterator[Table]:
    """Open and the last 100 of a short and a long session; the state at any moment of the long one, and its verify."""
    events = QUICK if quick else events
    with scratch() as folder:
        sizes = {SHORT: folder / "short", events: folder / "long"}
        for size, base in sizes.items():
            build(base.with_suffix(".ef"), size)
            build_sqlite(base.with_suffix(".sqlite"), size)
        yield _opens(sizes, rounds, quick=quick)
        yield _moments(folder / "long.ef", events, rounds, quick=quick)
        yield verifies.table(folder / "long.ef", folder / "long.sqlite", events, rounds)


def _opens(sizes: dict[int, Path], rounds: int, *, quick: bool) -> Table:
    seen: dict[str, dict[str, Any]] = {}

    def work(name: str, path: Path) -> Work:
        def measure(_: Path) -> float:
            seen[name] = child("open", path, quick=quick)
            return float(seen[name]["seconds"])

        return measure

    contestants = {
        f"{what} of {size:,}": work(f"{what} of {size:,}", base.with_suffix(suffix))
        for what, suffix in (("ef", ".ef"), ("eventsourcing, SQLite", ".sqlite"))
        for size, base in sizes.items()
    }
    table = race("", "opens/s", 1, contestants, rounds)
    memory = ", ".join(f"{name} {one['memory']:.2f} MiB" for name, one in seen.items())
    hows = ", ".join(sorted({one["how"] for one in seen.values()}))
    table.title = f"Open and the last {LAST} records, caches {hows}\n  memory added: {memory}"
    return table


def _moments(path: Path, events: int, rounds: int, *, quick: bool) -> Table:
    table = Table("", "answers/s")
    heads, hows = 0, set[str]()
    for name, mode in (("state, references only", "bare"), ("state with its quotes", "quotes")):
        found = [child(mode, path, quick=quick) for _ in range(min(rounds, 3))]
        found.sort(key=lambda one: one["seconds"])
        middle = found[len(found) // 2]
        heads, hows = middle["heads"], hows | {middle["how"]}
        table.rows.append(
            Row(name, middle["seconds"], 1, found[0]["seconds"], max(one["most"] for one in found))
        )
    table.title = (
        f"State at a random moment of {events:,} events with {heads} active anchors, caches {', '.join(hows)}\n"
        f"  median of {MOMENTS} moments; greatest is the slowest of all moments"
    )
    return table


def main() -> int:
    """This benchmark alone; or, in a child, one measurement."""
    parser = argparse.ArgumentParser(prog="python -m bench.cold", description=__doc__)
    parser.add_argument("--events", type=int, default=LONG)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run at all")
    parser.add_argument("--child", nargs=2, metavar=("MODE", "PATH"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(measured(given.child[0], Path(given.child[1]), quick=given.quick)))
        return 0
    for table in tables(quick=given.quick, rounds=given.rounds, events=given.events):
        print(show(table), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
