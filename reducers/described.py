"""What a session is: its title, format and model, and counts for lists of sessions.

Rule: the newest title, the newest route, counts of items, calls, results, foreign compactions; the first and the
greatest
occurred_at so far. Usage: the last report of a message id holds, so reports of the same id are not added up.
Invariants: bounded size. Refuses: a second SessionOpened.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from types import NoneType
from typing import Any

from ..events import (
    ForeignCompaction,
    ItemAppended,
    PartKind,
    Recorded,
    RouteChanged,
    SessionDescribed,
    SessionOpened,
    UsageReported,
)
from .contract import Reducer
from .saved import checked, row_types


@dataclass(slots=True)
class Described:
    """The state. Times are microseconds since 1970 UTC; None is unknown.

    `prompt_tokens` is the provider's own figure.
    """

    opened: bool = False
    relation: str | None = None
    format: str | None = None
    parent: str | None = None
    parent_seq: int | None = None
    title: str | None = None
    model: str | None = None
    messages: int = 0
    calls: int = 0
    results: int = 0
    compactions: int = 0
    first: int | None = None
    last: int | None = None
    prompt_tokens: int | None = None


_CALL, _RESULT = PartKind.TOOL_CALL, PartKind.TOOL_RESULT


def _refusal(state: Described, recorded: Recorded) -> str | None:
    if isinstance(recorded.event, SessionOpened) and state.opened:
        return "the session is open already"
    return None


def _accept(state: Described, recorded: Recorded) -> Described:
    event, header = recorded.event, recorded.header
    at = header.occurred_at
    if at is not None:
        if state.first is None or at < state.first:
            state.first = at
        if state.last is None or at > state.last:
            state.last = at
    if isinstance(event, ItemAppended):
        if header.item is not None:
            state.messages += 1
            for part in header.item.parts:
                if part.kind is _CALL:
                    state.calls += 1
                elif part.kind is _RESULT:
                    state.results += 1
    elif isinstance(event, SessionOpened):
        state.opened, state.relation, state.format = True, event.relation, event.format
        state.parent, state.parent_seq = event.parent_stream, event.parent_seq
    elif isinstance(event, SessionDescribed):
        state.title = event.title
    elif isinstance(event, RouteChanged):
        state.model = event.model
    elif isinstance(event, UsageReported):
        parts = [event.input, event.cache_read, event.cache_write]
        known = [n for n in parts if n is not None]
        state.prompt_tokens = sum(known) if known else None
    elif isinstance(event, ForeignCompaction) and event.form == "compact":
        state.compactions += 1
    return state


def _canonical(state: Described) -> Any:
    return asdict(state)


def _dump(state: Described) -> Any:
    return list(asdict(state).values())


def _load(value: Any) -> Described:
    return Described(*checked(value, _FIELDS))


_TEXT, _NUMBER = (str, NoneType), (int, NoneType)
_FIELDS = row_types(
    bool, _TEXT, _TEXT, _TEXT, _NUMBER, _TEXT, _TEXT, int, int, int, int, _NUMBER, _NUMBER, _NUMBER
)


REDUCER = Reducer("described", 1, Described, _accept, _refusal, _canonical, _dump, _load, shape=2)
