"""Message lists of providers' APIs -> meanings: what a program keeps of its own agent, or sends as a request.

A file is a JSON document that is a list of messages, or an object that holds one (with a system text, a model, usage
beside it), or a message alone; or it has a message a line, or such an object a line, each a session of its own. Nothing
in it names a session, a time or, but for calls, an id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from ..events import Reading, RouteChanged, UsageReported
from ..events.shapes import is_map
from ..readers import texts
from ..readers.jsoncuts import Path, Paths, cuts
from ..readers.jsonvalues import read_line
from ..readers.pieces import list_of, map_of
from .chains import INFERRED, Chain
from .documents import DocumentTranslator
from .formats import Head
from .given import name_in
from .lines import RawLine, lines
from .translator import Given, Spot

SYSTEMS = ("system", "instructions", "system_instruction", "systemInstruction")
"""Keys under which an object has the system's text."""
_BOM = b"\xef\xbb\xbf"
_HAS_SYSTEM = re.compile(rb'"(?:system|instructions|system_?[iI]nstruction)"\s*:')
_WRAPPERS = ("request", "response", "body")
"""Keys under which a log of requests has what this reads."""


def paths(*lists: str) -> Paths:
    """What is walked into: the top, lists under these keys, and both inside a request or a response."""
    own = [(), *((name,) for name in lists)]
    return frozenset([*own, *((w, *path) for w in _WRAPPERS for path in own)])


class Messages(DocumentTranslator):
    """A list of messages."""

    PROVIDER: ClassVar[str]
    READER: ClassVar[tuple[str, int]]
    LISTS: ClassVar[tuple[str, ...]] = ("messages",)
    """Keys under which an object has its messages."""
    ROLES: ClassVar[frozenset[str]]
    """Who may speak; what another one says counts for nothing, and that is remarked."""

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._model: str | None = None
        self._group: str | None = None
        self._chain: Chain | None = None
        self._systems: set[bytes] = set()

    def document(self, data: bytes) -> None:
        first = _first_line(data)
        if _is_one(first) or is_alone(data, self.DESCEND):
            for line in lines(data) if first else (RawLine(1, 0, data, True),):
                self.line(line)
        elif first:
            self._objects(data)
        else:
            self._whole(data)

    def _whole(self, data: bytes) -> None:
        """A document. Its system text comes before the messages, wherever it stands."""
        read: set[int] = set()
        if _HAS_SYSTEM.search(data):
            for cut in cuts(data, self.DESCEND):
                if cut.fault is None and cut.path[-1:] and cut.path[-1] in SYSTEMS:
                    read.add(cut.start)
                    self.found(cut, data)
        for cut in cuts(data, self.DESCEND):
            if cut.start not in read:
                self.found(cut, data)

    def _objects(self, data: bytes) -> None:
        """Lines that are documents: what no line says is not of the next one."""
        for line in lines(data):
            self.apart()
            for cut in cuts(line.data, self.DESCEND):
                start, end = line.start + cut.start, line.start + cut.end
                self.found(replace(cut, start=start, end=end, line=line.number), data)

    def apart(self) -> None:
        """Another session begins: nothing is known of it."""
        self._chain = self._group = self._model = None
        self._systems.clear()

    def record(self, value: dict[str, Any], spot: Spot) -> None:
        self.message(value, spot)

    def cut(self, path: Path, value: Any, spot: Spot) -> None:
        key = path[-1] if path else ""
        if isinstance(key, int):
            holder = path[-2] if len(path) > 1 else ""
            if holder == "" or holder in self.LISTS:
                self.message(map_of(value), spot)
        elif key == "model":
            self.made_by(name_in(value), spot)
        elif key in SYSTEMS and value and isinstance(value, list | dict | str):
            if spot.data not in self._systems:  # a response says its request's again
                self._systems.add(spot.data)
                self.add(spot, (texts.SYSTEM, texts.VERSION), texts.system(value))
        elif key in self.LISTS and isinstance(value, str) and value:
            self.add(spot, (texts.USER, texts.VERSION), texts.read_user(spot.data))
        elif key in ("usage", "usageMetadata", "usage_metadata") and is_map(value):
            self.took(value, spot)
        else:
            self.other(path, value, spot)

    def other(self, path: Path, value: Any, spot: Spot) -> None:
        """A value that is none of those that all of these formats have."""

    def chain(self) -> Chain:
        """The file's session."""
        if self._chain is None:
            self._chain = self.begin(None)
        return self._chain

    def known_role(self, value: Mapping[str, Any], spot: Spot) -> None:
        """Remark a role that the format does not have."""
        role = value.get("role")
        if role is not None and (not isinstance(role, str) or role not in self.ROLES):
            said = f"role {str(role)[:60]!r} is not known: what it says counts for nothing"
            self.remark("unknown-role", spot, said)

    def reading(self, value: Mapping[str, Any]) -> Reading:
        """What the reader makes of a message."""
        raise NotImplementedError

    def message(self, value: Mapping[str, Any], spot: Spot) -> None:
        """One message."""
        if not value.get("role") and not value.get("type"):
            self.unknown(spot, value.get("type"))
            return
        reading = self.reading(value)
        if not reading.parts:
            return
        self.known_role(value, spot)
        self._model = name_in(value.get("model")) or self._model
        self.add(spot, self.READER, reading)
        usage = value.get("usage")
        if reading.role == "assistant" and is_map(usage):
            self.took(usage, spot)

    def choice(self, path: Path, value: Mapping[str, Any], spot: Spot) -> None:
        """One of several answers to the same request; the first is the one that counts."""
        if 0 in path:
            self.message(value, spot)
        else:
            self.remark("alternative", spot, "another answer to the same request; kept, not read")

    def add(self, spot: Spot, reader: tuple[str, int], reading: Reading, *, view: str = "") -> str:
        """An item; its key."""
        chain = self.chain()
        route = None
        if reading.role == "assistant" and self._model:
            route = chain.routed(RouteChanged(self.PROVIDER, self._model))
        key = self.item(chain, spot, reader, reading, view=view, route=route)
        if reading.role == "assistant":
            self._group = reading.group or INFERRED + key
        return key

    def made_by(self, model: str | None, spot: Spot) -> None:
        """The model of the answers; of one that stands before it too."""
        self._model = model
        if model is not None and self._group is not None:
            route = self.chain().routed(RouteChanged(self.PROVIDER, model))
            if route is not None:
                self.event(self.chain(), spot, route)

    def took(self, usage: Mapping[str, Any], spot: Spot) -> None:
        """Usage that stands beside messages: that of the newest response, where there is one."""
        report = self.usage(self._group, usage) if self._group else None
        if report is not None:
            self.event(self.chain(), spot, report)

    def usage(self, message: str, usage: Mapping[str, Any]) -> UsageReported | None:
        """What a response took, in the format's own fields."""
        return None


def is_alone(data: bytes, descend: Paths) -> bool:
    """Whether a document is one message, and not an object that holds some."""
    for cut in cuts(data, descend):
        if len(cut.path) != 1 or cut.path == ("role",):
            return len(cut.path) == 1 and isinstance(cut.value, str)
    return False


def _first_line(data: bytes) -> Mapping[str, Any]:
    """The object that is a file's whole first line, where there are more; else an empty one."""
    first, _, rest = data.removeprefix(_BOM).lstrip().partition(b"\n")
    if not first.startswith(b"{") or not rest.strip():
        return {}
    found = read_line(first)
    return map_of(found.values[0].value) if len(found.values) == 1 and found.rest is None else {}


def _is_one(value: Any) -> bool:
    """Whether a line alone is a message, and not an object that holds some."""
    return is_map(value) and bool({"role", "type", "parts"} & value.keys())


_OTHERS = frozenset(
    """info trajectory trajectory_format simulations task_id traj ticks sessionId projectHash version taskId
    resourceSpans spans environment replay_config""".split()
)
"""What an object has that is a session of a tool, and no request: its own format reads it."""


def mostly(test: Callable[[Mapping[str, Any]], bool], found: Sequence[Mapping[str, Any]]) -> bool:
    """Whether most of some messages pass: an odd one does not make a file another's."""
    return 2 * sum(map(test, found)) > len(found)


def found_in(head: Head, *keys: str) -> list[Mapping[str, Any]]:
    """The first messages of a file: those of its list, those under one of these keys, or those of its lines."""
    if _is_one(_first_line(head.data)):
        return list(head.records)
    if _OTHERS & head.keys:
        return []
    listed: list[Any] = []
    at_top: dict[int, dict[str, Any]] = {}
    for path, value in head.cuts:
        if len(path) == 2 and isinstance(path[0], int) and isinstance(path[1], str):
            at_top.setdefault(path[0], {})[path[1]] = value
        elif len(path) == 2 and path[0] in keys:
            listed.append(value)
        elif len(path) == 2 and path[0] in _WRAPPERS and path[1] in keys:
            listed += list_of(value)
    if len(at_top) > 1:
        at_top.pop(max(at_top))  # it may not be all there
    return [each for each in (*listed, *at_top.values()) if is_map(each) and each]
