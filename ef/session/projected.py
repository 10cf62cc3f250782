"""The projections of one session: those of now, taken further as the log grows, and those of past moments.

A projection of a moment begins at the newest snapshots before it, so it replays about a thousand events and never the
whole history; what falls due on a longer replay is kept (see snapshots.py).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

from ..events import Recorded
from ..log.items import recorded, recorded_of
from ..log.storelog import StoreLog
from ..projections.outline import BLOCK, Outline
from ..projections.working import Working
from ..reducers import ALL, Reducer
from . import snapshots
from .calm import calm
from .snapshots import Keeper, Snapshots

FAR = 32
"""So many events are walked sooner than an outline is looked for."""

DEARER = 8
"""An event that is looked up alone costs about as much as so many that are walked."""


class Projected:
    """Projections of one stream. Not for several threads at once: the session's lock guards it."""

    def __init__(self, log: StoreLog, stream: str) -> None:
        self._log, self._stream = log, stream
        self._snapshots = Snapshots(log, stream)
        self._own: dict[tuple[str, ...], Working] = {}

    def fresh(self, seq: int, reducers: Sequence[Reducer] = ALL) -> Working:
        """The projection of these reducers as of a seq, for the caller to keep."""
        return self._advance(self._joined(self._parts(seq, reducers)), seq)

    def as_of(self, seq: int, reducers: Sequence[Reducer] = ALL) -> Working:
        """The projection of these reducers as of a seq, to look at: the own one where that can be taken further."""
        name = tuple(reducer.name for reducer in reducers)
        own = self._own.get(name)
        if own is not None and own.seq > seq:
            return self.fresh(seq, reducers)
        if own is None or seq - own.seq > snapshots.EVERY:
            parts = self._parts(seq, reducers)
            if own is None or min(part.seq for part in parts) > own.seq:
                own = self._own[name] = self._joined(parts)
        return self._advance(own, seq)

    def _parts(self, seq: int, reducers: Sequence[Reducer]) -> list[Working]:
        """Each reducer as of its newest snapshot up to a seq."""
        return [self._snapshots.newest(reducer, seq) for reducer in reducers]

    def _joined(self, parts: list[Working]) -> Working:
        """The parts as one, as of the seq of the newest of them."""
        working, *others = sorted(parts, key=lambda part: part.seq)
        for other in others:
            self._advance(working, other.seq).join(other)
        return working

    def _advance(self, working: Working, seq: int) -> Working:
        """Take a projection to a seq; keep what falls due on the way."""
        keeper = self._snapshots.keeper()
        before, began = working.seq, time.perf_counter()
        with calm():
            while working.seq < seq:
                stop = min(seq, working.seq - working.seq % snapshots.EVERY + snapshots.EVERY)
                if not self._jump(working, stop):
                    self._walk(working, stop, keeper)
                if stop % snapshots.EVERY == 0:
                    keeper.keep(working)
        telemetry = self._log.committer.telemetry
        if telemetry is not None and working.seq > before:
            events = working.seq - before
            telemetry.rebuilt(self._stream, events, time.perf_counter() - began)
        return working

    def _jump(self, working: Working, stop: int) -> bool:
        """Take a projection to a seq by those events alone that its reducers look at, where their block's outline is
        kept and they are few; whether that was done."""
        end = working.seq - working.seq % BLOCK + BLOCK
        kinds = working.looks_at() if FAR <= stop - working.seq <= end - working.seq else None
        outline = None if kinds is None else self._snapshots.outline(end)
        if kinds is None or outline is None:
            return False
        seqs = outline.seqs(kinds, working.seq, stop)
        if len(seqs) * DEARER > stop - working.seq:
            return False
        log, stream = self._log, self._stream
        some = (recorded_of(log, log.get(stream, seq)) for seq in seqs)
        working.apply_only(some, stop, log.get(stream, stop).digest)
        return True

    def _walk(self, working: Working, stop: int, keeper: Keeper) -> None:
        """Take a projection to a seq by every event on the way; keep the outline of a block that is walked whole."""
        events = recorded(self._log, self._stream, after=working.seq, upto=stop)
        if stop % BLOCK or working.seq != stop - BLOCK:
            working.apply(events)
            return
        outline = Outline(working.seq)
        working.apply(_noted(events, outline))
        if self._snapshots.outline(stop) is None:
            track = snapshots.outline_track(self._stream)
            keeper.put(track, stop, outline.digest, outline.dump)


def _noted(events: Iterable[Recorded], outline: Outline) -> Iterator[Recorded]:
    """The events, each noted in an outline on its way."""
    for event in events:
        outline.apply(event.header, event.digest)
        yield event
