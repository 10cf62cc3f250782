"""Patches as agents write them -> the files that they change. Pure.

Two forms: the envelope `*** Begin Patch` with its `*** Add|Update|Delete File:` sections, and unified diffs. What is in
neither form changes nothing that we know of.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

FILES_MAX = 256
"""Files of one patch; what comes behind them is not read."""

_SECTION = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
_MOVED = re.compile(r"\*\*\* Move to: (.+)")
_OLD = re.compile(r"--- (?:a/)?([^\t\n]+)")
_NEW = re.compile(r"\+\+\+ (?:b/)?([^\t\n]+)")
BEGIN = "*** Begin Patch"


@dataclass(frozen=True, slots=True)
class Change:
    """What a patch does to a file: `how` is add, update, delete or move (then `path` is its new place).

    `content` is the whole file where the patch holds it.
    """

    how: str
    path: str
    content: str | None = None


def changes(text: str) -> tuple[Change, ...]:
    """The changes of a patch in order, at most FILES_MAX; () where the text is none."""
    at = text.find(BEGIN)
    return _envelope(text[at:]) if at >= 0 else _unified(text)


def _envelope(text: str) -> tuple[Change, ...]:
    found: list[Change] = []
    added: list[str] | None = None
    for raw in text.split("\n"):
        line = raw.rstrip("\r")
        section = _SECTION.fullmatch(line)
        if section or line.startswith("*** End Patch"):
            _close(found, added)
            added = None
            if section is None or len(found) == FILES_MAX:
                return tuple(found)
            how, path = section[1].lower(), section[2].strip()
            found.append(Change(how, path))
            added = [] if how == "add" else None
        elif (moved := _MOVED.fullmatch(line)) and found and found[-1].how == "update":
            old = found.pop()
            found += (Change("delete", old.path), Change("move", moved[1].strip()))
        elif added is not None and line.startswith("+"):
            added.append(raw[1:])
    _close(found, added)
    return tuple(found)


def _close(found: list[Change], added: list[str] | None) -> None:
    if added is not None:
        found[-1] = replace(found[-1], content="".join(f"{line}\n" for line in added))


def _unified(text: str) -> tuple[Change, ...]:
    found: list[Change] = []
    old: str | None = None
    for line in text.split("\n"):
        if before := _OLD.match(line):
            old = before[1].strip()
        elif (after := _NEW.match(line)) and old is not None:
            new = after[1].strip()
            how = "add" if old == "/dev/null" else "delete" if new == "/dev/null" else "update"
            found.append(Change(how, old if how == "delete" else new))
            old = None
            if len(found) == FILES_MAX:
                break
    return tuple(found)
