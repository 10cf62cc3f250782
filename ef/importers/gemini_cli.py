"""Gemini CLI's chat recordings: the older document that is rewritten as a whole, and what is common with the newer one.

A message is one item for what was said and called, and one for what the calls gave. Notices of the interface are none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ..events import Reading, RouteChanged, SessionDescribed, UsageReported
from ..events.shapes import is_map
from ..readers import gemini_cli as reader
from ..readers.jsoncuts import Path, Paths
from ..readers.pieces import id_of, map_of, text_of
from .chains import Chain
from .documents import DocumentTranslator
from .formats import Format, Head, Tells
from .given import made_by_agent, name_in, title_of, usage_of
from .translator import Given, Spot, Translator, count

NAME = reader.NAME
_READER = (reader.NAME, reader.VERSION)
_NOTICES = ("info", "warning", "error")


class Messages(Translator):
    """What Gemini CLI's messages mean, whatever holds them."""

    NAME = NAME

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._name = ""
        self._kind = ""
        self._titled = ""
        self._answered: set[str] = set()
        self._took: dict[str, UsageReported] = {}

    def told(self, key: str, value: Any, spot: Spot) -> None:
        """A field of the recording's own."""
        if key == "sessionId" and self.main is None:
            self._name = text_of(value)
        elif key == "kind" and self.main is None:
            self._kind = text_of(value)
        elif key == "summary" and title_of(value) not in ("", self._titled):
            self._titled = title_of(value)
            self.event(self.chain(), spot, SessionDescribed(self._titled))

    def chain(self) -> Chain:
        """The recording's session."""
        if self.main is not None:
            return self.main
        if self._kind != "subagent":
            return self.begin(self._name)
        folder = self.given.path.replace("\\", "/").rpartition("/")[0].rpartition("/")[2]
        return self.begin(self._name, relation="subagent", parent=folder or None)

    def message(self, value: Mapping[str, Any], spot: Spot) -> tuple[Reading, Reading] | None:
        """A message: what was said and called, and what the calls gave; None for a notice of the interface."""
        reading = reader.reading(value)
        if reading is None:
            if value.get("type") not in _NOTICES:
                self.unknown(spot, value.get("type"))
            return None
        made = reading.role == "assistant"
        answers = reader.results(value) if made else Reading("user", ())
        if self._said_before(reading):
            return reading, answers
        chain = self.chain()
        name = text_of(value.get("id")) or None
        told = made_by_agent(reading) if chain.side else reading
        route = None
        if made and text_of(value.get("model")):
            route = chain.routed(RouteChanged("gemini", name_in(value.get("model"))))
        if reading.parts:
            self.item(chain, spot, _READER, told, id=name, route=route)
        if made:
            self._usage(value, spot, chain)
        if answers.parts:
            self.item(chain, spot, reader.RESULTS, answers, id=name, view="results")
            self._answered.update(p.call_id for p in answers.parts if p.result and p.call_id)
        return reading, answers

    def _said_before(self, reading: Reading) -> bool:
        """Whether a user's message is nothing but answers that a message of calls has brought."""
        results = [part.call_id for part in reading.parts if part.result is not None]
        return (
            bool(results)
            and len(results) == len(reading.parts)
            and all(call in self._answered for call in results)
        )

    def _usage(self, value: Mapping[str, Any], spot: Spot, chain: Chain) -> None:
        tokens, name = map_of(value.get("tokens")), id_of(value.get("id"))
        made, thought = count(tokens.get("output")), count(tokens.get("thoughts"))
        whole = made if made is None else made + (thought or 0)
        usage = usage_of(
            name, tokens.get("input"), whole, tokens.get("cached"), None, with_cache=True
        )
        if usage is not None and self._took.get(name) != usage:
            self._took[name] = usage
            self.event(chain, spot, usage)


class GeminiCli(Messages, DocumentTranslator):
    """A recording that is one document."""

    DESCEND: ClassVar[Paths] = frozenset({(), ("messages",)})

    def cut(self, path: Path, value: Any, spot: Spot) -> None:
        if len(path) == 2 and path[0] == "messages" and is_map(value):
            self.message(value, spot)
        elif len(path) == 1:
            self.told(str(path[0]), value, spot)


def recognises(head: Head) -> bool:
    """Whether a file looks like a recording that is one document."""
    of = {path: value for path, value in head.cuts if len(path) <= 2}
    messages = ("messages" in head.keys) or any(path[:1] == ("messages",) for path in of)
    return messages and all(isinstance(of.get((key,)), str) for key in ("sessionId", "projectHash"))


TELLS = Tells(
    ids="message ids, call ids",
    groups="message id",
    order="file order",
    usage="per message, with cached and thoughts",
    errors="status error or cancelled; exit codes of commands",
    compaction="messages replaced by a summary; cleared outputs; rewinding (newer files)",
    subagents="files of their own (newer files)",
    images="base64 or address",
)

FORMAT = Format(NAME, "Gemini CLI", "document", GeminiCli, recognises, TELLS)
