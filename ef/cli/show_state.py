"""A state as text: what was declared, what fails, what the tests said, what was touched. What is overtaken is counted.

The keys are never cut: they are what `ef audit` wants to be given. With everything asked for, each head has its entry.
"""

from __future__ import annotations

from ..audit import Holds
from ..events import AnchorKey, Kind
from ..events.shapes import is_list, is_map
from ..session.views import State
from .layout import Look, cells, fit, one_line, sides
from .show_anchors import entry, value_of
from .words import count

DECLARED = (Kind.OBJECTIVE, Kind.CONSTRAINT, Kind.OBLIGATION, Kind.VALUE, Kind.DECISION)
FILES_SHOWN = 12
NAMES_SHOWN = 6
_RUN_FACTS = ("counts", "failing")


def sections(look: Look, state: State, *, everything: bool = False) -> list[str]:
    """The sections of a state, one after another."""
    heads = sorted(state.heads.values(), key=lambda h: str(h.anchor.key))
    failing = state.failures
    now = [h for h in heads if h not in failing and (everything or h.lifecycle != "stale")]
    declared = [h for h in now if h.anchor.kind in DECLARED]
    runs = [h for h in now if h.anchor.key.namespace == "test"]
    files = sorted((h for h in now if h.anchor.key.namespace == "file"), key=lambda h: -h.seq)
    rest = [h for h in now if h not in declared and h not in runs and h not in files]
    if not everything:
        runs = [h for h in runs if h.anchor.key.property not in _RUN_FACTS]
    lines = _section(look, state, "Declared", declared, "nothing (ef declare)")
    lines += _section(look, state, "Failing as last seen", failing, "nothing that is known")
    lines += _section(look, state, "Tests", runs, "no run with a verdict" if not failing else "")
    lines += _section(look, state, "Outcomes", rest, "")
    lines += _files(look, state, files, everything=everything)
    stale = sum(h.lifecycle == "stale" for h in heads)
    if stale and not everything:
        lines += [
            "",
            look.dim(f"{count(stale, 'key')} overtaken by a later run of the whole suite (--all)"),
        ]
    return lines


def _section(look: Look, state: State, title: str, found: list[Holds], empty: str) -> list[str]:
    if not found:
        return ["", look.head(title) + look.dim(f"  {empty}")] if empty else []
    lines = ["", look.head(title)]
    for holds in found:
        lines += entry(look, holds, state.contested.get(str(holds.anchor.key)), _run(state, holds))
        lines += _names(look, state, holds)
    return lines


def _fact(state: State, holds: Holds, name: str) -> Holds | None:
    key = holds.anchor.key
    if key.namespace != "test" or key.property != "status":
        return None
    found = state.heads.get(str(AnchorKey(key.namespace, key.entity, name)))
    return found if found is not None and found.sources[:1] == holds.sources[:1] else None


def _run(state: State, holds: Holds) -> str | None:
    """A run's verdict with its counts, where both were said by the same bytes."""
    counts = _fact(state, holds, "counts")
    if counts is None or not is_map(counts.value):
        return None
    order = ("failed", "passed", "skipped")
    known = [f"{counts.value[n]} {n}" for n in order if isinstance(counts.value.get(n), int)]
    known = [text for text in known if not text.startswith("0 ")]
    return f"{value_of(holds)}: {', '.join(known)}" if known else None


def _names(look: Look, state: State, holds: Holds) -> list[str]:
    failing = _fact(state, holds, "failing")
    if failing is None or not is_list(failing.value):
        return []
    names = [one_line(str(name)) for name in failing.value]
    lines = [fit(f"      {name}", look.width) for name in names[:NAMES_SHOWN]]
    more = len(names) - NAMES_SHOWN
    return [*lines, f"      … and {more} more"] if more > 0 else lines


def _files(look: Look, state: State, found: list[Holds], *, everything: bool) -> list[str]:
    if not found:
        return []
    lines = ["", look.head("Files")]
    shown = found if everything else found[:FILES_SHOWN]
    for holds in shown:
        key, where = f"  {one_line(str(holds.anchor.key))}", f"seq {holds.seq}"
        wide = cells(f"{key}  {where}") > look.width
        lines.append(f"{key}  {where}" if wide else sides(look, key, where))
    if len(found) > len(shown):
        lines.append(look.dim(f"  … and {len(found) - len(shown)} more (--all)"))
    return lines
