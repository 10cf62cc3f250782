"""Gemini CLI's newer chat recordings: JSON lines.

The first line describes the session; a message that changed stands again, whole; `$set` sets fields of the description;
`$rewindTo` takes messages off, from one on. A `$set` of `messages` is the whole history after the tool changed it: what
is new in it was written by a compaction, what is gone was dropped by it, and answers that are others were cleared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import ForeignCompaction, Part
from ..events.shapes import is_list, is_map
from ..readers import gemini_cli as reader
from ..readers.jsoncuts import cuts
from ..readers.pieces import map_of, maps_of, text_of
from .formats import Format, Head
from .gemini_cli import TELLS, Messages
from .given import calls_of
from .translator import Given, Spot

NAME = "gemini-cli-jsonl"
_HISTORY = frozenset({(), ("$set",), ("$set", "messages")})


class GeminiCliLines(Messages):
    """A recording of JSON lines."""

    NAME = NAME
    GROWS = True

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._calls: dict[str, list[str]] = {}
        self._texts: dict[str, str] = {}

    def record(self, value: dict[str, Any], spot: Spot) -> None:
        back = value.get("$rewindTo")
        update = value.get("$set")
        if isinstance(back, str):
            self._rewinds(back, spot)
        elif text_of(value.get("id")):
            self._says(value, spot)
        elif is_map(update):
            for key, each in update.items():
                self.told(key, each, spot)
            if is_list(update.get("messages")):
                self._replaced(update["messages"], spot)
        elif text_of(value.get("sessionId")):
            for key, each in value.items():
                self.told(key, each, spot)
        else:
            self.unknown(spot, value.get("type"))

    def _says(self, value: Mapping[str, Any], spot: Spot) -> None:
        found = self.message(value, spot)
        if found is None:
            return
        said, answers = found
        self._calls[text_of(value.get("id"))] = calls_of(said)
        for part in answers.parts:
            self._answers(part)

    def _answers(self, part: Part) -> bool:
        """Remember what a call gave; whether it gave something else before."""
        if part.result is None or not part.call_id:
            return False
        before = self._texts.setdefault(part.call_id, part.text)
        self._texts[part.call_id] = part.text
        return before != part.text

    def _rewinds(self, to: str, spot: Spot) -> None:
        names = list(self._calls)
        gone = names[names.index(to) :] if to in self._calls else names
        self._drop(gone, "rewind", spot)

    def _replaced(self, history: list[Any], spot: Spot) -> None:
        kept = {text_of(each.get("id")) for each in maps_of(history)}
        gone = [name for name in self._calls if name not in kept]
        if gone:
            self._drop(gone, "compact", spot)
        cleared = [
            part.call_id
            for each in maps_of(history)
            for part in reader.results(each).parts
            if self._answers(part) and part.call_id
        ]
        if cleared:
            event = ForeignCompaction(NAME, "prune", None, None, tuple(cleared))
            self.event(self.chain(), spot, event, view="prune")
        for cut in cuts(spot.data, _HISTORY):
            if len(cut.path) == 3 and is_map(cut.value):
                name = text_of(cut.value.get("id"))
                if name and name not in self._calls:
                    self._says(cut.value, spot.inner(cut.start, cut.end, cut.value))

    def _drop(self, names: list[str], form: str, spot: Spot) -> None:
        calls = tuple(call for name in names for call in self._calls.pop(name))
        event = ForeignCompaction(NAME, form, None, None, calls)
        self.event(self.chain(), spot, event, view=form)


def recognises(head: Head) -> bool:
    """Whether a file looks like a recording of JSON lines, from its first lines."""
    return any(
        isinstance(record.get("sessionId"), str)
        and isinstance(record.get("projectHash"), str)
        and "messages" not in record
        for record in map(map_of, head.records[:5])
    ) and not any(path[:1] == ("messages",) for path, _ in head.cuts)


FORMAT = Format(NAME, "Gemini CLI (JSON lines)", "lines", GeminiCliLines, recognises, TELLS)
