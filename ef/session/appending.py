"""The append side of a session: from a message to the batch of its item, what it closes and what it grounds."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ..codec import kinds
from ..errors import InputRefused, KeyConflict, NotProjectable
from ..events import (
    Basis,
    CallClosed,
    Channel,
    Group,
    Header,
    ItemAppended,
    ItemReplaced,
    PartKind,
    Reading,
    Recorded,
    Redacted,
    SessionOpened,
)
from ..importers.names import OPEN_KEY, OWN, facts_of
from ..log import Appended, Draft, Record, Tip
from ..log.ahead import Ahead
from ..log.base import Prepared
from ..log.committer import Request
from ..log.items import read_as
from ..log.storelog import StoreLog
from ..meter import METER, estimate
from ..projections.watched import ITEMS, Watched
from ..readers import anthropic
from ..readers.claude_code import spoken
from ..readers.jsonvalues import parse
from ..reducers.observers import Observers
from ..reducers.surface import REDUCER as SURFACE
from . import snapshots
from .borders import checked_key, message_bytes
from .ingest import anchor_drafts
from .projected import Projected
from .snapshots import Snapshots

if TYPE_CHECKING:
    from ..importers.redaction import Redactor

_REPLACED = ItemReplaced.__name__


@dataclass(slots=True)
class _Wanted:
    """A message that is to be appended, read and checked; and what was made of it on which state of the stream."""

    name: str
    data: bytes
    reading: Reading
    redacted: Redacted | None = None
    made_on: tuple[Tip, int] | None = None
    drafts: list[Draft] = field(default_factory=list[Draft])
    place: int | None = None
    known: int = 0


class Appender:
    """Appends messages to one stream.

    It keeps the surface and the observers as the newest append that it prepared will leave them: what they say of
    appends that are not durable yet is `_ahead`, and holds while the log prepares those same events. Only the log's
    writer touches them, one request at a time.
    """

    def __init__(
        self,
        log: StoreLog,
        stream: str,
        random_key: Callable[[], str],
        redactor: Redactor | None = None,
    ) -> None:
        self._log, self._stream, self._random_key = log, stream, random_key
        self._redactor = redactor
        self._restart()

    def _restart(self) -> None:
        self._pid = os.getpid()
        self._surface, self._drawn = SURFACE.initial(), 0
        self._observers, self._observed = Observers(), 0
        self._durable = 0
        self._ahead: list[tuple[int, str]] = []
        self._view = 0
        self._matched = 0

    def append(
        self, message: Mapping[str, Any], *, channel: Channel | None, key: str | None
    ) -> int:
        """See Session.append."""
        return self._log.committer.run(self._request(message, channel, key))

    def append_nowait(
        self, message: Mapping[str, Any], *, channel: Channel | None, key: str | None
    ) -> Future[int]:
        """See Session.append_nowait."""
        return self._log.committer.submit(self._request(message, channel, key))

    async def aappend(
        self, message: Mapping[str, Any], *, channel: Channel | None, key: str | None
    ) -> int:
        """See Session.aappend."""
        return await self._log.committer.awaited(self._request(message, channel, key))

    def _request(
        self, message: Mapping[str, Any], channel: Channel | None, key: str | None
    ) -> Request[int]:
        data, redacted = message_bytes(message), None
        if self._redactor is not None:
            from .secrets import without_secrets

            data, redacted = without_secrets(data, self._redactor)
        name = checked_key(key) or self._random_key()
        reading = anthropic.read(data, channel=channel)
        if not reading.parts or reading.role == "opaque":
            raise InputRefused(
                where="message",
                why="it has no content that can be read",
                remedy='Give {"role": "user" or "assistant", "content": text or a list of blocks}.',
            )
        wanted = _Wanted(name, data, reading, redacted)

        def settle(appended: list[Appended]) -> int:
            if wanted.place is None:
                return wanted.known
            self._confirmed(request.new)
            return appended[wanted.place].seq

        request = self._log.request(
            lambda view: self._make(view, wanted), settle, size=2 * len(data) + 1024
        )
        return request

    # In the log's writer.

    def _make(self, view: Ahead, wanted: _Wanted) -> list[Draft]:
        """The drafts of a message on the stream as it is when its turn comes; none when its key is known."""
        known = view.record_of(self._stream, wanted.name)
        if known is not None:
            _same_or_conflict(*known, wanted)
            wanted.place, wanted.known = None, known[0].header.seq
            return []
        tip = view.tip(self._stream)
        on = (view.committed(self._stream), tip.seq)
        if (
            wanted.made_on == on and not view.strayed
        ):  # another process wrote to another stream: the same again
            return wanted.drafts
        try:
            self._catch_up(view)
            wanted.drafts, wanted.place = self._drafts(wanted, new=not tip.seq)
        except BaseException:
            self._restart()
            raise
        wanted.made_on = on
        self._observed = tip.seq + len(wanted.drafts)
        self._ahead += [(tip.seq + n, d.key) for n, d in enumerate(wanted.drafts, 1)]
        return wanted.drafts

    def _drafts(self, wanted: _Wanted, *, new: bool) -> tuple[list[Draft], int]:
        """(drafts, place of the item among them). Surface and observers are taken further."""
        name = wanted.name
        reading = spoken(wanted.reading, self._observers.call)
        group = None
        if reading.role == "assistant":
            group = Group(reading.group) if reading.group else Group("i:" + name, inferred=True)
        item = Draft(
            self._stream,
            name,
            ItemAppended(wanted.data),
            Channel.OPERATOR,
            basis=Basis.EQUAL,
            group=group,
            item=facts_of(reading, METER, estimate(reading)),
            reader=(anthropic.NAME, anthropic.VERSION),
        )
        drafts = [*([self.opening()] if new else []), *self._closers(group, name), item]
        place = len(drafts) - 1
        if wanted.redacted is not None:
            drafts.append(self._note(wanted.redacted, name))
        return drafts + anchor_drafts(item, self._observers.item(reading)), place

    def _note(self, event: Redacted, item: str) -> Draft:
        key, channel = f"{OWN}redacted/{item}", Channel.OPERATOR
        return Draft(self._stream, key, event, channel, basis=Basis.EQUAL, cause_key=item)

    def opening(self) -> Draft:
        """The draft that opens the session."""
        event = SessionOpened(self._log.store_id, "root", anthropic.NAME)
        return Draft(self._stream, OPEN_KEY, event, Channel.OPERATOR, basis=Basis.EQUAL)

    def _closers(self, group: Group | None, key: str) -> list[Draft]:
        """A new model response begins, with the user's side between: calls that still wait get no result any more."""
        nodes = self._surface.nodes
        newest = next(reversed(nodes.values()), None)
        if group is None or newest is None or newest.facts.role == "assistant":
            return []
        before = next((n.group for n in reversed(nodes.values()) if n.group is not None), None)
        if group.id == before:
            return []
        waiting = sorted((p, call) for call, places in self._surface.open.items() for p in places)
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

    def _catch_up(self, view: Ahead) -> None:
        """Take surface and observers to the tip of the view: what is committed, then what the group has prepared."""
        committed, fresh = view.committed(self._stream).seq, view.fresh(self._stream)
        if self._view != view.number:
            kept = self._pid == os.getpid() and not self._ahead
        else:
            kept = self._holds(fresh)
        if not kept:
            self._restart()
        self._view = view.number
        if committed - min(self._drawn, self._observed) > snapshots.EVERY:
            self._begin_near(committed)
        after = min(self._drawn, self._observed)
        if after < committed:
            keeper = Snapshots(self._log, self._stream).keeper()
            for record in self._log.read(self._stream, after=after, upto=committed):
                self._take(record.header, record.digest, partial(self._log.body, record))
                self._keep(keeper, record)
        for made in fresh[self._matched :]:
            self._take(made.header, made.digest, partial(bytes, made.plain))
        self._ahead += [(made.header.seq, made.header.key) for made in fresh[len(self._ahead) :]]
        self._durable, self._matched = committed, len(fresh)

    def _begin_near(self, committed: int) -> None:
        """Begin at the newest snapshots, where those are nearer than what is at hand."""
        try:
            working = Projected(self._log, self._stream).fresh(committed, (SURFACE,))
        except (
            NotProjectable
        ):  # what the surface says of a kind that it does not know is not needed here
            pass
        else:
            self._surface, self._drawn = working.surface, working.seq
        watched = Snapshots(self._log, self._stream).watched(committed)
        if watched.seq > self._observed:
            self._observers, self._observed = watched.observers, watched.seq

    def _keep(self, keeper: snapshots.Keeper, record: Record) -> None:
        """Keep what the observers know, where that falls due at a record that was taken."""
        seq = record.header.seq
        if seq % snapshots.EVERY or seq != self._observed:
            return
        track = snapshots.watched_track(self._stream)
        if keeper.due(track, seq):
            watched = Watched(seq, record.digest, self._observers)
            keeper.put(track, seq, record.digest, watched.dump)

    def _holds(self, fresh: Sequence[Prepared]) -> bool:
        """Whether what was taken in ahead is what the group prepares, in the same place."""
        expected = self._ahead[self._matched :]
        found = [(made.header.seq, made.header.key) for made in fresh[self._matched :]]
        return expected == found[: len(expected)]

    def _take(self, header: Header, digest: bytes, body: Callable[[], bytes]) -> None:
        """The next record of the stream, for whichever of the two has not had it."""
        seq, item = header.seq, header.kind in ITEMS
        if seq > self._observed:
            self._observed = seq
            if item:
                self._observers.item(read_as(header, body()), replaces=header.kind == _REPLACED)
        if seq > self._drawn:
            self._drawn = seq
            if item or header.kind == CallClosed.__name__:
                where = f"stream {header.stream}, seq {seq}"
                plain = b"" if item else body()
                event = kinds.decode_body(header.kind, header.version, plain, where=where)
                self._surface = SURFACE.evolve(self._surface, Recorded(header, digest, event))

    def _confirmed(self, new: Sequence[Prepared]) -> None:
        """These are durable."""
        for made in new:
            if made.header.seq == self._drawn + 1:
                self._take(made.header, made.digest, partial(bytes, made.plain))
        self._durable = max(self._durable, new[-1].header.seq)
        done = bisect_right(self._ahead, self._durable, key=lambda ahead: ahead[0])
        self._view, self._matched = 0, 0
        del self._ahead[:done]


def _same_or_conflict(record: Record, body: bytes, wanted: _Wanted) -> None:
    """A retry says the same again: the same JSON, spoken by the same."""
    facts = record.header.item
    differs = "kind"
    if facts is not None:
        pairs = zip(wanted.reading.parts, facts.parts, strict=False)
        texts = [(p, f) for p, f in pairs if p.kind is not PartKind.TOOL_RESULT]
        differs = "" if all(p.channel is f.channel for p, f in texts) else "channel"
        if parse(body) != parse(wanted.data):
            differs = "body"
    if differs:
        h = record.header
        raise KeyConflict(stream=h.stream, key=h.key, seq=h.seq, difference=differs)
