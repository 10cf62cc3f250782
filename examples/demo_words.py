"""Values, quotes and counts in the few characters that a row of the demo has."""

from __future__ import annotations

from typing import Any

from demo_screen import cut

from ef.audit import Holds
from ef.render.visible import visible


def plural(n: int, noun: str) -> str:
    """3 sessions, 1 session."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def brief(value: Any) -> str:
    """A value in a few characters."""
    if isinstance(value, dict):
        known = [(k, v) for k, v in value.items() if v is not None and v != 0]
        words = [f"{v} {k}" if type(v) is int else str(v) for k, v in known if k != "exit"]
        words += [f"exit {v}" for k, v in known if k == "exit"]
        return ", ".join(words) or "unknown"
    if isinstance(value, list):
        return f"{len(value)}: {str(value[0]).rpartition('::')[2]} …" if value else "none"
    return "unknown" if value is None else str(value)


def cited_stream(head: Holds) -> str:
    """The stream of the first source."""
    return head.sources[0].ref.stream


def last_line(head: Holds) -> str:
    """The last line of the first quote: a runner's own summary stands there."""
    return evidence(head)[1].strip().rpartition("\n")[2]


def evidence(head: Holds) -> tuple[int, str]:
    """(seq of the cited item, last line of the quote) of a head's first source."""
    if not head.sources or head.sources[0].quote is None:
        return 0, ""
    quote = head.sources[0].quote.decode("utf-8", "replace").strip()
    return head.sources[0].ref.seq, quote.rpartition("\n")[2]


def quoted(text: str, most: int) -> str:
    """In quotation marks, cut."""
    return f"“{cut(visible(text.strip()), most)}”"
