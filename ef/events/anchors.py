"""Anchors: units of knowledge, their keys, kinds and authorities."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from .items import Channel
from .quick import quick
from .record import SourceRef


class Kind(StrEnum):
    """What an anchor is about."""

    OBJECTIVE = "objective"
    CONSTRAINT = "constraint"
    DECISION = "decision"
    VALUE = "value"
    ARTIFACT = "artifact"
    EVIDENCE = "evidence"
    FAILURE = "failure"
    OBLIGATION = "obligation"


class Authority(StrEnum):
    """What an anchor's word counts for."""

    NORMATIVE = "normative"
    EMPIRICAL = "empirical"
    PROCEDURAL = "procedural"
    DECISION = "decision"
    NARRATIVE = "narrative"
    HYPOTHESIS = "hypothesis"


@quick
@dataclass(frozen=True, slots=True, order=True)
class AnchorKey:
    """A triple. Its text form splits at the first and the last slash, so only the entity may hold slashes."""

    namespace: str
    entity: str
    property: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.entity}/{self.property}"

    @classmethod
    def parse(cls, text: str) -> AnchorKey | None:
        """The key that `text` spells, or None when it is not namespace/entity/property."""
        namespace, _, rest = text.partition("/")
        entity, _, prop = rest.rpartition("/")
        return cls(namespace, entity, prop) if namespace and entity and prop else None


@quick
@dataclass(frozen=True, slots=True)
class Rule:
    """The observer or the gate that made an anchor, and its version."""

    name: str
    version: int


@quick
@dataclass(frozen=True, slots=True)
class Anchor:
    """One unit of knowledge as it was declared.

    `value` is null, bool, int, text, or a list or map of those (no floats). `channel` is the channel of the
    part that grounds it. Whether it is current is not in it: that is what reducers decide.
    """

    id: str
    kind: Kind
    key: AnchorKey
    value: Any
    authority: Authority
    channel: Channel
    rule: Rule
    unit: str | None = None
    sources: tuple[SourceRef, ...] = ()
    because: str | None = None
    valid_while: str | None = None
    depends_on: tuple[str, ...] = ()
    owner: str | None = None
    supersedes: str | None = None
    fingerprint: str | None = None
    recurs: str | None = None
