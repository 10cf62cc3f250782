"""Filters behind a pipe: how much of what a command printed can still be seen.

Rule: `tail`, `head`, `cat`, `tee`, `grep` and their like are followed; whatever is not understood hides all. A `grep`
lets a failing line through only where its pattern, of plain alternatives, surely hits the bare line `FAIL`.

Invariants: pure; linear in lines and words. Refuses: any filter that is not in its list, by seeing nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from . import pytest_runs
from .pytest_runs import Line, View
from .shellwords import Command, Step
from .starts import PRINTERS, Started, unprefixed

_EXIT_LINE = re.compile(r"Exit code \d+")
_ELIDED = re.compile(
    r"[<\[(. …]*(?:truncated lines \d|elided_chars>"
    r"|\d+ ?(?:lines|characters|chars|tokens) (?:truncated|elided|omitted))"
)
_PATTERN_MAX = 500
_VARIABLE = re.compile(r"\$(?:\?|\w+|\{[^}]*\})")
_ATOM = re.compile(
    r"(?P<any>\\[bBwWdDsS<>]|\.|\[\^?\]?[^\]]*\])|\\(?P<escaped>.)|(?P<sign>[|()])|(?P<anchor>[\^$])|(?P<plain>.)",
    re.DOTALL,
)
_REPEAT = re.compile(r"[*?+]|\{[^}]*\}")
_SAMPLES = ("1 passed in 0.1s", "1 failed in 0.1s", "1 error in 0.1s")


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


# -- which lines a grep may have shown --------------------------------------------------------------------------


def may_show(filters: Sequence[Command], line: str) -> bool:
    """Could `line` have come through every `grep`? Yes where a pattern is not fully understood but may match."""
    return all(
        _grep_shows(x.words, line)
        for x in filters
        if x.words and x.words[0].rpartition("/")[2] in ("grep", "egrep", "rg")
    )


def shows_any_summary(filters: Sequence[Command]) -> bool:
    """Is a run's last line sure to be shown, whatever it says?"""
    known = all(
        x.words[:1] in (("tail",), ("tee",), ("cat",), ("grep",), ("egrep",), ("rg",))
        for x in filters
    )
    return known and all(may_show(filters, line) for line in _SAMPLES)


def _grep_shows(words: Sequence[str], line: str) -> bool:
    flags = "".join(word[1:] for word in words[1:] if re.fullmatch("-[a-zA-Z]+", word))
    patterns = [
        words[i + 1] for i, word in enumerate(words[:-1]) if re.fullmatch("-[a-zA-Z]*e", word)
    ]
    patterns = patterns or _operands(words)[:1]
    extended = "E" in flags or "P" in flags or words[0].rpartition("/")[2] in ("egrep", "rg")
    if "f" in flags or any(len(x) > _PATTERN_MAX for x in patterns):
        return False
    if "i" in flags or "y" in flags:
        patterns, line = [x.lower() for x in patterns], line.lower()
    if "F" in flags:
        hit = any(x in line for pattern in patterns for x in pattern.split("\n"))
    else:
        hit = any(_may_match(x, line, extended=extended) for x in patterns)
    return not hit if "v" in flags else hit


def _operands(words: Sequence[str]) -> list[str]:
    """The words that are no options of `grep` and no numbers that belong to one."""
    return [
        word
        for before, word in pairwise(words)
        if not word.startswith("-") and not re.fullmatch("-[ABCm]", before)
    ]


def _may_match(pattern: str, line: str, *, extended: bool) -> bool:
    """Are all plain parts of one alternative in `line`? Their order is not looked at."""
    # The stack holds, for each open bracket: did an alternative hit, does this one hit so far.
    stack = [[False, True]]
    literal, starts = "", False
    i = 0
    while i <= len(pattern):
        match = _ATOM.match(pattern, i)
        i = match.end() if match else i + 1
        kind, text = (match.lastgroup, match[0]) if match else ("end", "")
        if not extended and kind in ("sign", "escaped"):
            # In a basic expression these signs mean something only behind a backslash.
            kind, text = (
                ("plain", text)
                if kind == "sign"
                else ("sign" if text[1] in "|()" else "any" if text[1] in "+?" else kind, text)
            )
        repeat = _REPEAT.match(pattern, i) if match and extended else None
        star = repeat or (match and pattern.startswith("*", i) and kind != "sign")
        if kind in ("plain", "escaped") and not star:
            literal += text[-1]
            continue
        ends = text == "$" and kind == "anchor"
        if literal:
            hit = literal in line
            if starts or ends:
                hit = (not starts or line.startswith(literal)) and (
                    not ends or line.endswith(literal)
                )
            stack[-1][1] = stack[-1][1] and hit
        literal, starts = "", text == "^" and kind == "anchor"
        sign = text[-1] if kind == "sign" else ""
        if sign == "(":
            stack.append([False, True])
        elif sign == "|":
            stack[-1] = [stack[-1][0] or stack[-1][1], True]
        elif sign == ")" and len(stack) > 1:
            done, last = stack.pop()
            stack[-1][1] = stack[-1][1] and (done or last or repeat is not None)
        if star:
            i = repeat.end() if repeat else i + 1
    return any(stack[0])


# -- what other steps show --------------------------------------------------------------------------------------


def files(step: Step) -> list[str]:
    """The files that keep the step's output."""
    kept = [step.out] if step.out is not None else []
    return kept + [word for x in step.filters if x.words[:1] == ("tee",) for word in x.words[1:]]


def _displays(step: Step, file: str) -> Command | None:
    """The filter that `tail -5 FILE` is to what was written to FILE."""
    if (
        step.piped
        or step.out is not None
        or file not in step.words[1:]
        or step.words[0] not in PRINTERS
    ):
        return None
    rest = tuple(word for word in step.words if word != file)
    plain = [word for word in rest[1:] if not word.startswith("-") and not word.isdigit()]
    return (
        Command(rest)
        if len(plain) <= (step.words[0] in ("grep", "egrep", "rg", "sed", "awk"))
        else None
    )


def shown_later(whole: Sequence[Step], run: Started) -> Started:
    """A run that writes to a file which a later step displays, as if it were piped into that step."""
    out = run.step.out
    if out is None or out.startswith(("&", "/dev/")) or sum(step.out == out for step in whole) > 1:
        return run
    shown = [(step, x) for step in whole[run.at + 1 :] if (x := _displays(step, out)) is not None]
    if not shown:
        return run
    step, command = shown[0]
    behind = (command, *step.filters) if len(shown) == 1 else (Command(("sort",)),)
    return replace(run, step=replace(run.step, out=None, filters=behind, zero=False, last=False))


def replays(step: Step, kept: set[str]) -> bool:
    """Does this step show text that somebody else wrote, which may be a runner's of another time?"""
    words, _, _ = unprefixed(step.words)
    if not words or step.piped or step.out is not None:
        return False
    if words[0] in ("echo", "printf"):
        text = " ".join(words[1:])
        return (
            "$(" in text
            or "`" in text
            or bool(re.fullmatch(r"\$\w+|\$\{\w+\}", text))
            or _looks_like_result(text)
        )
    if words[0] == "git":
        return words[1:2] == ("show",) and any(":" in word for word in words)
    if words[0] not in PRINTERS or any(_displays(step, file) for file in kept):
        return False
    return (
        not (words[0] == "sed" and any(word.startswith("-i") for word in words))
        and "-q" not in words
    )


def _looks_like_result(text: str) -> bool:
    return (
        bool(re.match(r"\s*(?:FAIL|PASS|ok\b|---|DONE|=|!!!)", text))
        or pytest_runs.summary(text) is not None
    )


def echoed(step: Step) -> list[re.Pattern[str]]:
    """The lines that an `echo` prints, where `$?` and its like stand for a word."""
    if step.words[:1] != ("echo",) or step.piped or step.out is not None:
        return []
    text = " ".join(word for word in step.words[1:] if word not in ("-e", "-n"))
    return [
        re.compile(r"[\w.-]{0,40}".join(map(re.escape, _VARIABLE.split(line))))
        for line in text[:_PATTERN_MAX].replace("\\n", "\n").split("\n")
        if len(_VARIABLE.findall(line)) <= 3
    ]
