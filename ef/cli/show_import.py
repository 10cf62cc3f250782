"""What an import brought in, as text."""

from __future__ import annotations

from typing import Any

from .layout import Look, fit, one_line
from .words import count

LINES_SHOWN = 5
RELATIONS = {
    "new": "new",
    "grown": "grown: what is new was added",
    "resumed": "gone on with where it was ended",
    "same": "known already: nothing new",
    "prefix": "the beginning of a source that is known: nothing new",
    "rewritten": "rewritten since it was last imported: kept as a source of its own",
}


def text(look: Look, sources: list[dict[str, Any]], refused: list[dict[str, Any]]) -> str:
    """Per source its sessions and notes, then the sums."""
    lines: list[str] = []
    for source in sources:
        lines.append(look.head(fit(one_line(source["path"]), look.width)))
        relation = RELATIONS.get(source["relation"], source["relation"])
        read = f"{source['records']:,} records, " if source["records"] else ""
        lines.append(
            look.dim(f"  source {source['source'][:12]}, {source['format']}, {read}{relation}")
        )
        for row in source["sessions"]:
            lines += _session(look, row)
        lines += _notes(look, source["notes"])
    passed_over = [r for r in refused if not r["named"]]
    if passed_over:
        first = passed_over[0]
        lines.append(f"{count(len(passed_over), 'file')} passed over, the first:")
        lines.append(fit(f"  {one_line(first['source'])}: {one_line(first['reason'])}", look.width))
    if sources:
        lines += ["", *_sums(sources)]
    return "\n".join(lines) + "\n" if lines else ""


def _session(look: Look, row: dict[str, Any]) -> list[str]:
    what = (
        f"  {row['session']}: {count(row['messages'], 'message')}, {count(row['events'], 'event')}"
    )
    what += f" ({row['new_events']:,} new)"
    title = f"    {one_line(row['title'])}" if row["title"] else ""
    return [what, *([look.dim(fit(title, look.width))] if title else [])]


def _notes(look: Look, notes: list[dict[str, Any]]) -> list[str]:
    """Counted by kind, with the first lines of each."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    for note in notes:
        kinds.setdefault(note["kind"], []).append(note)
    lines: list[str] = []
    for kind, found in kinds.items():
        at = [str(n["line"]) for n in found if n["line"] is not None]
        more = ", …" if len(at) > LINES_SHOWN else ""
        where = f" (line {', '.join(at[:LINES_SHOWN])}{more})" if at else ""
        said = f"  note: {len(found)} × {one_line(kind)}{where}: {one_line(found[0]['text'])}"
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
