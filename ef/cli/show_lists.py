"""Contexts, lists of sessions and sources, and verdicts as text."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from ..session.views import Context
from .layout import GREEN, RED, Column, Look, fit, one_line, table
from .words import count, moment, short, size

if TYPE_CHECKING:
    from ..session.store import SessionInfo
    from ..session.verify import Verified

AGENT = ".agent-"
PREFIX_CHARS = 8
PROBLEMS_SHOWN = 20


def context(look: Look, found: Context) -> str:
    """The nodes and their estimated tokens."""
    rows = [
        (
            str(node.seq),
            node.role,
            ",".join(node.channels),
            "unknown" if node.tokens is None else f"{node.tokens:,}",
            one_line(node.excerpt),
        )
        for node in found.nodes
    ]
    columns = (
        Column("seq", right=True),
        Column("role"),
        Column("channels"),
        Column("tokens", right=True),
        Column("excerpt", wide=True),
    )
    head = (
        f"{look.head('Context')} of {found.session} as of seq {found.at}: {count(len(found.nodes), 'node')}, "
        f"{count(len(found.messages), 'message')}, about {count(found.tokens, 'token')} (estimated)"
    )
    lines = [head, look.dim(f"digest {short(found.digest)}")]
    if rows:
        lines += ["", *table(look, columns, rows)]
    if found.compactions:
        times = count(found.compactions, "time")
        said = f"Another tool compacted this session {times}. That takes nothing away here: all of it is shown."
        lines += ["", *wrap(said, look.width)]
    return "\n".join(lines) + "\n"


def prefixes(names: Sequence[str]) -> dict[str, str]:
    """For each session the shortest beginning that still names it and shows 8 characters of its own part."""
    found: dict[str, str] = {}
    for name in names:
        others = [n for n in names if n != name and not n.startswith(name + ".")]
        root, mark, _ = name.rpartition(AGENT)
        length = len(root + mark) + PREFIX_CHARS
        while length < len(name) and any(n.startswith(name[:length]) for n in others):
            length += 1
        found[name] = name[:length]
    return found


def sessions(look: Look, found: Sequence[SessionInfo], *, everything: bool) -> str:
    """The table of sessions, newest first; sub-agents behind their session, counted or listed."""
    if not found:
        return "The store holds no sessions. `ef import PATH` brings some in.\n"
    names = [s.session for s in found]
    short_ids = prefixes(names)
    roots = [s for s in found if not _root_of(s, names)]
    rows: list[tuple[str, ...]] = []
    for root in roots:
        below = [s for s in found if _root_of(s, names) == root.session]
        rows.append(_session_row(root, short_ids[root.session], len(below)))
        if everything:
            rows += [_session_row(s, "  " + short_ids[s.session], 0) for s in below]
    columns = (
        Column("session"),
        Column("last (UTC)"),
        Column("messages", right=True),
        Column("events", right=True),
        Column("agents", right=True),
        Column("title", wide=True),
    )
    hidden = len(found) - len(rows)
    lines = table(look, columns, rows)
    more = f", and {count(hidden, 'sub-agent')} (--all lists them)" if hidden else ""
    return "\n".join([*lines, "", f"{count(len(roots), 'session')}{more}"]) + "\n"


def _root_of(info: SessionInfo, names: Sequence[str]) -> str | None:
    """The session that a sub-agent belongs to, if the store has it."""
    root = info.session.rpartition(AGENT)[0]
    return root if info.relation == "subagent" and root in names else None


def _session_row(info: SessionInfo, name: str, agents: int) -> tuple[str, ...]:
    return (
        name,
        moment(info.last),
        f"{info.messages:,}",
        f"{info.events:,}",
        f"{agents:,}" if agents else "",
        one_line(info.problem or info.title or "unknown"),
    )


def sources(look: Look, found: Sequence[dict[str, Any]]) -> str:
    """The table of sources."""
    if not found:
        return "The store holds no sources. `ef import PATH` brings some in.\n"
    columns = (
        Column("source"),
        Column("format"),
        Column("lines", right=True),
        Column("size", right=True),
        Column("notes", right=True),
        Column("path", wide=True),
    )
    rows = [
        (
            short(s["source"]),
            s["format"],
            f"{s['lines']:,}",
            size(s["bytes"]),
            f"{len(s['notes']):,}" if s["notes"] else "",
            one_line(s["path"]),
        )
        for s in found
    ]
    lines = [*table(look, columns, rows), "", count(len(found), "source")]
    ended = [s for s in found if not s["complete"]]
    for s in ended:
        path = one_line(s["path"])
        lines.append(f"The import of {path} was ended before it was complete: import it again.")
    return "\n".join(lines) + "\n"


def verdict(look: Look, found: Verified, *, quick: bool) -> str:
    """The verdict, what was counted, and each problem."""
    lines = [look.paint(found.verdict.replace("-", " "), GREEN if found.ok else RED, "1")]
    if found.events:
        lines.append(
            f"  {count(found.events, 'event')}, tip at position {found.position} ({short(found.digest)})"
        )
        counted = f"  {count(found.sessions, 'session')}, {count(found.sources, 'source')}"
        lines.append(counted if quick else f"{counted}, {count(found.anchors, 'anchor')}")
    if quick:
        lines.append(
            "  quick: digests and chain only; bodies, references and projections were not looked at"
        )
    for problem in found.problems[:PROBLEMS_SHOWN]:
        lines.append(f"  - {one_line(problem.where)}: {one_line(problem.what)}")
    if len(found.problems) > PROBLEMS_SHOWN:
        lines.append(f"  and {len(found.problems) - PROBLEMS_SHOWN} more (--json shows all)")
    lines += [f"  note: {fit(one_line(note), 2 * look.width)}" for note in found.notes]
    return "\n".join(lines) + "\n"
