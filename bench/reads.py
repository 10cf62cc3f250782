"""Import, replay, context and state, verify: beside json.loads of the same lines."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import ef
from ef.importers.names import session_stream
from ef.log.items import recorded
from ef.projections.working import Working

from .timing import Table, Work, race, scratch

ROOT = Path(__file__).resolve().parent.parent
SHOPCART = ROOT / "examples" / "shopcart.jsonl"
SHARED = Path(os.environ.get("EF_SHARED_DATA") or ROOT.parent / "shared" / "data") / "claude-code"


def files(*, quick: bool) -> list[Path]:
    """The session that comes with the repository; the largest of the shared ones, where those are."""
    if quick or not SHARED.is_dir():
        return [SHOPCART]
    return [SHOPCART, *sorted(SHARED.rglob("*.jsonl"), key=lambda p: -p.stat().st_size)[:2]]


def loads(path: Path) -> Work:
    """json.loads of each line, and nothing else."""

    def work(_: Path) -> None:
        for line in path.read_bytes().split(b"\n"):
            if line.strip():
                json.loads(line)

    return work


def imports(path: Path) -> Work:
    """An import into a new store."""

    def work(folder: Path) -> None:
        with ef.open(folder / "s.ef") as store:
            store.import_file(path)

    return work


def again(path: Path, origin: Path) -> Work:
    """An import of what is known already, into a copy of a store that has it."""

    def work(folder: Path) -> float:
        shutil.copytree(origin, folder / "s.ef")
        with ef.open(folder / "s.ef", create=False) as store:
            start = time.perf_counter()
            store.import_file(path)
            return time.perf_counter() - start

    return work


def reading(origin: Path, name: str, deed: Callable[[ef.Store, str], object]) -> Work:
    """Something read from a store that is open."""

    def work(_: Path) -> float:
        with ef.open(origin, create=False) as store:
            start = time.perf_counter()
            deed(store, name)
            return time.perf_counter() - start

    return work


def headers(store: ef.Store, name: str) -> None:
    """Every record's header, its digest checked."""
    for _ in store.log.read(session_stream(name)):
        pass


def projection(store: ef.Store, name: str) -> None:
    """The whole working projection, from the first event."""
    Working(session_stream(name)).apply(recorded(store.log, session_stream(name)))


def tables(*, quick: bool, rounds: int) -> Iterator[Table]:
    """The tables of each file."""
    for path in files(quick=quick):
        with scratch() as folder:
            origin = folder / "s.ef"
            with ef.open(origin) as store:
                done = store.import_file(path)
                name, seq = done.sessions[0], store.session(done.sessions[0]).seq
                total = store.verify().events
            yield from _file(path, origin, name, seq, total, rounds)


def _file(
    path: Path, origin: Path, name: str, seq: int, total: int, rounds: int
) -> Iterator[Table]:
    size = path.stat().st_size / 1e6
    what = f"{path.name[:40]} ({size:.2f} MB, {total:,} events)"
    yield race(
        f"Import of {what}",
        "MB/s",
        size,
        {
            "json.loads of its lines": loads(path),
            "ef, import into a new store": imports(path),
            "ef, import of what is known": again(path, origin),
        },
        rounds,
    )
    yield race(
        f"Replay of its {seq:,} session events from the first",
        "events/s",
        seq,
        {
            "json.loads of its lines": loads(path),
            "ef, headers, digests checked": reading(origin, name, headers),
            "ef, working projection": reading(origin, name, projection),
        },
        rounds,
    )
    middle = seq // 2
    yield race(
        "A moment of it",
        "answers/s",
        1,
        {
            f"state at seq {middle}": reading(
                origin, name, lambda s, n: s.session(n).state(middle)
            ),
            f"state at seq {seq}": reading(origin, name, lambda s, n: s.session(n).state(seq)),
            f"context at seq {middle}": reading(
                origin, name, lambda s, n: s.session(n).context(middle)
            ),
            f"context at seq {seq}": reading(origin, name, lambda s, n: s.session(n).context(seq)),
        },
        rounds,
    )
    yield race(
        "Verify of its store",
        "events/s",
        total,
        {
            "full": reading(origin, name, lambda s, _: s.verify()),
            "quick": reading(origin, name, lambda s, _: s.verify(quick=True)),
        },
        rounds,
    )
