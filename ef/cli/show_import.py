"""What an import brought in, as text."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .layout import Look, fit, one_line
from .words import count

LINES_SHOWN, SOURCES_SHOWN, REASONS_SHOWN = 5, 12, 5
RELATIONS = {
    "new": "new",
    "grown": "grown: what is new was added",
    "resumed": "gone on with where it was ended",
    "same": "known already: nothing new",
    "prefix": "the beginning of a source that is known: nothing new",
    "rewritten": "rewritten since it was last imported: kept as a source of its own",
}


def text(look: Look, sources: list[dict[str, Any]], refused: list[dict[str, Any]]) -> str:
    """Per source its sessions and notes, of many the sums by format; then all sums."""
    lines: list[str] = []
    if len(sources) > SOURCES_SHOWN:
        lines += _by_format(look, sources)
    else:
        for source in sources:
            lines += _source(look, source)
    passed_over = [r for r in refused if not r["named"]]
    if passed_over:
        lines.append(f"{count(len(passed_over), 'file')} passed over:")
        reasons = Counter(r["reason"] for r in passed_over)
        for reason, n in reasons.most_common(REASONS_SHOWN):
            first = next(r["source"] for r in passed_over if r["reason"] == reason)
            lines.append(fit(f"  {n:,} × {one_line(reason)}: {one_line(first)}", look.width))
        if len(reasons) > REASONS_SHOWN:
            lines.append(f"  and {len(reasons) - REASONS_SHOWN} further reasons (--json has all)")
    if sources:
        lines += ["", *_sums(sources)]
    return "\n".join(lines) + "\n" if lines else ""


def _source(look: Look, source: dict[str, Any]) -> list[str]:
    relation = RELATIONS.get(source["relation"], source["relation"])
    read = f"{count(source['records'], 'record')}, " if source["records"] else ""
    lines = [
        look.head(fit(one_line(source["path"]), look.width)),
        look.dim(f"  source {source['source'][:12]}, {source['format']}, {read}{relation}"),
    ]
    for row in source["sessions"]:
        lines += _session(look, row)
    return lines + _notes(look, source["notes"])


def _by_format(look: Look, sources: list[dict[str, Any]]) -> list[str]:
    """Of many sources: how many of each format, what was new in them, and what was odd."""
    lines: list[str] = []
    for name in sorted({source["format"] for source in sources}):
        own = [source for source in sources if source["format"] == name]
        sessions = {row["session"] for source in own for row in source["sessions"]}
        new = sum(source["new_events"] for source in own)
        lines.append(look.head(name))
        said = f"  {count(len(own), 'source')}, {count(len(sessions), 'session')}, "
        relations = Counter(source["relation"] for source in own)
        told = ", ".join(f"{n:,} {relation}" for relation, n in relations.most_common())
        lines.append(f"{said}{count(new, 'new event')} ({told})")
        lines += _notes(look, [note for source in own for note in source["notes"]], lines_too=False)
    return lines


def _session(look: Look, row: dict[str, Any]) -> list[str]:
    what = (
        f"  {row['session']}: {count(row['messages'], 'message')}, {count(row['events'], 'event')}"
    )
    what += f" ({row['new_events']:,} new)"
    if not row["messages"]:
        what += "; nothing in it is a message"
    title = f"    {one_line(row['title'])}" if row["title"] else ""
    return [what, *([look.dim(fit(title, look.width))] if title else [])]


def _notes(look: Look, notes: list[dict[str, Any]], *, lines_too: bool = True) -> list[str]:
    """Counted by kind, with the first lines of each."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    for note in notes:
        kinds.setdefault(note["kind"], []).append(note)
    lines: list[str] = []
    for kind, found in kinds.items():
        at = [str(n["line"]) for n in found if lines_too and n["line"] is not None]
        more = ", …" if len(at) > LINES_SHOWN else ""
        where = f" (line {', '.join(at[:LINES_SHOWN])}{more})" if at else ""
        differ = any(n["text"] != found[0]["text"] for n in found)
        where += ", such as" if differ else ":"
        said = f"  note: {len(found)} × {one_line(kind)}{where} {one_line(found[0]['text'])}"
        lines.append(fit(said, look.width))
    return lines


def _sums(sources: list[dict[str, Any]]) -> list[str]:
    names = {row["session"] for s in sources for row in s["sessions"]}
    new = sum(s["new_events"] for s in sources)
    distinct = {s["source"] for s in sources}
    lines = [
        f"{count(len(distinct), 'source')}, {count(len(names), 'session')}, {count(new, 'new event')}"
    ]
    first = next((row["session"] for s in sources for row in s["sessions"]), None)
    if first is not None:
        lines.append(f"Next: ef state {first}")
    return lines
