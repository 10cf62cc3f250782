"""Filters behind a pipe: how much of what a command printed can still be seen.

Rule: `tail`, `head`, `cat`, `tee`, `grep` and their like are followed; whatever is not understood hides all. A `grep`
lets a failing line through only where its pattern, of plain alternatives, surely hits the bare line `FAIL`.

Invariants: pure; linear in lines and words. Refuses: any filter that is not in its list, by seeing nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from .pytest_runs import Line, View
from .shellwords import Command

_EXIT_LINE = re.compile(r"Exit code \d+")
_ELIDED = re.compile(
    r"[<\[(. …]*(?:truncated lines \d|elided_chars>"
    r"|\d+ ?(?:lines|characters|chars|tokens) (?:truncated|elided|omitted))"
)


def view(filters: Sequence[Command], lines: Sequence[Line]) -> View:
    """What of a run's output is among `lines` after its `filters`."""
    shown = [line for line in lines if line.text and not _EXIT_LINE.fullmatch(line.text)]
    elided = [line for line in shown if _ELIDED.match(line.text)]
    seen = View(full=not elided, end=not (elided and shown[-1] is elided[-1]))
    for i, item in enumerate(filters):
        name, words = item.words[0] if item.words else "?", item.words[1:]
        # The number of lines that this filter gave is known only when no later one drops any.
        count = (
            len(lines)
            if all(x.words[:1] in (("tee",), ("cat",)) for x in filters[i + 1 :])
            else 10**9
        )
        if item.out is not None:
            return View(lines=False)
        if name in ("cat", "tee"):
            continue
        if name == "tail" and not any(word.startswith(("-f", "-F", "-r")) for word in words):
            seen = replace(seen, full=seen.full and count < _number(words))
        elif name == "head":
            whole = count < _number(words)
            seen = View(
                end=seen.end and whole, fails=seen.fails and whole, full=seen.full and whole
            )
        elif name in ("grep", "egrep", "rg") and not re.search(
            r"(?:^| )-(?:[a-zA-Z]*[coqlLr]|-count|-only)", " ".join(words)
        ):
            through = lets_fail_through(item.words) and not re.search(r"(?:^| )-m", " ".join(words))
            seen = replace(seen, fails=seen.fails and through, full=False)
        elif name in ("sort", "uniq", "sed", "cut", "less", "more"):
            seen = View(end=False, fails=False, full=False)
        else:
            return View(lines=False)
    return seen


def _number(words: Sequence[str]) -> int:
    """The N of `-N`, `-n N`, `-nN`, `--lines=N`; 0 when it is not a number of lines from that end."""
    text = " ".join(words)
    if match := re.fullmatch(r"(?:-n ?|--lines[= ]|-)(\d{1,6})", text):
        return int(match[1])
    return 0 if words else 10


def lets_fail_through(words: Sequence[str]) -> bool:
    """Would this `grep` show the bare line `FAIL`? Only patterns of plain alternatives are understood."""
    name = words[0].rpartition("/")[2]
    flags = "".join(word[1:] for word in words[1:] if re.fullmatch("-[a-zA-Z]+", word))
    patterns = [
        words[i + 1] for i, word in enumerate(words[:-1]) if re.fullmatch("-[a-zA-Z]*e", word)
    ]
    patterns = patterns or [word for word in words[1:] if not word.startswith("-")][:1]
    extended = "E" in flags or "P" in flags or name in ("egrep", "rg")
    tokens = [token for pattern in patterns for token in _alternatives(pattern, extended=extended)]
    hits = [
        _hits(token.lower() if "i" in flags else token, "fail" if "i" in flags else "FAIL")
        for token in tokens
    ]
    if "v" in flags:
        plain = all(re.fullmatch(r"\^?[^\\.*+?\[\]{}()|^$]+\$?", token) for token in tokens)
        return bool(tokens) and plain and not any(hits)
    return any(hits) and not ({"w", "x"} & set(flags) and "FAIL" not in tokens)


def _hits(token: str, line: str) -> bool:
    body = token.removeprefix("^").removesuffix("$")
    if not body or body not in line:
        return False
    return (not token.startswith("^") or line.startswith(body)) and (
        not token.endswith("$") or line.endswith(body)
    )


def _alternatives(pattern: str, *, extended: bool) -> list[str]:
    """The plain alternatives of `a|b` and `^(a|b)$`; [] or what hits nothing when the pattern is more than that."""
    pattern = re.sub(
        r"\\[\[\].]", "\0", pattern
    )  # an escaped sign is a plain one that is not in `FAIL`
    if not extended:
        if "\\(" in pattern:
            return []
        # In a basic expression only the bar with a backslash divides.
        pattern = (
            pattern.replace("\\|", "\1")
            .replace("|", "\0")
            .replace("(", "\0")
            .replace(")", "\0")
            .replace("\1", "|")
        )
    start, end = pattern[: pattern.startswith("^")], "$" * pattern.endswith("$")
    inner = pattern.removeprefix("^").removesuffix("$")
    if inner.startswith("(") and inner.endswith(")") and inner.count("(") == inner.count(")") == 1:
        return [start + token + end for token in inner[1:-1].split("|")]
    pattern = re.sub(
        r"\([^()]*\)", "\0", pattern
    )  # only the alternatives outside every bracket are plain
    return [] if set("([)") & set(pattern) else pattern.split("|")
