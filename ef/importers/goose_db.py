"""goose's database (`sessions.db`): its sessions and messages, a row a line; an item is the cell `content_json`.

The table of messages is written anew when a conversation is replaced, so that row ids and stamps change and content
does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import SessionDescribed
from ..readers.pieces import text_of
from .chains import Chain
from .formats import Format, Head
from .given import place_of, title_of
from .goose import TELLS, Messages
from .translator import Given, Spot

NAME = "goose-db"
TABLES = {"sessions": "created_at", "messages": "id"}


class GooseDatabase(Messages):
    """A database of many sessions."""

    NAME = NAME

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._told: dict[str, tuple[str, bool, Spot | None]] = {}
        self._begun: set[str] = set()

    def time_of(self, value: Mapping[str, Any]) -> Any:
        return value.get("created_timestamp")

    def record(self, value: dict[str, Any], spot: Spot) -> None:
        if value.get("table") == "sessions":
            title = title_of(value.get("name")) or title_of(value.get("description"))
            side = value.get("session_type") == "sub_agent"
            self._told[text_of(value.get("id"))] = (title, side, place_of(spot))
        elif value.get("table") == "messages":
            chain = self._chain(text_of(value.get("session_id")))
            told = {"role": value.get("role"), "metadata": value.get("metadata_json")}
            self.message(chain, told, spot, "content_json")

    def _chain(self, name: str) -> Chain:
        title, side, spot = self._told.get(name, ("", False, None))
        chain = self.begin(name, relation="subagent" if side else "root")
        if name not in self._begun:
            self._begun.add(name)
            if title and spot is not None:
                self.event(chain, spot, SessionDescribed(title))
        return chain


def recognises(head: Head) -> bool:
    """Whether a database is goose's."""
    return {"sessions", "messages", "schema_version"} <= head.tables


FORMAT = Format(
    NAME,
    "goose database",
    "database",
    GooseDatabase,
    recognises,
    TELLS,
    tables=TABLES,
)
