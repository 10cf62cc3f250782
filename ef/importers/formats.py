"""The formats that are read: which there are, how a file's beginning tells them apart, what each can tell.

The table is closed; a format's module is imported when a file may be of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..events.shapes import is_map
from ..readers.jsoncuts import Path, cuts
from ..readers.jsonvalues import read_line
from .documents import DocumentTranslator
from .lines import lines
from .translator import Translator

if TYPE_CHECKING:
    import sqlite3

HEAD_BYTES = 1 << 20
"""How much of a file is looked at to find its format; of a line that is longer, all of it."""
HEAD_RECORDS = 200
HEAD_CUTS = 60


class Records(Sequence[dict[str, Any]]):
    """The objects of the first lines of a file; a line is read when it is asked for."""

    def __init__(self, data: bytes) -> None:
        self._rest = islice(lines(data), HEAD_RECORDS)
        self._found: list[dict[str, Any]] = []

    def _more(self) -> bool:
        line = next(self._rest, None)
        if line is None:
            return False
        self._found += [v.value for v in read_line(line.data).values if is_map(v.value)]
        return True

    def __iter__(self) -> Iterator[dict[str, Any]]:
        n = 0
        while n < len(self._found) or self._more():
            if n < len(self._found):
                yield self._found[n]
                n += 1

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None

    def __len__(self) -> int:
        while self._more():
            pass
        return len(self._found)

    def __getitem__(self, index: Any) -> Any:
        len(self)
        found: Any = self._found
        return found[index]


@dataclass(frozen=True)
class Head:
    """The beginning of a file: its bytes, its path as the caller gave it, whether it is all of the file, and the tables
    of a database.
    """

    data: bytes
    path: str = ""
    whole: bool = False
    tables: frozenset[str] = frozenset()

    @cached_property
    def name(self) -> str:
        """The file's own name."""
        return self.path.replace("\\", "/").rpartition("/")[2]

    @cached_property
    def records(self) -> Records:
        """The objects of its first lines."""
        return Records(self.data)

    @cached_property
    def cuts(self) -> list[tuple[Path, Any]]:
        """The first values of a document; what is in its top, and in containers there, stands by itself."""
        if self.data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] not in (b"{", b"["):
            return []
        found = cuts(self.data, frozenset({(), ("*",)}))
        return [(c.path, c.value) for c in islice(found, HEAD_CUTS) if c.fault is None]

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of the document's top that were met."""
        return frozenset(p[0] for p, _ in self.cuts if p and isinstance(p[0], str))


class Tells(NamedTuple):
    """What a format can and cannot tell, in a few words each."""

    ids: str
    groups: str
    order: str
    usage: str
    errors: str
    compaction: str
    subagents: str
    images: str


@dataclass(frozen=True, slots=True)
class Format:
    """A format that is read. `form` says what a file is made of.

    The rows of a database are those of `tables` (table -> the column that orders it), or what `feed` makes of an open
    database: JSON values, one a line.
    """

    name: str
    title: str
    form: Literal["lines", "document", "database"]
    translator: type[Translator]
    recognises: Callable[[Head], bool]
    tells: Tells
    tables: Mapping[str, str] = field(default_factory=dict[str, str])
    feed: Callable[[sqlite3.Connection], Iterator[Any]] | None = None


_MODULES: dict[str, str] = {
    "claude-code": "claude_code",
    "opencode": "opencode",
    "opencode-db": "opencode_db",
    "pi": "pi",
    "copilot-cli": "copilot_cli",
    "gemini-cli": "gemini_cli",
    "gemini-cli-jsonl": "gemini_cli_jsonl",
    "cline": "cline",
    "cline-task": "cline_task",
    "roo": "roo",
    "goose": "goose",
    "goose-db": "goose_db",
    "codex": "codex",
    "mini-swe-agent": "mini_swe_agent",
    "swe-agent": "swe_agent",
    "openhands-v0": "openhands_v0",
    "openhands-v0-jsonl": "openhands_v0_jsonl",
    "openhands-v1": "openhands_v1",
    "deepseek-harness": "deepseek_harness",
    "agents-sdk": "agents_sdk",
    "langgraph": "langgraph",
    "otel-genai": "otel_genai",
    "tau-bench": "tau_bench",
    "gemini-contents": "gemini_contents",
    "openai-responses": "openai_responses",
    "anthropic-messages": "anthropic_messages",
    "openai-chat": "openai_chat",
}
"""Format -> its module here, in the order in which a file is tried."""


UNSUPPORTED = frozenset(("cline-task", "roo", "goose", "goose-db"))
"""Formats that are read from what their programs' source code says: no file that such a program wrote was at hand."""


def names() -> tuple[str, ...]:
    """All formats that are read."""
    return tuple(_MODULES)


def format_of(name: str) -> Format | None:
    """The format with this name."""
    module = _MODULES.get(name)
    found: Format | None = import_module(f".{module}", __package__).FORMAT if module else None
    return found


def recognised(head: Head) -> Format | None:
    """The format of a file that begins so."""
    for name in _MODULES:
        found = format_of(name)
        of_database = found is not None and found.form == "database"
        if found is not None and of_database == bool(head.tables) and found.recognises(head):
            return found
    return None


__all__ = ["DocumentTranslator", "Format", "Head", "Tells", "format_of", "names", "recognised"]
