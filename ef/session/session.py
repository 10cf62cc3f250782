"""One session: append to it, declare what holds, and ask for its context, its state and where a value comes from."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from ..audit import Audit, Holds, audit, hold
from ..codec.digests import anchor_id, value_digest
from ..errors import InputRefused, NotAllowed, NotFound, UsageError
from ..events import (
    Anchor,
    AnchorDeclared,
    AnchorKey,
    Authority,
    Basis,
    Channel,
    Kind,
    Part,
    Reading,
    Recorded,
    Rule,
    SourceRef,
)
from ..importers.names import session_stream
from ..log import Draft, given
from ..log import items as log_items
from ..log.items import Cited, reading_of
from ..log.storelog import StoreLog
from ..projections.working import HELD, SHOWN, Working
from ..readers import DIALECTS
from ..reducers import Reducer, gate
from ..reducers.heads import Head, lifecycle
from ..reducers.surface import Node
from ..render import anthropic as rendered
from ..render import export as exported
from ..render.safejson import canonical
from ..render.turns import Links, Shown
from .appending import Appender
from .borders import checked_key, declaration
from .moments import At, resolve
from .projected import Projected
from .views import Context, Difference, Export, NodeView, State

if TYPE_CHECKING:
    from ..importers.redaction import Redactor

EXCERPT_CHARS = 160
_DEFAULT_AUTHORITY = {
    Kind.OBJECTIVE: Authority.NORMATIVE, Kind.CONSTRAINT: Authority.NORMATIVE, Kind.DECISION: Authority.DECISION,
    Kind.VALUE: Authority.NORMATIVE, Kind.OBLIGATION: Authority.NORMATIVE,
}  # fmt: skip


class Session:
    """A session of a store; made by `Store.session`. It comes into being with its first append or declare."""

    def __init__(
        self,
        log: StoreLog,
        name: str,
        random_key: Callable[[], str],
        redactor: Redactor | None = None,
    ) -> None:
        self._log, self.id, self._random_key = log, name, random_key
        self._stream = session_stream(name)
        self._appender = Appender(log, self._stream, random_key, redactor)
        self._projected = Projected(log, self._stream)
        self._lock = threading.RLock()

    def __repr__(self) -> str:
        return f"<Session {self.id}>"

    @property
    def seq(self) -> int:
        """The seq of the newest event; 0 for a session that holds nothing yet."""
        return self._log.tip(self._stream).seq

    # Writing.

    def append(
        self,
        message: Mapping[str, Any],
        *,
        channel: Channel | str | None = None,
        key: str | None = None,
    ) -> int:
        """Append one Anthropic-shaped message ({"role": …, "content": text or blocks}); its seq. Durable when it
        returns.

        `channel` says who speaks in its texts (default: the user typed a user message, the assistant an assistant's).
        `key` is an idempotency key: the same key with the same message is one event. What the message grounds (test
        verdicts, tool errors, files) is declared in the same batch. Raises InputRefused, KeyConflict, CannotWrite,
        OutcomeUnknown, Busy.
        """
        return self._appender.append(message, channel=_channel(channel), key=key)

    def append_nowait(
        self,
        message: Mapping[str, Any],
        *,
        channel: Channel | str | None = None,
        key: str | None = None,
    ) -> Future[int]:
        """Append without waiting for the disk: the future gives the seq once it is durable. See `append`.

        Appends of one caller keep their order. It waits only while too many bytes are in flight. What cannot be read
        raises at once; the rest raises from the future.
        """
        return self._appender.append_nowait(message, channel=_channel(channel), key=key)

    async def aappend(
        self,
        message: Mapping[str, Any],
        *,
        channel: Channel | str | None = None,
        key: str | None = None,
    ) -> int:
        """Append; durable when it returns, and the event loop goes on meanwhile. See `append`."""
        return await self._appender.aappend(message, channel=_channel(channel), key=key)

    def declare(
        self,
        kind: Kind | str,
        *,
        key: str,
        value: Any,
        quote: str | None = None,
        source: int | None = None,
        authority: Authority | str | None = None,
        unit: str | None = None,
        because: str | None = None,
        idempotency_key: str | None = None,
    ) -> int:
        """The operator declares an anchor; the seq of its event. With `quote` and `source` (an item's seq) it cites
        the item.

        `key` is namespace/entity/property; `value` null, bool, int, text or a list or map of those. Raises UsageError,
        InputRefused (the quote is not in the item; a value that cannot be stored), NotFound, NotAllowed.
        """
        said = declaration(
            value,
            kind=kind,
            key=key,
            quote=quote,
            source=source,
            authority=authority,
            unit=unit,
            because=because,
            idempotency_key=idempotency_key,
        )
        says = said.authority or _DEFAULT_AUTHORITY.get(said.kind)
        if says is None:
            raise NotAllowed(
                what=f"to declare {said.kind.value}",
                why="the operator states norms and decisions; runs state evidence",
            )
        name = checked_key(said.idempotency_key) or self._random_key()
        refs = self._cite(said.quote, said.source)
        anchor_key = AnchorKey.parse(said.key)
        assert anchor_key is not None
        rule = Rule("declare/operator", 1)
        ground = [[name], *([r.item_key, r.part, r.start, r.end] for r in refs)]
        anchor = Anchor(
            anchor_id(self._stream, said.kind.value, key, ground, [rule.name, rule.version]),
            said.kind,
            anchor_key,
            value,
            says,
            Channel.OPERATOR,
            rule,
            unit=unit,
            sources=refs,
            because=because,
        )
        why = gate.refusal(anchor)
        if why is not None:
            raise NotAllowed(what=f"to declare {key}", why=why)
        draft = Draft(
            self._stream, name, AnchorDeclared(anchor), Channel.OPERATOR, basis=Basis.EQUAL
        )
        opening = [] if self.seq else [self._appender.opening()]
        return self._log.append([*opening, draft])[-1].seq

    def _cite(self, quote: str | None, source: int | None) -> tuple[SourceRef, ...]:
        if quote is None or source is None:
            return ()
        record = self._log.get(self._stream, source)
        if record.header.item is None:
            raise InputRefused(
                where=f"event {source}", why="it is not an item", remedy="Cite an item's seq."
            )
        wanted = quote.encode("utf-8", "surrogatepass")
        for n, part in enumerate(reading_of(self._log, record).parts):
            start = part.text.encode("utf-8", "surrogatepass").find(wanted)
            if start >= 0:
                return (
                    SourceRef(
                        self._stream, source, n, start, start + len(wanted), record.digest, part.channel,
                        part.kind.value, record.header.key,
                    ),
                )  # fmt: skip
        raise InputRefused(
            where=f"event {source}",
            why="it does not hold that quote",
            remedy="Quote its text exactly, to the byte.",
        )

    # Reading.

    def working(self, at: At = None, *, recorded: bool = False) -> Working:
        """The working projection as of a moment (a seq, an ISO time, or now), built from the log for the caller."""
        self._must_exist()
        seq = resolve(self._log, self._stream, at, recorded=recorded)
        return self._projected.fresh(seq)

    def _at(self, at: At, recorded: bool, reducers: Sequence[Reducer]) -> Working:
        """What these reducers say of a moment: the session's own, taken further, where that is enough. Under the
        lock."""
        self._must_exist()
        seq = resolve(self._log, self._stream, at, recorded=recorded)
        return self._projected.as_of(seq, reducers)

    def _must_exist(self) -> None:
        if self.seq == 0:
            raise NotFound(
                what="session", name=self.id, where="the store", remedy="`ef sessions` lists them."
            )

    def events(self, *, after: int = 0, at: At = None) -> Iterator[Recorded]:
        """The session's events after seq `after` up to a moment, each with its header and digest.

        Items come without their bytes, as reducers meet them; `ef.log.items.reading_of` reads those.
        """
        given.number("after", after)
        upto = resolve(self._log, self._stream, at)
        return log_items.recorded(self._log, self._stream, after=after, upto=upto)

    def context(self, at: At = None, *, recorded: bool = False) -> Context:
        """What the model would see at a moment. Never appends."""
        with self._lock:
            return self._context(self._at(at, recorded, SHOWN))

    def _context(self, working: Working) -> Context:
        shown: list[Shown] = []
        nodes: list[NodeView] = []
        for node, reading, dialect in self._readings(working):
            shown.append(Shown(node.seq, node.facts.role, node.group, reading.parts, dialect))
            nodes.append(_node_view(node, reading))
        system, messages, left_out = rendered.messages(shown, _links(working))
        digest = value_digest(canonical([system, messages] if system else messages)).hex()
        tokens = sum(n.tokens or 0 for n in nodes)
        return Context(
            self.id,
            working.seq,
            tokens,
            tuple(nodes),
            messages,
            digest,
            working.described.compactions,
            system=system,
            left_out=left_out,
        )

    def _readings(self, working: Working) -> Iterator[tuple[Node, Reading, str]]:
        """Each node on the surface with its reading, and whose blocks that holds."""
        for node in working.surface.nodes.values():
            record = self._log.get(self._stream, node.content_seq)
            reader = record.header.reader
            dialect = DIALECTS.get(reader[0], "") if reader else ""
            yield node, reading_of(self._log, record), dialect

    def export(
        self, format: str, at: At = None, *, recorded: bool = False, everything: bool = False
    ) -> Export:
        """The context at a moment, or with `everything` the whole history, as a provider takes it. Never appends.

        `format` is anthropic, openai (chat), responses or gemini. Raises UsageError for another.
        """
        given.text("format", format)
        if format not in exported.WRITERS:
            known = ", ".join(exported.WRITERS)
            raise UsageError(detail=f"format {format!r} is not known; it is one of {known}")
        with self._lock:
            # Nothing takes an item off the surface in this version: the whole history is what is on it.
            working = self._at(at, recorded, SHOWN)
            nodes = (
                Shown(node.seq, node.facts.role, node.group, reading.parts, dialect)
                for node, reading, dialect in self._readings(working)
            )
            found = exported.write(format, nodes, _links(working))
        return Export(
            self.id,
            working.seq,
            format,
            found.system,
            found.messages,
            found.left_out,
            found.as_text,
            found.renamed,
            everything,
        )

    def state(self, at: At = None, *, recorded: bool = False, quotes: bool = True) -> State:
        """What holds at a moment, each value with its exact quoted evidence. Never appends.

        Without `quotes` the references are there, the items that they cite are not read, and each quote is None.
        """
        with self._lock:
            return self._state(self._at(at, recorded, HELD), Cited(self._log) if quotes else None)

    def _state(self, working: Working, cited: Cited | None) -> State:
        heads, contested = working.heads.heads, working.heads.contested

        def held(head: Head, life: str) -> Holds:
            return hold(cited, head.anchor, head.seq, life, head.superseded)

        return State(
            self.id,
            working.seq,
            working.state_digest().hex(),
            {k: held(h, lifecycle(working.heads, k)) for k, h in sorted(heads.items())},
            {k: held(h, "contested") for k, h in sorted(contested.items())},
        )

    def diff(self, a: At, b: At = None, *, recorded: bool = False) -> Difference:
        """What changed between two moments; they are put in order."""
        a, b = sorted(resolve(self._log, self._stream, x, recorded=recorded) for x in (a, b))
        before, after = self.state(a), self.state(b)
        old, new = before.heads, after.heads
        earlier, later = self.context(a), self.context(b)
        seen = {n.seq for n in earlier.nodes}
        return Difference(
            self.id,
            a,
            b,
            {k: h for k, h in new.items() if k not in old},
            {k: (old[k], h) for k, h in new.items() if k in old and _differs(old[k], h)},
            {k: h for k, h in old.items() if k not in new},
            tuple(n for n in later.nodes if n.seq not in seen),
            {
                "context": {"from": earlier.digest, "to": later.digest},
                "state": {"from": before.digest, "to": after.digest},
            },
        )

    def audit(self, key: str, at: At = None, *, recorded: bool = False) -> Audit:
        """Where the value of a key (or of an anchor id) comes from, and the chain from its evidence to the moment.

        Raises NotFound when nothing was ever declared for it, Damaged when the chain does not verify.
        """
        given.text("key", key)
        with self._lock:
            working = self._at(at, recorded, HELD)
            return audit(self._log, self.id, self._stream, key, working)


def _links(working: Working) -> Links:
    surface = working.surface
    return Links(surface.results, surface.answered, surface.closed, surface.late)


def _differs(old: Holds, new: Holds) -> bool:
    return (old.seq, old.lifecycle) != (new.seq, new.lifecycle)


def _node_view(node: Node, reading: Reading) -> NodeView:
    channels = tuple(dict.fromkeys(p.channel.value for p in reading.parts))
    texts = [p.text or _called(p) or p.kind.value for p in reading.parts]
    return NodeView(
        node.seq, node.facts.tokens, node.facts.role, channels, " ".join(texts)[:EXCERPT_CHARS]
    )


def _called(part: Part) -> str:
    call = part.call
    return f"{call.name} {call.command or call.path or ''}".strip() if call else ""


def _channel(given: Channel | str | None) -> Channel | None:
    return None if given is None else _enum(Channel, given, "channel")


def _enum(kind: Any, given: Any, what: str) -> Any:
    try:
        return kind(given)
    except ValueError:
        known = ", ".join(k.value for k in kind)
        raise UsageError(detail=f"{what} {given!r} is not known; it is one of {known}") from None
