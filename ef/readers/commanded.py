"""Agents whose tools are words on a shell's line (`open FILE`, `edit 1:3`, `submit`) -> what they do. Pure."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from .actions import EDITORS, plainly

_WORD = re.compile(r"\s*([A-Za-z_]{1,40})(?=\s|$)")
_LINES = re.compile(r"\s*edit \d+:\d+[ \t]*\n(.*?)(?:\nend_of_edit\s*)?\Z", re.DOTALL)
_QUOTED_MAX = 65_536
"""A longer command is divided at its first line's blanks."""
_ACTIONS = {
    "open": "read", "goto": "read", "scroll_up": "read", "scroll_down": "read", "create": "write", "edit": "edit",
    "insert": "edit", "search_dir": "search", "search_file": "search", "find_file": "search", "submit": "other",
    "exit_forfeit": "other", "exit_cost": "other", "skip": "other",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Commanded:
    """A command that is no program of the shell."""

    name: str
    action: str
    path: str | None = None
    text: str | None = None
    query: str | None = None


def read(text: str) -> Commanded | None:
    """What a command does; None where the shell runs it."""
    name = word(text)
    if plainly(name) in EDITORS:
        return _editor(name, _words(text))
    action = _ACTIONS.get(name)
    if action is None:
        return None
    if name == "edit" and (lines := _LINES.match(text)):
        return Commanded(name, action, text=lines[1])
    rest = _words(text)[1:]
    one, two = (*rest, None, None)[:2]
    if action == "edit":
        return Commanded(name, action, text=one if name == "insert" else two)
    if action == "search":
        return Commanded(name, action, path=two, query=one)
    return Commanded(name, action, path=one if name in ("open", "create") else None)


def word(text: str) -> str:
    """The first word of a command, where it is a plain one."""
    found = _WORD.match(text)
    return found[1] if found else ""


def sub_action(command: str | None) -> str:
    """What an editor does for its first argument: it reads, writes or edits."""
    return {"view": "read", "read": "read", "create": "write", "write": "write"}.get(
        command or "", "edit"
    )


def _editor(name: str, words: list[str]) -> Commanded:
    sub, path = (*words[1:], None, None)[:2]
    action = sub_action(sub)
    wanted = "--file_text" if action == "write" else "--new_str"
    text = words[words.index(wanted) + 1 :][:1] if wanted in words else []
    return Commanded(name, action, path=path, text=text[0] if text else None)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text[:_QUOTED_MAX])
    except ValueError:
        return text.strip().split("\n", 1)[0].split()
