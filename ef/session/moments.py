"""Which seq a moment means. Two clocks: occurred_at (what the provider claimed) and recorded_at (when we kept it)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from ..codec.cbor import Malformed
from ..errors import NotFound, UsageError
from ..importers.chains import LAST_MICROS
from ..log import given
from ..log.projection_store import Track
from ..log.storelog import StoreLog
from ..projections import clocks
from .snapshots import EVERY, Snapshots, form_of

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
At = int | str | None
"""A seq, an ISO 8601 time (UTC unless it says otherwise), or None for now."""


def resolve(log: StoreLog, stream: str, at: At, *, recorded: bool = False) -> int:
    """The seq that `at` means in a stream: the last s with max(clock of events 1..s) <= the time.

    Raises NotFound beyond the stream's ends, UsageError for text that is neither a seq nor a time.
    """
    if isinstance(at, str):
        given.text("at", at)
    elif at is not None:
        given.number("at", at, least=-given.NUMBER_MAX)
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
    return _seq_at(log, stream, _micros(at), recorded=recorded)


def clocks_track(stream: str) -> Track:
    """Where the snapshots of a stream's clocks are."""
    return Track(stream, "clocks", form_of("clocks", clocks.VERSION, 1))


def _seq_at(log: StoreLog, stream: str, moment: int, *, recorded: bool) -> int:
    """The last seq whose record, and all before it, lie at or before a moment; the clocks that are passed are kept."""
    snapshots = Snapshots(log, stream)
    track = clocks_track(stream)
    now = _clocks_before(snapshots, track, moment, recorded=recorded)
    keeper = snapshots.keeper()
    for record in log.read(stream, after=now.seq):
        if now.passes(record.header, moment, recorded=recorded):
            break
        now.apply(record.header, record.digest)
        if now.seq % EVERY == 0:
            keeper.put(track, now.seq, now.digest, now.dump)
    return now.seq


def _clocks_before(
    snapshots: Snapshots, track: Track, moment: int, *, recorded: bool
) -> clocks.Clocks:
    """The newest clocks that are kept and lie at or before a moment: found by halving, for clocks never step back."""
    best = clocks.Clocks()
    seqs = snapshots.store.seqs(track)
    low, high = 0, len(seqs)
    while low < high:
        middle = (low + high) // 2
        found = snapshots.read(track, seqs[middle])
        try:
            here = clocks.Clocks.loaded(seqs[middle], *found) if found else None
        except Malformed:
            here = None
        if here is None:  # it does not hold: go on without it
            del seqs[middle]
            high -= 1
        elif here.before(moment, recorded=recorded):
            best, low = here, middle + 1
        else:
            high = middle
    return best


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
