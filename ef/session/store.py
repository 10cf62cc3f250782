"""A store: open it, import sessions into it, ask what is in it, verify it, export what was imported."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import DamageError, EfError, NotFound, NotProjectable, StoreUnavailable, UsageError
from ..events import Channel
from ..importers.names import SESSION_PREFIX, session_stream
from ..log import databytes
from ..log.check import Problem
from ..log.items import reading_of
from ..log.lmdb_log import LmdbLog
from .importing import ImportResult, import_bytes, read_file
from .moments import iso
from .session import Session
from .sources import Source, SourceCatalogue
from .verify import Verified, verify_log


def now_micros() -> int:
    """Microseconds since 1970 UTC: the clock of a store."""
    return time.time_ns() // 1000  # noqa: TID251  (floor 6 draws the time)


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A row of the list of sessions. Times are ISO 8601 or None; `title` falls back on the first words."""

    session: str
    title: str | None
    format: str | None
    relation: str | None
    messages: int
    events: int
    first: str | None
    last: str | None
    problem: str | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON fields."""
        return {
            "session": self.session,
            "title": self.title,
            "format": self.format,
            "relation": self.relation,
            "messages": self.messages,
            "events": self.events,
            "folds": 0,
            "first": self.first,
            "last": self.last,
            **({"problem": self.problem} if self.problem else {}),
        }


class Store:
    """All sessions and sources in one folder. Made by `ef.open`; close it, or use it as a context manager."""

    def __init__(self, log: LmdbLog) -> None:
        self.log = log
        self.path = log.path

    def __repr__(self) -> str:
        return f"<Store {self.path}>"

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the store go. What was appended is durable already."""
        self.log.close()

    def session(self, name: str) -> Session:
        """The session of this id; it need not exist yet. Raises UsageError for an id that cannot name one."""
        from ..importers.names import session_name

        if session_name(name) != name:
            raise UsageError(
                detail=f"session id {name[:80]!r}: use 1 to 128 of the characters A-Z a-z 0-9 . _ : - "
                "and begin with a letter or digit"
            )
        return Session(self.log, name, lambda: secrets.token_hex(16))

    def find_session(self, prefix: str) -> Session:
        """The session whose id begins with `prefix`; a root session wins over its own sub-agents. Raises NotFound."""
        names = sorted(name for name in self.session_names() if name.startswith(prefix))
        if not names:
            raise NotFound(
                what="session", name=prefix, where="the store", remedy="`ef sessions` lists them."
            )
        if prefix in names or all(name.startswith(names[0] + ".") for name in names[1:]):
            return self.session(prefix if prefix in names else names[0])
        some = ", ".join(names[:5])
        raise UsageError(
            detail=f"{prefix!r} names {len(names)} sessions ({some} …): give more of the id"
        )

    def session_names(self) -> Iterator[str]:
        """Ids of all sessions, in no particular order."""
        for stream, _ in self.log.streams(SESSION_PREFIX):
            yield stream.removeprefix(SESSION_PREFIX)

    def sessions(self, at: str | None = None, *, recorded: bool = False) -> list[SessionInfo]:
        """All sessions, the newest first; with `at` (an ISO time) as of then, those only that had begun.

        A session that cannot be read is in the list, with its `problem`, and stops no other.
        """
        found = [self._info_or_problem(name, at, recorded) for name in self.session_names()]
        listed = [info for info in found if at is None or info.messages or info.problem]
        return sorted(listed, key=lambda s: (s.last or "", s.session), reverse=True)

    def _info_or_problem(self, name: str, at: str | None, recorded: bool) -> SessionInfo:
        try:
            return self._info(name, at, recorded)
        except (DamageError, NotProjectable) as fault:
            events = self.log.tip(session_stream(name)).seq
            return SessionInfo(name, None, None, None, 0, events, None, None, str(fault))

    def _info(self, name: str, at: str | None, recorded: bool) -> SessionInfo:
        session = self.session(name)
        working = session.working(at, recorded=recorded)
        d = working.described
        title = d.title or self._first_words(name, list(working.surface.nodes)[:40])
        return SessionInfo(
            name, title, d.format, d.relation, d.messages, working.seq, iso(d.first), iso(d.last)
        )

    def _first_words(self, name: str, seqs: list[int]) -> str | None:
        """What the user typed first; where nobody typed, what the assistant said or was told first."""
        said: str | None = None
        for seq in seqs:
            record = self.log.get(session_stream(name), seq)
            for part in reading_of(self.log, record).parts:
                words = " ".join(part.text.split())[:120]
                if words and part.channel is Channel.USER_TYPED:
                    return words
                if words and said is None and part.channel is Channel.ASSISTANT:
                    said = words
        return said

    def import_file(self, path: str | Path, *, session: str | None = None) -> ImportResult:
        """Import a session file; importing it again, grown or not, adds only what is new. Raises InputRefused, Busy."""
        data = read_file(Path(path))
        return import_bytes(self.log, data, os.path.abspath(path), session=session)

    def sources(self) -> list[Source]:
        """What was imported."""
        return SourceCatalogue(self.log).all()

    def notes(self, source: str) -> list[dict[str, Any]]:
        """Remarks on a source: {line, offset, kind, text}."""
        return SourceCatalogue(self.log).notes(source)

    def export_original(self, source: str, *, length: int | None = None) -> bytes:
        """A source's bytes exactly as they were imported (the newest import, or that of `length` bytes).

        `source` is a source's id, a unique prefix of it, or a session's id. Raises NotFound, Damaged (naming lines).
        """
        catalogue = SourceCatalogue(self.log)
        return catalogue.original(catalogue.find(source), length=length)

    def verify(
        self,
        *,
        quick: bool = False,
        session: str | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Verified:
        """Check bytes, chain, bodies, references, projections and tip; see `Verified`.

        `quick`: digests and chain only.
        """
        return verify_log(self.log, quick=quick, session=session, progress=progress)


def open_store(path: str | Path, *, create: bool = True) -> Store:
    """Open the store in the folder `path`; make it when it is not there (and `create`).

    Raises StoreUnavailable, NotFound (no store, `create` false), CannotWrite, Damaged.
    """
    _must_be_a_path(path)
    log = LmdbLog.open(path, now=now_micros, create_missing=create, made_by=f"ef {__version__}")
    return Store(log)


def _must_be_a_path(path: str | Path) -> None:
    if "://" in str(path):
        raise StoreUnavailable(
            path=path,
            why="stores by URL are not in this version",
            remedy="Give the path of a folder.",
        )


def verify_path(
    path: str | Path,
    *,
    quick: bool = False,
    session: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Verified:
    """Verify the store in a folder, whatever state it is in: reads its bytes in plain Python before LMDB may.

    `session` may be a unique beginning of an id. Raises NotFound for a store or a session that is not there.
    """
    _must_be_a_path(path)
    data = Path(path) / "data.mdb"
    if not data.exists():
        raise NotFound(
            what="store",
            name=str(path),
            where="the file system",
            remedy="Give the folder of a store.",
        )
    try:
        found = databytes.check(data)
    except OSError as fault:
        return Verified("unreadable", 0, 0, b"", [Problem(str(fault), str(data), "unreadable")])
    if found:
        return Verified("damaged", 0, 0, b"", [Problem(what, str(data)) for what in found])
    try:
        with open_store(path, create=False) as store:
            name = store.find_session(session).id if session else None
            return store.verify(quick=quick, session=name, progress=progress)
    except DamageError as fault:
        return Verified("damaged", 0, 0, b"", [Problem(str(fault), str(data))])
    except StoreUnavailable as fault:
        return Verified("unreadable", 0, 0, b"", [Problem(str(fault), str(data), "unreadable")])


__all__ = ["EfError", "SessionInfo", "Store", "open_store", "verify_path"]
