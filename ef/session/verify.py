"""Verify a store: every record, both chains, then what the records say of one another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..errors import DamageError, EfError, NotProjectable
from ..events import AnchorDeclared, Recorded
from ..importers.names import SESSION_PREFIX, session_stream
from ..log.check import Checker, Problem
from ..log.items import quote_of
from ..log.items import recorded as recorded_events
from ..log.lmdb_log import LmdbLog
from ..projections.working import Working
from .sources import SourceCatalogue

VERDICT_EXIT = {"sound": 0, "damaged": 1, "unreadable": 2, "rolled-back": 3}


@dataclass(slots=True)
class Verified:
    """The outcome: verdict (sound, damaged, unreadable, rolled-back), events counted, tip, problems, and remarks.

    `notes` are no damage: kinds that this version does not know, events that reducers refused.
    """

    verdict: str
    events: int
    position: int
    digest: bytes
    problems: list[Problem] = field(default_factory=list[Problem])
    notes: list[str] = field(default_factory=list[str])
    sessions: int = 0
    sources: int = 0
    anchors: int = 0

    @property
    def ok(self) -> bool:
        """Whether the store is sound."""
        return self.verdict == "sound"

    def to_json(self) -> dict[str, Any]:
        """JSON fields."""
        return {
            "verdict": self.verdict,
            "ok": self.ok,
            "events": self.events,
            "tip": {"position": self.position, "seq": self.position, "digest": self.digest.hex()},
            "sessions": self.sessions,
            "sources": self.sources,
            "anchors": self.anchors,
            "problems": [
                {"what": p.what, "where": p.where, "stream": p.stream, "first_bad_seq": p.seq}
                for p in self.problems
            ],
            "notes": self.notes,
        }


def verify_log(
    log: LmdbLog,
    *,
    quick: bool = False,
    session: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Verified:
    """Check the whole store; with `session`, the references and the projection of that session only."""
    checked = Checker(log, quick=quick, progress=progress).run()
    out = Verified("sound", checked.events, checked.position, checked.digest, checked.problems)
    out.notes += [f"kind {name} is not known to this version" for name in sorted(checked.unknown)]
    streams = [s for s in checked.tips if s.startswith(SESSION_PREFIX)]
    out.sessions, out.sources = len(streams), sum(s.startswith("source/") for s in checked.tips)
    if not quick:
        wanted = [session_stream(session)] if session else streams
        for stream in wanted:
            _session(log, stream, out)
        if not session:
            _sources(log, out)
    if out.problems:
        rolled = all(p.verdict == "rolled-back" for p in out.problems)
        out.verdict = "rolled-back" if rolled else "damaged"
    return out


def _session(log: LmdbLog, stream: str, out: Verified) -> None:
    """The projection can be built, twice with the same bytes; every reference cites what is there."""
    where = f"stream {stream}"
    try:
        events = list(recorded_events(log, stream))
        working = Working(stream).apply(events)
        again = Working(stream)
        for recorded in events:
            again.apply([recorded])
        if working.canonical() != again.canonical():
            out.problems.append(Problem("its projection depends on how events are batched", where))
        out.notes += [
            f"{where}, seq {seq}: reducer {name} refused: {why}"
            for seq, name, why in working.refused
        ]
        for recorded in events:
            if isinstance(recorded.event, AnchorDeclared):
                out.anchors += 1
                _references(log, recorded, out)
    except NotProjectable as fault:
        out.notes.append(str(fault))
    except EfError as fault:
        out.problems.append(Problem(str(fault), where))


def _references(log: LmdbLog, recorded: Recorded, out: Verified) -> None:
    assert isinstance(recorded.event, AnchorDeclared)
    h = recorded.header
    for ref in recorded.event.anchor.sources:
        where = f"stream {h.stream}, seq {h.seq}"
        try:
            quote_of(log, ref)
            cited = log.get(ref.stream, ref.seq).header
            facts = cited.item.parts[ref.part] if cited.item else None
            if facts is None or facts.channel is not ref.channel or cited.key != ref.item_key:
                out.problems.append(
                    Problem(
                        "its reference does not match the record it cites",
                        where,
                        stream=h.stream,
                        seq=h.seq,
                    )
                )
        except EfError as fault:
            out.problems.append(
                Problem(
                    f"a source of its anchor cannot be read: {fault}",
                    where,
                    stream=h.stream,
                    seq=h.seq,
                )
            )


def _sources(log: LmdbLog, out: Verified) -> None:
    catalogue = SourceCatalogue(log)
    sources, damaged = catalogue.surveyed()
    out.problems += [Problem(str(fault), f"source {name}") for name, fault in damaged.items()]
    for source in sources:
        try:
            for length, _ in catalogue.lengths(source.id):
                catalogue.original(source, length=length)
        except DamageError as fault:
            out.problems.append(Problem(str(fault), f"source {source.id}"))
