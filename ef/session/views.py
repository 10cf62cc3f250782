"""What a session answers: context, state and the difference of two moments, as plain frozen values.

Each has `to_json()`: the fields that the command line prints with --json.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..audit import Holds
from ..events import Anchor, Kind
from ..events.shapes import is_map


def fails(anchor: Anchor) -> bool:
    """Whether a head says that something fails now."""
    if anchor.kind is Kind.FAILURE:
        return True
    if anchor.kind is not Kind.EVIDENCE:
        return False
    value = anchor.value
    if anchor.key.property == "status":
        return bool(value == "failed")
    return anchor.key.property == "outcome" and is_map(value) and value.get("outcome") == "error"


@dataclass(frozen=True, slots=True)
class State:
    """What holds as of seq `at`.

    `heads` by key, in key order; `contested` holds the losers that still stand against one. A head whose lifecycle is
    stale is overtaken: a later run of the whole suite covers it.
    """

    session: str
    at: int
    digest: str
    heads: dict[str, Holds]
    contested: dict[str, Holds] = field(default_factory=dict[str, Holds])

    def of_kind(self, kind: Kind) -> list[Holds]:
        """Heads of one kind, newest first."""
        return sorted(
            (h for h in self.heads.values() if h.anchor.kind is kind), key=lambda h: -h.seq
        )

    @property
    def failures(self) -> list[Holds]:
        """Heads that say that something fails now, newest first; what is stale is not now."""
        found = (
            h
            for h in self.heads.values()
            if fails(h.anchor) and h.lifecycle not in ("stale", "unsupported")
        )
        return sorted(found, key=lambda h: -h.seq)

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
    """What the model would see as of seq `at`: `tokens` is an estimate; `frontier` counts frozen checkpoints.

    `compactions` counts those of another tool: they take nothing off this surface, and their summaries are items on it.
    `system` is what stands before the messages; None where nothing does. `left_out` counts parts, by kind, that have no
    form in the messages (reasoning of another provider).
    """

    session: str
    at: int
    tokens: int
    nodes: tuple[NodeView, ...]
    messages: list[dict[str, Any]]
    digest: str
    compactions: int = 0
    frontier: int = 0
    system: Any = None
    left_out: dict[str, int] = field(default_factory=dict[str, int])

    def to_json(self) -> dict[str, Any]:
        """JSON fields."""
        return {
            "session": self.session,
            "at": self.at,
            "tokens": {"value": self.tokens, "basis": "estimated"},
            "nodes": [n.to_json() for n in self.nodes],
            "frontier": self.frontier,
            "compactions": self.compactions,
            "system": self.system,
            "messages": self.messages,
            "left_out": self.left_out,
            "digest": self.digest,
        }


@dataclass(frozen=True, slots=True)
class Export:
    """A context or history as of seq `at`, in a provider's format: `messages` alone is a valid request's list of them.

    `system` is the provider's field for the system's words; None where there are none or they stand in the messages.
    `left_out`, `as_text`, `renamed`: how many parts of which kind were not handed over, became text, got another name.
    """

    session: str
    at: int
    format: str
    system: Any
    messages: list[Any]
    left_out: dict[str, int]
    as_text: dict[str, int]
    renamed: dict[str, int]
    everything: bool = False

    def to_json(self) -> dict[str, Any]:
        """JSON fields."""
        return {
            "format": self.format,
            "session": self.session,
            "at": self.at,
            "all": self.everything,
            "system": self.system,
            "messages": self.messages,
            "left_out": self.left_out,
            "as_text": self.as_text,
            "renamed": self.renamed,
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
