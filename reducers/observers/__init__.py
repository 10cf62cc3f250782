"""Observers: pure reducers that read one item at a time and propose the anchors that it grounds.

Rule: what an observer claims is grounded in the bytes that it cites, or it is not claimed. Observers read the neutral
view of calls and results, never a vendor's fields. Their state is what a result needs to be understood: the calls that
wait for one, and the targets whose last outcome was an error (so that a later success is worth saying).
Invariants: the same items give the same proposals, however they were batched.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from ...events import Reading, ToolCall
from .contract import Observed, Observer, Proposal


class Observers:
    """All observers over the items of one session, in order."""

    def __init__(self) -> None:
        self._states: list[Any] = []
        """Made with the first exchange."""
        self._view = Observed()

    def copy(self) -> Observers:
        """The same observers, to be taken further on trial."""
        other = Observers()
        other._view = self._view.copy()
        other._states = [copy(state) for state in self._states]
        return other

    def call(self, call_id: str) -> ToolCall | None:
        """The call that a result with this id would answer."""
        return self._view.call(call_id)

    def item(self, reading: Reading, *, replaces: bool = False) -> list[Proposal]:
        """What the next item grounds, in order of its parts; `replaces`: it gives an earlier item other content."""
        found: list[Proposal] = []
        for exchange in self._view.exchanges(reading, replaces=replaces):
            # Here: all observers take long to import, and who only reads needs none of them.
            from .every import ALL

            self._states = self._states or [observer.initial() for observer in ALL]
            for n, observer in enumerate(ALL):
                self._states[n], proposals = observer.observe(self._states[n], exchange)
                found += proposals
        return found

    def dump(self) -> Any:
        """All that they know, as a value that the codec encodes."""
        from .every import ALL

        states = [each.dump(state) for each, state in zip(ALL, self._states, strict=False)]
        return [self._view.dump(), states]

    @classmethod
    def load(cls, value: Any) -> Observers:
        """Observers that go on as those did that were dumped. Raises ValueError or TypeError for what is no dump."""
        from .every import ALL

        view, states = value
        found = cls()
        found._view = Observed.load(view)
        if states:
            found._states = [each.load(s) for each, s in zip(ALL, states, strict=True)]
        return found


def rules() -> list[list[str | int]]:
    """Name and version of each observer's rule: another rule, another state."""
    from .every import ALL

    return [[each.rule.name, each.rule.version] for each in ALL]


__all__ = ["Observed", "Observer", "Observers", "Proposal"]
