"""Import of a file: its bytes into a source stream, what they mean into session streams."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import Busy, InputRefused, TipConflict, UsageError
from ..events import ItemAppended, PartKind, SessionOpened
from ..events.shapes import is_map
from ..importers.formats import Format, Head, format_of, names, recognised
from ..importers.names import SESSION_PREFIX
from ..importers.translator import Given
from ..log import source_stream
from ..log.items import event_of, reading_of
from ..log.storelog import StoreLog
from ..readers.claude_code import name_of
from ..readers.jsonvalues import parse
from .content import Content, open_content
from .databases import rows_of
from .intake import ImportResult, Intake, Stored
from .sources import Source, SourceCatalogue

if TYPE_CHECKING:
    from ..importers.redaction import Redaction, Redactor

TRIES = 8
HEAD_BYTES = 1 << 20


def import_path(
    log: StoreLog,
    path: str | Path,
    *,
    session: str | None = None,
    form: str | None = None,
    redactor: Redactor | None = None,
    progress: Callable[[int], None] | None = None,
) -> ImportResult:
    """Import a file. Raises InputRefused (nothing is kept then), Busy, CannotWrite, OutcomeUnknown.

    What the redactor finds is replaced before anything is kept.
    """
    redaction = redaction_of(redactor, path)
    content = open_content(Path(path), redaction)
    try:
        content.path = os.path.abspath(content.path)
        found = found_format(content, form)
        if content.tables:
            content = rows_of(content, found, redaction)
            if not content.size:
                why, remedy = "it holds no session", "Give a database that holds one."
                raise InputRefused(where=content.path, why=why, remedy=remedy)
        return import_content(log, content, found, session=session, progress=progress)
    finally:
        content.close()


def redaction_of(redactor: Redactor | None, path: str | Path) -> Redaction | None:
    """The redaction of one file by a redactor."""
    if redactor is None:
        return None
    from ..importers.redaction import Redaction

    return Redaction(redactor, where=str(path))


def import_bytes(
    log: StoreLog, data: bytes, path: str, *, session: str | None = None
) -> ImportResult:
    """Import bytes as the file at `path`. See `import_path`."""
    content = Content(path, BytesIO(data), len(data))
    return import_content(log, content, found_format(content, None), session=session)


def found_format(content: Content, form: str | None) -> Format:
    """The format of a content, or the one that the caller says. Raises InputRefused."""
    said = said_format(form) if form is not None else None
    data = content.head(HEAD_BYTES)
    if not content.tables and not data.strip():
        raise InputRefused(
            where=content.path, why="it is empty", remedy="Give a file that holds a session."
        )
    head = Head(data, content.path, len(data) == content.size, content.tables)
    if said is not None:
        holds = head.tables if said.form == "database" else head.records or head.cuts
        if not holds:
            why = f"it holds nothing that {said.name} could be read from"
            raise InputRefused(where=content.path, why=why, remedy=_REMEDY)
        return said
    found = recognised(head)
    if found is None:
        raise InputRefused(where=content.path, why=_why(data), remedy=_REMEDY)
    return found


def said_format(form: str) -> Format:
    """The format that the caller says. Raises UsageError."""
    said = format_of(form)
    if said is None:
        known = ", ".join(names())
        raise UsageError(detail=f"format: invalid choice {form[:60]!r} (there are {known})")
    return said


_REMEDY = "`ef formats` lists what is read; --format says which one it is."


def _why(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or (data[1:2] == b"\0" != data[:1]):
        return "it is UTF-16, and sessions are UTF-8"
    return "its format is not known"


def import_content(
    log: StoreLog,
    content: Content,
    form: Format,
    *,
    session: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> ImportResult:
    """Import a content of a known format."""
    for _ in range(TRIES):
        try:
            return _import(log, content, form, session, progress)
        except TipConflict:
            continue
    raise Busy(path=log.path, why="other writers kept adding to the same session")


def _import(
    log: StoreLog,
    content: Content,
    form: Format,
    session: str | None,
    progress: Callable[[int], None] | None,
) -> ImportResult:
    catalogue = SourceCatalogue(log, cached=True)
    match = catalogue.match(content)
    known = match.source
    if known is not None and session is not None and session not in known.sessions[:1]:
        raise InputRefused(
            where=content.path,
            why=f"its bytes are in the store as session {', '.join(known.sessions[:1]) or 'none'}",
            remedy="Import it without an id for the session, or into another store.",
        )
    if known is not None and match.relation in ("same", "prefix"):
        sessions = list(known.sessions)
        notes = catalogue.notes(known.id)
        return ImportResult(
            known.id, content.path, known.format, sessions, notes=notes, relation=match.relation
        )
    intake = intake_of(log, catalogue, content, form, known, match.digest, session, progress)
    intake.feed(content.blocks(), content.size)
    return intake.result


def intake_of(
    log: StoreLog,
    catalogue: SourceCatalogue,
    content: Content,
    form: Format,
    known: Source | None,
    digest: bytes,
    session: str | None,
    progress: Callable[[int], None] | None = None,
) -> Intake:
    """The way of a content into the log, from its beginning."""
    earlier = catalogue.at_path(content.path) if known is None else None
    before = known or earlier
    if before is not None and content.redaction is None:
        _stays_redacted(catalogue, before)
    name = known.id if known else digest.hex()[:32]
    if known is None and log.tip(source_stream(name)).seq:
        catalogue.find(name)  # it is there and cannot be read: says so
    stored: Stored | None = None
    if known is not None:
        form = format_of(known.format) or form
        if known.sessions:
            session = known.sessions[0]  # a file that grew goes on in the session that it began
        notes = tuple((n["kind"], n["line"], n["offset"]) for n in catalogue.notes(known.id))
        began = tuple(catalogue.began(known.id))
        stored = Stored(known.length, known.complete, began, notes)
    given = Given(
        name,
        log.store_id,
        session,
        _Prior(log, name),
        Parents(log),
        partial(_told_by, log),
        content.path,
    )
    intake = Intake(
        log,
        form,
        given,
        stored,
        earlier=earlier.id if earlier else None,
        remarks=content.said(known.length if known else 0),
        progress=progress,
    )
    if earlier is not None:
        intake.result.relation = "rewritten"
    elif known is not None:
        intake.result.relation = "grown" if known.complete else "resumed"
    return intake


def _stays_redacted(catalogue: SourceCatalogue, earlier: Source) -> None:
    """Raises InputRefused where secrets were looked for in a file before, and this time they would be stored."""
    from ..importers.redaction import LOOKED, REDACTED

    if any(note["kind"] in (REDACTED, LOOKED) for note in catalogue.notes(earlier.id)):
        raise InputRefused(
            where=earlier.path,
            why="it was imported without its secrets before",
            remedy="Import it so again (--redact), or into another store.",
        )


def _told_by(log: StoreLog, stream: str) -> str | None:
    """The format of a session that the store has; None for what was appended to it here alone."""
    if not log.tip(stream).seq:
        return None
    opened = event_of(log, log.get(stream, 1))
    told = opened.format if isinstance(opened, SessionOpened) else None
    return told if told in names() else None


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
                    id_ = _id_of(item)
                    if id_ is not None:
                        view = record.header.key.partition("/")[2]
                        found.setdefault(f"{id_}/{view}" if view else id_, record.header.key)
        return found


def _id_of(item: Any) -> str | None:
    """The id that a provider gave to an item."""
    if is_map(item):
        for name in ("uuid", "id"):
            if isinstance(item.get(name), str) and item[name]:
                return name_of(item[name])
    return None


class Parents:
    """(stream, what a sub-agent was asked) -> (seq, digest) of the call that asked it, else of the newest record."""

    def __init__(self, log: StoreLog) -> None:
        self._log = log
        self._asked: dict[str, dict[str, tuple[int, bytes]]] = {}

    def __call__(self, stream: str, asked: str) -> tuple[int, bytes] | None:
        if not stream.startswith(SESSION_PREFIX):
            return None
        tip = self._log.tip(stream)
        if not tip.seq:
            return None
        found = self._asked.get(stream)
        if found is None:
            found = self._asked[stream] = {}
            for record in self._log.read(stream):
                facts = record.header.item
                if facts is None or all(p.kind is not PartKind.TOOL_CALL for p in facts.parts):
                    continue
                for part in reading_of(self._log, record).parts:
                    if part.call is not None and part.call.action == "agent" and part.call.text:
                        found[part.call.text] = record.header.seq, record.digest
        return found.get(asked) or (tip.seq, tip.digest)


__all__ = ["ImportResult", "import_bytes", "import_content", "import_path"]
