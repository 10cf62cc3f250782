"""The plain model of a log: what each stream holds, and what an append must answer. Bodies follow from key and size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ef.errors import EfError, KeyConflict, TipConflict
from ef.log.base import Appended, Draft
from tests.log.build import item

Batch = list[tuple[str, str, int]]
"""Stream, key and size of the body, for each draft."""
Outcome = list[tuple[int, bool]] | type[EfError]
"""(seq, new) of each draft, or the error that the whole batch ends with."""


def content(key: str, size: int) -> bytes:
    """The body of a draft: its key over and over."""
    return (key.encode() * (size // len(key) + 1))[:size]


def drafts_of(batch: Batch) -> list[Draft]:
    return [item(stream, key, content(key, size)) for stream, key, size in batch]


def outcome_of(appended: Sequence[Appended]) -> Outcome:
    return [(a.seq, a.new) for a in appended]


@dataclass(slots=True)
class Model:
    """Key and size of each event of each stream, in order."""

    streams: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    seqs: dict[tuple[str, str], int] = field(default_factory=dict)

    def length(self, stream: str) -> int:
        return len(self.streams.get(stream, ()))

    def append(self, batch: Batch, expect: Mapping[str, bool]) -> Outcome:
        """What an append answers; kept unless it is an error. `expect` says for each stream whether its tip is met."""
        if not all(expect.values()):
            return TipConflict
        ahead = Model({name: list(rows) for name, rows in self.streams.items()}, dict(self.seqs))
        outcome: list[tuple[int, bool]] = []
        for stream, key, size in batch:
            seq = ahead.seqs.get((stream, key))
            if seq is None:
                outcome.append((ahead.put(stream, key, size), True))
            elif ahead.streams[stream][seq - 1] == (key, size):
                outcome.append((seq, False))
            else:
                return KeyConflict
        self.streams, self.seqs = ahead.streams, ahead.seqs
        return outcome

    def put(self, stream: str, key: str, size: int) -> int:
        rows = self.streams.setdefault(stream, [])
        rows.append((key, size))
        self.seqs[stream, key] = len(rows)
        return len(rows)

    def pick(self, number: int) -> tuple[str, str, int] | None:
        """One of the events that there are; None when there are none."""
        if not self.seqs:
            return None
        stream, key = list(self.seqs)[number % len(self.seqs)]
        return (stream, *self.streams[stream][self.seqs[stream, key] - 1])
