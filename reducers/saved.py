"""Anchors and item facts as plain values, for dumps of reducers' states, and back.

Rule: `anchor_of(anchor_row(a)) == a`, and the same for facts. A value of an anchor goes in as its own canonical bytes,
so that a dump nests no deeper than the event did. Refuses rows whose fields have other types, by a TypeError.
"""

from __future__ import annotations

from itertools import product
from types import NoneType
from typing import Any

from ..codec import cbor
from ..events import (
    Anchor,
    AnchorKey,
    Authority,
    Channel,
    ItemFacts,
    Kind,
    PartFacts,
    PartKind,
    Rule,
    SourceRef,
)

_OPTIONAL = (str, NoneType)


def row_types(*columns: type | tuple[type, ...]) -> frozenset[tuple[type, ...]]:
    """What the fields of a row may be, for `checked`: each a type, or one of several."""
    return frozenset(product(*(c if isinstance(c, tuple) else (c,) for c in columns)))


def checked(row: Any, types: frozenset[tuple[type, ...]]) -> Any:
    """The row; TypeError when its fields are not of these types."""
    if tuple(map(type, row)) not in types:
        raise TypeError(f"a row of {', '.join(type(each).__name__ for each in row)}")
    return row


_ANCHOR = row_types(
    str, str, list, bytes, str, str, list, _OPTIONAL, list, _OPTIONAL, _OPTIONAL, list, _OPTIONAL, _OPTIONAL,
    _OPTIONAL, _OPTIONAL,
)  # fmt: skip
_KEY = row_types(str, str, str)
_RULE = row_types(str, int)
_REF = row_types(str, int, int, int, int, bytes, str, str, str)
_FACTS = row_types(str, (int, NoneType), _OPTIONAL, list)
_PART_KINDS = {kind.value: kind for kind in PartKind}
_CHANNELS = {channel.value: channel for channel in Channel}
_KINDS = {kind.value: kind for kind in Kind}
_AUTHORITIES = {authority.value: authority for authority in Authority}


def anchor_row(a: Anchor) -> list[Any]:
    """An anchor as a list; its fields in order."""
    return [
        a.id, a.kind.value, [a.key.namespace, a.key.entity, a.key.property], cbor.encode(a.value), a.authority.value,
        a.channel.value, [a.rule.name, a.rule.version], a.unit,
        [
            [r.stream, r.seq, r.part, r.start, r.end, r.digest, r.channel.value, r.kind, r.item_key]
            for r in a.sources
        ],
        a.because, a.valid_while, list(a.depends_on), a.owner, a.supersedes, a.fingerprint, a.recurs,
    ]  # fmt: skip


def anchor_of(row: Any) -> Anchor:
    """The anchor in a row. Raises ValueError, TypeError or KeyError when it is none."""
    (
        name, kind, key, value, authority, channel, rule, unit, sources, because, valid_while, depends_on, owner,
        supersedes, fingerprint, recurs,
    ) = checked(row, _ANCHOR)  # fmt: skip
    refs = [checked(ref, _REF) for ref in sources]
    return Anchor(
        name, _KINDS[kind], AnchorKey(*checked(key, _KEY)), cbor.decode(value), _AUTHORITIES[authority],
        _CHANNELS[channel], Rule(*checked(rule, _RULE)), unit,
        tuple(
            SourceRef(stream, seq, part, start, end, digest, _CHANNELS[speaks], what, item)
            for stream, seq, part, start, end, digest, speaks, what, item in refs
        ),
        because, valid_while, texts(depends_on), owner, supersedes, fingerprint, recurs,
    )  # fmt: skip


def texts(value: Any) -> tuple[str, ...]:
    """Texts out of a list; TypeError when one of them is none."""
    if not set(map(type, value)) <= {str}:
        raise TypeError("a list of texts with something else in it")
    return tuple(value)


def facts_row(facts: ItemFacts) -> list[Any]:
    """An item's facts as a list; its parts as one flat list of kind, channel, call id."""
    flat: list[str | None] = []
    for part in facts.parts:
        flat += (part.kind.value, part.channel.value, part.call_id)
    return [facts.role, facts.tokens, facts.meter, flat]


def facts_of(row: Any) -> ItemFacts:
    """The facts in a row. Raises ValueError, TypeError or KeyError when it holds none."""
    role, tokens, meter, flat = checked(row, _FACTS)
    if not set(map(type, flat[2::3])) <= {str, NoneType}:
        raise TypeError("call ids that are no text")
    triples = zip(flat[::3], flat[1::3], flat[2::3], strict=True)
    parts = tuple(PartFacts(_PART_KINDS[k], _CHANNELS[c], call) for k, c, call in triples)
    return ItemFacts(role, parts, tokens, meter)
