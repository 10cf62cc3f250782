"""Files that grow, followed: what is added to them is in the log within a moment, at a cost that the file's length does
not change.

A file of lines is read once; from then on only what is added. What cannot be gone on with (a file that was cut,
rewritten or replaced, a document, a database) is imported as a whole again.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from blake3 import blake3

from ..errors import Busy, CallerError, EfError, InputRefused, TipConflict
from ..importers.formats import Format
from ..importers.redaction import Redaction, Redactor, is_whole
from ..log.storelog import StoreLog
from .blocks import Blocks
from .content import BLOCK, Content, open_content
from .finding import candidates_of
from .importing import TRIES, found_format, import_path, intake_of, redaction_of
from .intake import ImportResult, Intake
from .sources import SourceCatalogue

EVERY, SCAN_EVERY = 0.2, 1.0
"""Seconds between two looks at the files, and at the folders."""
SETTLED = 1.0
"""Seconds after which a last line without its end is taken as it is."""
KEPT = 64
"""Files whose way in is kept open."""
RECENT = 600.0


@dataclass(frozen=True, slots=True)
class Change:
    """Something came in from a file, or could not: `error` says why."""

    path: str
    source: str | None = None
    format: str | None = None
    relation: str | None = None
    sessions: tuple[str, ...] = ()
    new_events: int = 0
    error: EfError | None = None


@dataclass(slots=True)
class _Seen:
    """A file as it was when it was last looked at, and since when it is so."""

    state: tuple[int, ...] | None = None
    since: float = 0.0
    refused: bool = False


@dataclass(slots=True)
class _Way:
    """A file's way in, and what was read of it."""

    intake: Intake
    inode: tuple[int, int]
    file: IO[bytes]
    """Kept open: what is written to it before it is renamed or removed can still be read then."""
    read: Blocks
    redaction: Redaction | None


class Watcher:
    """Follows files and folders; iterate over it for what changes. `stop()` ends that, also from another thread."""

    def __init__(
        self,
        log: StoreLog,
        paths: Sequence[str],
        *,
        form: str | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        self._log, self._paths, self._form, self._redactor = log, list(paths), form, redactor
        self._files: dict[str, _Seen] = {}
        self._ways: OrderedDict[str, _Way] = OrderedDict()
        self._stopped = threading.Event()
        self._scanned = float("-inf")

    def stop(self) -> None:
        """The iteration ends after what it is at."""
        self._stopped.set()

    def close(self) -> None:
        """Let the files go. What changes later is taken in as by a new watcher."""
        for path in list(self._ways):
            self._drop(path)

    def __del__(self) -> None:
        if hasattr(self, "_ways"):
            self.close()

    def __iter__(self) -> Iterator[Change]:
        while not self._stopped.is_set():
            yield from self.poll()
            self.rest()

    def rest(self) -> None:
        """Wait until the files are to be looked at again."""
        self._stopped.wait(EVERY)

    @property
    def files(self) -> int:
        """How many files are followed."""
        return sum(not seen.refused for seen in self._files.values())

    def poll(self) -> Iterator[Change]:
        """Look at all files once: what came in from those that changed."""
        began = time.monotonic()
        if began - self._scanned >= SCAN_EVERY:
            self._scan()
            # A large tree is looked through less often: it must not take all the time there is.
            self._scanned = began + 9 * (time.monotonic() - began)
        for path, seen in list(self._files.items()):
            change = self._look(path, seen)
            if change is not None:
                yield change

    def _scan(self) -> None:
        for path in self._paths:
            for candidate in candidates_of(path):
                if candidate.why is None:
                    self._files.setdefault(candidate.path, _Seen())

    def _look(self, path: str, seen: _Seen) -> Change | None:
        try:
            facts = os.stat(path)
        except OSError:
            return None
        state = (*_state(facts), *_aside(f"{path}-wal"))
        now = time.monotonic()
        if state != seen.state:
            seen.since = now
        elif seen.refused or not self._unread(path, facts.st_size):
            return None
        seen.state = state
        known = path in self._ways
        try:
            change = self._take(path, facts, settled=now - seen.since >= SETTLED)
            if known and path not in self._ways:
                seen.state = None  # what came in was the last of a file that is gone
            return change
        except CallerError as refusal:
            first, seen.refused = not seen.refused, True
            named = path in self._paths
            return Change(path, error=refusal) if first and named else None
        except EfError as fault:
            self._drop(path)
            seen.state = None  # again at the next look
            return Change(path, error=fault)
        except FileNotFoundError:  # it went away while it was looked at
            self._drop(path)
            seen.state = None
            return None
        except OSError as fault:
            self._drop(path)
            why = fault.strerror or type(fault).__name__
            remedy = "Check the path and its rights."
            return Change(path, error=InputRefused(where=path, why=why, remedy=remedy))

    def _unread(self, path: str, size: int) -> bool:
        """Whether a file that did not change has a last line that waits."""
        way = self._ways.get(path)
        return way is not None and way.read.length < size

    def _take(self, path: str, facts: os.stat_result, *, settled: bool) -> Change | None:
        way = self._ways.get(path)
        if way is not None:
            done = self._grown(path, way, facts, settled=settled)
            if done is not None:
                return _change(path, done)
            if self._ways.get(path) is way:
                return None  # what there is waits for its end
        done = self._whole(path, facts)
        return _change(path, done)

    # A file that is known: what was added.

    def _grown(
        self, path: str, way: _Way, facts: os.stat_result, *, settled: bool
    ) -> ImportResult | None:
        """What was added; None where nothing can be taken now, or (the way is dropped) not in this way."""
        begin, size, file = way.read.length, facts.st_size, way.file
        gone = way.inode != (facts.st_dev, facts.st_ino)
        if gone:
            size, settled = os.fstat(file.fileno()).st_size, True
        # One that changed and did not grow was written over: it is looked at as a whole.
        if size < begin or not way.read.stand(file, all_of_them=size == begin and not gone):
            self._drop(path)
            return None
        file.seek(begin)
        added = file.read(size - begin)
        if not settled or (gone and way.redaction is not None):
            added = added[: added.rfind(b"\n") + 1]
        if not added:
            if gone:
                self._drop(path)
            return None
        intake, clean = way.intake, added
        if way.redaction is not None:
            if not is_whole(added.rpartition(b"\n")[2]):
                return None
            clean = way.redaction.lines(added)
            intake.remarks += way.redaction.remarks(intake.length)
        intake.result = ImportResult(
            intake.result.source, path, intake.result.format, relation="grown"
        )
        try:
            intake.feed([clean], intake.length + len(clean))
        except TipConflict:
            self._drop(path)
            return None
        except BaseException:
            self._drop(path)
            raise
        way.read.add(added)
        self._ways.move_to_end(path)
        if gone:
            self._drop(path)
        return intake.result

    def _drop(self, path: str) -> None:
        """A file's way in is of no use any more."""
        way = self._ways.pop(path, None)
        if way is not None:
            way.file.close()

    # A file that is not: all of it.

    def _whole(self, path: str, facts: os.stat_result) -> ImportResult:
        redaction = redaction_of(self._redactor, path)
        content = open_content(Path(path), redaction)
        try:
            form = found_format(content, self._form)
            if form.form != "lines" or content.remarks or _old(facts):
                return self._import(path)
            content.path = os.path.abspath(path)
            return self._begun(path, content, form, facts)
        finally:
            content.close()

    def _import(self, path: str) -> ImportResult:
        return import_path(self._log, path, form=self._form, redactor=self._redactor)

    def _begun(
        self, path: str, content: Content, form: Format, facts: os.stat_result
    ) -> ImportResult:
        """Import a file of lines, and keep its way in open."""
        for _ in range(TRIES):
            catalogue = SourceCatalogue(self._log, cached=True)
            match = catalogue.match(content)
            if match.relation == "prefix":
                return self._import(path)
            intake = intake_of(
                self._log, catalogue, content, form, match.source, match.digest, None
            )
            if match.relation == "same":
                intake.result.relation = "same"
            try:
                intake.feed(content.blocks(), content.size)
            except TipConflict:
                continue
            self._keep(path, content, intake, facts)
            return intake.result
        raise Busy(path=self._log.path, why="other writers kept adding to the same session")

    def _keep(self, path: str, content: Content, intake: Intake, facts: os.stat_result) -> None:
        """Keep a file's way in; where it was redacted, what is read of it is not what is stored."""
        length, redaction = content.size, content.redaction
        if redaction is not None:
            if _state(os.stat(path)) != _state(facts):
                return  # how much of it was read is not known: the next look takes it as a whole
            length = facts.st_size - redaction.withheld
            redaction.withheld = 0
        read, whole = Blocks(), blake3()
        with open(path, "rb") as file:
            while read.length < length and (data := file.read(min(BLOCK, length - read.length))):
                read.add(data)
                whole.update(data)
        if redaction is None and whole.digest() != intake.digest:
            return  # it was written over meanwhile: the next look takes it as a whole
        kept: IO[bytes] = open(path, "rb", buffering=0)  # noqa: SIM115  (_drop closes it)
        held = os.fstat(kept.fileno())
        if (held.st_dev, held.st_ino) != (facts.st_dev, facts.st_ino):
            kept.close()
            return
        self._drop(path)
        self._ways[path] = _Way(intake, (facts.st_dev, facts.st_ino), kept, read, redaction)
        while len(self._ways) > KEPT:
            self._drop(next(iter(self._ways)))


def _state(facts: os.stat_result) -> tuple[int, ...]:
    return facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns


def _aside(path: str) -> tuple[int, ...]:
    """The state of a file beside (a database's newest writes are there), where there is one."""
    try:
        return _state(os.stat(path))
    except OSError:
        return ()


def _old(facts: os.stat_result) -> bool:
    """Whether a file has not changed for so long that it is not read before it does."""
    return time.time() - facts.st_mtime > RECENT  # noqa: TID251


def _change(path: str, done: ImportResult) -> Change | None:
    new = sum(done.new_events.values())
    if not new and done.relation in ("same", "prefix"):
        return None
    return Change(path, done.source, done.format, done.relation, tuple(done.sessions), new)
