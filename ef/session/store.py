"""A store: open it, import sessions into it, ask what is in it, verify it, export what was imported."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..errors import NotFound, StoreUnavailable, UsageError
from ..importers.names import SESSION_PREFIX, session_stream
from ..log import given
from ..log.lmdb_log import LmdbLog
from ..log.storelog import StoreLog
from .session import Session
from .sources import Source, SourceCatalogue
from .summaries import SessionInfo, info_of

# What one command needs and the others do not is imported by that one: start-up is felt at each command.
if TYPE_CHECKING:
    from ..importers.redaction import Finds, Redactor
    from ..log.subscription import Subscription
    from .backup import BackedUp
    from .following import Watcher
    from .importing import ImportResult
    from .rebuilding import Rebuilt
    from .verify import Verified


def now_micros() -> int:
    """Microseconds since 1970 UTC: the clock of a store."""
    return time.time_ns() // 1000  # noqa: TID251  (floor 6 draws the time)


class Store:
    """All sessions and sources in one folder. Made by `ef.open`; close it, or use it as a context manager."""

    def __init__(self, log: StoreLog) -> None:
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

    def session(self, name: str, *, redact: bool | Finds | None = None) -> Session:
        """The session of this id; it need not exist yet. Raises UsageError for an id that cannot name one.

        `redact`: what is appended through it is stored without the secrets that this function finds (True: the built-in
        detector); see docs/redaction.md.
        """
        from ..importers.names import session_name

        given.text("session id", name, empty=True)
        if session_name(name) != name:
            raise UsageError(
                detail=f"session id {name[:80]!r}: use 1 to 128 of the characters A-Z a-z 0-9 . _ : - "
                "and begin with a letter or digit"
            )
        return Session(self.log, name, lambda: secrets.token_hex(16), _redactor(redact))

    def find_session(self, prefix: str) -> Session:
        """The session whose id begins with `prefix`; a root session wins over its own sub-agents. Raises NotFound."""
        given.text("session", prefix, empty=True)
        names = sorted(self._names(prefix))
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
        """Ids of all sessions, in no particular order; those that an import began are there when it is complete."""
        return self._names("")

    def _names(self, prefix: str) -> Iterator[str]:
        catalogue = SourceCatalogue(self.log)
        for stream, _ in self.log.streams(SESSION_PREFIX + prefix):
            name = stream.removeprefix(SESSION_PREFIX)
            if not catalogue.is_hidden(name):
                yield name

    def sessions(self, at: str | None = None, *, recorded: bool = False) -> list[SessionInfo]:
        """All sessions, the newest first; with `at` (an ISO time) as of then, those only that had begun.

        A session that cannot be read is in the list, with its `problem`, and stops no other.
        """
        if at is not None:
            given.text("at", at)
        names = self.session_names()
        found = [info_of(self.log, name, at, recorded=recorded) for name in names]
        listed = [info for info in found if at is None or info.messages or info.problem]
        return sorted(listed, key=lambda s: (s.last or "", s.session), reverse=True)

    def import_file(
        self,
        path: str | Path,
        *,
        session: str | None = None,
        format: str | None = None,
        redact: bool | Finds | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> ImportResult:
        """Import a session file; importing it again, grown or not, adds only what is new. Raises InputRefused, Busy.

        `session` is the id to give its (first) session, `format` its format where it is not to be found out; `progress`
        gets the bytes done. Secrets that `redact` finds (True: the built-in detector) are replaced before anything is
        kept; see docs/redaction.md.
        """
        from .importing import import_path

        if session is not None:
            given.text("session", session)
        if format is not None:
            given.text("format", format)
        given.function("progress", progress)
        where = given.path("path", path)
        return import_path(
            self.log,
            where,
            session=session,
            form=format,
            redactor=_redactor(redact),
            progress=progress,
        )

    def watch(
        self,
        *paths: str | Path,
        format: str | None = None,
        redact: bool | Finds | None = None,
    ) -> Watcher:
        """Follow files and folders as they grow: iterate over what comes in; `stop()` ends it.

        What was added to a file of lines is in the log within a second, whatever its length. See `Watcher`.
        """
        from .following import Watcher

        names = [str(given.path("path", path)) for path in paths]
        return Watcher(self.log, names, form=format, redactor=_redactor(redact))

    def sources(self) -> list[Source]:
        """What was imported."""
        return SourceCatalogue(self.log).all()

    def notes(self, source: str) -> list[dict[str, Any]]:
        """Remarks on a source: {line, offset, kind, text}."""
        return SourceCatalogue(self.log).notes(given.text("source", source))

    def export_original(
        self, source: str, *, length: int | None = None, redacted: bool = False
    ) -> bytes:
        """A source's bytes exactly as they were imported (the newest import, or that of `length` bytes).

        `source` is a source's id, a unique prefix of it, or a session's id. Raises NotFound, Damaged (naming lines),
        OriginalRedacted where secrets were replaced, unless `redacted` says that what was stored is wanted.
        """
        if length is not None:
            given.number("length", length)
        catalogue = SourceCatalogue(self.log)
        found = catalogue.find(given.text("source", source))
        data = catalogue.original(found, length=length)  # what cannot be read says so first
        if not redacted:
            from .secrets import refuse_original

            refuse_original(found.id, catalogue.notes(found.id), len(data))
        return data

    def rebuild(
        self, session: str | None = None, *, progress: Callable[[int], None] | None = None
    ) -> list[Rebuilt]:
        """Build the projections of a session (a beginning of its id), or of all, from the log anew, and keep them.

        Says of each whether what was kept differed. `progress` gets the events done. Raises NotFound, CannotWrite.
        """
        from .rebuilding import rebuild

        self.in_folder("rebuild", "beside a store in memory no projections are kept")
        given.function("progress", progress)
        if session is not None:
            names = [self.find_session(session).id]
        else:
            names = sorted(self.session_names())
        return rebuild(self.log, [session_stream(name) for name in names], progress)

    def backup(self, path: str | Path) -> BackedUp:
        """A consistent copy of the store in a new folder, verified in full, while others write. See `back_up`.

        Raises BackupFailed (the path is taken, no room, no rights), Damaged when the copy is not sound.
        """
        log = self.in_folder("backup", "a store in memory has no files to copy")
        from .backup import back_up
        from .verifying import verify_path

        return back_up(log, given.path("path", path), verify=verify_path)

    def in_folder(self, what: str, why: str) -> LmdbLog:
        """The log, where it is in a folder. Raises UsageError."""
        if not isinstance(self.log, LmdbLog):
            raise UsageError(detail=f"{what}: {why}; open a store in a folder for that")
        return self.log

    def subscribe(self, *, after: int | None = None, prefix: str = "") -> Subscription:
        """Records of all streams whose name begins with `prefix`, as they are committed: iterate; `stop()` ends it.

        `after` is a position of the store's order (None: from now on; -1: all there is). Nothing is skipped, whoever
        writes; what another process writes comes within a fifth of a second.
        """
        from ..log.subscription import Subscription

        position = self.log.tip_position() if after is None else after
        return Subscription(self.log, after=position, prefix=prefix)

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
        from .verify import verify_log

        given.function("progress", progress)
        if session is not None:
            given.text("session", session)
        return verify_log(self.log, quick=quick, session=session, progress=progress)


def _redactor(redact: bool | Finds | None) -> Redactor | None:
    if redact is None or redact is False:
        return None
    from .secrets import redactor_of

    return redactor_of(redact)


MEMORY = ":memory:"
"""Instead of a path: a store of its own in memory, gone when it is closed."""


def open_store(path: str | Path, *, create: bool = True, readonly: bool = False) -> Store:
    """Open the store in the folder `path`; make it when it is not there (and `create`).

    `readonly`: nothing is written through it, it is not made, and its opening waits for no writer. The path
    ":memory:" is a new store in memory; nothing of it is on any disk, and closing it ends it. Raises UsageError,
    StoreUnavailable, NotFound (no store, `create` false), CannotWrite, Damaged.
    """
    made_by = f"ef {__version__}"
    if path == MEMORY:
        if readonly or not create:
            why = "a store in memory is always a new one: open it without `readonly` and `create=False`"
            raise UsageError(detail=f"path {MEMORY!r}: {why}")
        from ..log.memory import MemoryLog

        return Store(MemoryLog(now=now_micros, made_by=made_by))
    must_be_a_path(path)
    log = LmdbLog.open(
        path,
        now=now_micros,
        create_missing=create and not readonly,
        made_by=made_by,
        readonly=readonly,
    )
    return Store(log)


def must_be_a_path(path: str | Path) -> None:
    """Raises UsageError for what is no path, StoreUnavailable for a URL and for what no path can be."""
    given.path("path", path)
    if "\0" in str(path):
        raise StoreUnavailable(path=path, why="it holds a NUL", remedy="Give the path of a folder.")
    if "://" in str(path):
        raise StoreUnavailable(
            path=path,
            why="stores by URL are not in this version",
            remedy="Give the path of a folder.",
        )


__all__ = ["SessionInfo", "Store", "open_store"]
