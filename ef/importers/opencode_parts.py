"""What the parts of OpenCode's messages mean, in an exported session and in the database.

A message's parts are the items; its `info` says who speaks. What a part's state says of pruning becomes one event for
all parts that were pruned together, where the next message begins. A session begins with its first item, so that a
sub-agent's session comes behind the call that asked for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from blake3 import blake3

from ..events import Channel, ForeignCompaction, Reading, RouteChanged, SessionDescribed
from ..readers import opencode as reader
from ..readers.pieces import id_of, kind_of, map_of, text_of
from ..readers.tools import named
from .chains import INFERRED, Chain
from .given import made_by_agent, name_in, place_of, said_by, title_of, usage_of
from .translator import Given, Spot, Translator, count

NAME = "opencode"
_KEPT = ("role", "summary", "providerID", "modelID", "tokens", "time")
_ASIDE = frozenset("step-start step-finish snapshot patch agent retry compaction".split())
_READ = {"user": ("text", "file", "subtask"), "assistant": ("text", "reasoning", "tool", "file")}


@dataclass(slots=True)
class Message:
    """A message as its `info` has it: its session, its name, who speaks, when it began (epoch ms), where it stands."""

    session: str
    name: str
    info: Mapping[str, Any]
    spot: Spot
    begun: bool = False

    @property
    def role(self) -> str:
        """Who speaks."""
        return text_of(self.info.get("role"))

    @property
    def created(self) -> int:
        """When it began."""
        return count(map_of(self.info.get("time")).get("created")) or 0

    @property
    def summary(self) -> bool:
        """Whether it is the summary of a compaction."""
        return self.role == "assistant" and self.info.get("summary") is True


@dataclass(slots=True)
class Pruned:
    """A call whose output was cleared: when, which, and where it stands."""

    at: int
    call: str
    spot: Spot


@dataclass(slots=True)
class Told:
    """A session as its own record has it."""

    parent: str
    title: str
    spot: Spot
    described: bool = False
    pruned: list[Pruned] = field(default_factory=list[Pruned])


class Parts(Translator):
    """What the parts of OpenCode's messages mean, whatever holds them."""

    NAME = NAME

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._sessions: dict[str, Told] = {}
        self._tasks: dict[str, str] = {}
        self._triggers: dict[str, str] = {}
        self._times: Counter[tuple[str, str]] = Counter()
        self._chained: dict[str, Chain] = {}

    def session_told(self, name: Any, parent: Any, title: Any, spot: Spot) -> None:
        """What a session's own record says."""
        self._sessions[text_of(name)] = Told(text_of(parent), title_of(title), place_of(spot))

    def message_told(self, session: str, info: Mapping[str, Any], spot: Spot) -> Message:
        """A message as its `info` has it."""
        name = self.once("message", id_of(info.get("id")))
        kept = {key: info[key] for key in _KEPT if key in info}
        return Message(session, name, kept, place_of(spot))

    def part(self, value: Mapping[str, Any], spot: Spot, message: Message) -> None:
        """A part of a message."""
        part = reader.part_of(value)
        kind = kind_of(part)
        if kind in _ASIDE:
            if kind == "compaction":
                trigger = "auto" if part.get("auto") is True else "manual"
                self._triggers[message.session] = trigger
            return
        if kind not in _READ.get(message.role, ()):
            self.unknown(spot, f"{message.role}/{kind}")
            return
        if kind == "text" and not part.get("text"):
            return
        reading = reader.user(part) if message.role == "user" else reader.assistant(part)
        chain = self._chain(message.session, reading)
        self._begins(message, chain)
        self._item(part, spot, message, chain, reading)

    def once(self, of: str, name: str) -> str:
        """An id as it was given, or a stand-in where it stands again for another thing (redaction does that)."""
        if not name:
            return ""
        self._times[of, name] += 1
        times = self._times[of, name]
        return name if times == 1 else id_of(f"{INFERRED}{name}~{times}")

    @staticmethod
    def _named(reading: Reading, message: Message, call: str) -> Reading:
        group = message.name if reading.role == "assistant" and message.name else None
        parts = tuple(named(part, call) if part.call_id else part for part in reading.parts)
        return replace(reading, parts=parts, group=group)

    def ended(self) -> None:
        for name, told in self._sessions.items():
            if told.pruned:
                self._prune(self._chain(name, None), told, None)

    # Sessions.

    def _chain(self, name: str, first: Reading | None) -> Chain:
        told = self._sessions.get(name)
        if told is None or not told.parent:
            chain = self.begin(name)
        else:
            parent = self._chained.get(told.parent, told.parent)
            asked = "".join(part.text for part in first.parts) if first else ""
            chain = self.begin(
                name,
                relation="subagent",
                parent=parent,
                parent_key=self._tasks.get(name),
                asked=asked,
            )
        self._chained[name] = chain
        if told is not None and not told.described:
            told.described = True
            if told.title:
                self.event(chain, told.spot, SessionDescribed(told.title))
        return chain

    # Messages.

    def _begins(self, message: Message, chain: Chain) -> None:
        """The first item of a message: what was pruned before it, whether it sums up, what it took."""
        if message.begun:
            return
        message.begun = True
        told = self._sessions.get(message.session)
        if told is not None:
            self._prune(chain, told, message.created)
        if message.summary:
            trigger = self._triggers.get(message.session)
            self.event(chain, message.spot, ForeignCompaction(NAME, "compact", trigger, None))
        if message.role == "assistant":
            tokens = map_of(message.info.get("tokens"))
            cache = map_of(tokens.get("cache"))
            given, read, write = tokens.get("input"), cache.get("read"), cache.get("write")
            made = _made(tokens, count(given), count(read), count(write))
            usage = usage_of(message.name, given, made, read, write, with_cache=False)
            if usage is not None:
                self.event(chain, message.spot, usage)

    def _prune(self, chain: Chain, told: Told, before: int | None) -> None:
        """Outputs that were cleared before a message began, or all that were."""
        due = [p for p in told.pruned if before is None or p.at <= before]
        if not due:
            return
        told.pruned = [p for p in told.pruned if p not in due]
        calls = tuple(p.call for p in due)
        spot = place_of(due[0].spot)
        spot.happened(max(p.at for p in due))
        view = blake3("\n".join(calls).encode()).hexdigest()[:16]
        self.event(chain, spot, ForeignCompaction(NAME, "prune", None, None, calls), view=view)

    def _item(
        self,
        part: Mapping[str, Any],
        spot: Spot,
        message: Message,
        chain: Chain,
        reading: Reading,
    ) -> None:
        call = self.once("call", id_of(part.get("callID")))
        reading = self._named(reading, message, call)
        if message.summary:
            reading = said_by(reading, Channel.IMPORTER)
        elif chain.side:
            reading = made_by_agent(reading)
        route = None
        if message.role == "assistant":
            provider, model = message.info.get("providerID"), message.info.get("modelID")
            if text_of(model):
                route = chain.routed(RouteChanged(name_in(provider), name_in(model)))
        name = text_of(part.get("id"))
        known = name if name and self.once("part", name) == name else None
        which = reader.USER if message.role == "user" else reader.ASSISTANT
        key = self.item(chain, spot, which, reading, id=known, route=route)
        if kind_of(part) != "tool":
            return
        state = map_of(part.get("state"))
        child = text_of(map_of(state.get("metadata")).get("sessionId"))
        if child:
            self._tasks[child] = key
        if reader.is_ended(part):
            answer = self._named(reader.results(part), message, call)
            self.item(chain, spot, reader.RESULTS, answer, id=known, view="results")
        cleared = count(map_of(state.get("time")).get("compacted"))
        told = self._sessions.get(message.session)
        if cleared and told is not None:
            told.pruned.append(Pruned(cleared, call, place_of(spot)))


def _made(tokens: Mapping[str, Any], given: int | None, read: int | None, write: int | None) -> Any:
    """Tokens that a model made, its thoughts among them: some versions count them apart, the total tells."""
    total, output = count(tokens.get("total")), tokens.get("output")
    if total is None or given is None:
        return output
    return max(count(output) or 0, total - given - (read or 0) - (write or 0))


def began_at(part: Mapping[str, Any]) -> int | None:
    """When a part began (epoch ms), where it says so."""
    times = part.get("time") or map_of(part.get("state")).get("time")
    return count(map_of(times).get("start"))
