"""Verify a store: every record, both chains, then what the records say of one another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..errors import DamageError, EfError, NotProjectable
from ..events import AnchorDeclared, Recorded
from ..importers.names import SESSION_PREFIX, session_stream
from ..log import source_stream
from ..log.check import Checked, Checker, Problem
from ..log.items import Cited
from ..log.items import recorded as recorded_events
from ..log.storelog import StoreLog
from ..projections.working import Working
from .along import Along, Refused, Well, reference_matches
from .calm import calm
from .rebuilding import check_snapshots
from .sources import PREFIX, SourceCatalogue

VERDICT_EXIT = {"sound": 0, "damaged": 1, "unreadable": 2, "rolled-back": 3}


@dataclass(slots=True)
class Verified:
    """The outcome: verdict (sound, damaged, unreadable, rolled-back), events counted, tip, problems, and remarks.

    `notes` are no damage: kinds that this version does not know, events that reducers refused, modes that let others
    in, a tip file that is not there, databases that are not ours.
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
    log: StoreLog,
    *,
    quick: bool = False,
    session: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Verified:
    """Check the whole store; with `session`, the references and the projection of that session only."""
    along = Along(log, session_stream(session) if session else None)
    with calm():
        check = _checker(log)
        checked = check(log, quick=quick, progress=progress, seen=along.see).run()
    out = Verified("sound", checked.events, checked.position, checked.digest, checked.problems)
    out.notes += [f"kind {name} is not known to this version" for name in sorted(checked.unknown)]
    out.notes += checked.notes
    streams = [s for s in checked.tips if s.startswith(SESSION_PREFIX)]
    out.sessions, out.sources = len(streams), sum(s.startswith(PREFIX) for s in checked.tips)
    if not quick:
        wanted = [session_stream(session)] if session else streams
        known = {} if checked.problems else _known(along, checked, wanted)
        for stream in wanted:
            if stream in known:
                _well(stream, known[stream], out)
            else:
                _session(log, stream, out)
        out.problems += check_snapshots(log, [stream for stream in wanted if stream not in known])
        if not session:
            _origins(checked, out)
            _sources(log, checked, out)
    if out.problems:
        rolled = all(p.verdict == "rolled-back" for p in out.problems)
        out.verdict = "rolled-back" if rolled else "damaged"
    return out


def _checker(log: StoreLog) -> Callable[..., Checker]:
    """What checks the records of a log: of its files, where it has any."""
    if log.on_disk:
        return Checker
    from ..log.rowcheck import RowChecker

    return RowChecker


def _known(along: Along, checked: Checked, wanted: list[str]) -> dict[str, Well]:
    """The sessions that were looked at along with their records, and with which all is well."""
    found: dict[str, Well] = {}
    for stream in wanted:
        tip = checked.tips.get(stream)
        well = along.well(stream, tip.seq) if tip else None
        if well is not None:
            found[stream] = well
    return found


def _well(stream: str, well: Well, out: Verified) -> None:
    out.anchors += well.anchors
    _refusals(stream, well.refused, out)


def _refusals(stream: str, refused: Refused, out: Verified) -> None:
    out.notes += [
        f"stream {stream}, seq {seq}: reducer {name} refused: {why}" for seq, name, why in refused
    ]


def _session(log: StoreLog, stream: str, out: Verified) -> None:
    """The projection can be built, and every reference cites what is there."""
    where = f"stream {stream}"
    try:
        working = Working(stream)
        for recorded in recorded_events(log, stream):
            working.apply((recorded,))
            if isinstance(recorded.event, AnchorDeclared):
                out.anchors += 1
                _references(log, recorded, out)
        _refusals(stream, working.refused, out)
    except NotProjectable as fault:
        out.notes.append(str(fault))
    except EfError as fault:
        out.problems.append(Problem(str(fault), where))


def _references(log: StoreLog, recorded: Recorded, out: Verified) -> None:
    assert isinstance(recorded.event, AnchorDeclared)
    h = recorded.header
    for ref in recorded.event.anchor.sources:
        where = f"stream {h.stream}, seq {h.seq}"
        try:
            if not reference_matches(Cited(log), ref):
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


def _origins(checked: Checked, out: Verified) -> None:
    """Records may come from a source that was never imported here; their bodies are their own then."""
    for source, h in checked.origins.items():
        if source_stream(source) not in checked.tips:
            out.notes.append(
                f"stream {h.stream}, seq {h.seq}: it comes from source {source}, which is not in the store"
            )


def _sources(log: StoreLog, checked: Checked, out: Verified) -> None:
    """Every source can be exported as it was imported, and the sessions that it names are in the store."""
    catalogue = SourceCatalogue(log)
    try:
        sources, damaged = catalogue.surveyed()
    except DamageError as fault:
        out.problems.append(Problem(str(fault), "the sources"))
        return
    out.problems += [Problem(str(fault), f"source {name}") for name, fault in damaged.items()]
    known = {source_stream(name) for name in (*damaged, *(source.id for source in sources))}
    for stream in checked.tips:
        if stream.startswith(PREFIX) and stream not in known:
            out.problems.append(Problem("its first event names another source", f"stream {stream}"))
    for source in sources:
        for name in source.sessions:
            if session_stream(name) not in checked.tips:
                what = f"source {source.id} names session {name}, which is not in the store"
                out.problems.append(Problem(what, f"source {source.id}"))
        try:
            for length, _ in catalogue.lengths(source.id):
                catalogue.original(source, length=length)
        except DamageError as fault:
            out.problems.append(Problem(str(fault), f"source {source.id}"))
