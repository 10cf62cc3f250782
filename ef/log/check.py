"""Checks every record of a store: frames, digests, both chains, density, keys, indexes, bodies, and the tip file.

The rows are read from the data file's pages in plain Python, never through liblmdb, of one moment of the store, so that
a store can be checked while others write to it. Problems are collected, never raised: a damaged page or record is
reported and the walk goes on behind it. Memory does not grow with the number of records.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from blake3 import blake3

from ..codec import kinds
from ..codec.chain import link_of
from ..codec.digests import ZERO, event_uuid
from ..codec.limits import HEADER_BYTES_MAX
from ..codec.record import FRAME, MAGIC, decode_frame
from ..errors import DamageError, EfError
from ..events import Header, SessionOpened, UnknownEvent
from . import databytes
from .base import Record, Tip
from .folder import mode_notes
from .indexes import Indexes
from .lmdb_log import LmdbLog
from .pages import DataFile, Entry
from .rows import KEY, LOG, SEQ, STORED, STREAM, U64, record_in, stream_hash, stream_row
from .transactions import DATABASES

PROBLEMS_MAX = 200
_FRAME_HEAD_MAX = FRAME.size + HEADER_BYTES_MAX


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
    """The sources that records come from, each with the first record that names it; not of a quick check."""


class Checker:
    """One pass over a log in the store's order; `quick` leaves bodies and indexes out."""

    def __init__(
        self, log: LmdbLog, *, quick: bool = False, progress: Callable[[int], None] | None = None
    ) -> None:
        self._log, self._quick, self._progress = log, quick, progress
        self.out = Checked()
        self._tips: dict[str, tuple[int, bytes]] = {}
        self._expected = 0
        self._indexes = Indexes()

    def run(self) -> Checked:
        """Check everything and return what was seen."""
        known = (
            self._log.tipfile.read()
        )  # before the moment that is looked at: it may never be ahead of that
        with self._log.moment(), DataFile(self._log.path / "data.mdb") as file:
            self._file(file)
        self.out.tips = {stream: Tip(*tip) for stream, tip in self._tips.items()}
        if known is not None:
            self._tip_file(*known)
        self._surroundings()
        return self.out

    def _file(self, file: DataFile) -> None:
        for what in databytes.check_metas(file.handle):
            self._say(what, "the data file")
        seen: set[int] = set()
        roots = file.roots(self._page, seen)
        for name in DATABASES:
            if name not in roots:
                self._say(f"database {name.decode()} cannot be found", "the data file")
        entries = file.entries(
            roots.get(LOG, databytes.NO_PAGE),
            fault=self._page,
            seen=seen,
            most=_FRAME_HEAD_MAX if self._quick else None,
        )
        if self._quick:
            self._records_quick(entries)
            return
        for entry in entries:
            self._record(entry)
        self._index_rows(file, roots, seen)
        for root in (file.meta.roots[0], *(roots[name] for name in roots.keys() - DATABASES)):
            for _ in file.entries(root, fault=self._page, seen=seen):
                pass

    def _page(self, damage: DamageError) -> None:
        """A page, or a value in it, that cannot be read."""
        self._say(str(damage.what), str(damage.where))

    def _say(
        self, what: str, where: str, header: Header | None = None, verdict: str = "damaged"
    ) -> None:
        if len(self.out.problems) < PROBLEMS_MAX:
            stream, seq = (header.stream, header.seq) if header else (None, None)
            self.out.problems.append(Problem(what, where, verdict, stream, seq))

    def _records_quick(self, entries: Iterator[Entry]) -> None:
        """The common record, sound and where it should be, is seen to be so from few bytes; any other is looked at."""
        tips, out, progress = self._tips, self.out, self._progress
        for entry in entries:
            key, value, _, size = entry
            if size > FRAME.size:
                magic, header_size, body_size, _, digest = FRAME.unpack_from(value)
                header = value[FRAME.size : FRAME.size + header_size]
                link = link_of(header)
                if (
                    link is not None
                    and magic == MAGIC
                    and size == FRAME.size + header_size + body_size
                    and blake3(header).digest() == digest
                    and link.prev_store == out.digest
                    and int.from_bytes(key, "big") == self._expected
                    and len(key) == U64.size
                ):
                    stream = str(link.stream, "utf-8")
                    seq, before = tips.get(stream, (0, ZERO))
                    if link.seq == seq + 1 and link.prev_stream == before:
                        tips[stream] = (link.seq, digest)
                        out.digest, out.position = digest, self._expected
                        out.events += 1
                        if progress is not None:
                            progress(self._expected)
                        self._expected += 1
                        continue
            self._record(entry)

    def _record(self, entry: Entry) -> None:
        """One row of `log`, whatever it holds."""
        out = self.out
        position = U64.unpack(entry.key)[0] if len(entry.key) == U64.size else -1
        if position != self._expected:
            gap = f"positions {self._expected} to {position - 1} are not there"
            self._say(gap, f"position {self._expected}")
            out.digest = b""
        self._expected = position + 1
        if self._progress is not None:
            self._progress(position)
        try:
            frame = entry.value
            if len(frame) < entry.size:  # its body is not wanted
                frame += bytes(entry.size - len(frame))
            record = Record(
                position, decode_frame(frame, where=f"position {position}", strict=True)
            )
        except DamageError as fault:
            self._say(str(fault), f"position {position}")
            out.digest = b""
            return
        self._linked(record)
        out.digest, out.position = record.digest, position
        out.events += 1

    def _linked(self, record: Record) -> None:
        h, out = record.header, self.out
        where = f"stream {h.stream}, seq {h.seq} (position {record.position})"
        if out.digest and h.prev_store != out.digest:
            self._say("it does not follow the record before it in the store", where, h)
        if h.kind != STORED:
            seq, digest = self._tips.get(h.stream, (0, ZERO))
            if h.seq != seq + 1:
                self._say(f"its stream has no events {seq + 1} to {h.seq - 1}", where, h)
            elif h.prev_stream != digest and not self._continues(record):
                self._say("it does not follow the record before it in its stream", where, h)
            if h.uuid != event_uuid(h.stream, h.key):
                self._say("its uuid is not that of its stream and key", where, h)
        self._tips[h.stream] = (h.seq, record.digest)
        if not self._quick:
            self._body(record, where)
            self._indexes.record(record.position, h)
            if h.origin is not None:
                out.origins.setdefault(h.origin.source, h)

    def _continues(self, record: Record) -> bool:
        """A first record may continue another stream: its previous digest is then that of a record there."""
        h = record.header
        if h.seq != 1 or h.kind != SessionOpened.__name__:
            return False
        if self._quick:
            return True
        try:
            event = kinds.decode_body(h.kind, h.version, self._log.body(record), where="")
            assert isinstance(event, SessionOpened)
            parent = self._log.get(event.parent_stream or "", event.parent_seq or 0)
        except EfError:
            return False
        return parent.digest == h.prev_stream

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

    def _index_rows(self, file: DataFile, roots: dict[bytes, int], seen: set[int]) -> None:
        for name in (SEQ, KEY):
            rows = self._rows(file, roots, name, seen)
            if not self._indexes.agrees(name, rows):
                records = self._headers(self._rows(file, roots, LOG, set()))
                rows = self._rows(file, roots, name, set())
                for what in self._indexes.differences(name, records, rows):
                    self._say(what, f"index {name.decode()}")
        tip_rows = dict(self._rows(file, roots, STREAM, seen))
        for stream, tip in self._tips.items():
            row = tip_rows.pop(stream_hash(stream), None)
            try:
                sound = row is not None and stream_row(row, stream) == (stream, Tip(*tip))
            except DamageError:
                sound = False
            if not sound:
                self._say("its tip row does not match its last record", f"stream {stream}")
        for key in tip_rows:
            self._say(f"it names a stream {key.hex()} that has no records", "index stream")

    def _rows(
        self, file: DataFile, roots: dict[bytes, int], name: bytes, seen: set[int]
    ) -> Iterator[tuple[bytes, bytes]]:
        """Rows of a database; pages that cannot be read are said once, when they are first met."""
        fault = self._page if seen else _forget
        for entry in file.entries(roots.get(name, databytes.NO_PAGE), fault=fault, seen=seen):
            yield entry[:2]

    def _headers(self, rows: Iterator[tuple[bytes, bytes]]) -> Iterator[tuple[int, Header]]:
        for key, frame in rows:
            with contextlib.suppress(DamageError):
                record = record_in(key, frame)
                yield record.position, record.header

    def _tip_file(self, position: int, digest: bytes) -> None:
        if position > self.out.position:
            what = f"the store ends at position {self.out.position}; its tip was once at {position}"
            self._say(what, "tip", verdict="rolled-back")
            return
        try:
            held = self._log.at(position).digest
        except DamageError:  # said already, as what is wrong with that record
            return
        if held != digest:
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


def _forget(damage: DamageError) -> None:
    """It was said before."""
