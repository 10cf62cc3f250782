"""What an observer sees and what it proposes.

An exchange is a call together with its result, seen when the result arrives. A result whose call was not seen is not an
exchange: nothing is claimed of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import NoneType
from typing import Any, TypeVar

from ...codec.digests import record_digest
from ...events import (
    AnchorKey,
    Authority,
    Channel,
    Kind,
    Part,
    PartKind,
    Reading,
    Rule,
    ToolCall,
    ToolResult,
)
from ...events.quick import quick
from ..saved import checked, row_types

T = TypeVar("T")
VALUE_BYTES_MAX = 400
ENTITY_BYTES_MAX = 160
ANSWERED_KEPT = 512
SAME_ID_KEPT = 64
WAITING_KEPT = 4_096
"""Calls that nothing ever answers do not pile up for ever."""


@quick
@dataclass(frozen=True, slots=True)
class Exchange:
    """A call and its result; `part` is the result's number in its item, `channel` who speaks in it."""

    call: ToolCall
    result: ToolResult
    part: int
    channel: Channel

    @property
    def failed(self) -> bool:
        """Whether the vendor, or the command's exit code, says that it did not do what it was called for."""
        return self.result.is_error or self.result.exit_code not in (None, 0)


@quick
@dataclass(frozen=True, slots=True)
class Proposal:
    """An anchor that a part of the item at hand grounds; [start, end) are UTF-8 bytes of the part's text."""

    kind: Kind
    key: AnchorKey
    value: Any
    authority: Authority
    part: int
    start: int
    end: int
    rule: Rule
    unit: str | None = None
    because: str | None = None


def _as_it_is(state: Any) -> Any:
    return state


@dataclass(frozen=True, slots=True)
class Observer:
    """initial() -> state; observe(state, exchange) -> (state, proposals). Pure; the state is taken over.

    `dump(state)` is a value that the codec encodes, and `load` makes the state of it again: it goes on as the first one
    would have. `load` raises ValueError or TypeError for what is no dump.
    """

    rule: Rule
    initial: Callable[[], Any]
    observe: Callable[[Any, Exchange], tuple[Any, list[Proposal]]]
    dump: Callable[[Any], Any] = _as_it_is
    load: Callable[[Any], Any] = _as_it_is


@dataclass(frozen=True, slots=True)
class _Waiting:
    """The calls of one id that one response made and that wait: it may have used the id more than once."""

    response: str | int
    calls: tuple[ToolCall, ...]


class Observed:
    """The calls by id: those that wait, and the newest answered ones, whose result may be given other content.

    Of the newest response that has calls of an id the first one that waits is answered (providers reuse ids). An
    answered call serves again only for an item that replaces.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}
        self._answered: dict[str, ToolCall] = {}
        self._items = 0

    def copy(self) -> Observed:
        """The same view, to be taken further on trial."""
        other = Observed()
        other._waiting, other._answered = dict(self._waiting), dict(self._answered)
        other._items = self._items
        return other

    def call(self, call_id: str) -> ToolCall | None:
        """The call that a result with this id would answer."""
        waits = self._waiting.get(call_id)
        return waits.calls[0] if waits else self._answered.get(call_id)

    def exchanges(self, reading: Reading, *, replaces: bool = False) -> Iterator[Exchange]:
        """The exchanges that an item completes; `replaces`: it gives an earlier item other content."""
        self._items += 1
        given: set[str] = set()
        for n, part in enumerate(reading.parts):
            if part.call is not None:
                asked = _kept(part.call)
                if replaces and asked.call_id in self._answered:
                    self._answered[asked.call_id] = asked
                else:
                    if replaces and asked.call_id not in given:  # in the place of what it was
                        self._waiting.pop(asked.call_id, None)
                    given.add(asked.call_id)
                    self._ask(asked, reading.group or self._items)
            elif part.kind is PartKind.TOOL_RESULT and part.result is not None:
                call = self._take(part.result.call_id)
                if call is None and replaces:
                    call = self._answered.get(part.result.call_id)
                if call is not None:
                    _last(self._answered, call.call_id, call, ANSWERED_KEPT)
                    yield Exchange(call, part.result, n, part.channel)

    def _ask(self, asked: ToolCall, response: str | int) -> None:
        """A call waits: behind those of its id that its own response made, in the place of those of another one."""
        waits = self._waiting.get(asked.call_id)
        before = waits.calls if waits is not None and waits.response == response else ()
        now = _Waiting(response, (*before, asked)[-SAME_ID_KEPT:])
        _last(self._waiting, asked.call_id, now, WAITING_KEPT)

    def _take(self, call_id: str) -> ToolCall | None:
        """The call that is answered now; it waits no more."""
        waits = self._waiting.pop(call_id, None)
        if waits is None:
            return None
        first, *rest = waits.calls
        if rest:
            self._waiting[call_id] = _Waiting(waits.response, tuple(rest))
        return first

    def dump(self) -> Any:
        """All of it, as a value that the codec encodes."""
        waiting = [
            [
                _written(w.response) if isinstance(w.response, str) else None,
                list(map(_row, w.calls)),
            ]
            for w in self._waiting.values()
        ]
        return [waiting, [_row(call) for call in self._answered.values()]]

    @classmethod
    def load(cls, value: Any) -> Observed:
        """The view out of a dump. Raises ValueError or TypeError for what is none."""
        found = cls()
        waiting, answered = value
        for response, rows in (checked(row, _WAITS) for row in waiting):
            calls = tuple(map(_call, rows))
            # An item without a response is over: no number of an item to come is 0.
            found._waiting[calls[0].call_id] = _Waiting(_said(response) if response else 0, calls)
        found._answered = {call.call_id: call for call in map(_call, answered)}
        return found


def _kept(call: ToolCall) -> ToolCall:
    """What of a call its result needs to be understood: not all that it was given."""
    c = call
    return ToolCall(
        c.call_id, c.name, c.action, c.command, c.path, c.text, c.background, c.cwd, c.given,
        paths=c.paths,
    )  # fmt: skip


def _last(calls: dict[str, T], name: str, call: T, most: int) -> None:
    """The call becomes the newest; the oldest go beyond `most`."""
    calls.pop(name, None)
    calls[name] = call
    if len(calls) > most:
        del calls[next(iter(calls))]


_BYTES = (bytes, NoneType)
_WAITS = row_types(_BYTES, list)
_CALL = row_types(bytes, bytes, bytes, _BYTES, _BYTES, _BYTES, bool, _BYTES, bytes, list)


def _row(c: ToolCall) -> list[Any]:
    """A call as a list; its fields in order. Its texts come from outside, and may hold what is no valid UTF-8."""
    fields = (c.call_id, c.name, c.action, c.command, c.path, c.text, c.background, c.cwd, c.given)
    row = [_written(f) if isinstance(f, str) else f for f in fields]
    return [*row, [_written(path) for path in c.paths]]


def _call(row: Any) -> ToolCall:
    *fields, paths = checked(row, _CALL)
    values: list[Any] = [_said(f) if isinstance(f, bytes) else f for f in fields]
    values += None, tuple(map(_said, paths))
    return ToolCall(*values)


def _written(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _said(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


_SPELT = {n: f"\\x{n:02x}" for n in (*range(32), *range(127, 160))} | {
    9: "\\t",
    10: "\\n",
    13: "\\r",
}


def plain(text: str, most: int) -> str:
    """Text that can be stored and shown in a line: valid, control characters spelt out, at most `most` bytes.

    Different texts stay different: a longer one ends with a digest of all of it, and spaces are kept as they are.
    """
    data = text.encode("utf-8", "replace").decode().translate(_SPELT).encode()
    text = data.decode()
    if len(data) <= most:
        return text
    return data[: most - 12].decode("utf-8", "ignore") + "…#" + record_digest(data).hex()[:8]


def first_line(text: str, most: int = 240, *, lines: int = 1) -> tuple[int, int]:
    """The span, in UTF-8 bytes, of the first line that is not blank (with the `lines` - 1 behind it), at most `most`
    bytes; (0, 0) when there is none.
    """
    data = text.encode("utf-8", "surrogatepass")
    start = len(data) - len(data.lstrip())
    if start == len(data):
        return 0, 0
    end = start
    for _ in range(lines):
        end = data.find(b"\n", end + 1)
        if end < 0:
            end = len(data)
            break
    if end - start > most:
        end = start + most
        while end > start and data[end] & 0xC0 == 0x80:  # never inside a character
            end -= 1
    return start, end


__all__ = ["Exchange", "Observed", "Observer", "Part", "Proposal", "first_line", "plain"]
