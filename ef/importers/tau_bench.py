"""Runs of tau-bench and tau2-bench (one JSON document) -> meanings: each run is a session.

tau-bench has a list of runs, each with its messages as `traj`; tau2-bench one run, or an object of `simulations`, with
`messages`, whose calls are plain objects, or, of a spoken run, `ticks`. The user is simulated: who speaks as user is
the program that the agent was tried with, and its words are those of a user.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..events import RouteChanged
from ..events.shapes import is_map
from ..readers import tau_bench as reader
from ..readers.jsoncuts import Path
from ..readers.pieces import map_of, text_of
from .chains import INFERRED, Chain
from .documents import DocumentTranslator
from .formats import Format, Head, Tells
from .given import name_in, usage_of
from .translator import Given, Spot

NAME = reader.NAME
_READER = (reader.NAME, reader.VERSION)
_ITEMS = ("messages", "traj", "ticks")
_OF_RUN = frozenset(("task_id", "trial"))


class TauBench(DocumentTranslator):
    """One run or many."""

    NAME = NAME
    DESCEND = frozenset(
        (*where, *inside)
        for where in ((), ("#",), ("simulations", "#"))
        for inside in ((), ("traj",), ("messages",), ("ticks",), ("ticks", "#"))
    ) | {("simulations",)}

    def __init__(self, given: Given) -> None:
        super().__init__(given)
        self._run: tuple[str | int, ...] | None = None
        self._name: str | None = None
        self._chain: Chain | None = None

    def time_of(self, value: Mapping[str, Any]) -> Any:
        return value.get("timestamp")

    def cut(self, path: Path, value: Any, spot: Spot) -> None:
        place = next((n for n, key in enumerate(path) if key in _ITEMS), None)
        run = path[:place] if place is not None else path[:-1]
        if run != self._run:
            self._run, self._name, self._chain = run, None, None
        if place is None:
            self._of_run(path, value)
        elif is_map(value) and (len(path) == place + 2 or reader.says(value)):
            self._message(value, spot)

    def _of_run(self, path: Path, value: Any) -> None:
        key = path[-1] if path else ""
        if key == "id" and text_of(value):
            self._name = text_of(value)
        elif key in _OF_RUN and self._name is None and isinstance(value, str | int):
            self._name = f"task-{value}"
        if self._run is not None and key in ("mode", "termination_reason") and self._chain is None:
            self._session()

    def _session(self) -> Chain:
        if self._chain is None:
            taken = {name.rpartition(".")[0] for name in self.out.sessions} | {*self.out.sessions}
            name = self._name
            if name in taken:
                name = f"{name}.{len(self.out.sessions)}"
            self._chain = self.begin(name)
        return self._chain

    def _message(self, value: Mapping[str, Any], spot: Spot) -> None:
        reading = reader.reading(value)
        if not reading.parts:
            return
        chain = self._session()
        model = name_in(map_of(value.get("raw_data")).get("model"))
        route = chain.routed(RouteChanged(None, model)) if model else None
        key = self.item(chain, spot, _READER, reading, route=route)
        usage = map_of(value.get("usage"))
        if reading.role == "assistant":
            given, made = usage.get("prompt_tokens"), usage.get("completion_tokens")
            report = usage_of(INFERRED + key, given, made, None, None, with_cache=False)
            if report is not None:
                self.event(chain, spot, report)

    def ended(self) -> None:
        if self.main is None and self._name is not None:
            self._session()


def recognises(head: Head) -> bool:
    """Whether a file looks like runs of these benchmarks."""
    of_first = {path[1] for path, _ in head.cuts if len(path) == 2 and path[0] == 0}
    runs = [map_of(value) for path, value in head.cuts if path[:1] == ("simulations",)]
    return (
        {"task_id", "traj"} <= of_first
        or (head.keys >= _OF_RUN and bool({"messages", "ticks"} & head.keys))
        or any("task_id" in run for run in runs)
    )


FORMAT = Format(
    NAME,
    "tau-bench and tau2-bench runs",
    "document",
    TauBench,
    recognises,
    Tells(
        ids="call ids",
        groups="one message a response",
        order="list order",
        usage="per message, without cache",
        errors="error of tool messages",
        compaction="none",
        subagents="none",
        images="none",
    ),
)
