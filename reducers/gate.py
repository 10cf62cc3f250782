"""Who may ground what: the matrix of channels and authorities, which kind takes which authority, and ranks.

A first, small gate: it judges from the references alone, before the append and again in the reducer. What it refuses
changes nothing. Rank decides supersession: a lower one is kept as contested, and the value stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..events import Anchor, Authority, Channel, Kind
from ..events.shapes import is_list, is_map

VALUE_DEPTH_MAX = 32
"""Nesting of an anchor's value: what holds is encoded with more around it than the event that declared it."""

GROUNDS: dict[Channel, frozenset[Authority]] = {
    Channel.OPERATOR: frozenset({Authority.NORMATIVE, Authority.DECISION}),
    Channel.USER_TYPED: frozenset({Authority.NORMATIVE, Authority.DECISION}),
    Channel.SYSTEM: frozenset({Authority.NORMATIVE}),
    Channel.TOOL: frozenset({Authority.EMPIRICAL, Authority.PROCEDURAL}),
    Channel.CI: frozenset({Authority.EMPIRICAL, Authority.PROCEDURAL}),
    Channel.FILESYSTEM: frozenset({Authority.EMPIRICAL, Authority.PROCEDURAL}),
    Channel.SUBAGENT: frozenset({Authority.HYPOTHESIS}),
    Channel.WEB: frozenset({Authority.HYPOTHESIS}),
    Channel.ASSISTANT: frozenset({Authority.HYPOTHESIS, Authority.DECISION}),
    Channel.IMPORTER: frozenset(),
    Channel.OBSERVER: frozenset(),
}
FITS: dict[Kind, frozenset[Authority]] = {
    Kind.OBJECTIVE: frozenset({Authority.NORMATIVE, Authority.DECISION}),
    Kind.CONSTRAINT: frozenset({Authority.NORMATIVE}),
    Kind.DECISION: frozenset({Authority.DECISION, Authority.HYPOTHESIS}),
    Kind.VALUE: frozenset(
        {
            Authority.NORMATIVE,
            Authority.DECISION,
            Authority.EMPIRICAL,
            Authority.PROCEDURAL,
            Authority.HYPOTHESIS,
        }
    ),
    Kind.ARTIFACT: frozenset({Authority.EMPIRICAL, Authority.PROCEDURAL, Authority.HYPOTHESIS}),
    Kind.EVIDENCE: frozenset({Authority.EMPIRICAL, Authority.PROCEDURAL, Authority.HYPOTHESIS}),
    Kind.FAILURE: frozenset({Authority.EMPIRICAL, Authority.HYPOTHESIS}),
    Kind.OBLIGATION: frozenset({Authority.NORMATIVE, Authority.DECISION, Authority.HYPOTHESIS}),
}
EMPIRICAL_KINDS = frozenset({Kind.VALUE, Kind.ARTIFACT, Kind.EVIDENCE, Kind.FAILURE})
_RANKS: dict[Channel, int] = {
    Channel.OPERATOR: 7,
    Channel.USER_TYPED: 6,
    Channel.SYSTEM: 5,
    Channel.TOOL: 4,
    Channel.CI: 4,
    Channel.FILESYSTEM: 4,
    Channel.ASSISTANT: 3,
    Channel.SUBAGENT: 2,
    Channel.WEB: 1,
}


def rank(anchor: Anchor) -> int:
    """How much the anchor's channel counts against a head of the same key; tools count for empirical kinds only."""
    machine = anchor.channel in (Channel.TOOL, Channel.CI, Channel.FILESYSTEM)
    return 0 if machine and anchor.kind not in EMPIRICAL_KINDS else _RANKS.get(anchor.channel, 0)


def refusal(anchor: Anchor) -> str | None:
    """Why an anchor may not be declared, judged from the anchor and its references alone; None when it may."""
    if anchor.authority not in GROUNDS[anchor.channel]:
        return f"{anchor.channel.value} cannot ground {anchor.authority.value}"
    if anchor.authority not in FITS[anchor.kind]:
        return f"a {anchor.kind.value} is never {anchor.authority.value}"
    if nested(anchor.value, VALUE_DEPTH_MAX):
        return f"its value is nested deeper than {VALUE_DEPTH_MAX}"
    if not anchor.sources and anchor.channel is not Channel.OPERATOR:
        return "it cites no source"
    for ref in anchor.sources:
        if anchor.channel is not Channel.OPERATOR and ref.channel is not anchor.channel:
            return f"it cites {ref.channel.value} and claims to speak as {anchor.channel.value}"
        if not 0 <= ref.start < ref.end:
            return "it cites an empty span"
    return None


def nested(value: Any, most: int) -> bool:
    """Whether a value is nested deeper than `most`, or too wide to tell; a list or map itself counts as 1."""
    layer = _containers([value])
    for _ in range(most):
        layer = [inner for outer in layer for inner in _containers(outer)]
        if len(layer) > 1 << 16:
            return True
    return bool(layer)


def _containers(values: Any) -> list[Any]:
    """The lists and maps among the elements of a list, or the values of a map."""
    each: Iterable[Any] = values.values() if is_map(values) else values
    return [one for one in each if is_list(one) or is_map(one) or isinstance(one, tuple)]
