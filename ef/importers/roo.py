"""Tasks of Roo Code (`api_conversation_history.json`): messages as of Cline's extension, and what condensing left.

Messages stay in the file when they are condensed or truncated, and name the summary or the marker that stands for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import Channel, ForeignCompaction, Reading
from ..readers.pieces import text_of
from .cline_task import TELLS, Task, of_roo, tasks
from .formats import Format, Head
from .given import calls_of, said_by
from .translator import Given, Spot

NAME = "roo"
_PARENTS = ("condenseParent", "truncationParent")


class Roo(Task):
    """The messages of a task."""

    NAME = NAME
    USER = ("roo/user", 1)
    ASSISTANT = ("roo/assistant", 1)

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._hidden: dict[str, list[str]] = {}

    def message(self, value: Mapping[str, Any], spot: Spot, reading: Reading) -> Reading:
        summary = value.get("isSummary") is True
        if summary:
            dropped = self._hidden.pop(text_of(value.get("condenseId")), [])
            event = ForeignCompaction(NAME, "compact", None, None, tuple(dropped))
            self.event(self.chain(), spot, event)
            reading = said_by(reading, Channel.IMPORTER)
        elif value.get("isTruncationMarker") is True:
            dropped = self._hidden.pop(text_of(value.get("truncationId")), [])
            event = ForeignCompaction(NAME, "truncate", None, None, tuple(dropped))
            self.event(self.chain(), spot, event)
            reading = said_by(reading, Channel.SYSTEM)
        found = super().message(value, spot, reading)
        for key in _PARENTS:
            if text_of(value.get(key)):
                self._hidden.setdefault(value[key], []).extend(calls_of(found))
        return found


def recognises(head: Head) -> bool:
    """Whether a file looks like a task of Roo Code."""
    found = tasks(head)
    return bool(found) and of_roo(head, found)


FORMAT = Format(
    NAME,
    "Roo Code",
    "document",
    Roo,
    recognises,
    TELLS._replace(usage="none", compaction="calls condensed or truncated; summary"),
)
