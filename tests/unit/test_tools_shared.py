"""Every tool that the recorded sessions call has its action, deliberately; their calls are counted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ef.events.shapes import is_list, is_map
from ef.readers.actions import ACTIONS, plainly
from ef.readers.tools import neutral

TABLE = Path(__file__).parents[1] / "golden" / "counts" / "tools.json"
"""Vendor -> what a tool does -> its name -> how often it is called."""


def values(path: Path) -> Iterator[Any]:
    """The JSON values of a file, one or several a line."""
    decoder = json.JSONDecoder()
    text = path.read_text(encoding="utf-8", errors="replace")
    for line in text.split("\n") if path.suffix == ".jsonl" else [text.strip()]:
        at = 0
        while at < len(line):
            try:
                value, at = decoder.raw_decode(line, at)
            except ValueError:
                break
            yield value
            at += len(line[at:]) - len(line[at:].lstrip())


def called(value: Mapping[str, Any], vendor: str) -> Iterator[tuple[str, Any]]:
    """(name, what it was given) of the calls that one object of a transcript holds itself."""
    match value:
        case {"type": "tool_use", "name": name, "input": given}:
            yield name, given
        case {"type": "function_call" | "toolCall", "name": name, "arguments": given}:
            yield name, given
        case {"type": "custom_tool_call", "name": name, "input": given}:
            yield name, given
        case {"type": "tool", "tool": name, "state": {"input": given}}:
            yield name, given
        case {"type": "tool/call", "data": {"name": name, "arguments": given}}:
            yield name, given
        case {"function": {"name": name, "arguments": given}}:
            yield name, given
        case {"toolRequests": [*requests]}:
            yield from ((each["name"], each["arguments"]) for each in requests)
        case {"toolCalls": [*calls]}:
            yield from ((each["name"], each["args"]) for each in calls)
        case {"action": {**given}, "tool_name": name}:
            yield f"{name} (event)", given
        case {"action": str(name), "args": given}:
            yield f"{name} (event)", given
        case {"action": str(text), "observation": str()} if vendor == "swe-agent":
            yield f"{(text.split() or [''])[0]} (text)", text
        case _:
            return


def counted(root: Path) -> Iterator[tuple[str, str, Any]]:
    """(vendor, name, what it was given) of all calls of the folder."""
    for path in sorted(root.glob("*/**/*")):
        vendor = path.relative_to(root).parts[0]
        if vendor in ("LICENSES", "tool-outputs") or path.suffix not in (".json", ".jsonl", ".traj"):  # fmt: skip
            continue
        layer: list[Any] = list(values(path))
        while layer:
            value = layer.pop()
            if is_map(value):
                yield from ((vendor, *call) for call in called(value, vendor))
                layer += value.values()
            elif is_list(value):
                layer += value


def read(name: str, given: Any) -> Any:
    """The neutral view of a call under the name that its vendor gives it."""
    if name.endswith(" (text)"):
        return neutral("c", "", given)
    return neutral("c", name.removesuffix(" (event)"), given)


def test_every_tool_that_was_called_has_its_action(
    shared_data: Path, figure: Callable[[str], None]
) -> None:
    found: dict[str, dict[str, Counter[str]]] = {}
    for vendor, name, given in counted(shared_data):
        action = read(name, given).action
        found.setdefault(vendor, {}).setdefault(action, Counter())[name] += 1
    table = json.loads(TABLE.read_text(encoding="utf-8"))
    counts = [n for actions in table.values() for names in actions.values() for n in names.values()]
    figure(
        f"tool calls: {sum(counts)} of {len(counts)} tools of {len(table)} vendors have the action that is known"
    )
    assert found == table


def test_each_name_of_the_table_is_known_and_not_only_passed_over() -> None:
    for actions in json.loads(TABLE.read_text(encoding="utf-8")).values():
        for name in [n for names in actions.values() for n in names]:
            if not name.startswith("mcp__") and not name.endswith(" (text)"):
                assert plainly(name.removesuffix(" (event)")) in ACTIONS, name
