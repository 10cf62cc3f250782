"""OpenCode's exported sessions: one document.

What its parts mean: `opencode_parts`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..events.shapes import is_list, is_map
from ..readers.jsoncuts import Path, Paths
from ..readers.pieces import kind_of, map_of, text_of
from .documents import DocumentTranslator
from .formats import Format, Head, Tells
from .opencode_parts import NAME, Message, Parts, began_at
from .translator import Given, Spot, count


class OpenCode(Parts, DocumentTranslator):
    """An exported session."""

    DESCEND: ClassVar[Paths] = frozenset({
        (), ("messages",), ("messages", "*"), ("messages", "*", "parts"),
    })  # fmt: skip

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._name = ""
        self._message: tuple[Any, Message] | None = None

    def cut(self, path: Path, value: Any, spot: Spot) -> None:
        if path == ("info",) and is_map(value):
            self._name = text_of(value.get("id"))
            self.session_told(self._name, value.get("parentID"), value.get("title"), spot)
        elif path[:1] != ("messages",) or len(path) < 3:
            return
        elif path[2] == "info" and len(path) == 3 and is_map(value):
            created = count(map_of(value.get("time")).get("created"))
            spot.happened(created or None)
            self._message = (path[1], self.message_told(self._name, value, spot))
        elif path[2] == "parts" and len(path) == 4 and is_map(value):
            if self._message is None or self._message[0] != path[1]:
                self.unknown(spot, kind_of(value))
                return
            message = self._message[1]
            began = began_at(value)
            spot.happened(began or message.created or None)
            self.part(value, spot, message)


def recognises(head: Head) -> bool:
    """Whether a file looks like an exported session."""
    of = dict(head.cuts)
    if isinstance(of.get(("info", "projectID")), str) and ("info", "directory") in of:
        return True
    held = [v for p, v in head.cuts if p[:1] == ("messages",) and len(p) == 2]
    return any(is_map(m) and is_map(m.get("info")) and is_list(m.get("parts")) for m in held)


TELLS = Tells(
    ids="message and part ids, call ids",
    groups="message id",
    order="file order",
    usage="per message, with cache",
    errors="state error; exit codes of commands",
    compaction="boundary, trigger; cleared outputs; summary",
    subagents="sessions of their own",
    images="base64 or address",
)

FORMAT = Format(NAME, "OpenCode export", "document", OpenCode, recognises, TELLS)
