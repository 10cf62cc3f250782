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
    """The calls that wait for a result, by id; the newest of an id answers (providers reuse ids)."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCall] = {}

    def exchanges(self, reading: Reading) -> Iterator[Exchange]:
        """The exchanges that an item completes."""
        for n, part in enumerate(reading.parts):
            if part.call is not None:
                self._calls[part.call.call_id] = part.call
            elif part.kind is PartKind.TOOL_RESULT and part.result is not None:
                call = self._calls.pop(part.result.call_id, None)
                if call is not None:
                    yield Exchange(call, part.result, n, part.channel)


def plain(text: str, most: int) -> str:
    """Text that can be stored and shown in a line: valid, on one line, at most `most` bytes (then with its digest)."""
    text = " ".join(text.encode("utf-8", "replace").decode().split())
    data = text.encode()
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
