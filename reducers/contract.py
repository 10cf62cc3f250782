"""What a reducer is: initial state, evolve, a refusal for illegal events, and a canonical value of its state.

Rules. `evolve` takes its state over: the caller must not use the old one again (that is what makes an event cost the
same whatever the history's length). It is deterministic and blind to how events were batched. An event that `refusal`
names as illegal leaves the state as it was, so a log that holds one is still projected, and verify reports it.
Raw kinds (items, source lines) reach reducers without their bytes: headers say what reducers need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..events import Recorded


@dataclass(frozen=True, slots=True)
class Reducer:
    """A named, versioned reducer. `canonical(state)` is a value that the codec can encode:
    equal states, equal bytes.

    `dump(state)` is a value without maps that holds all of the state, and `load` makes the state of it again: it goes
    on as the first one would have. `load` raises ValueError, TypeError or KeyError for what is no dump. `shape` is the
    version of what `dump` gives. Whoever changes what `evolve` does raises `version`: older snapshots are not used
    any more.

    `accept` is `evolve` for an event that `refusal` let pass: who has asked already need not ask again. `kinds` are the
    types of events that the reducer looks at (None: all); any other one is never refused and changes nothing.
    """

    name: str
    version: int
    initial: Callable[[], Any]
    accept: Callable[[Any, Recorded], Any]
    refusal: Callable[[Any, Recorded], str | None]
    canonical: Callable[[Any], Any]
    dump: Callable[[Any], Any]
    load: Callable[[Any], Any]
    shape: int = 1
    kinds: frozenset[type] | None = None

    def evolve(self, state: Any, recorded: Recorded) -> Any:
        """The state after an event; the same state when the event is illegal."""
        return state if self.refusal(state, recorded) else self.accept(state, recorded)
