"""What a session answers: context, state, audit and the difference of two moments, as plain frozen values.

Each has `to_json()`: the fields that the command line prints with --json.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..events import Anchor, Kind, SourceRef


def text_of(data: bytes) -> str:
    """Bytes of a part's text as text; what is no UTF-8 becomes a replacement character."""
    return data.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Quoted:
    """A source reference and the exact bytes that it cites; `quote` is None when they cannot be had, `why` says why."""

    ref: SourceRef
    quote: bytes | None
    why: str | None = None

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
            "quote": None if self.quote is None else text_of(self.quote),
            **({"why": self.why} if self.why else {}),
        }


@dataclass(frozen=True, slots=True)
class Holds:
    """An anchor with its place in the log: `lifecycle` active, contested, or superseded (by `superseded_by`)."""

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


def fails(anchor: Anchor) -> bool:
    """Whether a head says that something fails now."""
    if anchor.kind is Kind.FAILURE:
        return True
    if anchor.kind is not Kind.EVIDENCE:
        return False
    value = anchor.value
    if anchor.key.property == "status":
        return bool(value == "failed")
    return (
        anchor.key.property == "outcome"
        and isinstance(value, dict)
        and value.get("outcome") == "error"
    )


@dataclass(frozen=True, slots=True)
class State:
    """What holds as of seq `at`. `heads` by key, in key order; `contested` holds the losers that still stand against one."""

    session: str
    at: int
    digest: str
    heads: dict[str, Holds]
    contested: dict[str, Holds] = field(default_factory=dict)

    def of_kind(self, kind: Kind) -> list[Holds]:
        """Heads of one kind, newest first."""
        return sorted(
            (h for h in self.heads.values() if h.anchor.kind is kind), key=lambda h: -h.seq
        )

    @property
    def failures(self) -> list[Holds]:
        """Heads that say that something fails now, newest first."""
        return sorted((h for h in self.heads.values() if fails(h.anchor)), key=lambda h: -h.seq)

    def to_json(self) -> dict[str, Any]:
        """JSON fields."""
        objective = self.of_kind(Kind.OBJECTIVE)
        return {
            "session": self.session,
            "at": self.at,
            "digest": self.digest,
            "heads": {key: head.to_json() for key, head in self.heads.items()},
            "contested": {key: head.to_json() for key, head in self.contested.items()},
            "constraints": [h.to_json() for h in self.of_kind(Kind.CONSTRAINT)],
            "failures": [h.to_json() for h in self.failures],
            "obligations": [h.to_json() for h in self.of_kind(Kind.OBLIGATION)],
            "decisions": [h.to_json() for h in self.of_kind(Kind.DECISION)],
            "objective": objective[0].to_json() if objective else None,
        }


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node on the surface: its seq, estimated tokens, role, and a short excerpt for people."""

    seq: int
    tokens: int | None
    role: str
    channels: tuple[str, ...]
    excerpt: str

    def to_json(self) -> dict[str, Any]:
        """JSON fields."""
        return {
            "node": "item",
            "seq": self.seq,
            "tokens": self.tokens,
            "role": self.role,
            "channels": list(self.channels),
        }


@dataclass(frozen=True, slots=True)
class Context:
    """What the model would see as of seq `at`. `tokens` is an estimate; `frontier` counts frozen checkpoints (none yet)."""

    session: str
    at: int
    tokens: int
    nodes: tuple[NodeView, ...]
    messages: list[dict[str, Any]]
    digest: str
    frontier: int = 0

    def to_json(self) -> dict[str, Any]:
        """JSON fields."""
        return {
            "session": self.session,
            "at": self.at,
            "tokens": {"value": self.tokens, "basis": "estimated"},
            "nodes": [n.to_json() for n in self.nodes],
            "frontier": self.frontier,
            "messages": self.messages,
            "digest": self.digest,
        }


@dataclass(frozen=True, slots=True)
class Audit:
    """Where a value comes from: the head (None when nothing holds), all that was declared for the key oldest first, the
    losers, and the place in the chain: the record that declared it, and the tip up to which `links` records verify."""

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


@dataclass(frozen=True, slots=True)
class Difference:
    """What changed between two moments a < b: nodes that came, and heads that appeared, changed or went."""

    session: str
    a: int
    b: int
    appeared: dict[str, Holds]
    changed: dict[str, tuple[Holds, Holds]]
    gone: dict[str, Holds]
    nodes: tuple[NodeView, ...]
    digests: dict[str, dict[str, str]]

    def to_json(self) -> dict[str, Any]:
        """JSON fields."""
        return {
            "session": self.session,
            "from": self.a,
            "to": self.b,
            "appeared": {k: h.to_json() for k, h in self.appeared.items()},
            "changed": {
                k: {"from": x.to_json(), "to": y.to_json()} for k, (x, y) in self.changed.items()
            },
            "gone": {k: h.to_json() for k, h in self.gone.items()},
            "nodes": [n.to_json() for n in self.nodes],
            "digests": self.digests,
        }
