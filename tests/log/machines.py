"""A log and its model, and what random histories are made of; see test_stateful.py."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ef.errors import EfError
from ef.log import points
from ef.log.base import EMPTY, Appended, Log, Tip
from ef.log.check import Checker
from ef.log.lmdb_log import LmdbLog
from tests.log.contract import Kind, Lmdb, Memory, Sqlite
from tests.log.model import Batch, Model, content, drafts_of, outcome_of
from tests.log.others import RIVALS, SECONDS_MAX, Child, rival

STREAMS = ("s", "t", "session/é")
FORKS_MAX = 2
"""In one history; a fork costs more than all else in it."""

POINTS = [name for name in points.POINTS if name.startswith(("append.", "group."))]
SIZES = (3, 0, 600, 1_500)
Shapes = list[tuple[str, int]]
"""Stream and size of body of each draft of a batch."""


def shapes_of(number: int) -> Shapes:
    """One draw makes a batch: else most of the time would go into drawing. Smaller numbers make smaller batches."""
    shapes: Shapes = []
    while not shapes or number:
        number, stream = divmod(number, len(STREAMS))
        number, size = divmod(number, len(SIZES))
        shapes.append((STREAMS[stream], SIZES[size]))
    return shapes


SHAPES = st.integers(0, (len(STREAMS) * len(SIZES)) ** 3 - 1).map(shapes_of)
WAVES = st.lists(SHAPES, min_size=2, max_size=4)
PICKS = st.integers(0, 2**16)


def in_memory() -> str | None:
    """Where a folder costs no disk, if there is such a place: a killed process loses nothing of it either."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


class LogMachine(RuleBasedStateMachine):
    """What every log must stand. `kind_class` says which one."""

    kind_class: ClassVar[type[Kind]] = Memory

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="ef-stateful-", dir=in_memory()))
        self.kind = self.kind_class(self.folder)
        self.log = self.open()
        self.model = Model()
        self.seen: dict[str, Tip] = {}
        self.stale: list[tuple[str, Tip]] = [("s", Tip(1, bytes(32)))]
        self.keys = 0
        self.sound = True
        """Whether the newest step ended as it should: else what it broke says enough."""

    def open(self) -> Log:
        return self.kind.open()

    # -- help ---------------------------------------------------------------------------------------------------

    def fresh(self, shapes: Sequence[tuple[str, int]]) -> Batch:
        self.keys += 1
        self.sound = False
        return [(stream, f"k{self.keys}.{n}", size) for n, (stream, size) in enumerate(shapes)]

    def known(self, picks: Sequence[int], *, other: bool = False) -> Batch:
        found = [row for row in map(self.model.pick, picks) if row is not None]
        return [(stream, key, size + other) for stream, key, size in found]

    def step(
        self,
        batch: Batch,
        expect: Mapping[str, Tip] | None = None,
        append: Callable[..., list[Appended]] | None = None,
    ) -> None:
        """Append to both; both must say the same."""
        met = {stream: self.now(stream) == tip for stream, tip in (expect or {}).items()}
        wanted = self.model.append(batch, met)
        try:
            said = outcome_of((append or self.log.append)(drafts_of(batch), expect=expect))
        except EfError as fault:
            said = type(fault)
        assert said == wanted, (batch, met)

    def now(self, stream: str) -> Tip:
        """The tip as it was read in order, record by record."""
        return self.seen.get(stream, EMPTY)

    def absorb(self, batches: Sequence[Batch], acknowledged: Mapping[int, list[int]]) -> None:
        """Take in what others appended: each batch whole or not at all, the acknowledged ones as they were told."""
        there: list[tuple[str, int, str, int]] = []
        for n, batch in enumerate(batches):
            seqs = [self.log.find(stream, key) for stream, key, _ in batch]
            assert all(seqs) or not any(seqs), ("a part of a batch", batch, seqs)
            assert n not in acknowledged or acknowledged[n] == seqs, ("lost", batch, seqs)
            there += [
                (stream, seq, key, size)
                for seq, (stream, key, size) in zip(seqs, batch, strict=True)
                if seq is not None
            ]
        for stream, seq, key, size in sorted(there):
            assert self.model.put(stream, key, size) == seq

    # -- rules --------------------------------------------------------------------------------------------------

    @rule(shapes=SHAPES)
    def append(self, shapes: Shapes) -> None:
        self.step(self.fresh(shapes))

    @rule(shapes=SHAPES, pick=PICKS, twice=st.booleans())
    def retry(self, shapes: Shapes, pick: int, twice: bool) -> None:
        fresh = self.fresh(shapes)
        self.step([*self.known([pick, pick // 2]), *fresh, *(fresh[:1] if twice else [])])

    @rule(shapes=SHAPES, pick=PICKS, first=st.booleans())
    def retry_with_other_content(self, shapes: Shapes, pick: int, first: bool) -> None:
        fresh, other = self.fresh(shapes), self.known([pick], other=True)
        if not other:
            other = [(*fresh[0][:2], fresh[0][2] + 1)]
            first = False
        self.step([*other, *fresh] if first else [*fresh, *other])

    @rule(shapes=SHAPES, streams=st.sets(st.sampled_from(STREAMS), min_size=1))
    def append_on_this_tip(self, shapes: Shapes, streams: set[str]) -> None:
        self.step(self.fresh(shapes), {stream: self.log.tip(stream) for stream in streams})

    @rule(shapes=SHAPES, pick=PICKS)
    def append_on_another_tip(self, shapes: Shapes, pick: int) -> None:
        stream, tip = self.stale[pick % len(self.stale)]
        self.step(self.fresh(shapes), {stream: tip})

    @rule(waves=WAVES, pick=PICKS, waiting_last=st.booleans())
    def append_without_waiting(self, waves: list[Shapes], pick: int, waiting_last: bool) -> None:
        batches = [self.fresh(shapes) for shapes in waves]
        batches.insert(1, [*self.known([pick], other=True), *batches[0]])
        wanted = [self.model.append(batch, {}) for batch in batches]
        futures = [self.log.append_nowait(drafts_of(batch)) for batch in batches]
        if waiting_last:
            self.step(self.fresh(waves[0]))
        for future, one in zip(futures, wanted, strict=True):
            fault = future.exception(SECONDS_MAX)
            assert (type(fault) if fault else outcome_of(future.result())) == one

    @rule(shapes=SHAPES, pick=PICKS)
    def append_through_another_handle(self, shapes: Shapes, pick: int) -> None:
        self.step([*self.known([pick]), *self.fresh(shapes)], append=self.open().append)

    @rule()
    def reopen(self) -> None:
        self.kind.close()
        self.log = self.open()

    # -- what always holds --------------------------------------------------------------------------------------

    @invariant()
    def is_as_the_model_says(self) -> None:
        for stream in STREAMS:
            seen, tip = self.now(stream), self.log.tip(stream)
            assert tip.seq == self.model.length(stream), stream
            if tip == seen:
                continue
            for record in self.log.read(stream, after=seen.seq):
                key, size = self.model.streams[stream][seen.seq]
                h = record.header
                assert (h.seq, h.key, h.prev_stream) == (seen.seq + 1, key, seen.digest)
                assert self.log.body(record) == content(key, size)
                seen = Tip(h.seq, record.digest)
            assert seen == tip
            self.stale.append((stream, self.now(stream)))
            self.seen[stream] = seen
        self.sound = True

    def whole(self) -> None:
        """Everything once more, from the first record on."""
        assert {name for name, _ in self.log.streams()} == {"store", *self.model.streams}
        for stream, rows in self.model.streams.items():
            records = list(self.log.read(stream))
            assert [(r.header.key, self.log.body(r)) for r in records] == [
                (key, content(key, size)) for key, size in rows
            ]
            assert [self.log.find(stream, key) for key, _ in rows] == list(range(1, len(rows) + 1))
            assert records[-1].digest == self.now(stream).digest

    def teardown(self) -> None:
        try:
            if self.sound:
                self.whole()
        finally:
            self.end()

    def end(self) -> None:
        self.kind.close()
        if isinstance(self.kind, Memory):
            self.kind.end()
        shutil.rmtree(self.folder)


class LmdbMachine(LogMachine):
    """The log on LMDB: processes that die, are forked, or come from elsewhere."""

    kind_class = Lmdb

    def __init__(self) -> None:
        super().__init__()
        self.forks = 0

    @property
    def path(self) -> Path:
        return self.folder / "store"

    @rule(shapes=SHAPES)
    def append_in_another_process(self, shapes: Shapes) -> None:
        batch = self.fresh(shapes)
        seqs = rival().append(str(self.path), batch)
        assert self.model.append(batch, {}) == [(seq, True) for seq in seqs]

    @precondition(lambda self: self.forks < FORKS_MAX)
    @rule(child=WAVES, parent=SHAPES)
    def append_in_a_forked_child_too(self, child: list[Shapes], parent: Shapes) -> None:
        self.forks += 1
        batches = [self.fresh(shapes) for shapes in (*child, parent)]
        forked = Child(self.log, batches[:-1], None, 0)
        got = None
        try:
            got = self.log.append(drafts_of(batches[-1]))
        finally:
            told = forked.acknowledged()
        assert len(told) == len(child)
        self.absorb(batches, {**told, len(child): [a.seq for a in got]})

    @precondition(lambda self: self.forks < FORKS_MAX)
    @rule(
        child=WAVES,
        point=st.sampled_from(POINTS),
        after=st.integers(0, 2),
    )
    def die_at_a_point(self, child: list[Shapes], point: str, after: int) -> None:
        self.forks += 1
        batches = [self.fresh(shapes) for shapes in child]
        self.absorb(batches, Child(self.log, batches, point, after).acknowledged())

    @precondition(lambda self: self.forks < FORKS_MAX)
    @rule(child=WAVES, told=st.integers(1, 3))
    def die_when_so_many_are_acknowledged(self, child: list[Shapes], told: int) -> None:
        self.forks += 1
        batches = [self.fresh(shapes) for shapes in child]
        self.absorb(batches, Child(self.log, batches, None, 0).acknowledged(told))

    def whole(self) -> None:
        super().whole()
        assert isinstance(self.log, LmdbLog)
        assert not Checker(self.log).run().problems

    def end(self) -> None:
        if RIVALS:
            rival().append("", [])
        super().end()


class SqliteMachine(LogMachine):
    kind_class = Sqlite
