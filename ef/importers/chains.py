"""What an importer knows of a session stream while it reads a file: the calls that wait, and where an item's place is.

It mirrors the surface's pairing: a result answers the newest call with its id that waits, and an item that is given
other content keeps its place, with what its calls were paired with.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from ..events import Basis, CallClosed, Channel, Reading, ToolCall
from ..log import Draft
from ..log.base import LateEvent
from .names import OWN

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MICROS = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
"""Later stamps are absurd, and some of them no calendar can show."""


@dataclass(frozen=True, slots=True)
class Open:
    """A call that waits for its result: the key of its item, its part there, and the call."""

    item: str
    part: int
    call: ToolCall


class Chain:
    """One session stream as far as the file was read."""

    def __init__(self, stream: str, *, side: bool) -> None:
        self.stream, self.side = stream, side
        self.open_calls: list[Open] = []
        self.calls: dict[str, ToolCall] = {}
        self.model: str | None = None
        self.usage: tuple[str, Any] | None = None
        self.last_key: str | None = None
        self._group: str | None = None
        self._parted = False
        self._ids: dict[str, frozenset[str]] = {}

    def closers(self, reading: Reading, key: str) -> list[Draft]:
        """A new model response begins, with the user's side between, while calls wait: they get no result any more."""
        if reading.role != "assistant":
            self._parted = True
            return []
        if reading.group is not None and reading.group == self._group:
            return []
        self._group = reading.group
        if not self._parted:
            return []
        self._parted = False
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
                self.open_calls.append(Open(item, n, part.call))
                self.calls[part.call.call_id] = part.call
            elif part.result is not None:
                waits = [o for o in self.open_calls if o.call.call_id == part.call_id]
                if waits:
                    self.open_calls.remove(waits[-1])

    def remember_again(self, reading: Reading, item: str) -> None:
        """An item of before has other content: a call that it still holds waits if it waited; a new one waits."""
        waited = {o.call.call_id for o in self.open_calls if o.item == item}
        self.open_calls = [o for o in self.open_calls if o.item != item]
        for n, part in enumerate(reading.parts):
            if part.call is not None:
                self.calls[part.call.call_id] = part.call
                if part.call_id in waited or part.call_id not in self._ids.get(item, ()):
                    self.open_calls.append(Open(item, n, part.call))
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
    """Microseconds since 1970 UTC and their basis; a stamp that is absent or absurd is unknown, never a guess."""
    if not isinstance(stamp, str):
        return None, Basis.UNKNOWN
    try:
        moment = datetime.fromisoformat(stamp)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        micros = (moment - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None, Basis.UNKNOWN
    return (micros, Basis.CLAIMED) if 0 <= micros <= LAST_MICROS else (None, Basis.UNKNOWN)
