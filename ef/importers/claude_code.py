"""Claude Code transcripts (JSON lines) -> meanings.

One `Translator` reads one file from its first line. Records that are delivered to a model become items; compaction
boundaries, titles, usage and closed calls become events of their own; everything else stays in the source. Inline
sub-agents (`isSidechain`) become sessions of their own, children of the main one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from blake3 import blake3

from ..events import (
    Basis,
    Channel,
    Event,
    ForeignCompaction,
    Group,
    ItemAppended,
    ItemReplaced,
    Origin,
    PartKind,
    Place,
    Reading,
    RouteChanged,
    SessionDescribed,
    SessionOpened,
    UsageReported,
)
from ..events.shapes import is_list, is_map
from ..log import Draft
from ..log.base import Assigned
from ..meter import METER, estimate
from ..readers import claude_code as reader
from ..readers.jsonvalues import DEPTH_REMARKED, depth, has_lone_surrogate, read_line
from .chains import Chain, Known, occurred
from .lines import RawLine, lines
from .meaning import Meaning, Remark, Translation
from .names import OPEN_KEY, OWN, facts_of, session_name, session_stream

FORMAT = reader.NAME
_KNOWN = frozenset(
    """user assistant system progress file-history-snapshot summary queue-operation attachment permission-mode mode
    last-prompt ai-title custom-title pr-link agent-name agent-color tag worktree-state""".split()
)
_IDS = frozenset({"uuid", "sessionId"})
_PLAIN = {
    "summary": {"leafUuid"},
    "file-history-snapshot": {"snapshot", "messageId"},
    "queue-operation": {"operation"},
    "attachment": {"attachment", "uuid"},
}
"""What a record of these types has; records of the other known types have a sessionId."""


LOOKED_AT_LINES, LOOKED_AT_BYTES = 200, 64 << 20
"""How much of a file `recognises` looks at: whole lines, some of which are long."""


def recognises(data: bytes) -> bool:
    """Whether a file looks like this format, from its first lines."""
    seen = 0
    for n, row in enumerate(lines(data)):
        if n == LOOKED_AT_LINES or seen > LOOKED_AT_BYTES:
            return False
        seen += len(row.data)
        found = read_line(row.data)
        if any(is_map(v.value) and _is_ours(v.value) for v in found.values):
            return True
        if n == 0 and not row.ended and not found.values:
            return row.data.lstrip().startswith(b"{") and b'"type"' in row.data
    return False


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


Prior = Callable[[str], Mapping[str, str]]
"""stream -> (provider uuid -> key of the item that has it): what other sources have put into a session."""


def translate(
    rows: Iterable[RawLine],
    *,
    source: str,
    store: str,
    session: str | None = None,
    prior: Prior | None = None,
) -> Translation:
    """What a file means. `session` overrides the session's id; `store` is the id of the store that opens it.

    A record whose uuid another source gave to other content (`prior`) replaces that item.
    """
    translator = _Translator(source, store, session, prior or (lambda _: {}))
    for line in rows:
        translator.line(line)
    translator.finish()
    return translator.out


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where a record stands: its key, the key of the item whose place it takes (`again`: of this file), its line."""

    key: str
    item: str
    again: bool
    line: RawLine
    at: int


class _Translator:
    def __init__(self, source: str, store: str, session: str | None, prior: Prior) -> None:
        self.out = Translation()
        self.source, self.store, self._prior = source, store, prior
        self._named = session
        self._main: Chain | None = None
        self._chains: dict[str, Chain] = {}
        self._uuids: dict[str, Known] = {}
        self._parents: list[tuple[str, int, int]] = []
        self._absent: dict[str, list[tuple[int, int]]] = {}
        self._occurrences: dict[str, int] = {}

    # One line.

    def line(self, line: RawLine) -> None:
        found = read_line(line.data)
        if not line.ended and found.rest is not None and _is_text(line.data[: found.rest]):
            found.remarks.discard("encoding")  # what is odd is the torn rest, which waits
        for kind in sorted(found.remarks):
            self._remark(kind, line, line.start, _REMARKS[kind])
        if found.rest is not None and "too-deep" not in found.remarks:
            self._unreadable(line, found.rest, alone=not found.values)
        for value in found.values:
            at = line.start + value.start
            if not is_map(value.value):
                self._remark(
                    "not-object", line, at, "a JSON value that is not an object; kept, not read"
                )
                continue
            self.out.records += 1
            self._record(value.value, line.data[value.start : value.end], line, at)

    def _unreadable(self, line: RawLine, rest: int, *, alone: bool) -> None:
        piece = line.data[rest:]
        if alone and piece.lstrip().startswith(b"//"):
            self._remark("comment", line, line.start + rest, "a comment; kept, not read")
        elif not line.ended:
            self._remark(
                "torn-tail",
                line,
                line.start + rest,
                "the last line is not complete; it waits until it is",
            )
        else:
            self._remark("not-json", line, line.start + rest, "not JSON; kept, not read")

    def _remark(self, kind: str, line: RawLine, offset: int, text: str) -> None:
        self.out.remarks.append(Remark(kind, line.number, offset, text))

    # One record.

    def _record(self, record: dict[str, Any], data: bytes, line: RawLine, at: int) -> None:
        digest = blake3(data).hexdigest()[:32]
        uuid = record.get("uuid")
        uuid = uuid if isinstance(uuid, str) and uuid else None
        if uuid is None:
            nth = self._occurrences[digest] = self._occurrences.get(digest, -1) + 1
            key = f"{digest}.{nth}"
        else:
            key = f"{digest}.0"
        known = self._uuids.get(uuid) if uuid else None
        if known is not None and known.key == key:
            return
        chain = self._chain(record)
        self._parent(record, uuid, line, at)
        if _kind(record) not in _KNOWN:
            self._remark(
                "unknown-type",
                line,
                at,
                f"record type {str(record.get('type'))[:60]!r} is not known; kept",
            )
        at_time, basis = occurred(record.get("timestamp"))
        origin = Origin(self.source, line.number, at, at + len(data))
        place = self._place(record, uuid, key, chain, known)
        if uuid:
            if known is not None or place not in (None, key):
                self._remark(
                    "uuid-conflict", line, at, "this uuid stands before with other content"
                )
            self._uuids[uuid] = Known(key, chain, place)
        again = place is not None and known is not None and place == known.item
        spot = _Spot(key, place or key, again, line, at)
        for meaning in self._meanings(record, data, spot, chain):
            meaning.drafts = [
                _stamped(
                    draft, at_time, basis, origin if draft.place is Place.SOURCE else draft.origin
                )
                for draft in meaning.drafts
            ]
            self.out.meanings.append(meaning)

    def _place(
        self,
        record: dict[str, Any],
        uuid: str | None,
        key: str,
        chain: Chain | None,
        known: Known | None,
    ) -> str | None:
        """The key of the item whose place a record takes: its own, or that of the item that had its uuid before."""
        if chain is None or not reader.is_item(record):
            return None
        if known is not None and known.chain is chain and known.item is not None:
            return known.item
        return self._prior(chain.stream).get(uuid, key) if uuid else key

    def _parent(self, record: dict[str, Any], uuid: str | None, line: RawLine, at: int) -> None:
        parent = record.get("parentUuid")
        if isinstance(parent, str) and parent not in self._uuids:
            self._absent.setdefault(parent, []).append((line.number, at))
        if uuid is not None and uuid in self._absent:
            for number, offset in self._absent.pop(uuid):
                self.out.remarks.append(
                    Remark(
                        "parent-later",
                        number,
                        offset,
                        "its parent stands later in the file; file order is kept",
                    )
                )

    def finish(self) -> None:
        """The end of the file as it is now: says something only to the source's remarks."""
        for places in self._absent.values():
            for number, offset in places:
                self.out.remarks.append(
                    Remark(
                        "dangling-parent",
                        number,
                        offset,
                        "its parent is not in the file; file order is kept",
                    )
                )
        once = {(r.offset, r.kind, r.line): r for r in reversed(self.out.remarks)}
        self.out.remarks = [once[place] for place in sorted(once)]

    # Sessions.

    def _chain(self, record: dict[str, Any]) -> Chain | None:
        side = record.get("isSidechain") is True
        given = record.get("sessionId")
        if self._main is None:
            if not isinstance(given, str) or not given:
                return None
            agent = record.get("agentId")
            suffix = f".agent-{agent}" if side and isinstance(agent, str) and agent else ""
            name = session_name(self._named or given + suffix)
            self._main = self._open(name, "subagent" if side else "root", None, None, side=side)
        if not side or self._main.side:
            return self._main
        parent = record.get("parentUuid")
        known = self._uuids.get(parent) if isinstance(parent, str) else None
        if known is not None and known.chain is not None and known.chain.side:
            return known.chain
        return self._side_chain(record)

    def _side_chain(self, record: dict[str, Any]) -> Chain:
        """A sub-agent begins: a child of the call whose prompt it was given, else of the newest open agent call."""
        assert self._main is not None
        agent = record.get("agentId")
        if isinstance(agent, str) and agent in self._chains:
            return self._chains[agent]
        root = str(record.get("agentId") or record.get("uuid") or f"n{len(self._chains) + 1}")
        name = session_name(f"{self._main.stream.partition('/')[2]}.agent-{root[:36]}")
        prompt = "".join(p.text for p in reader.reading(record).parts)
        agents = [o for o in self._main.open_calls if o.call.action == "agent"]
        match = [o.item for o in agents if o.call.text == prompt] or [o.item for o in agents[-1:]]
        chain = self._open(
            name,
            "subagent",
            self._main.stream,
            match[0] if match else self._main.last_key,
            side=True,
        )
        self._chains[root] = chain
        return chain

    def _open(
        self, name: str, relation: str, parent: str | None, parent_key: str | None, *, side: bool
    ) -> Chain:
        stream = session_stream(name)
        store = self.store

        def opened(assigned: Assigned) -> Event:
            if parent is None or parent_key is None:
                return SessionOpened(store, relation, FORMAT)
            tip = assigned[parent, parent_key]
            return SessionOpened(store, relation, FORMAT, parent, tip.seq, tip.digest)

        draft = Draft(stream, OPEN_KEY, opened, Channel.IMPORTER)
        self.out.meanings.append(Meaning(stream, OPEN_KEY, [draft]))
        self.out.sessions.append(name)
        return Chain(stream, side=side)

    # What a record means.

    def _meanings(
        self, record: dict[str, Any], data: bytes, spot: _Spot, chain: Chain | None
    ) -> list[Meaning]:
        kind, leaf = _kind(record), record.get("leafUuid")
        if kind == "summary" and self._main and isinstance(leaf, str) and leaf in self._uuids:
            return self._title(record.get("summary"), spot.key, self._main)
        if chain is None:
            return []
        if kind in ("ai-title", "custom-title"):
            return self._title(
                record.get("aiTitle") or record.get("customTitle") or record.get("title"),
                spot.key,
                chain,
            )
        if kind == "system":
            return self._system(record, spot.key, chain)
        if reader.is_item(record):
            return [self._item(record, data, spot, chain)]
        return []

    def _title(self, title: Any, key: str, chain: Chain) -> list[Meaning]:
        if not isinstance(title, str) or not title.strip():
            return []
        text = title.strip()[:400].encode("utf-8", "replace").decode()
        return [Meaning(chain.stream, key, [_event(chain, key, SessionDescribed(text))])]

    def _system(self, record: dict[str, Any], key: str, chain: Chain) -> list[Meaning]:
        subtype = record.get("subtype")
        if subtype not in ("compact_boundary", "microcompact_boundary"):
            return []
        form = "compact" if subtype == "compact_boundary" else "microcompact"
        facts = record.get(f"{form}Metadata")
        facts = facts if is_map(facts) else {}
        trigger, tokens = facts.get("trigger"), facts.get("preTokens")
        dropped = facts.get("compactedToolIds")
        event = ForeignCompaction(
            FORMAT,
            form,
            reader.name_of(trigger) if isinstance(trigger, str) else None,
            _count(tokens),
            tuple(reader.name_of(d) for d in dropped if isinstance(d, str))
            if is_list(dropped)
            else (),
        )
        return [Meaning(chain.stream, key, [_event(chain, key, event)])]

    def _item(self, record: dict[str, Any], data: bytes, spot: _Spot, chain: Chain) -> Meaning:
        reading = reader.spoken(reader.reading(record), chain.calls.get)
        self._remark_item(record, reading, chain, spot.line, spot.at)
        key, replaces = spot.key, spot.item != spot.key
        before = [] if spot.again else chain.closers(reading, key)
        route = [] if spot.again else self._route(record, key, chain)
        item = Draft(
            chain.stream,
            key,
            ItemReplaced(data) if replaces else ItemAppended(data),
            Channel.IMPORTER,
            item=facts_of(reading, METER, estimate(reading)),
            group=Group(reading.group) if reading.group else None,
            reader=(reader.NAME, reader.VERSION),
            place=Place.SOURCE,
            cause_key=spot.item if replaces else None,
        )
        if spot.again:
            chain.remember_again(reading, spot.item)
        else:
            chain.remember(reading, spot.item)
        usage = self._usage(record, key, chain)
        drafts = [item] if replaces else [*before, *route, item, *usage]
        return Meaning(chain.stream, key, drafts, drafts.index(item), reading)

    def _remark_item(
        self, record: dict[str, Any], reading: Reading, chain: Chain, line: RawLine, at: int
    ) -> None:
        if depth(record.get("message", record)) > DEPTH_REMARKED - 2:
            self._remark("too-deep", line, at, _REMARKS["too-deep"])
        for part in reading.parts:
            if part.kind is PartKind.OPAQUE:
                self._remark(
                    "unknown-block", line, at, "a block of a kind that is not known; kept as it is"
                )
            if part.result is not None:
                if part.call_id not in chain.calls:
                    self._remark(
                        "orphan-result",
                        line,
                        at,
                        "a tool result whose call is not before it in the file",
                    )
                if part.text.startswith("<persisted-output>"):
                    self._remark(
                        "persisted-output",
                        line,
                        at,
                        "the transcript holds only a part of this tool's output",
                    )
            texts = (part.text, part.call.command if part.call else None)
            if any(t and has_lone_surrogate(t) for t in texts):
                self._remark("encoding", line, at, _REMARKS["encoding"])

    def _route(self, record: dict[str, Any], key: str, chain: Chain) -> list[Draft]:
        model = record["message"].get("model") if is_map(record.get("message")) else None
        if (
            not isinstance(model, str)
            or not model
            or reader.is_synthetic(record)
            or model == chain.model
        ):
            return []
        chain.model = model
        return [
            _event(chain, f"{OWN}route/{key}", RouteChanged("anthropic", reader.name_of(model)))
        ]

    def _usage(self, record: dict[str, Any], key: str, chain: Chain) -> list[Draft]:
        message = record.get("message")
        usage = message.get("usage") if is_map(message) else None
        group = message.get("id") if is_map(message) else None
        if not is_map(usage) or not isinstance(group, str) or chain.usage == (group, usage):
            return []
        chain.usage = (group, usage)
        names = (
            "input_tokens",
            "output_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
        )
        report = UsageReported(reader.name_of(group), *(_count(usage.get(name)) for name in names))
        return [_event(chain, f"{OWN}usage/{key}", report)]


_REMARKS = {
    "encoding": "bytes or escapes that are not valid text; the bytes are kept exactly",
    "duplicate-keys": "a key stands twice in one object; its first value is read",
    "glued": "more than one value on one line; each is read",
    "too-deep": f"nested deeper than {DEPTH_REMARKED}; the bytes are kept exactly",
}


def _kind(record: Mapping[str, Any]) -> str | None:
    kind = record.get("type")
    return kind if isinstance(kind, str) else None


def _is_text(data: bytes) -> bool:
    try:
        return not data.decode("utf-8").startswith("\ufeff")
    except UnicodeDecodeError:
        return False


def _event(chain: Chain, key: str, event: Event) -> Draft:
    return Draft(chain.stream, key, event, Channel.IMPORTER)


def _stamped(draft: Draft, at: int | None, basis: Basis, origin: Origin | None) -> Draft:
    return replace(draft, occurred_at=at, basis=basis, origin=origin)


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 2**53 else None
