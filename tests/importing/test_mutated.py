"""Broken lines of each format: imported with remarks or refused, never half, never a traceback.

One thousand of each in every run, twenty thousand in a long one (HYPOTHESIS_PROFILE=long).
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ef
from ef.errors import InputRefused
from ef.testing.mutations import MUTATIONS, WELL_FORMED, Mutation
from ef.testing.pairing import violations
from tests.importing.hostile import SEED_NAMES, Seed, joined, seeds

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
LINES = 20_000 if LONG else 1_000
A_FILE = 1_000 if LONG else 300
TORN = LINES // 10
"""Of a document, so many lines are broken such that nothing behind them can be read; few in one file."""

SEEDS = {seed.name: seed for seed in seeds()}


def mutants(seed: Seed, count: int, chosen: random.Random, how: tuple[Mutation, ...]) -> bytes:
    """A file of the seed with `count` broken records behind its own first ones."""
    before = seed.records[: max(1, seed.records.index(seed.asked))]
    comma = b"," if seed.is_document else b""
    rows = [seed.rows[n] for n in range(before[-1] + 1)]
    for _ in range(count):
        record = seed.record(chosen.choice(seed.records))
        broken = chosen.choice(how)(chosen, record)
        rows.append(broken.replace(b"\n", b" ") + comma)
    return joined([*rows, *seed.rows[seed.last :]])


def files(seed: Seed) -> Iterator[tuple[int, bytes]]:
    """How many lines of a file are broken, and the file."""
    chosen = random.Random(f"mutants of {seed.name}")
    torn = TORN if seed.is_document else 0
    how = WELL_FORMED if seed.is_document else MUTATIONS
    left = LINES - torn
    while left > 0:
        yield min(A_FILE, left), mutants(seed, min(A_FILE, left), chosen, how)
        left -= A_FILE
    while torn > 0:
        yield 10, mutants(seed, 10, chosen, MUTATIONS)
        torn -= 10


def survives(path: Path, data: bytes) -> str:
    """What became of a file. Whatever it is, nothing of it is lost or made up."""
    path.write_bytes(data)
    with ef.open(":memory:") as store:
        try:
            done = store.import_file(path)
        except InputRefused:
            assert store.log.store_tip()[0] == 0, "half of a refused file was kept"
            return "refused"
        assert store.export_original(done.source) == data
        for name in done.sessions:
            assert violations(store.session(name).context().messages) == []
        assert store.verify().verdict == "sound"
        tip = store.log.store_tip()
        assert store.import_file(path).new_events == {}
        assert store.log.store_tip() == tip
        return "remarked" if done.notes else "taken"


@pytest.mark.parametrize("name", SEED_NAMES)
def test_broken_lines_are_remarked_or_refused_and_never_half_imported(
    name: str, tmp_path: Path, figure: Callable[[str], None]
) -> None:
    seed = SEEDS[name]
    lines, ends = 0, Counter[str]()
    for n, (count, data) in enumerate(files(seed)):
        try:
            ends[survives(tmp_path / seed.file, data)] += 1
        except Exception as fault:
            raise AssertionError(f"{name}, file {n}: {type(fault).__name__}: {fault}") from fault
        lines += count
    figure(f"hostile: {name}: {lines} mutated lines in {ends.total()} files: {dict(ends)}")
    assert lines == LINES
    assert ends["remarked"] > ends["refused"]
