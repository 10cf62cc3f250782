"""Tasks of Cline's extension (`api_conversation_history.json`): a list of Anthropic messages; what Roo Code shares.

An item is the `content` of a message: what stands beside it changes when the file is written again. The task's id is
the name of its folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from ..events import Reading, RouteChanged
from ..events.shapes import is_map
from ..readers import cline as reader
from ..readers.jsoncuts import Path, Paths
from ..readers.pieces import id_of, kind_of, map_of, text_of
from .chains import INFERRED, Chain
from .cline import TELLS as SDK_TELLS
from .documents import DocumentTranslator
from .formats import Format, Head
from .given import name_in, usage_of, value_in
from .translator import Spot

NAME = "cline-task"
FILES = ("api_conversation_history.json", "claude_messages.json")
_TASK = re.compile(r"[0-9]{10,16}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4,12}){4}")
_ROO = frozenset(
    """isSummary condenseId condenseParent truncationId truncationParent isTruncationMarker""".split()
)


class Task(DocumentTranslator):
    """The messages of a task."""

    NAME = NAME
    USER: ClassVar[tuple[str, int]] = reader.USER
    ASSISTANT: ClassVar[tuple[str, int]] = reader.ASSISTANT
    DESCEND: ClassVar[Paths] = frozenset({()})

    def time_of(self, value: Mapping[str, Any]) -> Any:
        return value.get("ts")

    def cut(self, path: Path, value: Any, spot: Spot) -> None:
        if len(path) != 1 or not is_map(value):
            return
        role = value.get("role")
        alone = "content" not in value and kind_of(value) == "reasoning"
        if role not in ("user", "assistant") and not alone:
            self.unknown(spot, f"message of role {role}")
            return
        content = spot if alone else value_in(spot, "content")
        if content is None:
            return
        held = value if alone else value.get("content")
        reading = reader.user(held) if role == "user" else reader.assistant(held)
        if reading.parts:
            self.message(value, content, reading)

    def message(self, value: Mapping[str, Any], spot: Spot, reading: Reading) -> Reading:
        """A message whose content stands at `spot`; its reading with the ids that calls have now."""
        chain = self.chain()
        if reading.role == "user":
            self.item(chain, spot, self.USER, reading)
            return self._newest(reading)
        group = id_of(value.get("id"))
        reading = replace(reading, group=group or None)
        by, route = map_of(value.get("modelInfo")), None
        if text_of(by.get("modelId")):
            route = chain.routed(
                RouteChanged(name_in(by.get("providerId")), name_in(by.get("modelId")))
            )
        alone = spot.value is value  # its id is in its bytes
        name = text_of(value.get("id")) if alone else ""
        key = self.item(chain, spot, self.ASSISTANT, reading, id=name or None, route=route)
        tokens = map_of(map_of(value.get("metrics")).get("tokens"))
        given, made, read = (tokens.get(name) for name in ("prompt", "completion", "cached"))
        usage = usage_of(group or INFERRED + key, given, made, read, None, with_cache=True)
        if usage is not None:
            self.event(chain, spot, usage)
        return self._newest(reading)

    def _newest(self, reading: Reading) -> Reading:
        found = next((m.reading for m in reversed(self.out.meanings) if m.reading), None)
        return found or reading

    def chain(self) -> Chain:
        """The task's session."""
        if self.main is not None:
            return self.main
        above, _, name = self.given.path.replace("\\", "/").rpartition("/")
        folder = above.rpartition("/")[2]
        return self.begin(folder if name in FILES and _TASK.fullmatch(folder) else None)


def tasks(head: Head) -> list[Mapping[str, Any]]:
    """The messages of a file that looks like a task's, of whichever extension; none where it does not."""
    of: dict[int, dict[str, Any]] = {}
    for path, value in head.cuts:
        if not path or not isinstance(path[0], int):
            return []
        if len(path) == 2:  # else it is no message
            of.setdefault(path[0], {})[str(path[1])] = value
    found: list[Mapping[str, Any]] = list(of.values())
    said = [m for m in found if m.get("role") in ("user", "assistant") and "content" in m]
    ours = (head.name in FILES and bool(said)) or any(_told(m) for m in said)
    return found if ours else []


def of_roo(head: Head, found: list[Mapping[str, Any]]) -> bool:
    """Whether a task is Roo Code's: its own fields, its own words in the environment's details, or its folder."""
    if any(_ROO & m.keys() for m in found):
        return True
    if any("modelInfo" in m or "metrics" in m for m in found):
        return False
    if b"# Visual Studio Code Visible Files" in head.data:
        return False
    return b"# VSCode Visible Files" in head.data or "roo" in head.path.lower().rpartition("/")[0]


def _told(message: Mapping[str, Any]) -> bool:
    """Whether a message holds what only these extensions write."""
    blocks = reader.blocks_of(message.get("content"))
    texts = [text_of(b.get("text")) for b in blocks if kind_of(b) == "text"]
    return message.get("role") == "user" and any(
        text.startswith("<environment_details>\n#") for text in texts
    )


def recognises(head: Head) -> bool:
    """Whether a file looks like a task of Cline's extension."""
    found = tasks(head)
    return bool(found) and not of_roo(head, found)


TELLS = SDK_TELLS._replace(
    ids="call ids; none in older files",
    groups="response id in newer files, else inferred",
    usage="per message in newer files",
    errors="is_error; the harness's words; exit codes of commands",
    compaction="none",
)

FORMAT = Format(
    NAME,
    "Cline extension",
    "document",
    Task,
    recognises,
    TELLS,
)
