"""Which seq a moment means. Two clocks: occurred_at (what the provider claimed) and recorded_at (when we kept it)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from ..errors import NotFound, UsageError
from ..importers.chains import LAST_MICROS
from ..log import Log

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
At = int | str | None
"""A seq, an ISO 8601 time (UTC unless it says otherwise), or None for now."""


def resolve(log: Log, stream: str, at: At, *, recorded: bool = False) -> int:
    """The seq that `at` means in a stream: the last s with max(clock of events 1..s) <= the time.

    Raises NotFound beyond the stream's ends, UsageError for text that is neither a seq nor a time.
    """
    tip = log.tip(stream).seq
    name = stream.partition("/")[2]
    if at is None:
        return tip
    if isinstance(at, str) and re.fullmatch(r"\d{1,15}", at):
        at = int(at)
    if isinstance(at, int):
        if not 0 <= at <= tip:
            raise NotFound(
                what="event", name=at, where=f"session {name}", remedy=f"Its events are 1 to {tip}."
            )
        return at
    moment = _micros(at)
    seq = 0
    for record in log.read(stream):
        h = record.header
        clock = h.recorded_at if recorded else h.occurred_at
        if clock is not None and clock > moment:
            return seq
        seq = h.seq
    return seq


def _micros(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            detail=f"{text!r} is neither a seq nor a time: give a number, or a time such as 2026-03-14T09:30:00Z"
        ) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)


def iso(micros: int | None) -> str | None:
    """ISO 8601 UTC text of microseconds since 1970; None stays None (unknown is never a guess)."""
    if micros is None or micros > LAST_MICROS:  # a foreign store may hold what no calendar can show
        return None
    return (
        (_EPOCH + timedelta(microseconds=micros))
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )
