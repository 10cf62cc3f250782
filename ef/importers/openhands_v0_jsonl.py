"""OpenHands V0 as JSON lines -> meanings: an event a line (or a file), or the output of an evaluation.

A line of an evaluation's output is a run of its own: its `history` holds the events, or pairs of an action and what it
gave. Of a file with one event nobody knows whether a delegate was at work: a task in a delegate's form is an agent's.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from ..events import SessionDescribed
from ..events.shapes import is_list
from ..readers.jsoncuts import Paths
from .formats import Format, Head
from .given import title_of
from .openhands_v0 import FORMAT as DOCUMENT
from .openhands_v0 import Events, Run, elements, is_event
from .openhands_v0 import recognises as is_document
from .translator import Given, Spot, Translator

NAME = "openhands-v0-jsonl"
_HISTORY: Paths = frozenset({(), ("history",)})
_FOLDER = re.compile(r"([^/\\]{8,128})[/\\]events[/\\]\d{1,9}\.json$|(?<![^/\\])([0-9a-f]{32})$")
"""The session of the place of an event's file, or of the folder that holds a conversation."""
_TOLD = frozenset(("instance_id", "test_result", "metrics", "metadata", "instruction"))


class OpenHandsV0Lines(Translator):
    """A conversation, or the runs of an evaluation."""

    NAME: ClassVar[str] = NAME

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._events = Events(self)
        self._run: Run | None = None
        self._runs = 0

    def record(self, value: dict[str, Any], spot: Spot) -> None:
        if is_list(value.get("history")) and "action" not in value and "observation" not in value:
            self._evaluated(value, spot)
            return
        if self._run is None:
            found = _FOLDER.search(self.given.path)
            name = found[1] or found[2] if found else None
            self._run = Run([self.begin(name)], alone=bool(found and found[1]))
        self._events.happened(self._run, value, spot)

    def _evaluated(self, value: dict[str, Any], spot: Spot) -> None:
        self._runs += 1
        run = Run([self.begin(None)], harness=True)
        title = title_of(value.get("instance_id"))
        if title:
            self.event(run.agents[0], spot, SessionDescribed(title))
        for each, inner in elements(spot, _HISTORY, "history"):
            self._events.pair(run, each, inner)


def recognises(head: Head) -> bool:
    """Whether a file looks like such lines, from its first ones."""
    if is_document(head):
        return False
    return any(_is_ours(record) for record in head.records[:20])


def _is_ours(record: dict[str, Any]) -> bool:
    if is_event(record):
        return True
    history = record.get("history")
    if not is_list(history) or not _TOLD & record.keys() or "trajectory" in record:
        return False
    return any(is_event(e) or (is_list(e) and any(map(is_event, e))) for e in history[:20])


FORMAT = Format(
    NAME,
    "OpenHands V0 (events, output of evaluations)",
    "lines",
    OpenHandsV0Lines,
    recognises,
    DOCUMENT.tells,
)
