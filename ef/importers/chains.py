"""What an importer knows of a session stream while it reads a file: the calls that wait, and where an item's place is.

It mirrors the surface's pairing: a result answers the newest call with its id that waits, and an item that is given
other content keeps its place, with what its calls were paired with.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ..events import Basis, CallClosed, Channel, Part, Reading, RouteChanged, ToolCall
from ..events.quick import quick
from ..log import Draft
from ..log.base import LateEvent
from ..readers.tools import named
from .names import OWN

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
INFERRED = "i-"
"""What ids that no provider gave begin with; they are such as every provider takes."""
LAST_MICROS = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
"""Later stamps are absurd, and some of them no calendar can show."""


@quick
@dataclass(frozen=True, slots=True)
class Open:
    """A call that waits for its result: the key of its item, its part there, the call, and its response."""

    item: str
    part: int
    call: ToolCall
    group: str | None = None


class Chain:
    """One session stream as far as the file was read."""

    def __init__(self, stream: str, *, side: bool) -> None:
        self.stream, self.side = stream, side
        self.open_calls: list[Open] = []
        self.calls: dict[str, ToolCall] = {}
        self.route: RouteChanged | None = None
        self.usage: tuple[str, Any] | None = None
        self.last_key: str | None = None
        self._group: str | None = None
        self._parted = False
        self._ids: dict[str, frozenset[str]] = {}
        self._inferred: str | None = None

    def named(self, reading: Reading, item: str) -> Reading:
        """The reading with a call id for each call that has none from its provider; a result without one answers the
        oldest of those calls that waits.
        """
        for part in reading.parts:
            if part.call_id == "":
                break
        else:
            return reading
        waiting = [o.call.call_id for o in self.open_calls if o.call.call_id.startswith(INFERRED)]
        parts: list[Part] = []
        told = INFERRED + item.replace(".", "-").replace("/", "-")[:44]
        for n, part in enumerate(reading.parts):
            if part.call_id == "" and part.call is not None:
                part = named(part, f"{told}-{n}")
                waiting.append(part.call_id or "")
            elif part.call_id == "":
                answers = waiting.pop(0) if waiting else f"{told}-{n}-alone"
                part = named(part, answers)
            parts.append(part)
        return replace(reading, parts=tuple(parts))

    def routed(self, route: RouteChanged) -> RouteChanged | None:
        """The route, where it is another than before."""
        if route == self.route:
            return None
        self.route = route
        return route

    def inferred_group(self, item: str) -> str:
        """The name of the model response that an item without a response id belongs to."""
        if self._inferred is None or self._parted:
            self._inferred = INFERRED + item
        return self._inferred

    def apart(self) -> None:
        """The next item is of another response than the one before it, whatever stands between."""
        self._inferred = None

    @contextmanager
    def within(self) -> Generator[None]:
        """What an answer's own server gave stands within the answer: it goes on behind it."""
        before = self._parted, self._inferred
        yield
        self._parted, self._inferred = before

    def closers(self, reading: Reading, key: str) -> list[Draft]:
        """A new model response begins, with the user's side between, while calls wait: they get no result any more."""
        if reading.role != "assistant":
            self._parted, self._inferred = True, None
            return []
        if reading.group is not None and reading.group == self._group:
            return []
        self._group = reading.group
        if not self._parted:
            return []
        self._parted = False
        if not self.open_calls:
            return []
        drafts = [
            Draft(
                self.stream, f"{OWN}close/{key}/{n}", _closed(self.stream, waits), Channel.IMPORTER
            )
            for n, waits in enumerate(self.open_calls)
        ]
        self.open_calls.clear()
        return drafts

    def remember(self, reading: Reading, item: str) -> None:
        """An item stands at its place: its calls wait, its results answer."""
        self.last_key = item
        self._ids[item] = _ids(reading)
        for n, part in enumerate(reading.parts):
            if part.call is not None:
                self._calls(item, n, part.call, reading.group)
            elif part.result is not None:
                self._answered(part)

    def asked(self, call_id: str) -> ToolCall | None:
        """The call that a result with this id answers, or one that had it."""
        waits = self._waiting(call_id)
        return waits.call if waits else self.calls.get(call_id)

    def _waiting(self, call_id: str) -> Open | None:
        """Of the newest response with a call of this id that waits, the first such call."""
        found: Open | None = None
        for o in reversed(self.open_calls):
            if o.call.call_id != call_id:
                continue
            if (
                found is not None
                and found.item != o.item
                and not found.group == o.group is not None
            ):
                break
            found = o
        return found

    def _answered(self, part: Part) -> None:
        waits = self._waiting(part.call_id or "")
        if waits is not None:
            self.open_calls.remove(waits)

    def _calls(
        self, item: str, part: int, call: ToolCall, group: str | None, *, waits: bool = True
    ) -> None:
        """A call: what it was given is not kept, there may be much of it."""
        kept = self.calls[call.call_id] = ToolCall(call.call_id, call.name, call.action)
        if waits:
            self.open_calls.append(Open(item, part, kept, group))

    def remember_again(self, reading: Reading, item: str) -> None:
        """An item of before has other content: a call that it still holds waits if it waited; a new one waits, and a
        new result answers.
        """
        waited = {o.call.call_id for o in self.open_calls if o.item == item}
        self.open_calls = [o for o in self.open_calls if o.item != item]
        for n, part in enumerate(reading.parts):
            if part.call is not None:
                known = part.call_id in self._ids.get(item, ())
                waits = part.call_id in waited or not known
                self._calls(item, n, part.call, reading.group, waits=waits)
            elif part.result is not None and part.call_id not in self._ids.get(item, ()):
                self._answered(part)
        self._ids[item] = _ids(reading)


@dataclass(frozen=True, slots=True)
class Known:
    """A uuid that stood before: the key of its newest content, its chain, the key of the item whose place it has."""

    key: str
    chain: Chain | None
    item: str | None


def _ids(reading: Reading) -> frozenset[str]:
    return frozenset(part.call_id for part in reading.parts if part.call_id)


def _closed(stream: str, waits: Open) -> LateEvent:
    call, part = waits.call.call_id, waits.part
    return lambda assigned: CallClosed(call, assigned[stream, waits.item].seq, part, "interrupted")


def occurred(stamp: Any) -> tuple[int | None, Basis]:
    """Microseconds since 1970 UTC and their basis; a stamp that is absent or absurd is unknown, never a guess.

    A number counts seconds, or milliseconds, micro- or nanoseconds where as seconds it would lie beyond any calendar.
    """
    micros = _micros_of_text(stamp) if isinstance(stamp, str) else _micros_of_number(stamp)
    if micros is None or not 0 <= micros <= LAST_MICROS:
        return None, Basis.UNKNOWN
    return micros, Basis.CLAIMED


def _micros_of_text(stamp: str) -> int | None:
    try:
        moment = datetime.fromisoformat(stamp)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        past = moment - _EPOCH
        return (past.days * 86_400 + past.seconds) * 1_000_000 + past.microseconds
    except (ValueError, OverflowError):
        return None


def _micros_of_number(stamp: Any) -> int | None:
    if not isinstance(stamp, (int, float)) or isinstance(stamp, bool):
        return None
    if not 0 <= stamp < _NANOS_MAX:
        return None
    for unit in (1_000_000, 1_000):
        if stamp * unit <= _SECONDS_MAX * 1_000_000:
            return round(stamp * unit)
    return round(stamp) if stamp <= _SECONDS_MAX * 1_000_000 else round(stamp / 1_000)


_SECONDS_MAX = 10**10
"""Seconds since 1970 that nobody means: the year 2286."""
_NANOS_MAX = _SECONDS_MAX * 10**9
