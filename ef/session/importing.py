"""Import of a file: its bytes into a source stream, what they mean into session streams, all in one append."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from blake3 import blake3

from ..codec.digests import short_name
from ..errors import Busy, InputRefused, TipConflict
from ..events import (
    Channel,
    ImportCompleted,
    ItemAppended,
    Origin,
    SourceGrew,
    SourceLines,
    SourceNote,
    SourceOpened,
    SourceRewritten,
)
from ..events.shapes import is_map
from ..importers.documents import DocumentTranslator
from ..importers.formats import Format, Head, recognised
from ..importers.lines import chunks, lines
from ..importers.meaning import Translation
from ..importers.names import OPEN_KEY, session_stream
from ..importers.translator import Given
from ..log import Draft, source_stream
from ..log.points import reached
from ..log.storelog import StoreLog
from ..readers.jsonvalues import parse
from .ingest import session_drafts
from .sources import Source, SourceCatalogue

FILE_BYTES_MAX = 2 << 30
HEAD_BYTES = 1 << 20
TRIES = 8


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


def read_file(path: Path) -> bytes:
    """The bytes of a regular file; InputRefused for anything else. Never waits on a pipe or a device."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise InputRefused(
            where=str(path), why="there is no such file", remedy="Check the path."
        ) from None
    except (OSError, ValueError) as fault:
        why = getattr(fault, "strerror", None) or str(fault)
        raise InputRefused(
            where=str(path), why=why, remedy="Check the path and its rights."
        ) from None
    facts = os.fstat(handle)
    if not stat.S_ISREG(facts.st_mode):
        os.close(handle)
        raise InputRefused(
            where=str(path), why="it is not a regular file", remedy="Give a session file."
        )
    with os.fdopen(handle, "rb") as file:
        if facts.st_size > FILE_BYTES_MAX:
            raise InputRefused(
                where=str(path),
                why=f"it has {facts.st_size} bytes, more than {FILE_BYTES_MAX}",
                remedy="Split it between lines.",
            )
        return file.read()


def import_bytes(
    log: StoreLog, data: bytes, path: str, *, session: str | None = None
) -> ImportResult:
    """Import a file's bytes. Raises InputRefused (nothing is kept then), Busy, CannotWrite, OutcomeUnknown."""
    if not data.strip():
        raise InputRefused(
            where=path, why="it is empty", remedy="Give a file that holds a session."
        )
    found = recognised(Head(data[:HEAD_BYTES], path, len(data) <= HEAD_BYTES))
    if found is None:
        raise InputRefused(
            where=path, why="its format is not known", remedy="`ef formats` lists what is read."
        )
    for _ in range(TRIES):
        try:
            return _import(log, data, path, session, found)
        except TipConflict:
            continue
    raise Busy(path=log.path, why="other writers kept adding to the same session")


def _import(
    log: StoreLog, data: bytes, path: str, session: str | None, form: Format
) -> ImportResult:
    reached("import.read")
    catalogue = SourceCatalogue(log)
    known, relation = catalogue.match(data)
    if known is not None and session is not None and session not in known.sessions[:1]:
        raise InputRefused(
            where=path,
            why=f"its bytes are in the store as session {', '.join(known.sessions[:1]) or 'none'}",
            remedy="Import it without an id for the session, or into another store.",
        )
    if known is not None and relation in ("same", "prefix"):
        result = ImportResult(known.id, path, known.format, list(known.sessions), relation=relation)
        result.notes = catalogue.notes(known.id)
        return result
    earlier = catalogue.at_path(path) if known is None else None
    name = known.id if known else blake3(data).hexdigest()[:32]
    if known is None and log.tip(source_stream(name)).seq:
        catalogue.find(name)  # it is there and cannot be read: says so
    if known is not None and known.sessions:
        session = known.sessions[0]  # a file that grew goes on in the session that it began
    translator = form.translator(Given(name, log.store_id, session, _Prior(log, name), path=path))
    if isinstance(translator, DocumentTranslator):
        translator.document(data)
    else:
        for line in lines(data):
            translator.line(line)
    translator.ended()
    translation = translator.out
    meanings, translation.remarks = translation.take()
    expect = {s: log.tip(s) for s in _streams(translation, name)}
    drafts = [
        *_source_drafts(data, name, path, known, earlier, translation, catalogue, form.name),
        *session_drafts(log, meanings),
    ]
    drafts.append(_completed(data, name, translation))
    reached("import.translated")
    appended = log.append(drafts, expect=expect)
    reached("import.appended")
    result = ImportResult(
        name, path, form.name, translation.sessions, translation.records, relation=relation
    )
    for draft, got in zip(drafts, appended, strict=True):
        if got.new:
            result.new_events[draft.stream] = result.new_events.get(draft.stream, 0) + 1
    if earlier is not None:
        result.relation = "rewritten"
    result.notes = [
        {"line": r.line, "offset": r.offset, "kind": r.kind, "text": r.text}
        for r in translation.remarks
    ]
    return result


class _Prior:
    """stream -> (uuid -> key of the first item that has it), of what other sources than this one gave to the stream."""

    def __init__(self, log: StoreLog, source: str) -> None:
        self._log, self._source = log, source
        self._found: dict[str, dict[str, str]] = {}

    def __call__(self, stream: str) -> dict[str, str]:
        found = self._found.get(stream)
        if found is None:
            found = self._found[stream] = {}
            for record in self._log.read(stream):
                origin = record.header.origin
                if record.header.kind != ItemAppended.__name__ or origin is None:
                    continue
                if origin.source != self._source:
                    item = parse(self._log.body(record))
                    uuid = item.get("uuid") if is_map(item) else None
                    if isinstance(uuid, str) and uuid:
                        found.setdefault(uuid, record.header.key)
        return found


def _streams(translation: Translation, source: str) -> list[str]:
    return [source_stream(source), *(session_stream(name) for name in translation.sessions)]


def _source_drafts(
    data: bytes,
    source: str,
    path: str,
    known: Source | None,
    earlier: Source | None,
    translation: Translation,
    catalogue: SourceCatalogue,
    form: str,
) -> Iterator[Draft]:
    stream = source_stream(source)
    where = _storable(path)

    def draft(key: str, event: Any, origin: Origin | None = None) -> Draft:
        return Draft(stream, key, event, Channel.IMPORTER, origin=origin)

    start, line = (known.length, 1 + data.count(b"\n", 0, known.length)) if known else (0, 1)
    if known is None:
        yield draft(OPEN_KEY, SourceOpened(source, form, where))
        if earlier is not None:
            yield draft("rewritten", SourceRewritten(earlier.id, where))
    else:
        yield draft(f"grew/{len(data)}", SourceGrew(known.length, len(data), where))
    for chunk in chunks(data, start, line):
        origin = Origin(source, chunk.line, chunk.start, chunk.start + len(chunk.data))
        yield draft(f"bytes/{chunk.start}", SourceLines(chunk.data), origin)
    notes = catalogue.notes(source) if known else []
    said = {(n["kind"], n["line"], n["offset"]) for n in notes}
    for r in translation.remarks:
        if (r.kind, r.line, r.offset) not in said:
            said.add((r.kind, r.line, r.offset))
            yield draft(f"note/{r.kind}/{r.offset}", SourceNote(r.kind, r.text, r.line, r.offset))


def _completed(data: bytes, source: str, translation: Translation) -> Draft:
    count = data.count(b"\n") + (0 if data.endswith(b"\n") else 1)
    event = ImportCompleted(len(data), count, blake3(data).digest(), tuple(translation.sessions))
    return Draft(source_stream(source), f"import/{len(data)}", event, Channel.IMPORTER)


def _storable(path: str) -> str:
    text = path.encode("utf-8", "replace").decode()
    return text if len(text.encode()) <= 4096 else short_name(text)
