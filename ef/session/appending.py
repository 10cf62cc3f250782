"""The append side of a session: from a message to the batch of its item, what it closes and what it grounds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import InputRefused, KeyConflict, TipConflict
from ..events import (
    Basis,
    CallClosed,
    Channel,
    Group,
    ItemAppended,
    ItemReplaced,
    PartKind,
    Reading,
    SessionOpened,
)
from ..importers.names import OPEN_KEY, OWN, facts_of
from ..log import Appended, Draft, Tip
from ..log.items import reading_of, recorded
from ..log.lmdb_log import LmdbLog
from ..meter import METER, estimate
from ..projections.working import Working
from ..readers import anthropic
from ..readers.claude_code import spoken
from ..readers.jsonvalues import parse
from ..reducers.observers import Observers
from .borders import checked_key, message_bytes
from .ingest import anchor_drafts

APPEND_TRIES = 3
_Made = tuple[list[Draft], dict[str, Tip], Callable[[list[Appended]], int]]


class Appender:
    """Appends messages to one stream. It keeps a projection and observers of its own, as of the newest append."""

    def __init__(self, log: LmdbLog, stream: str, random_key: Callable[[], str]) -> None:
        self._log, self._stream, self._random_key = log, stream, random_key
        self._working = Working(stream)
        self._observers: Observers | None = None
        self._observed = 0
        self._lock = threading.RLock()

    def append(
        self, message: Mapping[str, Any], *, channel: Channel | None, key: str | None
    ) -> int:
        """See Session.append."""
        data = message_bytes(message)
        name = checked_key(key) or self._random_key()
        reading = anthropic.read(data, channel=channel)
        if not reading.parts or reading.role == "opaque":
            raise InputRefused(
                where="message",
                why="it has no content that can be read",
                remedy='Give {"role": "user" or "assistant", "content": text or a list of blocks}.',
            )
        known = self._log.find(self._stream, name)
        if known is not None:
            self._same_or_conflict(known, name, data, reading)
            return known
        with self._lock:
            for _ in range(APPEND_TRIES):
                drafts, expect, done = self._drafts(name, data, reading)
                try:
                    return done(self._log.append(drafts, expect=expect))
                except TipConflict:
                    continue
            return self._append_in_turn(name, data, reading)

    def _append_in_turn(self, name: str, data: bytes, reading: Reading) -> int:
        """Others keep coming first: look and append while the store's write lock is held, so that nobody starves."""
        made: list[_Made] = []

        def make() -> tuple[list[Draft], dict[str, Tip]]:
            made[:] = [self._drafts(name, data, reading)]
            return made[0][0], made[0][1]

        appended = self._log.append_in_turn(make)
        return made[0][2](appended)

    def _drafts(self, name: str, data: bytes, reading: Reading) -> _Made:
        """Drafts of an item on the session as it is now, the tip that they rest on, and what to do when they are in."""
        tip = self._log.tip(self._stream)
        working = self._caught_up()
        observers = self._caught_up_observers().copy()
        reading = spoken(reading, observers.call)
        group = None
        if reading.role == "assistant":
            group = Group(reading.group) if reading.group else Group("i:" + name, inferred=True)
        item = Draft(
            self._stream,
            name,
            ItemAppended(data),
            Channel.OPERATOR,
            basis=Basis.EQUAL,
            group=group,
            item=facts_of(reading, METER, estimate(reading)),
            reader=(anthropic.NAME, anthropic.VERSION),
        )
        drafts = [*self.opening(), *self._closers(working, group, name), item]
        place = len(drafts) - 1
        drafts += anchor_drafts(item, observers.item(reading))

        def done(appended: list[Appended]) -> int:
            self._observers, self._observed = observers, appended[-1].seq
            return appended[place].seq

        return drafts, {self._stream: tip}, done

    def _same_or_conflict(self, seq: int, name: str, data: bytes, reading: Reading) -> None:
        """A retry says the same again: the same JSON, spoken by the same."""
        record = self._log.get(self._stream, seq)
        facts = record.header.item
        differs = "kind"
        if facts is not None:
            pairs = zip(reading.parts, facts.parts, strict=False)
            texts = [(p, f) for p, f in pairs if p.kind is not PartKind.TOOL_RESULT]
            differs = "" if all(p.channel is f.channel for p, f in texts) else "channel"
            if parse(self._log.body(record)) != parse(data):
                differs = "body"
        if differs:
            raise KeyConflict(stream=self._stream, key=name, seq=seq, difference=differs)

    def opening(self) -> list[Draft]:
        """The draft that opens the session, when nothing did yet."""
        if self._log.tip(self._stream).seq:
            return []
        event = SessionOpened(self._log.store_id, "root", anthropic.NAME)
        return [Draft(self._stream, OPEN_KEY, event, Channel.OPERATOR, basis=Basis.EQUAL)]

    def _closers(self, working: Working, group: Group | None, key: str) -> list[Draft]:
        """A new model response begins, with the user's side between: calls that still wait get no result any more."""
        nodes = working.surface.nodes
        newest = next(reversed(nodes.values()), None)
        if group is None or newest is None or newest.facts.role == "assistant":
            return []
        before = next((n.group for n in reversed(nodes.values()) if n.group is not None), None)
        if group.id == before:
            return []
        waiting = sorted((p, call) for call, places in working.surface.open.items() for p in places)
        return [
            Draft(
                self._stream,
                f"{OWN}close/{key}/{n}",
                CallClosed(call, seq, part, "interrupted"),
                Channel.OPERATOR,
                basis=Basis.EQUAL,
            )
            for n, ((seq, part), call) in enumerate(waiting)
        ]

    def _caught_up(self) -> Working:
        """The projection of now. Only under the lock: it is taken further in place."""
        self._working.apply(recorded(self._log, self._stream, after=self._working.seq))
        return self._working

    def _caught_up_observers(self) -> Observers:
        if self._observers is None:
            self._observers, self._observed = Observers(), 0
        for record in self._log.read(self._stream, after=self._observed):
            kind = record.header.kind
            if kind in (ItemAppended.__name__, ItemReplaced.__name__):
                replaces = kind == ItemReplaced.__name__
                self._observers.item(reading_of(self._log, record), replaces=replaces)
            self._observed = record.header.seq
        return self._observers
