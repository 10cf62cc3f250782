"""When snapshots of projections are kept, and which one answers for a moment.

Rule: whoever replays keeps what falls due on its way; an append never does. A snapshot falls due at multiples of
1,000 events, and rarer where the state is large: the one before it may not be larger than `BYTES_PER_EVENT` for each
event since, so that what snapshots cost follows the log and never the state.
Invariants: a snapshot is used only when the log's record at its seq has the digest that it was made at, so what is
answered is what a replay from the first event would answer.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeVar

from ..codec import kinds
from ..codec.cbor import Malformed
from ..codec.digests import value_digest
from ..codec.record import FORMAT
from ..errors import DamageError, NotFound
from ..log.projection_store import NoProjections, ProjectionStore, Track
from ..log.storelog import StoreLog
from ..projections import outline, watched
from ..projections.working import Working
from ..reducers import Reducer

T = TypeVar("T")
EVERY = outline.BLOCK
"""Events between two snapshots, at the least."""

BYTES_PER_EVENT = 64
"""Bytes of a snapshot, unpacked, that an event of the log pays for."""


@cache
def form_of(name: str, version: int, shape: int) -> str:
    """What stands for all that decides of a projection's bytes: its version, the codec's and the events'."""
    return _form([name, version, shape])


def _form(of: list[Any]) -> str:
    events = [[spec.name, spec.version] for spec in kinds.KINDS]
    return value_digest([*of, FORMAT, events]).hex()[:16]


def track_of(stream: str, reducer: Reducer) -> Track:
    """Where the snapshots of a reducer's state are."""
    return Track(stream, reducer.name, form_of(reducer.name, reducer.version, reducer.shape))


def outline_track(stream: str) -> Track:
    """Where the outlines of a stream's blocks are."""
    return Track(stream, "outline", form_of("outline", outline.VERSION, outline.BLOCK))


def watched_track(stream: str) -> Track:
    """Where the snapshots of what a stream's observers know are."""
    form = _form(["observers", watched.VERSION, 1, watched.made_by()])
    return Track(stream, "observers", form)


def store_of(log: StoreLog) -> ProjectionStore:
    """The projection store beside a log."""
    made = ProjectionStore if log.on_disk else NoProjections
    return made(log.path, log.store_id)


class Snapshots:
    """The snapshots of one stream."""

    def __init__(self, log: StoreLog, stream: str) -> None:
        self._log, self._stream = log, stream
        self.store = store_of(log)

    def read(self, track: Track, seq: int) -> tuple[bytes, bytes] | None:
        """(digest of the record, dump) of the snapshot at a seq, when it holds."""
        try:
            digest = self._log.get(self._stream, seq).digest
        except (DamageError, NotFound):
            return None
        dump = self.store.read(track, seq, digest)
        return None if dump is None else (digest, dump)

    def newest(self, reducer: Reducer, upto: int) -> Working:
        """The projection of one reducer as of its newest snapshot at or before a seq; as of 0 when there is none."""
        track = track_of(self._stream, reducer)
        found = self._newest(track, upto, partial(Working.loaded, self._stream, reducer))
        return found or Working(self._stream, (reducer,))

    def watched(self, upto: int) -> watched.Watched:
        """What the observers know, as of the newest snapshot at or before a seq; as of 0 when there is none."""
        track = watched_track(self._stream)
        return self._newest(track, upto, watched.Watched.loaded) or watched.Watched()

    def _newest(self, track: Track, upto: int, load: Callable[[int, bytes, bytes], T]) -> T | None:
        seqs = self.store.seqs(track)
        for seq in reversed(seqs[: bisect_right(seqs, upto)]):
            found = self.read(track, seq)
            if found is None:
                continue
            try:
                return load(seq, *found)
            except Malformed:
                self.store.take_away(track, seq)
        return None

    def outline(self, end: int) -> outline.Outline | None:
        """The outline of the block that ends at a seq, where one is kept that holds."""
        track = outline_track(self._stream)
        found = self.read(track, end)
        try:
            return outline.Outline.loaded(end, *found) if found else None
        except Malformed:
            self.store.take_away(track, end)
            return None

    def keeper(self) -> Keeper:
        """Keeps what falls due on one replay."""
        return Keeper(self.store)


class Keeper:
    """Keeps what falls due on one replay, as far as the disk allows. A `fresh` one goes by what it kept itself.

    `faults`: what was last in the way of a track's snapshots.
    """

    def __init__(self, store: ProjectionStore, *, fresh: bool = False) -> None:
        self._store, self._fresh = store, fresh
        self._known: dict[Track, list[int]] = {}
        self.faults: dict[Track, OSError] = {}

    def keep(self, working: Working) -> None:
        """Keep what of a projection falls due at its seq."""
        for reducer in working.reducers:
            track = track_of(working.stream, reducer)
            if self.due(track, working.seq):
                self.put(track, working.seq, working.digest, partial(working.dump, reducer))

    def put(self, track: Track, seq: int, digest: bytes, dump: Callable[[], bytes]) -> None:
        """Keep a dump, which is made only when there is room for it."""
        try:
            if self._store.writable() and self._store.put(track, seq, digest, dump()):
                insort(self._seqs(track), seq)
        except OSError as fault:
            self.faults[track] = fault

    def due(self, track: Track, seq: int) -> bool:
        """Whether a snapshot falls due at a seq, a multiple of EVERY."""
        known = self._seqs(track)
        at = bisect_right(known, seq)
        if not at:
            return True
        last = known[at - 1]
        return seq - last >= EVERY and (seq - last) * BYTES_PER_EVENT >= self._store.size(
            track, last
        )

    def kept(self, track: Track) -> int:
        """How many snapshots there are of a track, as far as this one knows."""
        return len(self._seqs(track))

    def only(self, stream: str) -> None:
        """Take everything of a stream away but what this one kept."""
        self._store.prune(stream, self._known)

    def _seqs(self, track: Track) -> list[int]:
        if track not in self._known:
            self._known[track] = [] if self._fresh else self._store.seqs(track)
        return self._known[track]
