"""Checks every record of a store: frames, digests, both chains, density, keys, indexes, bodies, and the tip file.

The rows are read from the data file's pages in plain Python, never through liblmdb, of one moment of the store, so that
a store can be checked while others write to it. Problems are collected, never raised: a damaged page or record is
reported and the walk goes on behind it. Memory does not grow with the number of records.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ..codec import kinds
from ..codec.digests import ZERO, event_uuid
from ..codec.record import NoFrame, frame_of
from ..errors import Damaged, DamageError, EfError, StoreUnavailable
from ..events import Event, Header, SessionOpened, UnknownEvent
from . import databytes
from .base import Record, Tip
from .birth import PUT_BACK
from .folder import mode_notes
from .indexes import Indexes
from .lmdb_log import LmdbLog
from .pages import DataFile, Entry
from .quick import FRAME_HEAD_MAX, NO_TIP, Chain
from .rows import KEY, LOG, SEQ, STORED, STREAM, U64, record_in, stream_hash, stream_row
from .transactions import DATABASES

PROBLEMS_MAX = 200
Seen = Callable[[Record, Event], None]
"""Takes each record with its event, in the store's order, for as long as nothing wrong was found."""


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
    """One pass over a log in the store's order; `quick` leaves out bodies and indexes, and shows `seen` nothing."""

    def __init__(
        self,
        log: LmdbLog,
        *,
        quick: bool = False,
        progress: Callable[[int], None] | None = None,
        seen: Seen | None = None,
    ) -> None:
        self._log, self._quick, self._progress, self._seen = log, quick, progress, seen
        self.out = Checked()
        self._chain = Chain()
        self._indexes = Indexes()

    def run(self) -> Checked:
        """Check everything and return what was seen. Raises StoreUnavailable when its files cannot be read."""
        try:
            self._run()
        except OSError as fault:
            why = f"its files cannot be read: {fault.strerror}"
            raise StoreUnavailable(path=self._log.path, why=why, remedy=PUT_BACK) from None
        return self.out

    def _run(self) -> None:
        known = (
            self._log.tipfile.read()
        )  # before the moment that is looked at: it may never be ahead of that
        with self._log.moment(), DataFile(self._log.path / "data.mdb") as file:
            self._file(file)
        self.out.digest = self._chain.digest
        self.out.tips = {stream: Tip(*tip) for stream, tip in self._chain.tips.items()}
        if known is not None:
            self._tip_file(*known)
        self._surroundings()

    def _file(self, file: DataFile) -> None:
        for what in databytes.check_metas(file.handle):
            self._say(what, "the data file")
        seen: set[int] = set()
        roots = file.roots(self._page, seen, () if self._quick else DATABASES)
        for name in DATABASES:
            if name not in roots:
                self._say(f"database {name.decode()} cannot be found", "the data file")
        log = roots.get(LOG, databytes.NO_PAGE)
        if self._quick:
            self._records_quick(file, log, seen)
            return
        for entry in file.entries(log, fault=self._page, seen=seen, strict=True):
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

    def _records_quick(self, file: DataFile, root: int, seen: set[int]) -> None:
        """The common record, sound and where it should be, is seen to be so from few bytes; any other is looked at."""
        chain, out, progress = self._chain, self.out, self._progress
        for leaf in file.leaves(root, fault=self._page, seen=seen):
            at, offsets = 0, leaf.offsets
            while at < len(offsets):
                done = chain.leaf(leaf, at, file.page_size)
                at += done
                some = offsets[at : at + 1]
                for entry in file.entries_at(leaf, some, self._page, seen, FRAME_HEAD_MAX):
                    if chain.entry(entry):
                        done += 1
                    else:
                        self._record(entry)
                at += 1
                if done:
                    out.events += done
                    out.position = max(out.position, chain.next - 1)
            if progress is not None:
                progress(chain.next - 1)

    def _record(self, entry: Entry) -> None:
        """One row of `log`, whatever it holds."""
        chain, out = self._chain, self.out
        position = U64.unpack(entry.key)[0] if len(entry.key) == U64.size else -1
        if position != chain.next:
            gap = f"positions {chain.next} to {position - 1} are not there"
            self._say(gap, f"position {chain.next}")
            chain.digest = b""
        chain.next = position + 1
        if self._progress is not None:
            self._progress(position)
        try:
            frame = entry.value
            if len(frame) < entry.size:  # its body is not wanted
                frame += bytes(entry.size - len(frame))
            record = Record(position, frame_of(frame, strict=True))
        except NoFrame as fault:
            where = f"position {position}"
            self._say(str(Damaged(where=where, what=str(fault))), where)
            chain.digest = b""
            return
        self._linked(record)
        chain.digest, out.position = record.frame.digest, position
        out.events += 1

    def _linked(self, record: Record) -> None:
        h, digest, chain = record.frame.header, record.frame.digest, self._chain
        stream = h.stream
        if chain.digest and h.prev_store != chain.digest:
            self._wrong("it does not follow the record before it in the store", record)
        if h.kind != STORED:
            seq, before = chain.tips.get(stream, NO_TIP)
            if h.seq != seq + 1:
                self._wrong(f"its stream has no events {seq + 1} to {h.seq - 1}", record)
            elif h.prev_stream != before and not self._continues(record):
                self._wrong("it does not follow the record before it in its stream", record)
            if h.uuid != event_uuid(stream, h.key):
                self._wrong("its uuid is not that of its stream and key", record)
        chain.tips[stream] = (h.seq, digest)
        if not self._quick:
            self._body(record)
            self._indexes.record(record.position, h)
            if h.origin is not None:
                self.out.origins.setdefault(h.origin.source, h)

    def _wrong(self, what: str, record: Record) -> None:
        self._say(what, _where(record), record.header)

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

    def _body(self, record: Record) -> None:
        h = record.frame.header
        try:
            plain = self._log.body(record)
            event = kinds.decode_body(h.kind, h.version, plain, where=_where(record))
        except EfError as fault:
            self._wrong(str(fault), record)
            return
        if type(event) is UnknownEvent:
            self.out.unknown.add(f"{h.kind} {h.version}")
        if self._seen is not None and not self.out.problems:
            self._seen(record, event)

    def _index_rows(self, file: DataFile, roots: dict[bytes, int], seen: set[int]) -> None:
        for name, key_size in ((SEQ, 24), (KEY, 16)):
            root = roots.get(name, databytes.NO_PAGE)
            leaves = file.rows(root, (key_size, U64.size), fault=self._page, seen=seen)
            if not self._indexes.agrees(name, leaves):
                records = self._headers(self._rows(file, roots, LOG, set()))
                rows = self._rows(file, roots, name, set())
                for what in self._indexes.differences(name, records, rows):
                    self._say(what, f"index {name.decode()}")
        tip_rows = dict(self._rows(file, roots, STREAM, seen))
        if list(tip_rows) != sorted(tip_rows):
            self._say("its keys are out of order", "index stream")
        for stream, tip in self._chain.tips.items():
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
        root, fault = roots.get(name, databytes.NO_PAGE), self._page if seen else _forget
        for entry in file.entries(root, fault=fault, seen=seen, strict=True):
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


def _where(record: Record) -> str:
    h = record.header
    return f"stream {h.stream}, seq {h.seq} (position {record.position})"


def _forget(damage: DamageError) -> None:
    """It was said before."""
