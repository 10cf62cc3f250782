"""One row of the list of sessions: what a session is, without reading all of it.

The newest row of a long session is kept beside the store, bound to the session's newest record; another moment is
projected from the snapshots before it. A session that is too short for snapshots is read, so that its damage shows.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from types import NoneType
from typing import Any

from ..codec import cbor
from ..errors import DamageError, NotProjectable
from ..events import Channel
from ..importers.names import session_stream
from ..log.items import reading_of
from ..log.projection_store import Track
from ..log.storelog import StoreLog
from ..projections.working import NAMED
from ..reducers.described import REDUCER
from ..reducers.saved import checked, row_types
from .moments import iso, resolve
from .projected import Projected
from .snapshots import EVERY, Snapshots, form_of

VERSION = 1
FIRST_ITEMS, FIRST_EVENTS = 40, 1_000
"""Where the first words of a session are looked for."""


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


_TEXT = (str, NoneType)
_FIELDS = row_types(str, _TEXT, _TEXT, _TEXT, int, int, _TEXT, _TEXT, NoneType)


def info_of(log: StoreLog, name: str, at: str | None, *, recorded: bool) -> SessionInfo:
    """The row of a session as of a time, or now; one that cannot be read has a `problem`."""
    try:
        return _now(log, name) if at is None else _as_of(log, name, at, recorded=recorded)
    except (DamageError, NotProjectable) as fault:
        events = log.tip(session_stream(name)).seq
        return SessionInfo(name, None, None, None, 0, events, None, None, str(fault))


def track_of(stream: str) -> Track:
    """Where the kept row of a session is."""
    return Track(stream, "summary", form_of("summary", VERSION, REDUCER.version))


def _now(log: StoreLog, name: str) -> SessionInfo:
    stream = session_stream(name)
    snapshots, track = Snapshots(log, stream), track_of(stream)
    tip = log.tip(stream)
    if tip.seq < EVERY:
        return _as_of(log, name, tip.seq, recorded=False)
    kept = snapshots.read(track, tip.seq)
    try:
        if kept is not None:
            return SessionInfo(*checked(cbor.decode(kept[1]), _FIELDS))
    except (ValueError, TypeError):
        snapshots.store.take_away(track, tip.seq)
    info = _as_of(log, name, tip.seq, recorded=False)
    if snapshots.store.writable():
        for old in snapshots.store.seqs(track):
            snapshots.store.take_away(track, old)
        snapshots.store.keep(track, tip.seq, tip.digest, cbor.encode(list(asdict(info).values())))
    return info


def _as_of(log: StoreLog, name: str, at: str | int, *, recorded: bool) -> SessionInfo:
    stream = session_stream(name)
    seq = resolve(log, stream, at, recorded=recorded)
    d = Projected(log, stream).fresh(seq, NAMED).described
    title = d.title or _first_words(log, stream, seq)
    return SessionInfo(
        name, title, d.format, d.relation, d.messages, seq, iso(d.first), iso(d.last)
    )


def _first_words(log: StoreLog, stream: str, upto: int) -> str | None:
    """What the user typed first; where nobody typed, what the assistant said or was told first."""
    said: str | None = None
    items = 0
    for record in log.read(stream, upto=min(upto, FIRST_EVENTS)):
        if record.header.kind != "ItemAppended" or record.header.item is None:
            continue
        for part in reading_of(log, record).parts:
            words = " ".join(part.text.split())[:120]
            if words and part.channel is Channel.USER_TYPED:
                return words
            if words and said is None and part.channel is Channel.ASSISTANT:
                said = words
        items += 1
        if items == FIRST_ITEMS:
            break
    return said
