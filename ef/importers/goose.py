"""goose sessions of JSON lines (up to 1.9), and what is common with its database.

The first line describes the session, each other one is a message; the item is its `content`. `metadata` says who sees a
message: one that only the agent sees was written by a compaction, a summary where its role is user; messages before it
that the agent does not see any more were dropped by it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..events import Channel, ForeignCompaction, Reading, SessionDescribed
from ..events.shapes import is_list, is_map
from ..readers import goose as reader
from ..readers.pieces import id_of, kind_of, map_of
from .chains import Chain
from .formats import Format, Head, Tells
from .given import calls_of, made_by_agent, said_by, title_of, value_in
from .translator import Given, Spot, Translator

NAME = "goose"
_NAMED = re.compile(r"(\d{8}_\d{1,6})\.jsonl")
_NOTICES = ("systemNotification", "conversationCompacted", "toolConfirmationRequest", "actionRequired")  # fmt: skip
_INJECTED = ("<info-msg>", "<system-reminder>")


class Messages(Translator):
    """What goose's messages mean, whatever holds them."""

    NAME = NAME

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._hidden: dict[str, list[str]] = {}

    def message(self, chain: Chain, told: Mapping[str, Any], spot: Spot, key: str) -> None:
        """A message: its role and metadata; its content is the value of `key` of the record at `spot`."""
        role, seen = told.get("role"), map_of(told.get("metadata"))
        agent, human = seen.get("agentVisible") is not False, seen.get("userVisible") is not False
        if role not in ("user", "assistant") or not (agent or human):
            return  # what nobody sees any more stands again behind a summary, and is one item
        content = value_in(spot, key)
        if content is None or _is_notice(content.value):
            return
        reading = reader.reading(content.value, str(role))
        if not reading.parts:
            return
        which = reader.USER if role == "user" else reader.ASSISTANT
        if agent and not human:
            reading = self._compacted(chain, reading, content)
        reading = made_by_agent(_injected(reading)) if chain.side else _injected(reading)
        self.item(chain, content, which, reading)
        if not agent:
            self._hidden.setdefault(chain.stream, []).extend(calls_of(reading))

    def _compacted(self, chain: Chain, reading: Reading, spot: Spot) -> Reading:
        """A message that only the agent sees: a compaction's summary, or the word that goes on from it."""
        if reading.role == "assistant":
            return said_by(reading, Channel.SYSTEM)
        dropped = tuple(self._hidden.pop(chain.stream, []))
        self.event(chain, spot, ForeignCompaction(NAME, "compact", None, None, dropped))
        return said_by(reading, Channel.IMPORTER)


def _is_notice(content: Any) -> bool:
    """Whether a message speaks to the interface alone."""
    blocks = content if is_list(content) else []
    return bool(blocks) and all(kind_of(block) in _NOTICES for block in blocks)


def _injected(reading: Reading) -> Reading:
    """The reading with the harness's channel where a user's text opens with one of its wrappers."""
    first = reading.parts[0]
    ours = first.channel is Channel.USER_TYPED and first.text.lstrip().startswith(_INJECTED)
    return said_by(reading, Channel.SYSTEM, of=(Channel.USER_TYPED,)) if ours else reading


class Goose(Messages):
    """A session of JSON lines."""

    def time_of(self, value: Mapping[str, Any]) -> Any:
        return value.get("created")

    def record(self, value: dict[str, Any], spot: Spot) -> None:
        if self.main is None:
            found = _NAMED.fullmatch(self.given.path.replace("\\", "/").rpartition("/")[2])
            self.begin(found[1] if found else None)
        chain = self.main
        assert chain is not None
        if "role" in value:
            self.message(chain, value, spot, "content")
        elif "working_dir" in value or "description" in value:
            if title_of(value.get("description")):
                self.event(chain, spot, SessionDescribed(title_of(value.get("description"))))
        else:
            self.unknown(spot, id_of(value.get("type")))


def recognises(head: Head) -> bool:
    """Whether a file looks like a session of goose, from its first lines."""
    records = head.records[:20]
    if records and {"working_dir", "message_count"} <= records[0].keys():
        return True
    return any(
        record.get("role") in ("user", "assistant")
        and type(record.get("created")) is int
        and is_list(record.get("content"))
        and all(is_map(block) and "type" in block for block in record["content"])
        and "object" not in record
        for record in records
    )


TELLS = Tells(
    ids="call ids",
    groups="inferred",
    order="file order",
    usage="none (totals of the session stay in the source)",
    errors="status error, isError",
    compaction="boundary, calls dropped, summary",
    subagents="sessions of their own (database)",
    images="base64",
)

FORMAT = Format(
    NAME,
    "goose",
    "lines",
    Goose,
    recognises,
    TELLS,
)
