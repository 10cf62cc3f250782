"""What importers of other vendors' files share: whose words a reading holds, and a value inside a record."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..events import Channel, Part, PartKind, Reading, UsageReported
from ..events.shapes import is_map
from ..readers.jsonvalues import Decoder
from ..readers.pieces import id_of, text_of
from .translator import Spot, count

_BEGINS, _COLON, _COMMA = (
    re.compile(rf"[ \t\r\n]*{sign}[ \t\r\n]*") for sign in (r"\{", ":", ",?")
)
TITLE_MAX = 400


def said_by(reading: Reading, channel: Channel, *, of: Iterable[Channel] | None = None) -> Reading:
    """The reading with another channel for its texts, thoughts, images and files: all, or those of some channels.

    What was called and what that gave stays as it is.
    """
    wanted = None if of is None else frozenset(of)

    def told(part: Part) -> Part:
        if part.kind in (PartKind.TOOL_CALL, PartKind.TOOL_RESULT, PartKind.OPAQUE):
            return part
        return replace(part, channel=channel) if wanted is None or part.channel in wanted else part

    return replace(reading, parts=tuple(told(part) for part in reading.parts))


def made_by_agent(reading: Reading) -> Reading:
    """The reading of an item of a sub-agent's session: who typed there was the agent that asked."""
    if reading.role == "assistant":
        return said_by(reading, Channel.SUBAGENT, of=(Channel.ASSISTANT,))
    return said_by(reading, Channel.ASSISTANT, of=(Channel.USER_TYPED,))


def calls_of(reading: Reading) -> list[str]:
    """The ids of the calls that a reading holds."""
    return [part.call_id for part in reading.parts if part.call is not None and part.call_id]


def value_in(spot: Spot, key: str) -> Spot | None:
    """Where the value of a key of a record stands; None where the record has no such value."""
    if not is_map(spot.value) or key not in spot.value:
        return None
    text = spot.data.decode("utf-8", "surrogateescape")
    decoder = Decoder.taken()
    at = end = last = _behind(_BEGINS, text, 0)
    name: Any = None
    while name != key:  # the record was read: what stands in it is a map, and the key is there
        name, at = decoder.decode(text, end)
        at = _behind(_COLON, text, at)
        last = decoder.decode(text, at)[1]
        end = _behind(_COMMA, text, last)
    decoder.release()
    start, length = _bytes_of(text[:at]), _bytes_of(text[at:last])
    return spot.inner(start, start + length, spot.value[key])


def place_of(spot: Spot) -> Spot:
    """Where a record stands, without what it holds: for what is said later."""
    return spot.holding(b"")


def _behind(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogateescape"))


def title_of(value: Any) -> str:
    """What a session is called, "" where nobody said."""
    return text_of(value).strip()[:TITLE_MAX].encode("utf-8", "replace").decode()


def name_in(value: Any) -> str | None:
    """A provider's name of something (a model, a trigger), None where there is none."""
    return id_of(value) or None


def usage_of(
    message: str, given: Any, output: Any, read: Any, write: Any, *, with_cache: bool
) -> UsageReported | None:
    """What a message took; None where nobody said anything. `with_cache`: what was read and written counts in `given`.

    Where all are 0 nobody said: no message takes nothing.
    """
    taken, made, fetched, stored = count(given), count(output), count(read), count(write)
    if not message or not any((taken, made, fetched, stored)):
        return None
    if with_cache and taken is not None:
        taken = max(0, taken - (fetched or 0) - (stored or 0))
    return UsageReported(message, taken, made, fetched, stored)
