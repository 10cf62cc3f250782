"""Which files a path means: itself, or the sessions below a folder, those before the sub-agents that they began."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

SUFFIXES = (".jsonl", ".json", ".ndjson", ".traj", ".db", ".sqlite", ".sqlite3")
PACKED = (".gz", ".zst", ".zstd")
PASSED_BY = frozenset(
    """node_modules .git .hg .svn .venv venv __pycache__ .tox .mypy_cache .ruff_cache site-packages
    event_cache""".split()
)
"""Folders that hold no sessions, or copies of them, and many files."""
EVENT = re.compile(r"(?:event-)?(\d{1,9})(?:-[\w-]{1,64})?\.json")
"""The file of one event: its number, and in some formats its id."""
_AGENT = re.compile(r"(?:^|/)(?:subagents/|agent-[^/]*\.jsonl)")


class Candidate(NamedTuple):
    """A file to try. `named`: the user gave this very file. `why`: it cannot be tried at all."""

    path: str
    named: bool
    why: str | None = None


def candidates_of(path: str) -> Iterator[Candidate]:
    """The files that a path means, in order: a file itself; of a folder all below it that may hold a session.

    Where a folder holds none, it may be one that agents worked in: then the sessions that Claude Code keeps of it.
    """
    if not os.path.isdir(path):
        yield Candidate(path, named=True)
        return
    unread: list[OSError] = []
    found = _below(path, unread)
    if not found:
        kept = kept_of(path)
        found = _below(kept, unread) if kept else []
    if not found:
        yield Candidate(
            path, named=True, why="there is no file in this folder that may hold a session"
        )
    yield from (Candidate(name, named=False) for name in found)
    for fault in unread:
        yield Candidate(str(fault.filename), named=False, why=str(fault.strerror))


def _below(path: str, unread: list[OSError]) -> list[str]:
    found: list[str] = []
    for folder, below, names in os.walk(path, onerror=unread.append):
        below[:] = sorted(name for name in below if name not in PASSED_BY)
        if is_events(folder, names):
            found.append(folder)  # one session, an event a file
            continue
        found += [os.path.join(folder, name) for name in sorted(names) if may_be(name)]
    return sorted(found, key=is_agent)


def is_events(folder: str, names: Iterable[str]) -> bool:
    """Whether a folder is a session: each of its events is a file of its own, numbered."""
    return os.path.basename(folder) == "events" and any(map(EVENT.fullmatch, names))


def may_be(name: str) -> bool:
    """Whether a file of this name may hold a session."""
    low = name.lower()
    for packed in PACKED:
        low = low.removesuffix(packed)
    return low.endswith(SUFFIXES)


def is_agent(path: str) -> bool:
    """Whether a file is that of a sub-agent, by its place: its parent is to come in before it."""
    return _AGENT.search(path.replace(os.sep, "/")) is not None


def kept_of(project: str) -> str | None:
    """The folder in which Claude Code keeps the sessions of a project, where there is one."""
    home = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(os.path.expanduser("~"), ".claude")
    name = re.sub(r"[^A-Za-z0-9]", "-", os.path.abspath(project))
    kept = Path(home) / "projects" / name
    return str(kept) if kept.is_dir() else None
