"""The sources of a store: which there are, which one a file's bytes continue, and their exact export."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from threading import RLock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from blake3 import blake3

from ..errors import Damaged, DamageError, NotFound, UsageError
from ..events import (
    Event,
    ImportCompleted,
    ImportProgressed,
    SourceGrew,
    SourceLines,
    SourceNote,
    SourceOpened,
)
from ..importers.names import session_stream
from ..log import Log, source_stream
from ..log.base import Tip
from ..log.items import event_of
from ..log.lmdb_log import LmdbLog
from ..log.memory import MemoryLog

if TYPE_CHECKING:
    from .content import Content

PREFIX = "source/"
LOOKED_BACK = 256
"""Records at a session's end of which one is an item, unless what stands there is no import's."""


@dataclass(slots=True)
class Source:
    """A source as its stream says: `length` (bytes) and `digest` of its newest import; `complete` is False where that
    was ended before it was done.
    """

    id: str
    format: str
    path: str
    length: int
    lines: int
    digest: bytes
    sessions: tuple[str, ...]
    complete: bool = True


@dataclass(frozen=True, slots=True)
class Match:
    """The source that a content is (same), extends (grown) or is a beginning of (prefix), or none (new); the content's
    own digest.
    """

    source: Source | None
    relation: str
    digest: bytes


HEAD = 256
"""Bytes of a source's beginning that are kept to see quickly that another file does not begin so."""
TAIL_READ_MAX = 256
"""So many new records of a store are looked through for sources that changed; of more, all sources are surveyed."""


class _Index:
    """The sources of a store as they were at a position, found by path, by length, and by how they begin.

    Threads that import at once share one: `lock` is held while it is changed or looked into.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self.position = -1
        self.tips: dict[str, Tip] = {}
        self.sources: dict[str, Source] = {}
        self.damaged: dict[str, DamageError] = {}
        self.heads: dict[str, bytes] = {}
        self.lengths: list[int] = []
        self._at: dict[int, dict[str, Source]] = {}
        self._by_path: dict[str, dict[str, Source]] = {}

    def put(self, stream: str, tip: Tip, source: Source | None, fault: DamageError | None) -> None:
        """What a source's stream says now."""
        old = self.sources.pop(stream, None)
        self.damaged.pop(stream, None)
        if old is not None:
            del self._at[old.length][stream], self._by_path[old.path][stream]
            if not self._at[old.length]:
                del self._at[old.length]
                self.lengths.remove(old.length)
        self.tips[stream] = tip
        if fault is not None:
            self.damaged[stream] = fault
        if source is not None:
            self.sources[stream] = source
            if source.length not in self._at:
                insort(self.lengths, source.length)
            self._at.setdefault(source.length, {})[stream] = source
            self._by_path.setdefault(source.path, {})[stream] = source

    def of_length(self, length: int) -> list[Source]:
        """The sources that have so many bytes."""
        with self.lock:
            return list(self._at.get(length, {}).values())

    def at_path(self, path: str) -> list[Source]:
        """The sources that were last imported from a path."""
        with self.lock:
            return list(self._by_path.get(path, {}).values())


_known: WeakKeyDictionary[Log, _Index] = WeakKeyDictionary()


class SourceCatalogue:
    """Reads the catalogue from the source streams' first and last events."""

    def __init__(self, log: Log, *, cached: bool = False) -> None:
        """`cached`: what was read of a source before, by whoever asked so too, is taken where it is the same."""
        self._log = log
        self._index = _known.setdefault(log, _Index()) if cached else _Index()
        self._fresh = False

    def all(self) -> list[Source]:
        """All sources whose first and last events can be read, by path."""
        return self.surveyed()[0]

    def surveyed(self) -> tuple[list[Source], dict[str, DamageError]]:
        """The sources by path, and by id those that cannot be read: a damaged one is no reason to refuse others."""
        index = self._indexed()
        with index.lock:
            found = list(index.sources.values())
            faults = list(index.damaged.items())
        damaged = {stream.removeprefix(PREFIX): fault for stream, fault in faults}
        return sorted(found, key=lambda s: (s.path, s.id)), damaged

    def _indexed(self) -> _Index:
        """The index as the store is now: once for each catalogue."""
        with self._index.lock:
            if not self._fresh:
                self._refresh(self._index)
                self._fresh = True
        return self._index

    def _refresh(self, index: _Index) -> None:
        log = self._log
        position = log.tip_position() if isinstance(log, (LmdbLog, MemoryLog)) else None
        if position is not None and index.position >= 0:
            assert isinstance(log, (LmdbLog, MemoryLog))
            behind = position - index.position
            if 0 <= behind <= max(TAIL_READ_MAX, len(index.tips)):
                new = log.all(after=index.position)
                heads = [record.header for record in islice(new, behind)]
                changed = {h.stream for h in heads if h.stream.startswith(PREFIX)}
                for stream in changed:
                    self._look(index, stream, log.tip(stream))
                index.position = position
                return
        for stream, tip in log.streams(PREFIX):
            if index.tips.get(stream) != tip:
                self._look(index, stream, tip)
        index.position = -1 if position is None else position

    def _look(self, index: _Index, stream: str, tip: Tip) -> None:
        try:
            index.put(stream, tip, self._source(stream, tip.seq), None)
        except DamageError as fault:
            index.put(stream, tip, None, fault)

    def _source(self, stream: str, last: int) -> Source:
        opened, done = self._event(stream, 1), self._event(stream, last)
        kinds = (ImportCompleted, ImportProgressed)
        if not isinstance(opened, SourceOpened) or not isinstance(done, kinds):
            raise Damaged(
                where=f"stream {stream}", what="its first or last event is not what it should be"
            )
        return Source(
            opened.source,
            opened.format,
            self._newest_path(stream, done.length) or opened.path,
            done.length,
            done.lines,
            done.digest,
            done.sessions,
            isinstance(done, ImportCompleted),
        )

    def _event(self, stream: str, seq: int) -> Event:
        try:
            return event_of(self._log, self._log.get(stream, seq))
        except DamageError as fault:
            raise Damaged(where=f"stream {stream}, seq {seq}", what=_reason(fault)) from None

    def _newest_path(self, stream: str, length: int) -> str | None:
        """Where the file was when it last grew."""
        try:
            seq = self._log.find(stream, f"grew/{length}")
            grew = self._event(stream, seq) if seq is not None else None
        except DamageError:  # whoever reads the source's bytes says so
            return None
        return grew.path if isinstance(grew, SourceGrew) else None

    def match(self, content: Content) -> Match:
        """Which source a content is, or goes on, or begins."""
        index = self._indexed()
        with index.lock:
            lengths = list(index.lengths)
        count = bisect_right(lengths, content.size)
        known = lengths[:count]
        hasher, at, n = blake3(), 0, 0
        best: Source | None = None
        for block in content.blocks():
            while n < len(known) and known[n] <= at + len(block):
                upto = known[n] - at
                hasher.update(block[:upto])
                block, at = block[upto:], at + upto
                digest = hasher.digest()
                best = next((s for s in index.of_length(known[n]) if s.digest == digest), best)
                n += 1
            hasher.update(block)
            at += len(block)
        digest = hasher.digest()
        if best is not None:
            same = best.length == content.size and best.complete
            return Match(best, "same" if same else "grown", digest)
        begins = next(content.blocks(), b"")[:HEAD]
        for length in lengths[count:]:
            for source in index.of_length(length):
                if source.complete and self._may_begin(index, source, begins):
                    if self._begins(source, content):
                        return Match(source, "prefix", digest)
        return Match(None, "new", digest)

    def _may_begin(self, index: _Index, source: Source, begins: bytes) -> bool:
        """Whether a source's first bytes are a content's, as far as both are at hand."""
        head = index.heads.get(source.id)
        if head is None:
            head = next((piece for _, piece in self.pieces(source.id)), b"")[:HEAD]
            index.heads[source.id] = head
        known = min(len(head), len(begins))
        return head[:known] == begins[:known]

    def _begins(self, source: Source, content: Content) -> bool:
        """Whether a source begins with a content."""
        blocks = content.blocks()
        there = b""
        for _, piece in self.pieces(source.id):
            while len(there) < len(piece):
                block = next(blocks, b"")
                if not block:
                    return piece.startswith(there)
                there += block
            if not there.startswith(piece):
                return False
            there = there[len(piece) :]
        return not there and not next(blocks, b"")

    def is_hidden(self, session: str) -> bool:
        """Whether a session is one that an import began that is not complete."""
        stream = session_stream(session)
        try:
            last = self._log.tip(stream).seq
            for seq in range(last, max(0, last - LOOKED_BACK), -1):
                origin = self._log.get(stream, seq).header.origin
                if origin is not None:
                    return session in self.began(origin.source)
        except DamageError:  # whoever reads the session says so
            return False
        return False

    def began(self, source: str) -> tuple[str, ...]:
        """The sessions that the import of a source began, where that is not complete."""
        stream = source_stream(source)
        try:
            record = self._log.get(stream, self._log.tip(stream).seq)
            if record.header.kind != ImportProgressed.__name__:
                return ()
            event = event_of(self._log, record)
        except DamageError:  # whoever reads the source says so
            return ()
        return event.began if isinstance(event, ImportProgressed) else ()

    def at_path(self, path: str) -> Source | None:
        """The newest source that was last imported from `path`."""
        return max(self._indexed().at_path(path), key=lambda s: s.length, default=None)

    def find(self, name: str) -> Source:
        """The source with this id or unique prefix of it, or the only source of the session named so."""
        sources, damaged = self.surveyed()
        broken = [fault for id_, fault in damaged.items() if id_.startswith(name)]
        by_id = [s for s in sources if s.id.startswith(name)]
        by_session = [s for s in sources if name in s.sessions] or [
            s for s in sources if any(session.startswith(name) for session in s.sessions)
        ]
        exact = [s for s in by_id if s.id == name]
        found = exact or list({s.id: s for s in [*by_id, *by_session]}.values())
        if not found and broken:
            raise broken[0]
        if not found:
            raise NotFound(
                what="source", name=name, where="the store", remedy="`ef sources` lists them."
            )
        if len(found) + len(broken) > 1:
            names = ", ".join(s.id[:12] for s in found[:5])
            raise UsageError(
                detail=f"{name!r} names {len(found) + len(broken)} sources: give one of their ids "
                f"({names}; `ef sources`)"
            )
        return found[0]

    def pieces(self, source: str) -> Iterator[tuple[int, bytes]]:
        """(offset, bytes) of each SourceLines record, in order."""
        for record in self._log.read(source_stream(source)):
            if record.header.kind == SourceLines.__name__ and record.header.origin is not None:
                yield record.header.origin.start, self._log.body(record)

    def lengths(self, source: str) -> list[tuple[int, bytes]]:
        """(bytes, digest) of each complete import of a source, oldest first."""
        events = [
            event_of(self._log, r)
            for r in self._log.read(source_stream(source))
            if r.header.kind == ImportCompleted.__name__
        ]
        return [(e.length, e.digest) for e in events if isinstance(e, ImportCompleted)]

    def notes(self, source: str) -> list[dict[str, Any]]:
        """The remarks of a source."""
        found: list[dict[str, Any]] = []
        for record in self._log.read(source_stream(source)):
            if record.header.kind == SourceNote.__name__:
                note = event_of(self._log, record)
                assert isinstance(note, SourceNote)
                found.append(
                    {"line": note.line, "offset": note.offset, "kind": note.kind, "text": note.text}
                )
        return found

    def original(self, source: Source, *, length: int | None = None) -> bytes:
        """The source's bytes as they were imported (at the import of `length` bytes, or as many of its lines), digest
        checked.

        Raises Damaged, naming the lines that are missing; NotFound when there was no import of that length.
        """
        imports = {source.length: source.digest}
        if length is not None or not source.complete:
            imports = dict(self.lengths(source.id))
        if not imports:
            raise NotFound(
                what="complete import of source",
                name=source.id[:12],
                where="the store",
                remedy=f"Import {source.path} again: it goes on where it was ended.",
            )
        wanted = max(imports) if length is None else length
        if 0 < wanted < max(imports) and wanted not in imports:
            # A file that is the beginning of this one was nothing new; its lines are these.
            data = self.original(source, length=max(imports))[:wanted]
            if data.endswith(b"\n"):
                return data
        if wanted not in imports:
            known = ", ".join(str(n) for n in sorted(imports))
            raise NotFound(
                what="import of length",
                name=wanted,
                where=f"source {source.id[:12]}",
                remedy=f"There are: {known}.",
            )
        gaps, pieces = self._survey(source)
        if gaps:
            raise Damaged(where=f"source {source.id}", what="; ".join(gaps))
        data = b"".join(pieces)[:wanted]
        if len(data) != wanted or blake3(data).digest() != imports[wanted]:
            raise Damaged(
                where=f"source {source.id}", what="its bytes do not match the digest of the import"
            )
        return data

    def _survey(self, source: Source) -> tuple[list[str], list[bytes]]:
        """(what is missing in words, the pieces in order). Reads on behind a record that is missing or broken."""
        stream = source_stream(source.id)
        gaps: list[str] = []
        pieces: list[bytes] = []
        at, line, lost = 0, 1, False
        ends: dict[int, int] = {}
        for seq in range(1, self._log.tip(stream).seq + 1):
            try:
                record = self._log.get(stream, seq)
                h = record.header
                if h.kind != SourceLines.__name__ or h.origin is None:
                    event = event_of(self._log, record)
                    if isinstance(event, (ImportCompleted, ImportProgressed)):
                        ends[event.length] = event.lines + 1
                    continue
                data = self._log.body(record)
            except DamageError as fault:
                lost = True
                gaps.append(f"event {seq} of the stream is missing or broken ({_reason(fault)})")
                continue
            if h.origin.start > at:
                behind = ends.get(h.origin.start, h.origin.line)
                gaps.append(_missing(line, behind, at, h.origin.start))
            pieces.append(data)
            at, line, lost = h.origin.end, h.origin.line + data.count(b"\n"), False
        if at < source.length and lost:
            gaps.append(_missing(line, source.lines + 1, at, source.length))
        return gaps, pieces


def _reason(fault: DamageError) -> str:
    return str(fault.facts.get("what", fault))


def _missing(first: int, behind: int, start: int, end: int) -> str:
    last = max(first, behind - 1)
    rows = f"line {first} is" if last == first else f"lines {first} to {last} are"
    return f"{rows} missing (bytes {start} to {end})"
