"""Rebuild projections from the log, and compare what was kept with what the log says.

A stream is replayed from its first event, all projections side by side; wherever something is kept, it must be the
same bytes (law L2). A rebuild then keeps its own and takes everything else away; a check writes nothing.
"""

from __future__ import annotations

import errno
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any

from ..codec.digests import record_digest
from ..errors import DamageError, NotProjectable, RebuildFailed
from ..events import Recorded
from ..importers.names import SESSION_PREFIX
from ..log import Tip
from ..log.check import Problem
from ..log.folder import told
from ..log.items import recorded_of
from ..log.projection_store import Track
from ..log.storelog import StoreLog
from ..projections.clocks import Clocks
from ..projections.outline import Outline
from ..projections.watched import Watched
from ..projections.working import Working
from ..reducers import ALL
from .calm import calm
from .moments import clocks_track
from .snapshots import EVERY, Keeper, Snapshots, outline_track, track_of, watched_track

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """One projection of one session: `events` it went through, the `seconds` that took, the digest of what it is now.

    `compared` counts the snapshots that there were, `differed` are the seqs of those that were not what the log says,
    and `kept` counts those that there are now. What cannot be projected, or not be kept, has a `problem`.
    """

    session: str
    name: str
    events: int
    seconds: float
    digest: str
    compared: int
    differed: tuple[int, ...]
    kept: int
    problem: str | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON fields."""
        return {
            "session": self.session,
            "name": self.name,
            "events": self.events,
            "seconds": round(self.seconds, 6),
            "digest": self.digest,
            "compared": self.compared,
            "differed": list(self.differed),
            "kept": self.kept,
            **({"problem": self.problem} if self.problem else {}),
        }


class _Part:
    """One projection on its way: where it is, what it costs, and what was kept of it."""

    def __init__(
        self,
        snapshots: Snapshots,
        name: str,
        track: Track,
        state: Working | Clocks | Outline | Watched,
    ) -> None:
        self.name, self.track, self.state = name, track, state
        self.seconds = 0.0
        self.kept = set(snapshots.store.seqs(track))
        self.compared = 0
        self.differed: list[int] = []

    def dump(self) -> bytes:
        """The state as it is now."""
        if isinstance(self.state, Working):
            return self.state.dump(self.state.reducers[0])
        return self.state.dump()


class Replay:
    """A stream from its first event, with all its projections. `run` stops wherever one was kept, or falls due.

    What the observers know needs the bytes of all items, which takes longer than all else: it is `watched` for a
    rebuild and not for a check.
    """

    def __init__(self, log: StoreLog, stream: str, *, watched: bool = False) -> None:
        self._log, self._stream = log, stream
        self.snapshots = Snapshots(log, stream)
        self.seq = 0
        self.parts = [
            _Part(self.snapshots, r.name, track_of(stream, r), Working(stream, (r,))) for r in ALL
        ]
        self.parts.append(_Part(self.snapshots, "clocks", clocks_track(stream), Clocks()))
        self.parts.append(_Part(self.snapshots, "outline", outline_track(stream), Outline()))
        if watched:
            self.parts.append(_Part(self.snapshots, "observers", watched_track(stream), Watched()))

    def stops(self) -> set[int]:
        """The seqs where something is kept."""
        return {seq for part in self.parts for seq in part.kept}

    def refused(self) -> list[tuple[int, str, str]]:
        """What reducers refused so far: seq, reducer and why, in the order of the events and of the reducers."""
        states = (part.state for part in self.parts)
        each = [state.refused for state in states if isinstance(state, Working)]
        return sorted(itertools.chain(*each), key=itemgetter(0))

    def run(self, tip: Tip) -> Iterator[int]:
        """Each seq where there is something to do, when all projections are there."""
        kept = {seq for seq in self.stops() if seq <= tip.seq}
        for stop in sorted({tip.seq, *kept, *range(EVERY, tip.seq, EVERY)}):
            self._to(stop)
            yield stop

    def _to(self, seq: int) -> None:
        """Take all of them to a seq."""
        with calm():
            while self.seq < seq:
                stop = min(seq, self.seq + EVERY)
                records = list(self._log.read(self._stream, after=self.seq, upto=stop))
                events = [recorded_of(self._log, record) for record in records]
                self.feed(events)
                for part in self.parts:
                    begun = time.perf_counter()
                    if isinstance(part.state, Watched):
                        for record in records:
                            body = partial(self._log.body, record)
                            part.state.apply(record.header, record.digest, body)
                    part.seconds += time.perf_counter() - begun
                self.seq = stop

    def feed(self, events: Sequence[Recorded]) -> None:
        """Take all projections that need no bytes of items on by the next events."""
        for part in self.parts:
            begun = time.perf_counter()
            if isinstance(part.state, Working):
                part.state.apply(events)
            elif not isinstance(part.state, Watched):
                for event in events:
                    part.state.apply(event.header, event.digest)
            part.seconds += time.perf_counter() - begun

    def compare(self, seq: int) -> Iterator[_Part]:
        """Compare what was kept at the seq that all are at; the projections whose snapshot there is another."""
        for part in self.parts:
            found = self.snapshots.read(part.track, seq) if seq in part.kept else None
            if found is not None:
                part.compared += 1
                if found[1] != part.dump():
                    part.differed.append(seq)
                    yield part


IN_THE_WAY = (errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST)
"""A folder that holds something stands where a snapshot belongs. Any other fault is the disk's, or of its rights."""


def rebuild(log: StoreLog, streams: list[str], progress: Progress | None = None) -> list[Rebuilt]:
    """Rebuild the projections of these streams from the log. Raises RebuildFailed where nothing can be kept."""
    found: list[Rebuilt] = []
    done = 0
    for stream in streams:
        replay = Replay(log, stream, watched=True)
        problem = None
        keeper = Keeper(replay.snapshots.store, fresh=True)
        _must_keep(replay, keeper)
        try:
            for seq in replay.run(log.tip(stream)):
                for _ in replay.compare(seq):
                    pass
                if seq % EVERY == 0:
                    _keep(replay, keeper)
                if progress is not None:
                    progress(done + seq)
        except (DamageError, NotProjectable) as fault:
            problem = str(fault)
        done += replay.seq
        keeper.only(stream)
        found += [_rebuilt(stream, part, replay.seq, problem, keeper) for part in replay.parts]
    return found


def _keep(replay: Replay, keeper: Keeper) -> None:
    for part in replay.parts:
        if keeper.due(part.track, replay.seq):
            keeper.put(part.track, part.state.seq, part.state.digest, part.dump)
    _must_keep(replay, keeper)


def _must_keep(replay: Replay, keeper: Keeper) -> None:
    """Raises RebuildFailed where nothing can be kept (any more). What stood there before stays."""
    store = replay.snapshots.store
    obstacle = store.obstacle()
    path: Any = store.path
    for fault in keeper.faults.values():
        if obstacle is None and fault.errno not in IN_THE_WAY:
            obstacle, path = told(fault), fault.filename or path
    if obstacle is not None:
        raise RebuildFailed(path=path, why=obstacle[0], remedy=obstacle[1])


def _rebuilt(stream: str, part: _Part, events: int, problem: str | None, keeper: Keeper) -> Rebuilt:
    fault = keeper.faults.get(part.track)
    if problem is None and fault is not None:
        problem = (
            f"a snapshot of {part.name} could not be kept: {fault.filename} is a folder that holds something; "
            "move it away, then run `ef rebuild` again"
        )
    return Rebuilt(
        stream.removeprefix(SESSION_PREFIX),
        part.name,
        events,
        part.seconds,
        record_digest(part.dump()).hex(),
        part.compared,
        tuple(part.differed),
        keeper.kept(part.track),
        problem,
    )


def check_snapshots(log: StoreLog, streams: list[str] | None = None) -> Iterator[Problem]:
    """Compare every snapshot of these streams (all sessions) with a rebuild; one problem for each that differs.

    Writes nothing. What does not hold (torn, of another history) is none: it is never used. A stream that cannot be
    projected ends at its fault, which is not reported here.
    """
    if streams is None:
        streams = [stream for stream, _ in log.streams(SESSION_PREFIX)]
    for stream in streams:
        replay = Replay(log, stream)
        last = max((seq for part in replay.parts for seq in part.kept), default=0)
        tip = log.tip(stream)
        try:
            for seq in replay.run(Tip(min(last, tip.seq), tip.digest)):
                for part in replay.compare(seq):
                    what = f"the snapshot of {part.name} is not what the log says; `ef rebuild` makes it anew"
                    yield Problem(what, f"stream {stream}, seq {seq}", stream=stream, seq=seq)
        except (DamageError, NotProjectable):
            continue
