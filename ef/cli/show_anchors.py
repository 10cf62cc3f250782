"""State, difference and audit as text."""

from __future__ import annotations

from ..audit import Audit, Holds, Quoted
from ..events.shapes import is_map
from ..render.visible import visible
from ..session.views import Difference
from .layout import DIM, GREEN, RED, YELLOW, Look, cells, fit, one_line, sides, squeeze
from .words import count, short, value

QUOTE_CELLS = 72


def value_of(holds: Holds) -> str:
    """An anchor's value and unit."""
    return value(holds.value, holds.anchor.unit)


def decode(quote: bytes) -> str:
    """A quote's bytes as text; lone surrogates stay, to be made visible."""
    try:
        return quote.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return quote.decode("utf-8", "backslashreplace")


def entry(look: Look, holds: Holds, contest: Holds | None, said: str | None = None) -> list[str]:
    """A head: its key and value (or what is `said` of it), the quote and where it stands, and who contests it."""
    key, value = f"  {one_line(str(holds.anchor.key))}", said or value_of(holds)
    where = (
        f"seq {holds.seq}" if holds.lifecycle == "active" else f"{holds.lifecycle}, seq {holds.seq}"
    )
    if cells(f"{key} = {value}  {where}") <= look.width:
        lines = [sides(look, f"{key} = {value}", where)]
    else:
        # The key is never cut: it is what `ef audit` wants to be given.
        lines = [key, sides(look, f"    = {value}", where)]
    source = next(iter(holds.sources), None)
    if source is not None:
        lines.append(look.dim("      " + _quote(look, source)))
    elif holds.anchor.because:
        lines.append(look.dim(fit("      because " + one_line(holds.anchor.because), look.width)))
    if contest is not None:
        text = (
            f"      contested by {value_of(contest)} (seq {contest.seq}, {contest.anchor.channel})"
        )
        lines.append(look.paint(fit(text, look.width), YELLOW))
    return lines


def _quote(look: Look, source: Quoted) -> str:
    """The quote on one line, then where it stands."""
    where = f"(seq {source.ref.seq}, {source.ref.channel})"
    if source.quote is None:
        return f"the quote cannot be read: {one_line(source.why or 'unknown')} {where}"
    text = one_line(decode(source.quote))
    room = min(QUOTE_CELLS, max(10, look.width - len(where) - 10))
    return f'"{fit(text, room)}" {where}'


def change_lines(look: Look, diff: Difference) -> list[str]:
    """One line for each key that appeared, changed or went."""
    lines: list[str] = []
    for key, h in diff.appeared.items():
        lines.append(_change(look, ("+", GREEN), key, f" = {value_of(h)}", f"seq {h.seq}"))
    again: list[str] = []
    for key, (old, new) in diff.changed.items():
        before, after = value_of(old), value_of(new)
        where = f"seq {old.seq} -> {new.seq}"
        if before == after:
            again.append(_change(look, ("=", DIM), key, f": {after} (seen again)", where))
        else:
            before, after = _differing(look, old, new)
            lines.append(_change(look, ("~", YELLOW), key, f": {before} -> {after}", where))
    for key, h in diff.gone.items():
        lines.append(_change(look, ("-", RED), key, f" was {value_of(h)}", f"seq {h.seq}"))
    return lines + again


def _differing(look: Look, old: Holds, new: Holds) -> tuple[str, str]:
    """Both values in words: of two maps what differs only; an old one that is long leaves room for the new one."""
    before, after = old.value, new.value
    if is_map(before) and is_map(after):
        keys = [k for k in {**before, **after} if before.get(k, before) != after.get(k, after)]
        before = {k: before[k] for k in keys if k in before}
        after = {k: after[k] for k in keys if k in after}
    said, now = value(before, old.anchor.unit), value(after, new.anchor.unit)
    return (fit(said, look.width // 5) if cells(said + now) > look.width // 2 else said), now


def _change(look: Look, sign: tuple[str, str], key: str, what: str, where: str) -> str:
    """On one line: a long key loses its middle before the value loses its end."""
    room = look.width - 4
    left = room - cells(where) - 2
    text = squeeze(one_line(key), max(left * 2 // 5, left - cells(what))) + what
    return f"  {look.paint(*sign)} " + sides(look._replace(width=room), text, where)


def audit(look: Look, found: Audit) -> str:
    """Where a value comes from."""
    current = found.current
    key = one_line(found.key)
    at = f"as of seq {found.at}"
    if current is None:
        lines = [f"{look.head(key)}: nothing holds {at}"]
    else:
        a = current.anchor
        lines = [
            f"{look.head(key)} = {look.head(value_of(current))}  {look.dim(at)}",
            (
                f"  {a.kind}, {a.authority}, from {a.channel}, {current.lifecycle}; declared at seq {current.seq} "
                f"by rule {visible(a.rule.name)}/{a.rule.version}"
            ),
            look.dim(f"  {a.id}"),
        ]
        if a.because:
            lines.append(f"  because {one_line(a.because)}")
        lines += _evidence(look, current)
    lines += _history(look, found)
    lines += _chain(look, found)
    return "\n".join(lines) + "\n"


def _line(source: Quoted) -> str:
    """Where the item stands in the imported file; nothing for one that was appended."""
    origin = source.origin
    return f" (line {origin.line} of source {origin.source[:12]})" if origin else ""


def _evidence(look: Look, current: Holds) -> list[str]:
    lines: list[str] = ["", look.head("Evidence")]
    if not current.sources:
        lines.append("  none: the operator's own word")
    for source in current.sources:
        r = source.ref
        where = "" if r.stream.startswith("session/") else f"{visible(r.stream)}, "
        lines.append(
            f"  {where}seq {r.seq}{_line(source)}, {r.channel} ({r.kind}), part {r.part}, "
            f"bytes {r.start} to {r.end}, record {short(r.digest)}"
        )
        if source.quote is None:
            why = one_line(source.why or "unknown")
            lines.append(look.paint(f"    cannot be read: {why}", RED))
        else:
            lines += [f"    | {visible(line)}" for line in decode(source.quote).split("\n")]
    return lines


def _history(look: Look, found: Audit) -> list[str]:
    older = [h for h in reversed(found.history) if h.lifecycle == "superseded"]
    lines = ["", look.head("Superseded") + look.dim("  newest first" if older else "  nothing")]
    for h in older:
        by = f"superseded by seq {h.superseded_by}" if h.superseded_by else "superseded"
        lines.append(sides(look, f"  seq {h.seq:<6} {value_of(h)}", by))
    if found.losers:
        lines += ["", look.head("Lost against it")]
        for h in found.losers:
            left = f"  seq {h.seq:<6} {value_of(h)}"
            lines.append(sides(look, left, f"{h.anchor.channel}, {h.lifecycle}"))
    return lines


def _chain(look: Look, found: Audit) -> list[str]:
    chain = found.chain
    if not chain:
        return []
    tip = chain["head"]
    steps = [f"seq {chain['seq']} {short(chain['digest'])}"]
    if chain["from"] != chain["seq"]:
        cited = (s.ref for s in (found.current.sources if found.current else ()))
        oldest = next((r for r in cited if r.seq == chain["from"]), None)
        digest = f" {short(oldest.digest)}" if oldest else ""
        steps.insert(0, f"seq {chain['from']}{digest}")
    if tip["seq"] == chain["seq"]:
        steps[-1] += " (the tip)"
    else:
        steps.append(f"tip seq {tip['seq']} {short(tip['digest'])}")
    verified = look.paint(f"verified {count(chain['links'], 'link')}", GREEN)
    return ["", look.head("Chain"), "  " + " -> ".join(steps), f"  {verified}"]
