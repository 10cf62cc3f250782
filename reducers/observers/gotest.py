"""Go's words and go test's output: the scope of a run, and the verdict that its result lines state.

Rule: a package's `FAIL` line decides `failed`, and so does a `--- FAIL` line or the `FAIL` that ends a failing run.
`passed` needs an `ok` line of a package that ran tests, and that no failing line could have been hidden: when any
package fails, `go test` ends with a line `FAIL`. gotestsum's `DONE` line decides by its own counts.

Invariants: pure; linear in the output; every finding names the lines that ground it. Counts and names are given only
when all of the output can be seen.

Refuses: runs without tests (`[no test files]`, `[no tests to run]`), runs that only compile or list, and output
whose lines contradict each other.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from .pytest_runs import Finding, Line, View
from .shellwords import Command

_OK = re.compile(r"ok\s+\S+\s+(?:\(cached\)|\d[\d.]*m?s)(?=\s|$)")
_BAD = re.compile(r"FAIL\s+\S+\s+(?:\d[\d.]*m?s|\[(?:build|setup) failed\]|\(cached\))(?=\s|$)")
_NONE = re.compile(r"\?\s+\S+\s+\[no test files\]")
_TEST = re.compile(r"\s*--- (PASS|FAIL|SKIP): (\S+) \(\d")
_SUM_FAIL = re.compile(r"=== FAIL: \S+ (\S+) \(\d")
_DONE = re.compile(
    r"DONE (?:\d+ runs, )?(\d{1,9}) tests?((?:, \d{1,9} (?:skipped|failures?|errors?))*) in \d[\d.]*\w?s"
)
_DONE_PART = re.compile(r"(\d+) (skipped|failure|error)")
_EXIT_LINE = re.compile(r"Exit code \d+")
_ELIDED = re.compile(
    r"[<\[(. …]*(?:truncated lines \d|elided_chars>"
    r"|\d+ ?(?:lines|characters|chars|tokens) (?:truncated|elided|omitted))"
)
_BOOL = frozenset(
    "v race short cover failfast json c i a n x work benchmem trimpath msan asan fullpath linkshared modcacherw".split()
)
_NARROW = frozenset("run skip short tags bench fuzz C modfile".split())
_NEAR = 4_000
_SUM_VALUED = frozenset("f format junitfile jsonfile packages post-run-command max-fails".split())
_NOT_RUN = frozenset("c n list h help".split())
_NO_TEST = frozenset(
    ("^$", "NONE", "^NONE$", "XXX", "^XXX$", "none", "xxx", "$^")
)  # idioms for "run no test"


@dataclass(frozen=True, slots=True)
class Scope:
    """`parts` is () for the whole suite; `single`: one package at most, so one result line."""

    parts: tuple[str, ...]
    single: bool
    verbose: bool


def scope(args: Sequence[str], default: str = ".") -> Scope | None:
    """The normalised scope of the arguments of `go test`; None when it runs no test."""
    packages: set[str] = set()
    narrow: set[str] = set()
    verbose = False
    i = 0
    while i < len(args):
        word = args[i]
        i += 1
        if not word.startswith("-"):
            packages.add(word.rstrip("/") or word)
            continue
        name, equals, value = word.lstrip("-").removeprefix("test.").partition("=")
        if name in _NOT_RUN:
            return None
        if name == "args":
            narrow |= {f"-args={shlex.join(args[i:])}"} if args[i:] else set()
            break
        if not equals and name not in _BOOL and i < len(args):
            value = args[i]
            i += 1
        if name == "run" and value in _NO_TEST:
            return None
        verbose = verbose or (name == "v" and value != "false")
        if name in _NARROW:
            narrow.add(f"-{name}" if name in _BOOL else f"-{name}={shlex.quote(value)}")
    packages = packages or {default}
    single = len(packages) == 1 and "..." not in "".join(packages) and packages != {"all"}
    shown = () if packages == {"./..."} else tuple(map(shlex.quote, sorted(packages)))
    return Scope((*shown, *sorted(narrow)), single, verbose)


def summed(args: Sequence[str]) -> Scope | None:
    """The scope of the arguments of `gotestsum`: its own options, then those of `go test`."""
    packages: list[str] = []
    i = 0
    while i < len(args) and args[i].startswith("-") and args[i] != "--":
        name, equals, value = args[i].lstrip("-").partition("=")
        if name in ("h", "help", "version"):
            return None
        if not equals and name in _SUM_VALUED:
            i += 1
            value = args[i] if i < len(args) else ""
        packages += value.split() if name == "packages" else []
        i += 1
    return scope([*packages, *args[i + (args[i : i + 1] == ("--",)) :]], "./...")


@dataclass(slots=True)
class _Marks:
    """Where the lines that may decide are."""

    ok: list[int] = field(default_factory=list)
    bad: list[int] = field(default_factory=list)
    fail: list[int] = field(default_factory=list)  # bare `FAIL`
    passed: list[int] = field(default_factory=list)  # bare `PASS`
    done: list[int] = field(default_factory=list)
    tests: dict[str, list[tuple[int, str]]] = field(
        default_factory=lambda: {"PASS": [], "FAIL": [], "SKIP": []}
    )
    summed: list[str] = field(default_factory=list)
    runs: bool = False  # `=== RUN` was seen: a verbose run


def _marks(lines: Sequence[Line]) -> _Marks:
    marks = _Marks()
    for i, line in enumerate(lines):
        text = line.text
        if text == "FAIL":
            marks.fail.append(i)
        elif text == "PASS":
            marks.passed.append(i)
        elif _OK.match(text):
            if "[no tests to run]" not in text and "[no test files]" not in text:
                marks.ok.append(i)
        elif _BAD.match(text):
            marks.bad.append(i)
        elif match := _TEST.match(text):
            marks.tests[match[1]].append((i, match[2]))
        elif match := _SUM_FAIL.match(text):
            marks.summed.append(match[1])
        elif _DONE.fullmatch(text):
            marks.done.append(i)
        marks.runs = marks.runs or text.startswith("=== RUN ")
    return marks


def results(lines: Sequence[Line]) -> list[int]:
    """The ends of the results of single packages: their lines, with the `FAIL` that may follow."""
    found: list[int] = []
    for i, line in enumerate(lines):
        if _OK.match(line.text) or _BAD.match(line.text) or _NONE.match(line.text):
            follows = i + 1 < len(lines) and lines[i + 1].text == "FAIL"
            found.append(i + 1 if follows else i)
    return found


def find(
    lines: Sequence[Line], view: View, *, single: bool, verbose: bool, sure: bool
) -> Finding | None:
    """What `lines` say of one run; `sure`: it is known that the run was not cut short from outside."""
    marks = _marks(lines)
    if marks.done:
        return _done(lines[marks.done[-1]], marks, view)
    counted = view.full and (verbose or marks.runs)
    failing = marks.tests["FAIL"]
    last_good = max([*marks.ok[-1:], *marks.passed[-1:]], default=-1)
    if marks.bad or failing or (marks.fail and marks.fail[-1] > last_good):
        if marks.bad:
            at, rule = marks.bad[-1], "go/fail-line"
        elif marks.fail and marks.fail[-1] > last_good:
            at, rule = marks.fail[-1], "go/last-line"
        else:
            at, rule = failing[0][0], "go/fail-test"
            if marks.ok and view.end and view.fails:
                return None  # a failing test in a run that ends well: a line of a test's own output
        # The names of the failing tests are cited with the line, where they stand near enough.
        top = min(at, failing[0][0]) if view.full and failing else at
        top = top if lines[at].end - lines[top].start <= _NEAR else at
        return Finding(
            "failed",
            lines[top],
            lines[at],
            rule,
            passed=len(marks.tests["PASS"]) if counted else None,
            failed=len(failing) if view.full and failing else None,
            skipped=len(marks.tests["SKIP"]) if counted else None,
            failing=_leaves([name for _, name in failing]) if view.full and failing else None,
        )
    if not (view.end and view.fails) or marks.fail or not (single or sure):
        return None
    return _green(lines, marks, view, counted=counted, single=single)


def _green(
    lines: Sequence[Line], marks: _Marks, view: View, *, counted: bool, single: bool
) -> Finding | None:
    tests = marks.tests
    passed, skipped = (len(tests["PASS"]), len(tests["SKIP"])) if counted else (None, None)
    if marks.ok:
        first, last = lines[marks.ok[0]], lines[marks.ok[-1]]
        # Between distant result lines lies the tests' own output: the last line then says it alone.
        first, rule = (
            (last, "go/last-line")
            if not view.full or last.end - first.start > _NEAR
            else (first, "go/ok-lines")
        )
        return Finding("passed", first, last, rule, passed, 0, skipped, ())
    if single and marks.passed and tests["PASS"]:
        return Finding(
            "passed",
            lines[marks.passed[-1]],
            lines[marks.passed[-1]],
            "go/last-line",
            passed,
            0,
            skipped,
            (),
        )
    return None


def _done(line: Line, marks: _Marks, view: View) -> Finding | None:
    match = _DONE.fullmatch(line.text)
    counts = {kind: int(number) for number, kind in _DONE_PART.findall(match[2] if match else "")}
    total = int(match[1]) if match else 0
    failed, skipped, errors = (
        counts.get("failure", 0),
        counts.get("skipped", 0),
        counts.get("error", 0),
    )
    passed = total - failed - skipped
    if failed or errors:
        names = _leaves(marks.summed) if len(marks.summed) == failed and not errors else None
        return Finding("failed", line, line, "go/done", passed, failed or None, skipped, names)
    if passed <= 0:
        return None
    return Finding("passed", line, line, "go/done", passed, 0, skipped, ())


def _leaves(names: Sequence[str]) -> tuple[str, ...]:
    """The names without those that fail only because a subtest of theirs does."""
    parents = {name.rpartition("/")[0] for name in names}
    return tuple(name for name in names if name not in parents)


# -- filters ----------------------------------------------------------------------------------------------------


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
