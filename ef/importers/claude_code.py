"""Claude Code transcripts (JSON lines) -> meanings.

One `Translator` reads one file from its first line. Records that are delivered to a model become items; compaction
boundaries, titles, usage and closed calls become events of their own; everything else stays in the source. Inline
sub-agents (`isSidechain`) become sessions of their own, children of the main one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import (
    ForeignCompaction,
    Reading,
    RouteChanged,
    SessionDescribed,
    UsageReported,
)
from ..events.shapes import is_list, is_map
from ..readers import claude_code as reader
from .chains import Chain, Known
from .formats import Format, Head, Tells
from .translator import REMARKS, Given, Spot, Translator, count

NAME = reader.NAME
_READER = (reader.NAME, reader.VERSION)
_KNOWN = frozenset(
    """user assistant system progress file-history-snapshot summary queue-operation attachment permission-mode mode
    last-prompt ai-title custom-title pr-link agent-name agent-color tag worktree-state""".split()
)
_IDS = frozenset({"uuid", "sessionId"})
_ENVELOPE = frozenset(
    """type uuid parentUuid timestamp sessionId isSidechain userType cwd version gitBranch message slug entrypoint
    requestId agentId promptId permissionMode summary leafUuid messageId snapshot operation attachment""".split()
)
"""What the only line of a file may have before it is torn."""
_PLAIN = {
    "summary": {"leafUuid"},
    "file-history-snapshot": {"snapshot", "messageId"},
    "queue-operation": {"operation"},
    "attachment": {"attachment", "uuid"},
}
"""What a record of these types has; records of the other known types have a sessionId."""


def recognises(head: Head) -> bool:
    """Whether a file looks like this format, from its first lines."""
    if any(_is_ours(record) for record in head.records):
        return True
    torn = head.whole and b"\n" not in head.data and not head.records
    torn = torn and head.data.lstrip()[:1] == b"{"
    return torn and b'"type"' in head.data and head.keys <= _ENVELOPE


def _is_ours(record: Mapping[str, Any]) -> bool:
    """Whether a record is plainly one of this format: other tools' records have some of the same words as types."""
    kind = _kind(record)
    if kind in ("user", "assistant"):
        message = record.get("message")
        return is_map(message) and "content" in message and bool(_IDS & record.keys())
    wanted = _PLAIN.get(kind) if kind in _KNOWN else None
    return (
        wanted <= record.keys() if wanted is not None else kind in _KNOWN and "sessionId" in record
    )


class ClaudeCode(Translator):
    """A transcript: its records, and the sub-agents in it."""

    NAME = NAME
    CONFLICT = "uuid-conflict"

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._agents: dict[str, Chain] = {}
        self._uuids: dict[str, Known] = {}
        self._absent: dict[str, list[tuple[int, int]]] = {}

    def record(self, value: dict[str, Any], spot: Spot) -> None:
        uuid = value.get("uuid")
        uuid = uuid if isinstance(uuid, str) and uuid else None
        if uuid is not None:
            spot.is_first()
        known = self._uuids.get(uuid) if uuid else None
        if known is not None and known.key == spot.key:
            return
        chain = self._chain(value)
        self._parent(value, uuid, spot)
        if _kind(value) not in _KNOWN:
            self.unknown(spot, value.get("type"))
        if uuid is not None:
            if known is not None:
                self.remark(self.CONFLICT, spot, REMARKS["id-conflict"])
            self._uuids[uuid] = Known(spot.key, chain, None)
        self._means(value, uuid, spot, chain)

    def _parent(self, record: dict[str, Any], uuid: str | None, spot: Spot) -> None:
        parent = record.get("parentUuid")
        if isinstance(parent, str) and parent not in self._uuids:
            self._absent.setdefault(parent, []).append((spot.line, spot.start))
        if uuid is not None and uuid in self._absent:
            for line, start in self._absent.pop(uuid):
                self._remark("parent-later", line, start, _LATER)

    def ended(self) -> None:
        for places in self._absent.values():
            for line, start in places:
                self._remark("dangling-parent", line, start, _DANGLING)
            places.clear()  # said

    # Sessions.

    def _chain(self, record: dict[str, Any]) -> Chain | None:
        side = record.get("isSidechain") is True
        given = record.get("sessionId")
        if self.main is None:
            if not isinstance(given, str) or not given:
                return None
            agent = record.get("agentId")
            if not side:
                return self.begin(given)
            if not isinstance(agent, str) or not agent:
                return self.begin(given, relation="subagent")
            asked = _asked(record)
            return self.begin(
                f"{given}.agent-{agent}", relation="subagent", parent=given, asked=asked
            )
        if not side or self.main.side:
            return self.main
        parent = record.get("parentUuid")
        known = self._uuids.get(parent) if isinstance(parent, str) else None
        if known is not None and known.chain is not None and known.chain.side:
            return known.chain
        return self._side_chain(record, self.main)

    def _side_chain(self, record: dict[str, Any], main: Chain) -> Chain:
        """A sub-agent begins: a child of the call whose prompt it was given, else of the newest open agent call."""
        agent = record.get("agentId")
        if isinstance(agent, str) and agent in self._agents:
            return self._agents[agent]
        root = str(record.get("agentId") or record.get("uuid") or f"n{len(self._agents) + 1}")
        prompt = _asked(record)
        agents = [o for o in main.open_calls if o.call.action == "agent"]
        match = [o.item for o in agents if o.call.text == prompt] or [o.item for o in agents[-1:]]
        chain = self._agents[root] = self.begin(
            f"{main.stream.partition('/')[2]}.agent-{root[:36]}",
            relation="subagent",
            parent=main,
            parent_key=match[0] if match else None,
        )
        return chain

    # What a record means.

    def _means(
        self, record: dict[str, Any], uuid: str | None, spot: Spot, chain: Chain | None
    ) -> None:
        kind, leaf = _kind(record), record.get("leafUuid")
        if kind == "summary" and self.main and isinstance(leaf, str) and leaf in self._uuids:
            self._title(record.get("summary"), spot, self.main)
        elif chain is None:
            return
        elif kind in ("ai-title", "custom-title"):
            title = record.get("aiTitle") or record.get("customTitle") or record.get("title")
            self._title(title, spot, chain)
        elif kind == "system":
            self._system(record, spot, chain)
        elif reader.is_item(record):
            reading = reader.reading(record)
            route, usage = self._route(record, chain), self._usage(record, chain)
            self.item(chain, spot, _READER, reading, id=uuid, infer=False, route=route, usage=usage)

    def _title(self, title: Any, spot: Spot, chain: Chain) -> None:
        if isinstance(title, str) and title.strip():
            text = title.strip()[:400].encode("utf-8", "replace").decode()
            self.said(chain, spot, spot.key, SessionDescribed(text))

    def _system(self, record: dict[str, Any], spot: Spot, chain: Chain) -> None:
        subtype = record.get("subtype")
        if subtype not in ("compact_boundary", "microcompact_boundary"):
            return
        form = "compact" if subtype == "compact_boundary" else "microcompact"
        facts = record.get(f"{form}Metadata")
        facts = facts if is_map(facts) else {}
        trigger = facts.get("trigger")
        dropped = facts.get("compactedToolIds")
        names = dropped if is_list(dropped) else []
        event = ForeignCompaction(
            NAME,
            form,
            reader.name_of(trigger) if isinstance(trigger, str) else None,
            count(facts.get("preTokens")),
            tuple(reader.name_of(d) for d in names if isinstance(d, str)),
        )
        self.said(chain, spot, spot.key, event)

    def remark_parts(self, spot: Spot, reading: Reading, chain: Chain) -> None:
        super().remark_parts(spot, reading, chain)
        if any(p.result and p.text.startswith("<persisted-output>") for p in reading.parts):
            self.remark("persisted-output", spot, REMARKS["persisted-output"])

    def _route(self, record: dict[str, Any], chain: Chain) -> RouteChanged | None:
        message = record.get("message")
        model = message.get("model") if is_map(message) else None
        if not isinstance(model, str) or not model or reader.is_synthetic(record):
            return None
        return chain.routed(RouteChanged("anthropic", reader.name_of(model)))

    def _usage(self, record: dict[str, Any], chain: Chain) -> UsageReported | None:
        message = record.get("message")
        usage = message.get("usage") if is_map(message) else None
        group = message.get("id") if is_map(message) else None
        if not is_map(usage) or not isinstance(group, str) or chain.usage == (group, usage):
            return None
        chain.usage = (group, usage)
        return UsageReported(reader.name_of(group), *(count(usage.get(name)) for name in _USAGE))


def _asked(record: dict[str, Any]) -> str:
    """What a sub-agent's first record asks it to do."""
    return "".join(part.text for part in reader.reading(record).parts)


_LATER = "its parent stands later in the file; file order is kept"
_DANGLING = "its parent is not in the file; file order is kept"
_USAGE = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


def _kind(record: Mapping[str, Any]) -> str | None:
    kind = record.get("type")
    return kind if isinstance(kind, str) else None


FORMAT = Format(
    NAME,
    "Claude Code",
    "lines",
    ClaudeCode,
    recognises,
    Tells(
        ids="uuid, message id",
        groups="message id",
        order="file order; parent links kept",
        usage="per message, with cache",
        errors="is_error; exit codes of failures",
        compaction="boundary, trigger, tokens before; cleared results; summary",
        subagents="inline and files of their own",
        images="base64",
    ),
)
