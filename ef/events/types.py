"""The event types of this version. `codec.kinds` is the closed table that names them.

A docstring's first line is the type's line in the event catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .anchors import Anchor
from .quick import quick
from .record import Header


@quick
@dataclass(frozen=True, slots=True)
class StoreOpened:
    """Genesis: the first record of a store, at position 0, outside the notifications."""

    store: str
    made_by: str


@quick
@dataclass(frozen=True, slots=True)
class SourceOpened:
    """A file or feed that was imported for the first time."""

    source: str
    format: str
    path: str


@quick
@dataclass(frozen=True, slots=True)
class SourceLines:
    """Raw bytes of a source, byte for byte: whole lines, or a piece of one long line."""

    data: bytes


@quick
@dataclass(frozen=True, slots=True)
class SourceNote:
    """A remark about a source: what is odd, and where."""

    kind: str
    text: str
    line: int | None
    offset: int | None


@quick
@dataclass(frozen=True, slots=True)
class SourceGrew:
    """The file's bytes extended those known before."""

    from_bytes: int
    to_bytes: int
    path: str


@quick
@dataclass(frozen=True, slots=True)
class SourceRewritten:
    """The file at a known path no longer begins with the bytes known before; this source is its new content."""

    earlier: str
    path: str


@quick
@dataclass(frozen=True, slots=True)
class ImportCompleted:
    """All bytes up to a length are in the log; the digest is blake3 over them. Each stays exportable."""

    length: int
    lines: int
    digest: bytes
    sessions: tuple[str, ...]


@quick
@dataclass(frozen=True, slots=True)
class ImportProgressed:
    """Bytes up to a length, with what they mean, are in the log, and the import goes on. The sessions that it `began`
    are not shown before it is complete.
    """

    length: int
    lines: int
    digest: bytes
    sessions: tuple[str, ...]
    began: tuple[str, ...]


@quick
@dataclass(frozen=True, slots=True)
class SessionOpened:
    """A session begins: root, fork, subagent or continuation, and what it continues."""

    store: str
    relation: str
    format: str
    parent_stream: str | None = None
    parent_seq: int | None = None
    parent_digest: bytes | None = None
    policy: dict[str, Any] = field(default_factory=dict[str, Any])


@quick
@dataclass(frozen=True, slots=True)
class SessionDescribed:
    """What the session is called."""

    title: str


@quick
@dataclass(frozen=True, slots=True)
class RouteChanged:
    """Which provider and model answer from here on; numbers are null where nobody said."""

    provider: str | None
    model: str | None
    window: int | None = None
    reserved_output: int | None = None
    tools_digest: bytes | None = None
    system_ref: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class ItemAppended:
    """One item, as its provider delivered it: the body is the provider's bytes and nothing else."""

    data: bytes


@quick
@dataclass(frozen=True, slots=True)
class ItemReplaced:
    """The item that the cause names is given other content under the same provider id; the body is the new bytes."""

    data: bytes


@quick
@dataclass(frozen=True, slots=True)
class CallClosed:
    """A call that will get no result: not started, interrupted, or outcome unknown."""

    call_id: str
    item_seq: int
    part: int
    outcome: str


@quick
@dataclass(frozen=True, slots=True)
class ForeignCompaction:
    """Another tool's compaction boundary and what it says that it dropped. It changes no surface and no state."""

    tool: str
    form: str
    trigger: str | None
    pre_tokens: int | None
    dropped: tuple[str, ...] = ()


@quick
@dataclass(frozen=True, slots=True)
class UsageReported:
    """Tokens that the provider billed for one message, keyed by message id; the last report of an id holds."""

    message_id: str
    input: int | None
    output: int | None
    cache_read: int | None
    cache_write: int | None


@quick
@dataclass(frozen=True, slots=True)
class AnchorDeclared:
    """One unit of knowledge, with what grounds it."""

    anchor: Anchor


@quick
@dataclass(frozen=True, slots=True)
class StoredEvent:
    """A row that another program stored through the eventsourcing library's recorder;
    its seq is that program's version, or how far it followed another program.
    """

    topic: str
    state: bytes
    uuid_id: bool


@quick
@dataclass(frozen=True, slots=True)
class Redacted:
    """Secrets in the item that the cause names were replaced before it was stored: how many of which kind."""

    redactor: str
    version: str
    found: dict[str, Any]


@quick
@dataclass(frozen=True, slots=True)
class UnknownEvent:
    """A kind that this version does not know: kept as it is, passed over unless it is required."""

    kind: str
    version: int


Event = (
    StoreOpened
    | SourceOpened
    | SourceLines
    | SourceNote
    | SourceGrew
    | SourceRewritten
    | ImportCompleted
    | ImportProgressed
    | SessionOpened
    | SessionDescribed
    | RouteChanged
    | ItemAppended
    | ItemReplaced
    | CallClosed
    | ForeignCompaction
    | UsageReported
    | AnchorDeclared
    | StoredEvent
    | Redacted
    | UnknownEvent
)


@quick
@dataclass(frozen=True, slots=True)
class Recorded:
    """An event as reducers meet it: its header, its digest and the typed event."""

    header: Header
    digest: bytes
    event: Event
