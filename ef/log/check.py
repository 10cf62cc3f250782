"""Checks every record of a store: frames, digests, both chains, density, keys, indexes, bodies, and the tip file.

Problems are collected, never raised: a damaged record is reported and the walk goes on behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ..codec import kinds
from ..codec.digests import ZERO, event_uuid
from ..codec.record import decode_frame
from ..errors import DamageError, EfError
from ..events import Header, UnknownEvent
from .base import Record, Tip
from .folder import mode_notes
from .lmdb_log import LmdbLog
from .rows import KEY, LOG, SEQ, STREAM, U64, stream_hash, stream_row
from .transactions import DATABASES

PROBLEMS_MAX = 200


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding: what is wrong and where; `position` and `seq` of the first bad record where it is one."""

    what: str
    where: str
    verdict: str = "damaged"
    stream: str | None = None
    seq: int | None = None


@dataclass(slots=True)
class Checked:
    """What a check saw. `events` counts records that are sound; `unknown` kinds that this version does not know."""

    problems: list[Problem] = field(default_factory=list[Problem])
    events: int = 0
    position: int = -1
    digest: bytes = ZERO
    tips: dict[str, Tip] = field(default_factory=dict[str, Tip])
    unknown: set[str] = field(default_factory=set[str])
    notes: list[str] = field(default_factory=list[str])
    """What is no damage and should be known."""

    origins: dict[str, Header] = field(default_factory=dict[str, Header])
    """The sources that records come from, each with the first record that names it."""


class Checker:
    """One pass over a log in the store's order; `quick` leaves bodies and indexes out."""

    def __init__(
        self, log: LmdbLog, *, quick: bool = False, progress: Callable[[int], None] | None = None
    ) -> None:
        self._log, self._quick, self._progress = log, quick, progress
        self.out = Checked()
        self._digests: set[bytes] = set()
        self._rows: dict[bytes, int] = {}

    def run(self) -> Checked:
        """Check everything and return what was seen."""
        try:
            for record in self._records():
                self._record(record)
            if not self._quick:
                self._indexes()
            self._tip_file()
            self._surroundings()
        except DamageError as fault:
            self._say(str(fault), "the data file")
        return self.out

    def _say(
        self, what: str, where: str, header: Header | None = None, verdict: str = "damaged"
    ) -> None:
        if len(self.out.problems) < PROBLEMS_MAX:
            stream, seq = (header.stream, header.seq) if header else (None, None)
            self.out.problems.append(Problem(what, where, verdict, stream, seq))

    def _records(self) -> Iterator[Record]:
        expected = 0
        for key, frame in self._log.rows(LOG):
            position = U64.unpack(key)[0] if len(key) == U64.size else -1
            if position != expected:
                self._say(
                    f"positions {expected} to {position - 1} are not there", f"position {expected}"
                )
                self.out.digest = b""
            expected = position + 1
            if self._progress is not None:
                self._progress(position)
            try:
                yield Record(
                    position, decode_frame(frame, where=f"position {position}", strict=True)
                )
            except DamageError as fault:
                self._say(str(fault), f"position {position}")
                self.out.digest = b""

    def _record(self, record: Record) -> None:
        h, out = record.header, self.out
        where = f"stream {h.stream}, seq {h.seq} (position {record.position})"
        if out.digest and h.prev_store != out.digest:
            self._say("it does not follow the record before it in the store", where, h)
        if h.kind != "StoredEvent":
            before = out.tips.get(h.stream, Tip(0, ZERO))
            if h.seq != before.seq + 1:
                self._say(f"its stream has no events {before.seq + 1} to {h.seq - 1}", where, h)
            elif h.prev_stream != before.digest and not self._continues(h):
                self._say("it does not follow the record before it in its stream", where, h)
            if h.uuid != event_uuid(h.stream, h.key):
                self._say("its uuid is not that of its stream and key", where, h)
        if not self._quick:
            self._body(record, where)
            self._digests.add(record.digest)
            self._rows[h.uuid] = record.position
            self._rows[stream_hash(h.stream) + U64.pack(h.seq)] = record.position
        if h.origin is not None:
            out.origins.setdefault(h.origin.source, h)
        out.tips[h.stream] = Tip(h.seq, record.digest)
        out.digest, out.position = record.digest, record.position
        out.events += 1

    def _continues(self, h: Header) -> bool:
        """A first record may continue another stream: its previous digest is then the parent's."""
        if h.seq != 1 or h.kind != "SessionOpened":
            return False
        return self._quick or h.prev_stream in self._digests

    def _body(self, record: Record, where: str) -> None:
        h = record.header
        try:
            plain = self._log.body(record)
            event = kinds.decode_body(h.kind, h.version, plain, where=where)
        except EfError as fault:
            self._say(str(fault), where, h)
            return
        if isinstance(event, UnknownEvent):
            self.out.unknown.add(f"{h.kind} {h.version}")

    def _indexes(self) -> None:
        for name in (SEQ, KEY):
            count = 0
            for key, at in self._log.rows(name):
                count += 1
                if len(at) != U64.size or self._rows.get(key) != U64.unpack(at)[0]:
                    self._say(
                        f"the index entry {key.hex()} does not lead to its record",
                        f"index {name.decode()}",
                    )
            if count * 2 != len(self._rows):
                self._say(
                    f"it has {count} entries for {len(self._rows) // 2} records",
                    f"index {name.decode()}",
                )
        rows = dict(self._log.rows(STREAM))
        for stream, tip in self.out.tips.items():
            row = rows.pop(stream_hash(stream), None)
            try:
                sound = row is not None and stream_row(row, stream) == (stream, tip)
            except DamageError:
                sound = False
            if not sound:
                self._say("its tip row does not match its last record", f"stream {stream}")
        for key in rows:
            self._say(f"it names a stream {key.hex()} that has no records", "index stream")

    def _tip_file(self) -> None:
        known = self._log.tipfile.read()
        if known is None:
            return
        position, digest = known
        if position > self.out.position:
            what = f"the store ends at position {self.out.position}; its tip was once at {position}"
            self._say(what, "tip", verdict="rolled-back")
        elif self._log.at(position).digest != digest:
            self._say(f"position {position} held another record once", "tip", verdict="rolled-back")

    def _surroundings(self) -> None:
        """Remarks on what lies around the records: the tip file, modes, databases that are not ours."""
        note = self._log.tipfile.note()
        if note is not None and self.out.position > 0:
            self.out.notes.append(note)
        self.out.notes += mode_notes(self._log.path)
        for name in self._log.databases():
            if name not in DATABASES:
                self.out.notes.append(f"the data file holds a database {name!r} that is not ef's")
