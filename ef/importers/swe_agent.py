"""SWE-agent trajectories (one JSON document) -> meanings.

The history is what the model saw, and so what the items are. The trajectory keeps each observation in full: where the
history shows less of one, the item is the observation of the trajectory, and the history's shorter form a compaction
of SWE-agent's own (form prune). What a run ended with stands in the trajectory alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..events import Channel, ForeignCompaction, Reading
from ..events.shapes import is_map
from ..readers import swe_agent as reader
from ..readers.jsoncuts import Cut, Path, Paths, cuts
from ..readers.openai_chat import text_in
from ..readers.pieces import text_of
from ..readers.tools import named
from .chains import INFERRED, Chain
from .documents import DocumentTranslator
from .formats import Format, Head, Tells
from .given import said_by
from .translator import Given, Spot

NAME = reader.NAME
_READER = (reader.NAME, reader.VERSION)
_RESULTS = (reader.RESULTS, reader.VERSION)
_OBSERVATION = (reader.OBSERVATION, reader.VERSION)
_COLLAPSED = re.compile(r"\s*(?:Old environment output: \(\d+ lines? omitted\)|Old output omitted)")
_STEPS: Paths = frozenset({(), ("trajectory",), ("trajectory", "*")})


@dataclass(slots=True)
class _Step:
    """A step of the trajectory: its action, and where its observation stands."""

    action: str = ""
    observation: Cut | None = None


class SweAgent(DocumentTranslator):
    """A trajectory."""

    NAME = NAME
    DESCEND = _STEPS | {("history",)}

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._data = b""
        self._steps: list[_Step] = []
        self._next = 0
        self._asked = False

    def document(self, data: bytes) -> None:
        """The trajectory's steps are known before the history is read, wherever they stand."""
        self._data = data
        for cut in cuts(data, _STEPS):
            if cut.path[:1] == ("trajectory",) and cut.fault is None:
                self._step(cut)
        super().document(data)
        self._rest()

    def _step(self, cut: Cut) -> None:
        if len(cut.path) != 3 or cut.path[2] not in ("action", "observation"):
            return
        number = cut.path[1]
        while isinstance(number, int) and len(self._steps) <= number:
            self._steps.append(_Step())
        step = self._steps[-1]
        if cut.path[2] == "action":
            step.action = text_of(cut.value)
        elif isinstance(cut.value, str):
            step.observation = cut

    def cut(self, path: Path, value: Any, spot: Spot) -> None:
        if path[:1] == ("history",) and is_map(value):
            self._message(value, spot)

    def _chain(self) -> Chain:
        return self.main or self.begin(None)

    def _message(self, value: Mapping[str, Any], spot: Spot) -> None:
        chain = self._chain()
        role, demo = text_of(value.get("role")), value.get("is_demo") is True
        waits = [o.call.call_id for o in chain.open_calls]
        if not demo and waits and (role == "tool" or (role == "user" and _inferred(waits))):
            self._answer(value, role, chain, spot, waits)
            return
        reading = reader.reading(value)
        if not reading.parts:
            if not role:
                self.unknown(spot, value.get("message_type"))
            return
        if role == "user" and not demo:
            if self._asked:
                reading = said_by(reading, Channel.SYSTEM)
            self._asked = True
        self.item(chain, spot, _READER, reading)
        if any(part.call for part in reading.parts):
            self._meet(text_of(value.get("action")))

    def _meet(self, action: str) -> None:
        """Go on in the trajectory to the step that has this action."""
        wanted = action.strip()
        for number in range(self._next, len(self._steps)):
            if self._steps[number].action.strip() == wanted:
                self._next = number + 1
                return

    def _answer(
        self, value: Mapping[str, Any], role: str, chain: Chain, spot: Spot, waits: list[str]
    ) -> None:
        whole = self._steps[self._next - 1].observation if self._next else None
        collapsed = _COLLAPSED.match(text_in(value.get("content"))) is not None
        if collapsed and whole is not None and not _COLLAPSED.match(whole.value):
            self._observed(whole, chain)
            self.event(chain, spot, ForeignCompaction(NAME, "prune", None, None, (waits[0],)))
        elif role == "tool":
            self.item(chain, spot, _READER, reader.reading(value))
        else:
            self.item(chain, spot, _RESULTS, reader.answer(value))

    def _observed(self, cut: Cut, chain: Chain) -> None:
        """A result whose text is the trajectory's."""
        data = self._data[cut.start : cut.end]
        spot = self.spot({}, data, cut.line, cut.start)
        reading = reader.observed(cut.value)
        waits = [o.call.call_id for o in chain.open_calls]
        (part,) = reading.parts
        if waits and not _inferred(waits):
            reading = Reading(reading.role, (named(part, waits[0]),))
        self.item(chain, spot, _OBSERVATION, reading)

    def _rest(self) -> None:
        """What the last action gave, where the history ends with it."""
        chain = self.main
        if chain is None or not chain.open_calls or not self._next:
            return
        last = self._steps[self._next - 1].observation
        if last is not None:
            self._observed(last, chain)


def _inferred(waits: list[str]) -> bool:
    return bool(waits) and waits[0].startswith(INFERRED)


def recognises(head: Head) -> bool:
    """Whether a file looks like a trajectory, from its first values."""
    history = [v for p, v in head.cuts if p[:1] == ("history",) and len(p) == 2 and is_map(v)]
    steps = [v for p, v in head.cuts if p[:1] == ("trajectory",) and len(p) == 2 and is_map(v)]
    if any({"action", "observation"} <= step.keys() for step in steps):
        return True
    return bool(history) and all("agent" in m and "role" in m for m in history)


FORMAT = Format(
    NAME,
    "SWE-agent trajectories",
    "document",
    SweAgent,
    recognises,
    Tells(
        ids="call ids where the model has tools",
        groups="one message a response",
        order="list order",
        usage="of the whole run only: not read",
        errors="not told",
        compaction="collapsed observations, their text kept",
        subagents="none",
        images="none",
    ),
)
