"""The trail of a value: its evidence with the exact quoted bytes, what it superseded, who lost, and the chain to the
tip.

Everything is read from the log at the moment of the question; nothing is taken from a projection but which anchor is
the head. The chain is walked from the oldest evidence to the tip and every link is checked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..codec import kinds
from ..errors import Damaged, DamageError, NotFound, UsageError
from ..events import Anchor, AnchorDeclared, Origin, SourceRef
from ..log import Log, Record
from ..log.items import Cited, event_of
from ..projections.working import Working
from ..reducers import gate
from ..reducers.heads import lifecycle

ANCHOR_ID = "an:"


@dataclass(frozen=True, slots=True)
class Quoted:
    """A source reference and the exact bytes that it cites; `quote` is None when they cannot be had: `why`
    says why. `origin` is the line of the imported source that the item came from."""

    ref: SourceRef
    quote: bytes | None
    why: str | None = None
    origin: Origin | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON fields."""
        r = self.ref
        return {
            "stream": r.stream,
            "seq": r.seq,
            "part": r.part,
            "span": [r.start, r.end],
            "digest": r.digest.hex(),
            "role": r.channel.value,
            "kind": r.kind,
            "source": self.origin.source if self.origin else None,
            "line": self.origin.line if self.origin else None,
            "quote": None if self.quote is None else self.quote.decode("utf-8", "replace"),
            **({"why": self.why} if self.why else {}),
        }


@dataclass(frozen=True, slots=True)
class Holds:
    """An anchor with its place in the log.

    `lifecycle` is active, contested, unsupported, stale, superseded (by event `superseded_by`) or lost (it never became
    the head).
    """

    anchor: Anchor
    seq: int
    lifecycle: str
    sources: tuple[Quoted, ...]
    supersedes_seq: int | None = None
    superseded_by: int | None = None

    @property
    def value(self) -> Any:
        """The anchor's value."""
        return self.anchor.value

    def to_json(self) -> dict[str, Any]:
        """JSON fields."""
        a = self.anchor
        return {
            "id": a.id,
            "kind": a.kind.value,
            "key": str(a.key),
            "value": a.value,
            "unit": a.unit,
            "authority": a.authority.value,
            "channel": a.channel.value,
            "lifecycle": self.lifecycle,
            "seq": self.seq,
            "rule": f"{a.rule.name}/{a.rule.version}",
            "because": a.because,
            "supersedes": self.supersedes_seq,
            "superseded_by": self.superseded_by,
            "sources": [s.to_json() for s in self.sources],
        }


@dataclass(frozen=True, slots=True)
class Audit:
    """Where a value comes from. `current` is None when nothing holds; `history` is all that was declared, oldest first.

    `chain`: seq and digest of the record that declared the value, `from` the oldest record it rests on, `links` checked
    from there to `head`, the record at the moment asked for.
    """

    session: str
    key: str
    at: int
    current: Holds | None
    history: tuple[Holds, ...]
    losers: tuple[Holds, ...]
    chain: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """JSON fields."""
        return {
            "session": self.session,
            "key": self.key,
            "at": self.at,
            "current": self.current.to_json() if self.current else None,
            "sources": [s.to_json() for s in self.current.sources] if self.current else [],
            "history": [h.to_json() for h in self.history],
            "losers": [h.to_json() for h in self.losers],
            "rule": self.current.to_json()["rule"] if self.current else None,
            "chain": self.chain,
        }


def hold(
    cited: Cited | None,
    anchor: Anchor,
    seq: int,
    lifecycle: str,
    supersedes: int | None = None,
    superseded_by: int | None = None,
) -> Holds:
    """An anchor with its quotes read from the log; without them when `cited` is None."""
    quotes = tuple(Quoted(r, None) if cited is None else _quoted(cited, r) for r in anchor.sources)
    return Holds(anchor, seq, lifecycle, quotes, supersedes, superseded_by)


def _quoted(cited: Cited, ref: SourceRef) -> Quoted:
    try:
        return Quoted(ref, cited.quote(ref), origin=cited.origin(ref))
    except (DamageError, NotFound) as fault:
        return Quoted(ref, None, str(fault))


def audit(log: Log, session: str, stream: str, key: str, working: Working) -> Audit:
    """The audit of a key (or of an anchor id, or a unique beginning of one) as of `working`'s seq.

    Raises NotFound when nothing was ever declared for it, Damaged when the chain does not verify.
    """
    refused = {seq for seq, _, _ in working.refused}
    declared = [d for d in _declared(log, stream, key, working.seq) if d[0] not in refused]
    if not declared:
        raise NotFound(
            what="key",
            name=key,
            where=f"session {session} up to event {working.seq}",
            remedy=f"`ef state {session}` lists what holds.",
        )
    text = str(declared[0][1].key)
    head = working.heads.heads.get(text)
    contest = working.heads.contested.get(text)
    winners = _winners(declared)
    history: list[Holds] = []
    cited = Cited(log)
    for seq, anchor in declared:
        before = [w for w in winners if w < seq]
        after = [w for w in winners if w > seq]
        if seq not in winners:
            standing = contest is not None and contest.seq == seq
            found = hold(cited, anchor, seq, "contested" if standing else "lost")
        elif after:
            found = hold(cited, anchor, seq, "superseded", before[-1] if before else None, after[0])
        else:
            life = lifecycle(working.heads, text)
            found = hold(cited, anchor, seq, life, before[-1] if before else None)
        history.append(found)
    current = next((h for h in history if head is not None and h.seq == head.seq), None)
    losers = tuple(h for h in history if h.seq not in winners)
    chain = _chain(log, stream, current, working.seq)
    return Audit(session, text, working.seq, current, tuple(history), losers, chain)


def _declared(log: Log, stream: str, key: str, upto: int) -> list[tuple[int, Anchor]]:
    """All anchors of a key, oldest first. Reads every declaration of the session up to the moment."""
    found: list[tuple[int, Anchor]] = []
    for record in log.read(stream, upto=upto):
        if record.header.kind == kinds.BY_TYPE[AnchorDeclared].name:
            event = event_of(log, record)
            if isinstance(event, AnchorDeclared):
                found.append((record.header.seq, event.anchor))
    if key.startswith(ANCHOR_ID):
        keys = {str(anchor.key) for _, anchor in found if anchor.id.startswith(key)}
        if len(keys) > 1:
            raise UsageError(detail=f"{key!r} names {len(keys)} anchors: give more of the id")
        key = keys.pop() if keys else key
    return [(seq, anchor) for seq, anchor in found if str(anchor.key) == key]


def _winners(declared: list[tuple[int, Anchor]]) -> list[int]:
    """Seqs, in order, of the anchors that were heads when they came: the reducer's rule, on one key's declarations."""
    winners: list[int] = []
    head: Anchor | None = None
    for seq, anchor in declared:
        if head is None or gate.rank(anchor) >= gate.rank(head):
            head = anchor
            winners.append(seq)
    return winners


def _chain(log: Log, stream: str, current: Holds | None, upto: int) -> dict[str, Any]:
    """Walk from the oldest evidence to the moment's last record; every link is checked."""
    if current is None:
        return {}
    cited = [s.ref.seq for s in current.sources if s.ref.stream == stream]
    first = min([current.seq, *cited])
    previous: Record | None = None
    digest, links = b"", 0
    for record in log.read(stream, after=first - 1, upto=upto):
        if previous is not None:
            if record.header.prev_stream != previous.digest:
                raise Damaged(
                    where=f"stream {stream}, seq {record.header.seq}", what="the chain is broken"
                )
            links += 1
        if record.header.seq == current.seq:
            digest = record.digest
        previous = record
    assert previous is not None
    return {
        "seq": current.seq,
        "digest": digest.hex(),
        "from": first,
        "links": links,
        "head": {"seq": previous.header.seq, "digest": previous.digest.hex()},
    }
