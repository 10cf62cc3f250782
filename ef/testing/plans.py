"""Plans of writers: numbered steps that a child does and acknowledges, and what a store must hold of each.

`Append(early=True)` is the positive control: it acknowledges, then appends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from ..importers.names import session_stream
from ..log import source_stream
from ..session import snapshots
from ..session.sources import SourceCatalogue
from ..session.store import Store
from .transcripts import transcript

IN_FLIGHT = 6
SNAPSHOT_EVERY = 3


class Plan(Protocol):
    """Numbered steps that a child does and acknowledges, and what a store must hold of them."""

    @property
    def steps(self) -> int:
        """How many steps there are."""
        ...

    def words(self) -> list[str]:
        """The plan as arguments of the child."""
        ...

    def run(self, store: Store) -> Iterator[str]:
        """Do the steps; yields the acknowledgement of each."""
        ...

    def kept(self, store: Store, step: int) -> str | None:
        """The acknowledgement that a step deserves by what the store holds; None when nothing of it is there."""
        ...

    def surplus(self, store: Store) -> int:
        """How many events of the plan's streams belong to no step, or are there twice."""
        ...


@dataclass(frozen=True, slots=True)
class Append:
    """Messages `first` to `first + steps` of a session, each with its key. `early`: acknowledge, then append."""

    session: str
    first: int
    steps: int
    early: bool = False

    def words(self) -> list[str]:
        """See Plan.words."""
        return ["append", self.session, str(self.first), str(self.steps), str(int(self.early))]

    def _text(self, step: int) -> str:
        n = self.first + step
        return f"message {n} of {self.session}: " + "word " * (n * 37 % 400)

    def _key(self, step: int) -> str:
        return f"k{self.first + step}"

    def run(self, store: Store) -> Iterator[str]:
        """See Plan.run."""
        session = store.session(self.session)
        for step in range(self.steps):
            if self.early:
                yield f"{session.seq + (1 if session.seq else 2)}"
            seq = session.append({"role": "user", "content": self._text(step)}, key=self._key(step))
            if not self.early:
                yield f"{seq}"

    def kept(self, store: Store, step: int) -> str | None:
        """See Plan.kept."""
        stream = session_stream(self.session)
        seq = store.log.find(stream, self._key(step))
        if seq is None:
            return None
        body = store.log.body(store.log.get(stream, seq)).decode()
        return f"{seq}" if self._text(step) in body else f"{seq} with other content"

    def surplus(self, store: Store) -> int:
        """See Plan.surplus."""
        wanted = {"ef:open", *(f"k{n}" for n in range(self.first + self.steps))}
        keys = [r.header.key for r in store.log.read(session_stream(self.session))]
        return len(keys) - len(wanted.intersection(keys))


@dataclass(frozen=True, slots=True)
class Burst(Append):
    """The same messages, appended without waiting, `IN_FLIGHT` at a time; each is acknowledged when it is durable."""

    def words(self) -> list[str]:
        """See Plan.words."""
        return ["burst", self.session, str(self.first), str(self.steps), "0"]

    def run(self, store: Store) -> Iterator[str]:
        """See Plan.run."""
        session = store.session(self.session)
        waiting: deque[Future[int]] = deque()
        for step in range(self.steps):
            message = {"role": "user", "content": self._text(step)}
            waiting.append(session.append_nowait(message, key=self._key(step)))
            if len(waiting) == IN_FLIGHT:
                yield f"{waiting.popleft().result()}"
        while waiting:
            yield f"{waiting.popleft().result()}"


@dataclass(frozen=True, slots=True)
class Looked(Append):
    """The same messages, and after each a look at the session from its first event, which keeps snapshots."""

    def words(self) -> list[str]:
        """See Plan.words."""
        return ["looked", self.session, str(self.first), str(self.steps), "0"]

    def run(self, store: Store) -> Iterator[str]:
        """See Plan.run. Snapshots fall due every SNAPSHOT_EVERY events meanwhile."""
        before = snapshots.EVERY
        snapshots.EVERY = SNAPSHOT_EVERY
        try:
            for what in Append.run(self, store):
                store.session(self.session).working()
                yield what
        finally:
            snapshots.EVERY = before


@dataclass(frozen=True, slots=True)
class Import:
    """Snapshots of one growing made-up transcript, `turns` turns longer each; the file lies beside the store."""

    session: str
    first: int
    steps: int
    turns: int = 60

    def words(self) -> list[str]:
        """See Plan.words."""
        return ["import", self.session, str(self.first), str(self.steps), str(self.turns)]

    def data(self, step: int) -> bytes:
        """The snapshot of a step."""
        rows = _longest(self.turns * (self.first + self.steps), self.session)
        return b"".join(rows[: 4 * self.turns * (self.first + step + 1)])

    def run(self, store: Store) -> Iterator[str]:
        """See Plan.run."""
        file = store.path.with_name(f"{self.session}.jsonl")
        for step in range(self.steps):
            file.write_bytes(self.data(step))
            done = store.import_file(file)
            yield f"{done.source}"

    def kept(self, store: Store, step: int) -> str | None:
        """See Plan.kept. Whole: the bytes can be exported, and the session holds an item for every line."""
        data = self.data(step)
        for source in store.sources():
            if len(data) in dict(SourceCatalogue(store.log).lengths(source.id)):
                if store.export_original(source.id, length=len(data)) != data:
                    return f"{source.id} with other bytes"
                items = self._items(store)
                return source.id if items >= data.count(b"\n") else f"{source.id}, {items} items"
        return None

    def _items(self, store: Store) -> int:
        records = store.log.read(session_stream(self.session))
        return sum(r.header.item is not None for r in records)

    def surplus(self, store: Store) -> int:
        """See Plan.surplus. Bytes and items behind the longest complete import, and items that are there twice."""
        found = 0
        for source in store.sources():
            lengths = [n for n, _ in SourceCatalogue(store.log).lengths(source.id)]
            spans = [
                r.header.origin for r in store.log.read(source_stream(source.id)) if r.header.origin
            ]
            found += sum(span.end > max(lengths) for span in spans)
            lines = store.export_original(source.id).count(b"\n")
            found += self._items(store) - lines
        return found


@cache
def _longest(turns: int, session: str) -> list[bytes]:
    return transcript(turns, session=session).splitlines(keepends=True)


def plan_of(words: list[str]) -> Plan:
    """The plan that these words name."""
    kind, session, first, steps, last = words
    if kind == "import":
        return Import(session, int(first), int(steps), int(last))
    if kind == "looked":
        return Looked(session, int(first), int(steps))
    if kind == "burst":
        return Burst(session, int(first), int(steps))
    return Append(session, int(first), int(steps), bool(int(last)))
