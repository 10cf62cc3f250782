"""Items and their parts: what a provider delivered, and who speaks in it.

An item is one separately deliverable unit (a transcript record, a chat message). A part is a piece of it;
each part has a channel. The channel is decided by who delivered the bytes and by the record's own
structure, never by what a text says of itself: text may lower a part's authority, never raise it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from .quick import quick


class Channel(StrEnum):
    """Who speaks in a part, or who delivered a record."""

    OPERATOR = "operator"
    USER_TYPED = "user_typed"
    SYSTEM = "system"
    TOOL = "tool"
    SUBAGENT = "subagent"
    WEB = "web"
    ASSISTANT = "assistant"
    CI = "ci"
    FILESYSTEM = "filesystem"
    IMPORTER = "importer"
    OBSERVER = "observer"


class PartKind(StrEnum):
    """What a part is. `opaque` is a provider part that we keep and do not read."""

    TEXT = "text"
    REASONING = "reasoning"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    IMAGE = "image"
    FILE = "file"
    OPAQUE = "opaque"


@quick
@dataclass(frozen=True, slots=True)
class PartFacts:
    """What a header says of a part: no transcript text. `call_id` pairs a call with its result."""

    kind: PartKind
    channel: Channel
    call_id: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class ItemFacts:
    """What a header says of an item. `tokens` is an estimate by the named `meter`, None when unknown."""

    role: str
    parts: tuple[PartFacts, ...]
    tokens: int | None = None
    meter: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class ToolCall:
    """The neutral view of a tool call, whatever the vendor calls the tool. Observers read only this.

    `action` is one of shell, read, write, edit, patch, search, web, todo, plan, agent, notebook, other;
    `path`, `command`, `text` are None where the action has none; `cwd` is the folder that it was called in, None where
    nobody said; `given` is a short digest of all that it was given; `input` is what it was given, as a JSON value (an
    object where the provider gave one or its text holds one, else that text); `paths` are all files that it names, the
    first one is `path`; `query` is what is searched or fetched. `text` is what is written: a file's content, the new
    text of an edit, a patch, a prompt, what is typed into a running command.
    """

    call_id: str
    name: str
    action: str
    command: str | None = None
    path: str | None = None
    text: str | None = None
    background: bool = False
    cwd: str | None = None
    given: str = ""
    input: Any = None
    paths: tuple[str, ...] = ()
    query: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class ToolResult:
    """The neutral view of a tool's answer. `exit_code` is None where it is not known."""

    call_id: str
    text: str
    is_error: bool
    exit_code: int | None = None


@quick
@dataclass(frozen=True, slots=True)
class Media:
    """An image or a file as its provider carries it: `data` is base64 text, or `url` says where it is. Neither: absent.

    `name` is a file's name where the provider gives one.
    """

    mime: str | None = None
    data: str | None = None
    url: str | None = None
    name: str | None = None


@quick
@dataclass(frozen=True, slots=True)
class Part:
    """One part as a reader found it. `text` is what spans of source references count in (UTF-8 bytes).

    `block` is the provider's own form of it, `media` what an image or a file holds.
    """

    kind: PartKind
    channel: Channel
    text: str = ""
    call_id: str | None = None
    block: Any = None
    call: ToolCall | None = None
    result: ToolResult | None = None
    media: Media | None = None

    def facts(self) -> PartFacts:
        """The part without its text."""
        return PartFacts(self.kind, self.channel, self.call_id)


@quick
@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader made of one item's bytes: its role, its parts and the group that it belongs to."""

    role: str
    parts: tuple[Part, ...]
    group: str | None = None
    text_of: str | None = None
