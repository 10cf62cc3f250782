"""What all importers have in common: one file, from its first record to its last, becomes meanings.

A format says what one record means (`record`, or `cut` for a document); reading lines, keys, sessions, calls that get
no result, and what was there before are done here. Pure: what is said of record n depends on records 1..n only, so a
file that grew says the same of its old ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from blake3 import blake3

from ..events import (
    Basis,
    Channel,
    Event,
    Group,
    ItemAppended,
    ItemReplaced,
    Origin,
    Part,
    PartKind,
    Place,
    Reading,
    RouteChanged,
    SessionOpened,
    UsageReported,
)
from ..events.shapes import is_map
from ..log import Draft
from ..log.base import Assigned
from ..meter import METER, estimate
from ..readers.claude_code import name_of, spoken
from ..readers.jsonvalues import DEPTH_REMARKED, has_lone_surrogate, is_deeper, read_line
from ..readers.pieces import kind_of
from .chains import Chain, Known, occurred
from .lines import RawLine
from .meaning import Meaning, Translation
from .names import OPEN_KEY, OWN, facts_of, session_name, session_stream

Prior = Callable[[str], Mapping[str, str]]
"""stream -> (provider id and view -> key of the item that has it): what other sources have put into a session."""
Parent = Callable[[str, str], tuple[int, bytes] | None]
"""(stream, what a sub-agent was asked) -> (seq, digest) of the call in a session of the store that asked it, else of
the session's newest record; None for a session that the store does not know.
"""


ToldBy = Callable[[str], str | None]
"""stream -> the format of the file that began the session, where the store has it."""


@dataclass(frozen=True, slots=True)
class Given:
    """What an import knows before it reads: ids of source and store, the id that the caller wants for the file's first
    session, what is known already, and where the file is (for a name, where nothing in it says one).
    """

    source: str
    store: str
    session: str | None = None
    prior: Prior = field(default=lambda _: {})
    parent: Parent = field(default=lambda _, __: None)
    told_by: ToldBy = field(default=lambda _: None)
    path: str = ""


class Spot:
    """A record where it stands: its bytes, its line (from 1), [start, end) in the source, and what the bytes hold
    (`value`). Its key and its time are made when they are asked for: most records of a file mean nothing.
    """

    __slots__ = ("_key", "_of", "_when", "data", "end", "line", "start", "value")

    def __init__(self, of: Translator, value: Any, data: bytes, line: int, start: int) -> None:
        self._of, self.value, self.data = of, value, data
        self.line, self.start, self.end = line, start, start + len(data)
        self._key: str | None = None
        self._when: tuple[int | None, Basis] | None = None

    @property
    def key(self) -> str:
        """The idempotency key: made of the bytes, and of how many records of the same bytes were asked for theirs."""
        if self._key is None:
            self._key = self._of.key_of(self.data)
        return self._key

    def is_first(self) -> None:
        """Its key is that of the first record of these bytes, whether one came before or not."""
        self._key = f"{self._of.digest_of(self.data).hex()}.0"

    @property
    def when(self) -> tuple[int | None, Basis]:
        """When it says that it happened, in microseconds since 1970 UTC, and whether it does."""
        if self._when is None:
            self._when = occurred(self._of.time_of(self.value))
        return self._when

    def happened(self, stamp: Any) -> None:
        """Something else than the format's usual field says when it happened."""
        self._when = occurred(stamp)

    def inner(self, start: int, end: int, value: Any = None) -> Spot:
        """A part of the record, at the same time, with a key of its own; [start, end) are bytes of the record."""
        found = Spot(self._of, value, self.data[start:end], self.line, self.start + start)
        found._when = self.when
        return found

    def holding(self, data: bytes) -> Spot:
        """The same place with bytes that were packed in it, under the record's key."""
        found = Spot(self._of, None, data, self.line, self.start)
        found._key, found._when, found.end = self.key, self.when, self.end
        return found


class Translator:
    """One file of a format that has one JSON value a line."""

    NAME: ClassVar[str]
    CONFLICT: ClassVar[str] = "id-conflict"
    KEPT: ClassVar[frozenset[str]] = frozenset()
    """Types of blocks that are kept as they are, and known."""
    GROWS: ClassVar[bool] = False
    """Whether a record that stands again under its id, as it is by now, is the format's own way."""

    def __init__(self, given: Given) -> None:
        self.given = given
        self.out = Translation()
        self.main: Chain | None = None
        self._chains: dict[str, Chain] = {}
        self._seen: set[int] = set()
        self._again: dict[bytes, int] = {}
        self._ids: dict[tuple[str, str, str], Known] = {}

    # What a format says.

    def record(self, value: dict[str, Any], spot: Spot) -> None:
        """One record: its items and events are said with `item` and `event`."""
        raise NotImplementedError

    def time_of(self, value: Mapping[str, Any]) -> Any:
        """When a record says that it happened: ISO text, or a number of seconds or milliseconds since 1970."""
        return value.get("timestamp")

    def ended(self) -> None:
        """The file ends here, as it is now: only remarks may be said."""

    # Lines.

    def line(self, line: RawLine, *, taken: int = 0) -> int:
        """Translate one line; the number of its values. The first `taken` of them were translated before."""
        found = read_line(line.data)
        if not line.ended and found.rest is not None and is_text(line.data[: found.rest]):
            found.remarks.discard("encoding")  # what is odd is the torn rest, which waits
        for kind in sorted(found.remarks):
            self._remark(kind, line.number, line.start, REMARKS[kind])
        if found.rest is not None and "too-deep" not in found.remarks:
            self._unreadable(line, found.rest, alone=not found.values)
        for each in found.values[taken:]:
            at = line.start + each.start
            if is_map(each.value):
                self.out.records += 1
                data = line.data[each.start : each.end]
                self.record(each.value, self.spot(each.value, data, line.number, at))
            else:
                self._remark("not-object", line.number, at, REMARKS["not-object"])
        return len(found.values)

    def _unreadable(self, line: RawLine, rest: int, *, alone: bool) -> None:
        kind = "not-json" if line.ended else "torn-tail"
        if alone and line.data[rest:].lstrip().startswith(b"//"):
            kind = "comment"
        self._remark(kind, line.number, line.start + rest, REMARKS[kind])

    def spot(self, value: Mapping[str, Any], data: bytes, line: int, start: int) -> Spot:
        """Where a record stands."""
        return Spot(self, value, data, line, start)

    def digest_of(self, data: bytes) -> bytes:
        """What stands for a record's bytes in its key."""
        return blake3(data).digest(16)

    def key_of(self, data: bytes) -> str:
        """The key of a record's bytes. Equal ones are told apart by how often they came."""
        digest = self.digest_of(data)
        short = int.from_bytes(digest[:8], "little")
        nth = 0
        if short in self._seen:
            nth = self._again[digest] = self._again.get(digest, 0) + 1
        else:
            self._seen.add(short)
        return f"{digest.hex()}.{nth}"

    # Sessions.

    def begin(
        self,
        name: str | None,
        *,
        relation: str = "root",
        parent: Chain | str | None = None,
        parent_key: str | None = None,
        asked: str = "",
    ) -> Chain:
        """A session begins; the first is the file's own (`main`), and has the id that the caller wants.

        `parent` is a session of this file, or the id of one elsewhere; `parent_key` the key of the item that it goes
        out from, else it is the newest; `asked` what a parent elsewhere asked this session to do. Where nothing
        says a name, it is made of the file's place: a file that is written anew goes on in its session.
        """
        if self.main is None:
            name = self.given.session or name
        told = session_name(name or self._unnamed())
        if self.given.told_by(session_stream(told)) not in (None, self.NAME):
            told = session_name(f"{told}.{self.NAME}")  # one session as two tools tell it: not one
        stream = session_stream(told)
        if stream in self._chains:
            return self._chains[stream]
        chain = self._chains[stream] = Chain(stream, side=relation == "subagent")
        self.main = self.main or chain
        opened = self._opened(relation, parent, parent_key, asked)
        draft = Draft(stream, OPEN_KEY, opened, Channel.IMPORTER)
        self.out.meanings.append(Meaning(stream, OPEN_KEY, [draft]))
        self.out.sessions.append(told)
        return chain

    def _unnamed(self) -> str:
        """A name made of the file's, and of where it is; without a path, of the source's id."""
        path = self.given.path.replace("\\", "/")
        name = path.rpartition("/")[2]
        stem = name.partition(".")[0][:80] or "s"
        told = blake3(path.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        number = f"-{len(self._chains) + 1}" if self._chains else ""
        return f"{stem}.{told if name else self.given.source[:12]}{number}"

    def _opened(
        self, relation: str, parent: Chain | str | None, parent_key: str | None, asked: str
    ) -> Event | Callable[[Assigned], Event]:
        store, name = self.given.store, self.NAME
        if isinstance(parent, str):
            stream = session_stream(session_name(parent))
            known = self.given.parent(stream, asked)
            return SessionOpened(store, relation, name, stream, *(known or (None, None)))
        key = parent_key or (parent.last_key if parent else None)
        if parent is None or key is None:
            return SessionOpened(store, relation, name)
        above, cited = parent.stream, key

        def opened(assigned: Assigned) -> Event:
            tip = assigned[above, cited]
            return SessionOpened(store, relation, name, above, tip.seq, tip.digest)

        return opened

    # What a record means.

    def item(
        self,
        chain: Chain,
        spot: Spot,
        reader: tuple[str, int],
        reading: Reading,
        *,
        id: str | None = None,
        view: str = "",
        infer: bool = True,
        route: RouteChanged | None = None,
        usage: UsageReported | None = None,
        inline: bool = False,
    ) -> str:
        """One item; its key.

        `id` is the provider's own: another content under the same one replaces the item. `view` tells items of the same
        bytes apart. `infer`: an assistant's item without a response id belongs to the response before it, where
        nothing of the user's side stands between. Calls that can get no result any more are closed before it.
        `inline`: its bytes are no span of the source (they were packed in a text there), and are kept with it.
        """
        ident = (chain.stream, name_of(id), view) if id else None
        tail = f"/{view}" if view else ""
        key = f"{spot.key.partition('.')[0]}.0{tail}" if ident else spot.key + tail
        known = self._ids.get(ident) if ident else None
        if known is not None and known.key == key:
            return known.item or key
        place = known.item if known and known.item else self._before(chain, ident, key)
        again = known is not None
        if ident:
            if place != key and not self.GROWS:
                self.remark(self.CONFLICT, spot, REMARKS["id-conflict"])
            self._ids[ident] = Known(key, chain, place)
        reading = spoken(chain.named(reading, place), chain.asked)
        group = Group(reading.group) if reading.group else None
        if group is None and infer and reading.role == "assistant":
            group = Group(chain.inferred_group(place), inferred=True)
            reading = Reading(reading.role, reading.parts, group.id, reading.text_of)
        self.remark_parts(spot, reading, chain)
        replaces = place != key
        at, basis = spot.when
        item = Draft(
            chain.stream,
            key,
            ItemReplaced(spot.data) if replaces else ItemAppended(spot.data),
            Channel.IMPORTER,
            occurred_at=at,
            basis=basis,
            origin=Origin(self.given.source, spot.line, spot.start, spot.end),
            item=facts_of(reading, METER, estimate(reading)),
            group=group,
            reader=reader,
            place=Place.INLINE if inline else Place.SOURCE,
            cause_key=place if replaces else None,
        )
        drafts = [item]
        if again:
            chain.remember_again(reading, place)
        else:
            before = [_at(spot, draft) for draft in chain.closers(reading, key)]
            if route is not None:
                before.append(self._own(chain, spot, f"route/{key}", route))
            chain.remember(reading, place)
            if not replaces:
                drafts = [*before, item]
                if usage is not None:
                    drafts.append(self._own(chain, spot, f"usage/{key}", usage))
        at = next(n for n, draft in enumerate(drafts) if draft is item)
        self.out.meanings.append(Meaning(chain.stream, key, drafts, at, reading))
        return place

    def _before(self, chain: Chain, ident: tuple[str, str, str] | None, key: str) -> str:
        """The key of the item whose place an item takes: that of another source's with the same id, else its own."""
        if ident is None:
            return key
        _, name, view = ident
        return self.given.prior(chain.stream).get(f"{name}/{view}" if view else name, key)

    def event(self, chain: Chain, spot: Spot, event: Event, *, view: str = "") -> None:
        """An event of its own at this record's place; `view` tells events of the same type and record apart."""
        key = f"{spot.key}/{type(event).__name__}{view and '/' + view}"
        self.said(chain, spot, key, event)

    def said(self, chain: Chain, spot: Spot, key: str, event: Event) -> None:
        """An event of its own under a key."""
        draft = self._event(chain, spot, key, event)
        self.out.meanings.append(Meaning(chain.stream, key, [draft]))

    def _own(self, chain: Chain, spot: Spot, key: str, event: Event) -> Draft:
        return self._event(chain, spot, OWN + key, event)

    def _event(self, chain: Chain, spot: Spot, key: str, event: Event) -> Draft:
        at, basis = spot.when
        return Draft(chain.stream, key, event, Channel.IMPORTER, occurred_at=at, basis=basis)

    # Remarks.

    def remark(self, kind: str, spot: Spot, text: str) -> None:
        """Something odd about a record: kept with its source."""
        self._remark(kind, spot.line, spot.start, text)

    def _remark(self, kind: str, line: int, offset: int, text: str) -> None:
        self.out.remark(kind, line, offset, text)

    def unknown(self, spot: Spot, kind: Any) -> None:
        """A record of a type that the format's importer does not know."""
        self.remark("unknown-type", spot, f"record type {str(kind)[:60]!r} is not known; kept")

    def remark_parts(self, spot: Spot, reading: Reading, chain: Chain) -> None:
        """What is odd about an item's parts. Call it before the chain remembers them."""
        deep = False
        for part in reading.parts:
            if part.kind is PartKind.OPAQUE and kind_of(part.block) not in self.KEPT:
                self.remark("unknown-block", spot, REMARKS["unknown-block"])
            if part.result is not None and not _is_asked(part, reading, chain):
                self.remark("orphan-result", spot, REMARKS["orphan-result"])
            command = part.call.command if part.call is not None else None
            if has_lone_surrogate(part.text) or (command and has_lone_surrogate(command)):
                self.remark("encoding", spot, REMARKS["encoding"])
            deep = deep or (part.block is not None and is_deeper(part.block, DEPTH_REMARKED))
        if deep:
            self.remark("too-deep", spot, REMARKS["too-deep"])


def _is_asked(part: Part, reading: Reading, chain: Chain) -> bool:
    """Whether the call that a result answers is before it in the file, or in its own item."""
    if part.call_id in chain.calls:
        return True
    return any(p.call is not None and p.call_id == part.call_id for p in reading.parts)


def _at(spot: Spot, draft: Draft) -> Draft:
    """A draft with a record's time."""
    at, basis = spot.when
    return replace(draft, occurred_at=at, basis=basis)


REMARKS = {
    "encoding": "bytes or escapes that are not valid text; the bytes are kept exactly",
    "duplicate-keys": "a key stands twice in one object; its first value is read",
    "glued": "more than one value on one line; each is read",
    "too-deep": f"nested deeper than {DEPTH_REMARKED}; the bytes are kept exactly",
    "not-object": "a JSON value that is not an object; kept, not read",
    "not-json": "not JSON; kept, not read",
    "torn-tail": "the last line is not complete; it waits until it is",
    "id-conflict": "this id stands before with other content",
    "comment": "a comment; kept, not read",
    "unknown-block": "a block of a kind that is not known; kept as it is",
    "orphan-result": "a tool result whose call is not before it in the file",
    "persisted-output": "the transcript holds only a part of this tool's output",
}
"""What a remark of each of these kinds says."""


def is_text(data: bytes) -> bool:
    """Whether bytes are UTF-8 without a mark at their beginning."""
    try:
        return not data.decode("utf-8").startswith("\ufeff")
    except UnicodeDecodeError:
        return False


def count(value: Any) -> int | None:
    """A count of something (tokens), or None for what is none."""
    return value if type(value) is int and 0 <= value < 2**53 else None
