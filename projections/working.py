"""The working projection: surface, heads and description of one session, as of one seq.

Rule: each recorded event goes through each reducer, in seq order, once. Invariants: `seq` is the last event that was
applied and `digest` that record's; rebuilding from the log gives the same canonical bytes, and so does going on from
the dumps of a moment. Refuses: an event that is not the next one. Its size follows the surface and the number of keys.
A projection of some of the reducers is what a question needs that asks for no more (`HELD`, `SHOWN`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..codec import cbor
from ..codec.digests import ZERO, value_digest
from ..errors import Damaged, NotProjectable
from ..events import Recorded, UnknownEvent
from ..reducers import ALL, Reducer
from ..reducers.described import REDUCER as DESCRIBED
from ..reducers.described import Described
from ..reducers.heads import REDUCER as HEADS
from ..reducers.heads import Heads, holds
from ..reducers.surface import REDUCER as SURFACE
from ..reducers.surface import Surface

_Refusal = Callable[[Any, Recorded], str | None]
_Accept = Callable[[Any, Recorded], Any]
HELD = (HEADS,)
"""What holds, and what was refused of it."""

SHOWN = (SURFACE, DESCRIBED)
"""What the model sees."""

NAMED = (DESCRIBED,)
"""What a session is."""


class Working:
    """Apply events with `apply`; read `surface`, `heads`, `described`. `refused` lists (seq, reducer, why)."""

    def __init__(self, stream: str, reducers: Sequence[Reducer] = ALL) -> None:
        self.stream = stream
        self.seq = 0
        self.digest = ZERO
        self.refused: list[tuple[int, str, str]] = []
        self.reducers = tuple(reducers)
        self._states: dict[str, Any] = {r.name: r.initial() for r in self.reducers}

    def apply(self, events: Iterable[Recorded]) -> Working:
        """Apply the next events. Raises Damaged on a gap, NotProjectable on a required kind that is not known."""
        states, refused = self._states, self.refused
        asked: dict[type, list[tuple[str, _Refusal, _Accept]]] = {}
        for recorded in events:
            header, kind = recorded.header, type(recorded.event)
            if header.seq != self.seq + 1:
                raise Damaged(
                    where=f"stream {self.stream}, seq {self.seq + 1}",
                    what="the record is not there",
                )
            if kind not in asked:
                asked[kind] = [
                    (r.name, r.refusal, r.accept)
                    for r in self.reducers
                    if kind is not UnknownEvent and (r.kinds is None or kind in r.kinds)
                ]
            if kind is UnknownEvent and header.required:
                raise NotProjectable(
                    stream=self.stream, seq=header.seq, kind=header.kind, version=header.version
                )
            for name, refusal, accept in asked[kind]:
                why = refusal(states[name], recorded)
                if why is None:
                    states[name] = accept(states[name], recorded)
                else:
                    refused.append((header.seq, name, why))
            self.seq, self.digest = header.seq, recorded.digest
        return self

    def apply_only(self, events: Iterable[Recorded], seq: int, digest: bytes) -> None:
        """Apply those of the next events up to `seq`, a record of that digest, that these reducers look at.

        The caller knows that all others are of kinds that they do not look at. Raises NotProjectable as `apply` does.
        """
        for recorded in events:
            self.seq = recorded.header.seq - 1
            self.apply((recorded,))
        self.seq, self.digest = seq, digest

    def looks_at(self) -> frozenset[type] | None:
        """The kinds of events that these reducers look at; None when one of them looks at all."""
        found: set[type] = set()
        for reducer in self.reducers:
            if reducer.kinds is None:
                return None
            found |= reducer.kinds
        return frozenset(found)

    @property
    def surface(self) -> Surface:
        """The ordered nodes that the model sees."""
        found: Surface = self._states["surface"]
        return found

    @property
    def heads(self) -> Heads:
        """What holds now."""
        found: Heads = self._states["heads"]
        return found

    @property
    def described(self) -> Described:
        """What the session is."""
        found: Described = self._states["described"]
        return found

    def canonical(self) -> bytes:
        """The canonical bytes of all reducers' states and the seq."""
        states = {r.name: r.canonical(self._states[r.name]) for r in self.reducers}
        return cbor.encode({"seq": self.seq, "states": states})

    def state_digest(self) -> bytes:
        """blake3 of what holds: the same history has the same digest in any store."""
        return value_digest(holds(self.heads))

    # Dumps.

    def dump(self, reducer: Reducer) -> bytes:
        """All that one reducer's state and its refusals are, in canonical CBOR."""
        refused = [[seq, why] for seq, name, why in self.refused if name == reducer.name]
        return cbor.dumps([reducer.dump(self._states[reducer.name]), refused])

    @classmethod
    def loaded(cls, stream: str, reducer: Reducer, seq: int, digest: bytes, dump: bytes) -> Working:
        """The projection of one reducer, as of the record of that seq and digest. Raises cbor.Malformed.

        The bytes are those that `dump` gave: who keeps them checks that they are.
        """
        working = cls(stream, (reducer,))
        working.seq, working.digest = seq, digest
        try:
            value: Any = cbor.decode_trusted(dump)
            state, refused = value
            working._states[reducer.name] = reducer.load(state)
            working.refused = [(at, reducer.name, why) for at, why in refused]
        except (ValueError, TypeError, KeyError) as fault:
            raise cbor.Malformed(f"no dump of {reducer.name}: {fault}") from None
        return working

    def join(self, other: Working) -> None:
        """Take over the reducers of another projection of this stream, as of the same seq."""
        assert (other.stream, other.seq, other.digest) == (self.stream, self.seq, self.digest)
        self.reducers += other.reducers
        self._states |= other._states
        order = {r.name: n for n, r in enumerate(ALL)}
        self.refused = sorted(self.refused + other.refused, key=lambda row: (row[0], order[row[1]]))
