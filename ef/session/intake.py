"""One source on its way into the log: bytes as they come, translated, observed, and appended a batch at a time.

A batch holds the bytes of whole lines and all that they mean, so that what is in the log is always the meaning of the
source's first bytes. A file of some size is one batch: all of it or nothing. What is longer comes in several, and what
they began is shown when the last is in.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from blake3 import blake3

from ..codec.digests import short_name
from ..codec.record import LEVEL_KEPT, pack_body
from ..events import (
    Channel,
    ImportCompleted,
    ImportProgressed,
    Origin,
    SourceGrew,
    SourceLines,
    SourceNote,
    SourceOpened,
    SourceRewritten,
)
from ..importers.documents import DocumentTranslator
from ..importers.formats import Format
from ..importers.lines import Chunk, RawLine, chunks
from ..importers.meaning import Meaning, Remark
from ..importers.names import OPEN_KEY, session_stream
from ..importers.translator import Given
from ..log import Draft, source_stream
from ..log.base import Tip
from ..log.points import reached
from ..log.storelog import StoreLog
from ..reducers.observers import Observers
from .ingest import session_drafts

PACKED_ASIDE = 128 << 10
"""So many bytes are worth a thread."""
BATCH_BYTES, BATCH_LINES = 8 << 20, 16_384


@dataclass(slots=True)
class ImportResult:
    """What an import of one file did. `notes` are the source's remarks as dicts (line, offset, kind, text)."""

    source: str
    path: str
    format: str
    sessions: list[str] = field(default_factory=list[str])
    records: int = 0
    new_events: dict[str, int] = field(default_factory=dict[str, int])
    notes: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    relation: str = "new"


@dataclass(frozen=True, slots=True)
class Stored:
    """What the log holds of a source before: its bytes, and what was noted. Where its import was ended before it was
    `complete`: the sessions that it `began`.
    """

    length: int = 0
    complete: bool = True
    began: tuple[str, ...] = ()
    notes: tuple[tuple[str, int | None, int | None], ...] = ()


class Packing:
    """Chunks of a source, packed by a thread of its own while their lines are translated: zlib holds no lock."""

    def __init__(self, data: bytes, start: int, line: int) -> None:
        """`data` begins at byte `start` of the source, in line `line`."""
        self.size = len(data)
        self._data, self._start, self._line = data, start, line
        self._packed: list[tuple[str, bytes]] = []
        self._thread: threading.Thread | None = None
        if self.size >= PACKED_ASIDE:
            self._thread = threading.Thread(target=self._pack, daemon=True)
            self._thread.start()

    def _pack(self) -> None:
        for chunk in self._chunks():
            packed = pack_body(chunk.data, where=SourceLines.__name__, level=LEVEL_KEPT)
            self._packed.append(packed)

    def _chunks(self) -> Iterator[Chunk]:
        """Cut when they are asked for: their bytes are held once, with the rest."""
        for chunk in chunks(self._data, 0, self._line):
            yield replace(chunk, start=self._start + chunk.start)

    def done(self) -> Iterator[tuple[Chunk, tuple[str, bytes]]]:
        """Each chunk with its packed bytes."""
        if self._thread is not None:
            self._thread.join()
        else:
            self._pack()
        return zip(self._chunks(), self._packed, strict=True)


class Intake:
    """The way of one source into the log. After TipConflict, or any other fault, it is of no use any more.

    `remarks` on the source as a whole are noted with the next batch.
    """

    def __init__(
        self,
        log: StoreLog,
        form: Format,
        given: Given,
        stored: Stored | None = None,
        *,
        earlier: str | None = None,
        remarks: Iterable[Remark] = (),
        progress: Callable[[int], None] | None = None,
    ) -> None:
        """`stored`: the source is known. `earlier`: the one that was at this path before."""
        self._log, self._form, self._given = log, form, given
        self._stream = source_stream(given.source)
        self._translator = form.translator(given)
        self._observers: dict[str, Observers] = {}
        self._tips: dict[str, Tip] = {self._stream: log.tip(self._stream)}
        self._hasher = blake3()
        self._stored, self._known, self._earlier = stored or Stored(), stored is not None, earlier
        self._held = self._stored.length
        self.remarks = list(remarks)
        self._said = set(self._stored.notes)
        self._began = list(self._stored.began)
        self._grew = False
        self._line = b""
        self._taken = 0
        self.length, self.lines = 0, 0
        self._progress = progress
        self.result = ImportResult(given.source, given.path, form.name)

    def feed(self, blocks: Iterable[bytes], upto: int) -> None:
        """Take the next bytes in, up to the length `upto` of the source. Raises TipConflict and what an append does."""
        self._grew = self._known and upto > self._stored.length
        if isinstance(self._translator, DocumentTranslator):
            data = b"".join(blocks)
            packing = self._packing(data, 0)
            self._count(data)
            reached("import.read")
            self._translator.document(data)
            self.lines, self._line = data.count(b"\n"), data.rpartition(b"\n")[2]
            self._batch(packing, 0, upto, last=True)
            return
        start = self.length
        for region in _regions(blocks):
            last = start + len(region) == upto
            packing = self._packing(region, start)
            self._count(region)
            reached("import.read")
            self._lines(region, start)
            self._batch(packing, start, upto, last=last)
            start += len(region)

    @property
    def digest(self) -> bytes:
        """blake3 of all that was taken in."""
        return self._hasher.digest()

    def _count(self, region: bytes) -> None:
        self._hasher.update(region)
        self.length += len(region)
        if self._progress is not None:
            self._progress(self.length)

    def _lines(self, region: bytes, start: int) -> None:
        """Translate the lines of a region. A line that it does not end is read now, and what is added to it later."""
        at = 0
        while at < len(region):
            end = region.find(b"\n", at)
            ended = end >= 0
            end = end if ended else len(region)
            whole = self._line + region[at:end]
            line = RawLine(self.lines + 1, start + end - len(whole), whole, ended=ended)
            self._taken = self._translator.line(line, taken=self._taken)
            if ended:
                self.lines += 1
                self._line, self._taken = b"", 0
            else:
                self._line = whole
            at = end + 1

    def _packing(self, region: bytes, start: int) -> Packing:
        """The chunks of a region that are not stored yet, on their way to be packed."""
        fresh = region[max(0, self._held - start) :]
        line = self.lines + 1 + region.count(b"\n", 0, len(region) - len(fresh))
        return Packing(fresh, start + len(region) - len(fresh), line)

    def _batch(self, packing: Packing, start: int, upto: int, *, last: bool) -> None:
        if last:
            self._translator.ended()
        meanings, remarks = self._translator.out.take()
        fresh = packing.size > 0
        head = not self._known and start == 0
        self._sessions(meanings)
        for stream in (session_stream(name) for name in self._translator.out.sessions):
            if stream not in self._tips:
                self._tips[stream] = self._log.tip(stream)
        drafts: list[Draft] = []
        if head:
            drafts += self._opening()
        if self._grew and fresh:
            grew = SourceGrew(self._stored.length, upto, storable(self._given.path))
            key = f"grew/{upto}"
            if (
                self._log.find(self._stream, key) is None
            ):  # else it was said by an import that was ended
                drafts.append(self._draft(key, grew))
            self._grew = False
        drafts += self._bytes(packing)
        drafts += self._notes([*self.remarks, *remarks])
        self.remarks.clear()
        drafts += session_drafts(self._log, meanings, self._observers, self._tips)
        reached("import.translated")
        if last and (drafts or not self._complete(upto)):
            drafts.append(self._completed())
        elif fresh:
            drafts.append(self._progressed())
        if drafts:
            self._append(drafts)
        self._held = max(self._held, self.length)
        if last:
            self._stored = Stored(upto)
            self._known = True

    def _complete(self, upto: int) -> bool:
        return self._stored.complete and self._stored.length == upto and self._known

    def _sessions(self, meanings: list[Meaning]) -> None:
        """Note the sessions of the file, and which of them this import begins."""
        self.result.sessions = self._translator.out.sessions
        self.result.records = self._translator.out.records
        for meaning in meanings:
            if meaning.key == OPEN_KEY and not self._log.tip(meaning.stream).seq:
                self._began.append(meaning.stream.partition("/")[2])

    def _opening(self) -> Iterator[Draft]:
        where = storable(self._given.path)
        yield self._draft(OPEN_KEY, SourceOpened(self._given.source, self._form.name, where))
        if self._earlier is not None:
            yield self._draft("rewritten", SourceRewritten(self._earlier, where))

    def _bytes(self, packing: Packing) -> Iterator[Draft]:
        for chunk, packed in packing.done():
            origin = Origin(self._given.source, chunk.line, chunk.start, chunk.end)
            lines = self._draft(f"bytes/{chunk.start}", SourceLines(chunk.data), origin)
            yield replace(lines, packed=packed)

    def _notes(self, remarks: list[Remark]) -> Iterator[Draft]:
        for r in remarks:
            self.result.notes.append(
                {"line": r.line, "offset": r.offset, "kind": r.kind, "text": r.text}
            )
            if (r.kind, r.line, r.offset) not in self._said:
                self._said.add((r.kind, r.line, r.offset))
                note = SourceNote(r.kind, r.text, r.line, r.offset)
                yield self._draft(f"note/{r.kind}/{r.offset}", note)

    def _completed(self) -> Draft:
        names = tuple(self._translator.out.sessions)
        lines, digest = self._count_lines(), self._hasher.digest()
        done = ImportCompleted(self.length, lines, digest, names)
        return self._draft(f"import/{self.length}", done)

    def _progressed(self) -> Draft:
        lines, digest = self._count_lines(), self._hasher.digest()
        names, began = tuple(self._translator.out.sessions), tuple(self._began)
        going = ImportProgressed(self.length, lines, digest, names, began)
        return self._draft(f"progress/{self.length}", going)

    def _count_lines(self) -> int:
        return self.lines + (1 if self._line else 0)

    def _draft(self, key: str, event: Any, origin: Origin | None = None) -> Draft:
        return Draft(self._stream, key, event, Channel.IMPORTER, origin=origin)

    def _append(self, drafts: list[Draft]) -> None:
        expect = {stream: self._tips[stream] for stream in {draft.stream for draft in drafts}}
        appended = self._log.append(drafts, expect=expect)
        reached("import.appended")
        new_events = self.result.new_events
        for draft, got in zip(drafts, appended, strict=True):
            if got.new:
                new_events[draft.stream] = new_events.get(draft.stream, 0) + 1
                self._tips[draft.stream] = Tip(got.seq, got.digest)


def _regions(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Bytes of whole lines, as many as make a batch; the last one may lack its line feed."""
    held: list[bytes] = []
    size = 0
    for block in blocks:
        held.append(block)
        size += len(block)
        if size >= BATCH_BYTES and b"\n" in block:
            data = b"".join(held)
            end = data.rfind(b"\n") + 1
            held, size = [data[end:]], len(data) - end
            data = data[:end]
            yield from _parted(data)
            del data
    data = b"".join(held)
    held.clear()
    if data:
        yield from _parted(data)


def _parted(data: bytes) -> Iterator[bytes]:
    """Bytes of whole lines in parts of no more than `BATCH_LINES` lines."""
    if data.count(b"\n") <= BATCH_LINES:
        yield data
        return
    at = begins = count = 0
    while (end := data.find(b"\n", at)) >= 0:
        at, count = end + 1, count + 1
        if count == BATCH_LINES:
            yield data[begins:at]
            begins, count = at, 0
    if begins < len(data):
        yield data[begins:]


def storable(path: str) -> str:
    """A path as it is kept: what is no text or too long has a stand-in."""
    text = path.encode("utf-8", "replace").decode()
    return text if len(text.encode()) <= 4096 else short_name(text)
