"""Sessions replayed along with the check of their records, which are then decoded once for all that looks at them.

Only what is well is answered here: the stream's projections can be built, each reference of its anchors matches what it
cites, and every snapshot that is kept is what the log says. Of a stream of which that cannot be said nothing is said,
and whoever asked looks at it by itself. Few sessions are open at once, so memory does not grow with their number.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from ..errors import EfError
from ..events import AnchorDeclared, Event, Recorded, SourceRef
from ..importers.names import SESSION_PREFIX
from ..log.base import Record
from ..log.items import Cited, recorded_as
from ..log.storelog import StoreLog
from .rebuilding import Replay

OPEN_MOST = 8
BATCH = 250
"""Events that are applied at once."""

NEAR_MOST, NEAR_BYTES_MAX = 512, 8 << 10
"""At the most so many of the newest items are kept to be cited, none with a larger body."""

Refused = list[tuple[int, str, str]]
"""Seq, reducer, and why it refused that event."""


@dataclass(frozen=True, slots=True)
class Well:
    """What is known of a stream with which all is well up to `seq`."""

    seq: int
    anchors: int
    refused: Refused


class _Replayed:
    """One session on its way."""

    def __init__(self, log: StoreLog, stream: str) -> None:
        self._replay = Replay(log, stream, watched=False)
        self._stops = self._replay.stops()
        self._waiting: list[Recorded] = []
        self.seq = self.anchors = 0

    def next(self, recorded: Recorded) -> bool:
        """The next event; whether all is well. Raises EfError when it cannot be projected."""
        self._waiting.append(recorded)
        self.seq = seq = recorded.header.seq
        if seq not in self._stops and len(self._waiting) < BATCH:
            return True
        self.catch_up()
        return seq not in self._stops or not any(self._replay.compare(seq))

    def catch_up(self) -> None:
        """Apply what waits."""
        self._replay.feed(self._waiting)
        self._waiting = []

    def refused(self) -> Refused:
        """What reducers refused so far."""
        return self._replay.refused()


class Along:
    """Give each sound record to `see`, in the store's order; then ask `well`. `wanted` (a stream): that one only."""

    def __init__(self, log: StoreLog, wanted: str | None = None) -> None:
        self._log, self._wanted = log, wanted
        self._open: OrderedDict[str, _Replayed] = OrderedDict()
        self._closed: dict[str, Well | None] = {}
        self._near: dict[tuple[str, int], Record] = {}
        self._newest = ""
        self._cited = Cited(log, self._near)

    def see(self, record: Record, event: Event) -> None:
        """The next record of the store and its event."""
        h = record.frame.header
        stream = h.stream
        if stream != self._newest and not self._is_wanted(stream):
            return
        replayed = self._open.get(stream) or self._begun(stream)
        if replayed is None:
            return
        if stream != self._newest:
            self._open.move_to_end(stream)
            self._newest = stream
        if h.item is not None and len(record.frame.body) <= NEAR_BYTES_MAX:
            if len(self._near) == NEAR_MOST:
                self._near.clear()
            self._near[stream, h.seq] = record
        try:
            well = replayed.next(recorded_as(record, event))
            if isinstance(event, AnchorDeclared):
                replayed.anchors += 1
                well = well and all(map(self._matches, event.anchor.sources))
        except EfError:
            well = False
        if not well:
            del self._open[stream]
            self._closed[stream] = None

    def well(self, stream: str, seq: int) -> Well | None:
        """What is known of a stream of which `seq` is the last event; None when it must be looked at by itself."""
        if stream in self._open:
            self._close(stream)
        found = self._closed.get(stream)
        return found if found is not None and found.seq == seq else None

    def _begun(self, stream: str) -> _Replayed | None:
        """The replay of a stream that was not met before. One that was closed to make room is not begun again: what is
        known of it ends where it was closed."""
        if stream in self._closed:
            return None
        if len(self._open) == OPEN_MOST:
            self._close(next(iter(self._open)))
        self._open[stream] = _Replayed(self._log, stream)
        return self._open[stream]

    def _close(self, stream: str) -> None:
        replayed = self._open.pop(stream)
        try:
            replayed.catch_up()
            self._closed[stream] = Well(replayed.seq, replayed.anchors, replayed.refused())
        except EfError:
            self._closed[stream] = None

    def _is_wanted(self, stream: str) -> bool:
        return self._wanted in (None, stream) and stream.startswith(SESSION_PREFIX)

    def _matches(self, ref: SourceRef) -> bool:
        return reference_matches(self._cited, ref)


def reference_matches(cited: Cited, ref: SourceRef) -> bool:
    """Whether a reference says of the record that it cites what that record is. Raises EfError."""
    cited.quote(ref)
    header = cited.record(ref).header
    facts = header.item.parts[ref.part] if header.item else None
    return facts is not None and facts.channel is ref.channel and header.key == ref.item_key
