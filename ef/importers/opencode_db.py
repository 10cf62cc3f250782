"""OpenCode's database (`opencode.db`): its sessions, messages and parts, a row a line.

An item is a row of the table `part`: its id stands in the row and not in its cell.
"""

from __future__ import annotations

from typing import Any

from ..events.shapes import is_map
from ..readers.pieces import map_of, text_of
from .formats import Format, Head
from .opencode import TELLS
from .opencode_parts import Message, Parts, began_at
from .translator import Given, Spot

NAME = "opencode-db"
TABLES = {"session": "time_created", "message": "time_created", "part": "time_created"}


class OpenCodeDatabase(Parts):
    """A database of many sessions."""

    NAME = NAME

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._messages: dict[str, Message] = {}

    def time_of(self, value: Any) -> Any:
        return began_at(map_of(value.get("data"))) or value.get("time_created")

    def record(self, value: dict[str, Any], spot: Spot) -> None:
        table, data = value.get("table"), value.get("data")
        if table == "session":
            self.session_told(value.get("id"), value.get("parent_id"), value.get("title"), spot)
        elif table == "message" and is_map(data):
            info = {**data, "id": value.get("id")}
            session = text_of(value.get("session_id"))
            self._messages[text_of(value.get("id"))] = self.message_told(session, info, spot)
        elif table == "part" and is_map(data):
            message = self._messages.get(text_of(value.get("message_id")))
            if message is None:
                self.unknown(spot, "part of a message that is not there")
            else:
                self.part(value, spot, message)


def recognises(head: Head) -> bool:
    """Whether a database is OpenCode's."""
    return {"project", "session", "message", "part"} <= head.tables


FORMAT = Format(
    NAME, "OpenCode database", "database", OpenCodeDatabase, recognises, TELLS, tables=TABLES
)
