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
from dataclasses import dataclass, field

from .pytest_runs import Context, Finding, Line, View, closes, fatal

_OK = re.compile(r"ok\s+\S+\s+(?:\(cached\)|\d[\d.]*m?s)(?=\s|$)")
_BAD = re.compile(r"FAIL\s+\S+\s+(?:\d[\d.]*m?s|\[(?:build|setup) failed\]|\(cached\))(?=\s|$)")
_NONE = re.compile(r"\?\s+\S+\s+\[no test files\]")
_AFTER = re.compile(r"\?\s|ok\s|\s+\S+\s+coverage: |testing: warning|coverage: ")
_TEST = re.compile(r"\s*--- (PASS|FAIL|SKIP): (\S+) \(\d")
_SUM_FAIL = re.compile(r"=== FAIL: \S+ (\S+) \(\d")
_DONE = re.compile(
    r"DONE (?:\d+ runs, )?(\d{1,9}) tests?((?:, \d{1,9} (?:skipped|failures?|errors?))*) in \d[\d.]*\w?s"
)
_DONE_PART = re.compile(r"(\d+) (skipped|failure|error)")
_BOOL = frozenset(
    "v race short cover failfast json c i a n x work benchmem trimpath msan asan fullpath linkshared modcacherw".split()
)
# Options with a value that do not choose what is tested; one that is in no list belongs to the scope.
_VALUED = frozenset(
    "count timeout p parallel cpu coverprofile covermode coverpkg outputdir o vet ldflags gcflags asmflags gccgoflags"
    " shuffle blockprofile blockprofilerate cpuprofile memprofile memprofilerate mutexprofile mutexprofilefraction"
    " trace benchtime fuzztime buildvcs mod buildmode compiler installsuffix pkgdir".split()
)
_NARROW_VALUED = frozenset("run skip tags bench fuzz C modfile exec overlay".split())
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
    verbose = unsure = False
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
        known = name in _VALUED or name in _NARROW_VALUED
        if not equals and name not in _BOOL and i < len(args):
            # The word after an unknown option may be its value or a package.
            if known or not (args[i].startswith((".", "-")) or "..." in args[i]):
                value, equals = args[i], "="
                i += 1
            unsure = unsure or not known
        if name == "run" and value in _NO_TEST:
            return None
        verbose = verbose or (name == "v" and value != "false")
        if name == "short" or (name not in _BOOL and name not in _VALUED):
            narrow.add(f"-{name}={shlex.quote(value)}" if equals and value else f"-{name}")
    packages = packages or {default}
    single = (
        not unsure and len(packages) == 1 and "..." not in "".join(packages) and packages != {"all"}
    )
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

    ok: list[int] = field(default_factory=list[int])
    bad: list[int] = field(default_factory=list[int])
    fail: list[int] = field(default_factory=list[int])  # bare `FAIL`
    passed: list[int] = field(default_factory=list[int])  # bare `PASS`
    done: list[int] = field(default_factory=list[int])
    tests: dict[str, list[tuple[int, str]]] = field(
        default_factory=lambda: {"PASS": [], "FAIL": [], "SKIP": []}
    )
    summed: list[str] = field(default_factory=list[str])
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
    lines: Sequence[Line],
    view: View,
    around: Context,
    *,
    single: bool,
    verbose: bool,
    sure: bool,
) -> Finding | None:
    """What `lines` say of one run; `sure`: it is known that the run was not cut short from outside."""
    marks = _marks(lines)
    found = (
        _done(lines[marks.done[-1]], marks, view)
        if marks.done
        else _said(lines, marks, view, single=single, verbose=verbose, sure=sure)
    )
    if found is None or found.verdict == "failed":
        return found
    end = max([*marks.ok[-1:], *marks.passed[-1:], *marks.done[-1:]])
    after = [line for line in lines[end + 1 :] if not _AFTER.match(line.text)]
    closed = around.green or around.loose or closes(after, around.echoed)
    return found if closed and not fatal(after) else None


def _said(
    lines: Sequence[Line], marks: _Marks, view: View, *, single: bool, verbose: bool, sure: bool
) -> Finding | None:
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
