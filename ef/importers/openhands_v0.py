"""OpenHands V0: a conversation's events -> meanings. As one document (a list, or one under `trajectory` or `history`).

An observation answers the action that its metadata or its `cause` name. What happens between the action that delegates
and the observation that ends it is the delegate's own session. In a run of an evaluation only the first message is the
task; the later ones come of the harness.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..events import Channel, ForeignCompaction, Reading, RouteChanged, UsageReported
from ..events.shapes import is_list, is_map
from ..readers import openhands_v0 as reader
from ..readers.jsoncuts import Path, Paths, cuts
from ..readers.pieces import id_of, list_of, map_of, text_of
from ..readers.tools import named
from .chains import Chain
from .documents import DocumentTranslator
from .formats import Format, Head, Tells
from .given import made_by_agent, name_in, said_by, usage_of
from .translator import Given, Spot, Translator

NAME = reader.NAME
_EVERY: Paths = frozenset({()})
_LISTS = ("trajectory", "history")
_TASK = "TASK: "
"""How the message begins that hands a task to a delegate, in the user's name."""
_DELEGATED_FIRST = 2
"""The lowest number that such a message may have: a user's and the action that delegates stand before it."""


@dataclass(slots=True)
class Run:
    """A conversation as far as it was read: the sessions of its agents, the innermost last; the responses that were
    told; the numbers of its events that no condensation dropped, ascending, and the newest number. `harness`: only its
    first message was typed. `alone`: an event is a file, so that whether a delegate is at work cannot be seen.
    """

    agents: list[Chain]
    harness: bool = False
    alone: bool = False
    asked: bool = False
    delegates: int = 0
    told: set[str] = field(default_factory=set[str])
    numbers: list[int] = field(default_factory=list[int])
    newest: int | None = None


class Events:
    """What events mean, wherever they stand."""

    def __init__(self, translator: Translator) -> None:
        self._of = translator

    def pair(self, run: Run, value: Any, spot: Spot) -> None:
        """An element of a history: an event, or an action and the observation that it gave."""
        if is_map(value):
            self.happened(run, value, spot)
            return
        answers: str | None = None
        for each, inner in elements(spot, _EVERY):
            if is_map(each):
                answers = self.happened(run, each, inner, answers)

    def happened(
        self, run: Run, value: Mapping[str, Any], spot: Spot, answers: str | None = None
    ) -> str | None:
        """One event; the call id of an action. `answers`: the id of the call that an observation is known to answer."""
        action, observation = text_of(value.get("action")), text_of(value.get("observation"))
        self._number(run, value)
        if not _is_known(value, action, observation):
            self._of.unknown(spot, action or observation or value.get("action"))
        if observation == "delegate" and len(run.agents) > 1:
            run.agents.pop()
        chain = run.agents[-1]
        if action == "condensation":
            dropped = _forgotten(run, map_of(value.get("args")))
            self._of.event(
                chain, spot, ForeignCompaction("openhands", "compact", None, None, dropped)
            )
        if not action and observation:
            self._observed(chain, value, spot, answers)
            return None
        return self._acted(run, chain, value, spot, action)

    def _number(self, run: Run, value: Mapping[str, Any]) -> None:
        number = value.get("id")
        if not isinstance(number, int) or not reader.pair_id(number):
            return
        if run.newest is None or number > run.newest:  # numbers ascend
            run.newest = number
            run.numbers.append(number)

    def _observed(
        self, chain: Chain, value: Mapping[str, Any], spot: Spot, answers: str | None
    ) -> None:
        view, says = NAME, None
        if not reader.call_id_of(value):
            cause = reader.pair_id(value.get("cause"))
            if answers is not None and (not cause or cause == answers):
                view, says = reader.ANSWER, True
            elif cause not in chain.calls:
                view, says = reader.TOLD, False
        found = reader.reading(value, answers=says)
        if found is None or not found.parts:
            return
        if answers and says:
            first, *rest = found.parts
            found = Reading(found.role, (named(first, answers), *rest), found.group)
        self._add(chain, spot, view, found)

    def _acted(
        self, run: Run, chain: Chain, value: Mapping[str, Any], spot: Spot, action: str
    ) -> str | None:
        response = reader.response_of(value)
        group = id_of(response.get("id"))
        more = bool(group) and group in run.told
        found = reader.reading(value, more=more)
        if found is None or not found.parts:
            return None
        if found.role == "user" and action == "message" and value.get("source") == "user":
            if run.asked and run.harness:
                found = said_by(found, Channel.SYSTEM)
            elif run.alone and _may_be_delegated(value, found):
                found = made_by_agent(found)
            run.asked = True
        route = usage = None
        if found.role == "assistant" and group and not more:
            run.told.add(group)
            route = chain.routed(RouteChanged(None, name_in(response.get("model"))))
            usage = _usage(group, map_of(response.get("usage")))
        more = more and any(part.call for part in found.parts)
        view = reader.MORE if more else NAME
        key = self._add(chain, spot, view, found, route=route, usage=usage)
        call = next((part.call for part in found.parts if part.call), None)
        if action == "delegate" and call is not None and found.role == "assistant":
            run.delegates += 1
            own = f"{run.agents[0].stream.partition('/')[2]}.delegate-{run.delegates}"
            run.agents.append(
                self._of.begin(own, relation="subagent", parent=chain, parent_key=key)
            )
        return call.call_id if call else None

    def _add(
        self,
        chain: Chain,
        spot: Spot,
        view: str,
        found: Reading,
        *,
        route: RouteChanged | None = None,
        usage: UsageReported | None = None,
    ) -> str:
        if chain.side:
            found = made_by_agent(found)
        return self._of.item(chain, spot, (view, reader.VERSION), found, route=route, usage=usage)


def elements(spot: Spot, descend: Paths, holder: str | None = None) -> Iterator[tuple[Any, Spot]]:
    """The values of the list that a spot's bytes are, or of the one that stands there under a key, where they stand."""
    for cut in cuts(spot.data, descend):
        if cut.fault is None and (holder is None or (len(cut.path) == 2 and cut.path[0] == holder)):
            inner = spot.inner(cut.start, cut.end, cut.value)
            inner.happened(map_of(cut.value).get("timestamp"))
            yield cut.value, inner


def _is_known(value: Mapping[str, Any], action: str, observation: str) -> bool:
    if reader.call_id_of(value):
        return True
    if action:
        own = ("message", "system", "condensation")
        return action in own or action in reader.ACTIONS or action in reader.SILENT_ACTIONS
    return observation in reader.OBSERVATIONS or observation in reader.SILENT_OBSERVATIONS


def _forgotten(run: Run, args: Mapping[str, Any]) -> tuple[str, ...]:
    """The numbers of the events that a condensation drops: those that it lists, or those in its range that none before
    it dropped.
    """
    listed = args.get("forgotten_event_ids")
    if is_list(listed):
        return tuple(str(n) for n in listed if type(n) is int)
    first, last = args.get("forgotten_events_start_id"), args.get("forgotten_events_end_id")
    if type(first) is not int or type(last) is not int:
        return ()
    begin, end = bisect_left(run.numbers, first), bisect_right(run.numbers, last)
    dropped = tuple(map(str, run.numbers[begin:end]))
    del run.numbers[begin:end]
    return dropped


def _may_be_delegated(value: Mapping[str, Any], reading: Reading) -> bool:
    """Whether a user's message may be what one agent asked another: it begins so, and an agent had said something."""
    number = value.get("id")
    early = type(number) is int and number < _DELEGATED_FIRST
    return not early and any(part.text.startswith(_TASK) for part in reading.parts)


def _usage(message: str, usage: Mapping[str, Any]) -> UsageReported | None:
    details = map_of(usage.get("prompt_tokens_details"))
    fetched = details.get("cached_tokens")
    fetched = usage.get("cache_read_input_tokens") if fetched is None else fetched
    written = usage.get("cache_creation_input_tokens")
    taken, made = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return usage_of(message, taken, made, fetched, written, with_cache=True)


class OpenHandsV0(DocumentTranslator):
    """A conversation in one document."""

    NAME = NAME
    DESCEND = frozenset({(), *((name,) for name in _LISTS)})

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._events = Events(self)
        self._run: Run | None = None

    def cut(self, path: Path, value: Any, spot: Spot) -> None:
        listed = len(path) == 1 and isinstance(path[0], int)
        if not listed and not (len(path) == 2 and path[0] in _LISTS):
            return
        if not is_map(value) and not is_list(value):
            return
        if self._run is None:
            self._run = Run([self.begin(None)], harness=path[0] == "history")
        self._events.pair(self._run, value, spot)


def is_event(value: Any) -> bool:
    """Whether a value looks like an event: what an agent did, or what it saw."""
    if not is_map(value) or {"role", "kind", "response"} & value.keys():
        return False
    if not isinstance(value.get("action", value.get("observation")), str):
        return False
    held = {"args", "content", "extras", "cause"} & value.keys()
    return bool(held) and bool({"source", "message", "timestamp"} & value.keys())


def recognises(head: Head) -> bool:
    """Whether a document looks like a list of events, from its first values."""
    at_top: dict[int, dict[str, Any]] = {}
    listed: list[Any] = []
    for path, value in head.cuts:
        if len(path) != 2:
            continue
        top, below = path
        if isinstance(top, int) and isinstance(below, str):
            at_top.setdefault(top, {})[below] = value
        elif isinstance(top, int) or top in _LISTS:
            listed += [value, *list_of(value)]
    if not any(is_event(each) for each in (*listed, *at_top.values())):
        return False
    in_lines = any(is_list(record.get("history")) for record in head.records)
    return bool(at_top) or "history" not in head.keys or not in_lines


FORMAT = Format(
    NAME,
    "OpenHands V0 (trajectory of a conversation)",
    "document",
    OpenHandsV0,
    recognises,
    Tells(
        ids="event numbers, call ids",
        groups="response id",
        order="list order; cause",
        usage="per response, with cache",
        errors="success, exit codes, error observations",
        compaction="boundary, events dropped, summary",
        subagents="delegates, inline",
        images="data or address",
    ),
)
