"""The store as the next request of a group will find it: what is committed, and what the group has prepared so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from ..codec.record import decode_frame
from .base import Prepared, Record, Tip
from .rows import Memo, View
from .transactions import Txn

_numbers = count(1)


class Ahead(View):
    """A view that takes in prepared records as if they were committed. It lives as long as its transaction."""

    def __init__(self, txn: Txn, body: Callable[[Record], bytes], memo: Memo | None = None) -> None:
        super().__init__(txn, body, memo)
        self.number = next(_numbers)
        self.assumed = super().store_tip()
        self._end = self.assumed
        self.strayed = False
        """A request ended otherwise than when it was prepared before: those behind it must look anew."""
        self._tips: dict[str, Tip] = {}
        self._committed: dict[str, Tip] = {}
        self._keys: dict[tuple[str, str], tuple[int, Prepared] | None] = {}
        """What each key names that was prepared, and which of those looked up name nothing."""

        self._seqs: set[tuple[str, int]] = set()
        self._fresh: dict[str, list[Prepared]] = {}

    def take_in(self, prepared: Sequence[Prepared]) -> None:
        """These come next in the group."""
        for made in prepared:
            h = made.header
            self._end = (self._end[0] + 1, made.digest)
            self._tips[h.stream] = Tip(h.seq, made.digest)
            self._keys[h.stream, h.key] = (self._end[0], made)
            self._seqs.add((h.stream, h.seq))
            self._fresh.setdefault(h.stream, []).append(made)

    def store_tip(self) -> tuple[int, bytes]:
        """See View.store_tip."""
        return self._end

    def tip(self, stream: str) -> Tip:
        """See View.tip."""
        return self._tips.get(stream) or self.committed(stream)

    def committed(self, stream: str) -> Tip:
        """The stream's tip without what the group has prepared."""
        found = self._committed.get(stream)
        if found is None:
            found = self._committed[stream] = super().tip(stream)
        return found

    def fresh(self, stream: str) -> Sequence[Prepared]:
        """What the group has prepared for a stream so far."""
        return self._fresh.get(stream, ())

    def record_of(self, stream: str, key: str) -> tuple[Record, bytes] | None:
        """See View.record_of."""
        name = (stream, key)
        found = self._keys.get(name)
        if found is None:
            if name in self._keys:
                return None
            known = self._committed.get(stream)
            empty = known is not None and not known.seq
            committed = None if empty else super().record_of(stream, key)
            if committed is None:
                self._keys[name] = None
            return committed
        position, made = found
        record = Record(position, decode_frame(made.frame, where=f"stream {stream}, key {key}"))
        return record, made.plain

    def has(self, stream: str, seq: int) -> bool:
        """See View.has."""
        return (stream, seq) in self._seqs or super().has(stream, seq)
