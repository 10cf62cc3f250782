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
    """

    name: str
    version: int
    initial: Callable[[], Any]
    evolve: Callable[[Any, Recorded], Any]
    refusal: Callable[[Any, Recorded], str | None]
    canonical: Callable[[Any], Any]
