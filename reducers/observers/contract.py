"""What an observer sees and what it proposes.

An exchange is a call together with its result, seen when the result arrives. A result whose call was not seen is not an
exchange: nothing is claimed of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

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

VALUE_BYTES_MAX = 400
ENTITY_BYTES_MAX = 160
ANSWERED_KEPT = 512


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call and its result; `part` is the result's number in its item, `channel` who speaks in it."""

    call: ToolCall
    result: ToolResult
    part: int
    channel: Channel


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


@dataclass(frozen=True, slots=True)
class Observer:
    """initial() -> state; observe(state, exchange) -> (state, proposals). Pure; the state is taken over."""

    rule: Rule
    initial: Callable[[], Any]
    observe: Callable[[Any, Exchange], tuple[Any, list[Proposal]]]


class Observed:
    """The calls by id: those that wait, and the newest answered ones, whose result may be given other content.

    The newest call of an id answers (providers reuse ids). An answered call serves again only for an item that
    replaces.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, ToolCall] = {}
        self._answered: dict[str, ToolCall] = {}

    def copy(self) -> Observed:
        """The same view, to be taken further on trial."""
        other = Observed()
        other._waiting, other._answered = dict(self._waiting), dict(self._answered)
        return other

    def call(self, call_id: str) -> ToolCall | None:
        """The call that a result with this id would answer."""
        return self._waiting.get(call_id) or self._answered.get(call_id)

    def exchanges(self, reading: Reading, *, replaces: bool = False) -> Iterator[Exchange]:
        """The exchanges that an item completes; `replaces`: it gives an earlier item other content."""
        for n, part in enumerate(reading.parts):
            if part.call is not None:
                answered = replaces and part.call.call_id in self._answered
                (self._answered if answered else self._waiting)[part.call.call_id] = part.call
            elif part.kind is PartKind.TOOL_RESULT and part.result is not None:
                call = self._waiting.pop(part.result.call_id, None)
                if call is None and replaces:
                    call = self._answered.get(part.result.call_id)
                if call is not None:
                    self._answer(call)
                    yield Exchange(call, part.result, n, part.channel)

    def _answer(self, call: ToolCall) -> None:
        self._answered.pop(call.call_id, None)
        self._answered[call.call_id] = call
        if len(self._answered) > ANSWERED_KEPT:
            del self._answered[next(iter(self._answered))]


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
