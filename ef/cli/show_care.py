"""What doctor found, and what a backup holds, as text."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from ..session.backup import BackedUp
from ..session.doctor import Finding
from .layout import GREEN, RED, YELLOW, Look, one_line
from .words import count, short, size

STYLES = {"ok": GREEN, "note": GREEN, "warning": YELLOW, "error": RED}


def findings(look: Look, found: Sequence[Finding]) -> str:
    """One finding after another, the remedy below it, and how many are worth a look."""
    lines: list[str] = []
    for finding in found:
        mark = look.paint(f"{finding.level:<8}", STYLES[finding.level])
        first, *more = wrap(one_line(finding.what), max(20, look.width - 10)) or [""]
        lines += [f"{mark}  {first}", *(f"          {line}" for line in more)]
        if finding.remedy:
            lines += [
                look.dim(f"          {line}")
                for line in wrap(f"-> {one_line(finding.remedy)}", max(20, look.width - 10))
            ]
    errors = sum(finding.level == "error" for finding in found)
    warnings = sum(finding.level == "warning" for finding in found)
    lines += ["", f"{count(errors, 'error')}, {count(warnings, 'warning')}"]
    return "\n".join(lines) + "\n"


def backed_up(look: Look, done: BackedUp) -> str:
    """Where the copy is and what it holds."""
    return (
        f"{look.head('Backup')} {one_line(str(done.path))}: {count(done.events, 'event')}, "
        f"{size(done.bytes)}, verified\n"
        f"  tip at position {done.position} ({short(done.digest)})\n"
    )
