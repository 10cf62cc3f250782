"""A second store that receives the history of another one, event by event.

Events are copied by their content: stream, key, times, channel, origin, facts and body. What binds a record to its
store is made anew: salts, and so digests. References by digest (the sources of an anchor, the parent of a session) are
therefore resolved again by stream and key, which is what they mean; nothing that is derived may depend on the digests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from ..events import AnchorDeclared, Event, SessionOpened
from ..log import Draft, Record
from ..log.base import Assigned, LateEvent
from ..log.items import event_of
from ..log.lmdb_log import LmdbLog
from ..session.store import Store


class Replica:
    """A new store at `path` that can be brought to any prefix of the streams of `original`. A context manager."""

    def __init__(self, original: LmdbLog, path: Path) -> None:
        self._original = original
        self._clock = original.at(0).header.recorded_at
        self.log = LmdbLog.open(path, now=lambda: self._clock)
        self.store = Store(self.log)

    def __enter__(self) -> Replica:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    def receive(self, stream: str, upto: int | None = None) -> None:
        """Copy the stream's events behind those that are here, up to seq `upto`."""
        after = self.log.tip(stream).seq
        records = self._original.read(stream, after=after, upto=upto)
        for moment, batch in groupby(records, key=lambda r: r.header.recorded_at):
            self._clock = moment
            for some in _bundles(batch):
                self.log.append([self._draft(record) for record in some])

    def _draft(self, record: Record) -> Draft:
        h = record.header
        return Draft(
            h.stream,
            h.key,
            self._resolved(event_of(self._original, record)),
            h.channel,
            occurred_at=h.occurred_at,
            basis=h.basis,
            origin=h.origin,
            cause=h.cause,
            group=h.group,
            item=h.item,
            reader=h.reader,
            place=h.place,
        )

    def _resolved(self, event: Event) -> Event | LateEvent:
        if isinstance(event, AnchorDeclared) and event.anchor.sources:
            return _cites_again(event)
        if isinstance(event, SessionOpened) and event.parent_stream and event.parent_seq:
            parent = self._original.get(event.parent_stream, event.parent_seq).header
            return _continues_again(event, (parent.stream, parent.key))
        return event


def _bundles(records: Iterable[Record], most: int = 200) -> Iterator[list[Record]]:
    bundle: list[Record] = []
    for record in records:
        bundle.append(record)
        if len(bundle) == most:
            yield bundle
            bundle = []
    if bundle:
        yield bundle


def _cites_again(event: AnchorDeclared) -> LateEvent:
    def made(assigned: Assigned) -> Event:
        sources = tuple(
            replace(ref, digest=assigned[ref.stream, ref.item_key].digest)
            for ref in event.anchor.sources
        )
        return AnchorDeclared(replace(event.anchor, sources=sources))

    return made


def _continues_again(event: SessionOpened, parent: tuple[str, str]) -> LateEvent:
    return lambda assigned: replace(event, parent_digest=assigned[parent].digest)
