"""The working projection: surface, heads and description of one session, as of one seq.

Rule: each recorded event goes through each reducer, in seq order, once. Invariants: `seq` is the last event that was
applied; rebuilding from the log gives the same canonical bytes. Refuses: an event that is not the next one.
Its size follows the surface and the number of keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..codec.cbor import encode
from ..codec.digests import value_digest
from ..errors import Damaged, NotProjectable
from ..events import Recorded, UnknownEvent
from ..reducers import ALL
from ..reducers.described import Described
from ..reducers.heads import Heads, holds
from ..reducers.surface import Surface


class Working:
    """Apply events with `apply`; read `surface`, `heads`, `described`. `refused` lists (seq, reducer, why)."""

    def __init__(self, stream: str) -> None:
        self.stream = stream
        self.seq = 0
        self.refused: list[tuple[int, str, str]] = []
        self._states: dict[str, Any] = {r.name: r.initial() for r in ALL}

    def apply(self, events: Iterable[Recorded]) -> Working:
        """Apply the next events. Raises Damaged on a gap, NotProjectable on a required kind that is not known."""
        for recorded in events:
            header = recorded.header
            if header.seq != self.seq + 1:
                raise Damaged(
                    where=f"stream {self.stream}, seq {self.seq + 1}",
                    what="the record is not there",
                )
            if isinstance(recorded.event, UnknownEvent):
                if header.required:
                    raise NotProjectable(
                        stream=self.stream, seq=header.seq, kind=header.kind, version=header.version
                    )
            else:
                for reducer in ALL:
                    state = self._states[reducer.name]
                    why = reducer.refusal(state, recorded)
                    if why is not None:
                        self.refused.append((header.seq, reducer.name, why))
                    self._states[reducer.name] = reducer.evolve(state, recorded)
            self.seq = header.seq
        return self

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
        states = {r.name: r.canonical(self._states[r.name]) for r in ALL}
        return encode({"seq": self.seq, "states": states})

    def state_digest(self) -> bytes:
        """blake3 of what holds: the same history has the same digest in any store."""
        return value_digest(holds(self.heads))
