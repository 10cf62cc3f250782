"""Pytest's words and pytest's output: the scope of a run, and the verdict that its own summary states.

Rule: the last summary line (`2 failed, 10 passed in 0.12s`) decides. Without one, what only a failing session prints
decides `failed`: its FAILURES or ERRORS heading, a `FAILED path::test` line, a conftest that cannot be imported.

Invariants: pure; linear in the output; every finding names the lines that ground it. A count that the session did
not finish, or names that were not all shown, are None and never 0 or ().

Refuses: sessions that ran nothing (no tests, all skipped or deselected), that only list, and that a user stopped.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ...events.quick import quick

# Longer lines are messages or dumps; no line that decides is so long in the part that is matched.
_WIDTH = 4_000
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\(B")
_TIME = re.compile(r"\d+(?:\.\d+)?(?:s| seconds)(?: \(\d[\d:, a-z]*\))?")
_PART = re.compile(
    r"(\d+) (failed|passed|skipped|deselected|xfailed|xpassed|errors?|warnings?|rerun"
    r"|subtests (?:passed|failed|skipped))"
)
_HEADING = re.compile(r"=+ (?:FAILURES|ERRORS) =+")
_FAILED_LINE = re.compile(r"FAILED \S+\.py::\S")
_FAILED_END = re.compile(r" (?:FAILED|ERROR) +\[ *\d+%\]$")
_NAMED = re.compile(r"(?:FAILED|ERROR) (?=[^\s:]*[./])")
_LISTED = re.compile(r"(?:FAILED|ERROR|SKIPPED|XFAIL|XPASS|RERUN|PASSED)\b|!!!")
_STOPPED = re.compile(
    r"!+ (?:KeyboardInterrupt|_pytest\.outcomes\.Exit|xdist\.dsession\.Interrupted: session)"
)
_PROGRESS = re.compile(r"[.sxX]+ +\[100%\]")
_FATAL = re.compile(
    r"\b(?:Fatal Python error|Segmentation fault|Killed|INTERNALERROR|core dumped|Terminated|Bus error)\b|^panic:"
)
_BROKEN = re.compile(r"INTERNALERROR>|!+ Interrupted|collected \d+ items? / \d+ errors?\b")
# What task runners, launchers and shells say after the last line of the run that they started.
_TRAILER = re.compile(
    r"\[[\w:.-]+\] |\[?(?:Exit|exit|EXIT)[ _](?:code|status)|make(?:\[\d+\])?: |error: (?:Recipe|script) |Finished in "
    r"|npm (?:ERR!|error|notice)|\s?ELIFECYCLE|(?:yarn: )?Done in \d|error Command failed|info Visit |nox > "
    r"|  [\w.-]+: (?:OK|FAIL|SKIP)|  (?:congratulations|evaluation failed) :|[\w.-]+: (?:OK|exit \d)"
    r"|Shell cwd was reset|(?:real|user|sys)\s+\d|\d[\d.]*user |(?:Installed|Resolved|Prepared|Uninstalled|Audited) \d"
    r"|\s*(?:Built|Building|Downloading|Downloaded) |Using C?Python|Creating virtual|warning: |[✓✔] "
)
_PATHLIKE = re.compile(r"[/.]|::|^tests?$")
_NOT_RUN = frozenset(
    "--collect-only --co --collectonly -h --help --version -V --fixtures --fixtures-per-test --funcargs --markers"
    " --setup-plan --setup-only --cache-show".split()
)
# Options that do not choose which tests run; one that is in no list belongs to the scope.
_PLAIN = frozenset(
    "-q -v -s -x -l --quiet --verbose --exitfirst --showlocals --no-showlocals --no-header --no-summary --full-trace"
    " --disable-warnings --disable-pytest-warnings --strict --strict-markers --strict-config --cov --no-cov"
    " --cov-append --cov-branch --no-cov-on-fail --cov-reset --ff --failed-first --nf --new-first --pdb --trace"
    " --setup-show --cache-clear --force-sugar --self-contained-html --force-short-summary --xfail-tb --show-progress"
    " -n -W -r --tb --maxfail --cov-report --cov-config --cov-fail-under --cov-context --durations --durations-min"
    " --timeout --timeout-method --junitxml --junit-xml --color --log-level --log-cli-level --log-file --log-format"
    " --log-cli-format --log-file-level --dist --numprocesses --import-mode --basetemp --reruns --reruns-delay"
    " --capture --maxprocesses --count --verbosity --show-capture --pdbcls --asyncio-mode --randomly-seed --html"
    " --code-highlight --session-timeout --max-worker-restart --log-auto-indent --junit-prefix --report-log".split()
)
_PLAIN_VALUES = re.compile(
    r"-p=(?:no:(?:cacheprovider|warnings|randomly|sugar|logging|faulthandler|cov)|xdist|pytest_cov|pytester)"
    r"|(?:-o|--override-ini)=(?:log_\w+|cache_dir|console_output_style|junit_\w+|faulthandler_timeout)=.*"
)
_VALUED = frozenset(
    "-k -m -n -p -o -c -W -r --tb --maxfail --cov --cov-report --cov-config --cov-fail-under --durations"
    " --durations-min --timeout --timeout-method --rootdir --junitxml --junit-xml --ignore --ignore-glob --deselect"
    " --color --log-level --log-cli-level --log-file --dist --numprocesses --import-mode --basetemp --confcutdir"
    " --reruns --reruns-delay --capture --maxprocesses --count --ds --verbosity --show-capture --pdbcls"
    " --override-ini --asyncio-mode --randomly-seed --html --code-highlight --cov-context --log-format"
    " --log-cli-format --log-file-level --session-timeout --max-worker-restart --junit-prefix --report-log".split()
)

_RUN_VALUED = frozenset(
    "--with --with-editable --python -p --extra --group --only-group --env-file -n --name -C -P --index"
    " --env -e".split()
)
_RUN_PLACES = frozenset("--directory --project --package".split())


@quick
@dataclass(frozen=True, slots=True)
class Line:
    """A line of the output without colours and carriage returns, and where it lies in the text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class View:
    """How much of what a command printed can be seen.

    `lines`: the lines shown are the runner's own; `end`: its last lines are among them; `fails`: a failing line could
    not have been hidden; `full`: nothing was hidden.
    """

    lines: bool = True
    end: bool = True
    fails: bool = True
    full: bool = True


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict and the first and last line that ground it."""

    verdict: str
    first: Line
    last: Line
    rule: str
    passed: int | None = None
    failed: int | None = None
    skipped: int | None = None
    failing: tuple[str, ...] | None = None


def lines_of(text: str) -> Iterator[Line]:
    """The lines of an output."""
    start = 0
    for raw in text.split("\n"):
        end = start + len(raw.rstrip("\r"))
        yield Line(_ANSI.sub("", raw[:_WIDTH]).rstrip(), start, end)
        start += len(raw) + 1


def scope(args: Sequence[str]) -> tuple[tuple[str, ...], bool] | None:
    """The normalised scope of a command's arguments, and whether it stops early; None when it runs no test."""
    paths: set[str] = set()
    narrow: set[str] = set()
    stops = False
    i = 0
    while i < len(args):
        word = args[i]
        i += 1
        if word == "--":
            continue
        if not word.startswith("-"):
            path = word.removeprefix("./").rstrip("/")
            paths |= {path} if path not in ("", ".") else set()
            continue
        for name, value in _options(word):
            if name in _NOT_RUN:
                return None
            # The word after an unknown option is its value, where it looks like no path.
            takes = name in _VALUED or not (
                name in _PLAIN or _PATHLIKE.search(args[i] if i < len(args) else "")
            )
            if takes and value is None and i < len(args) and not args[i].startswith("-"):
                value = args[i]
                i += 1
            stops = stops or name in ("-x", "--exitfirst", "--maxfail", "--sw", "--stepwise")
            if name not in _PLAIN and not _PLAIN_VALUES.fullmatch(f"{name}={value}"):
                narrow.add(f"{name}={shlex.quote(value)}" if value is not None else name)
    return (*map(shlex.quote, sorted(paths)), *sorted(narrow)), stops


def _options(word: str) -> Iterator[tuple[str, str | None]]:
    """The options in one word: `--name=value`, or a cluster such as `-xvs` or `-kexpr`."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        yield name, value if equals else None
        return
    for i, char in enumerate(word[1:], 1):
        if f"-{char}" in _VALUED:
            yield f"-{char}", word[i + 1 :] or None
            return
        yield f"-{char}", None


def launched(words: tuple[str, ...]) -> tuple[tuple[str, ...], list[str]]:
    """The words after the options of `uv run` and its like, and those options that choose another place."""
    place: list[str] = []
    i = 0
    while i < len(words) and words[i].startswith("-") and words[i] not in ("-m", "--module"):
        valued = words[i] in _RUN_VALUED or words[i] in _RUN_PLACES
        if words[i].partition("=")[0] in _RUN_PLACES:
            place.append("=".join(words[i : i + 2]) if valued else words[i])
        i += 2 if valued else 1
    return ("python", *words[i:]) if words[i : i + 1] in (("-m",), ("--module",)) else words[
        i:
    ], place


def unlaunched(words: tuple[str, ...]) -> tuple[str, ...]:
    """`python -m pytest ARGS` and `coverage run -m pytest ARGS` as `pytest ARGS`."""
    for _ in range(2):
        name = words[0].rpartition("/")[2] if words else ""
        if not (
            re.fullmatch(r"(?:python|pypy)[\d.]*", name)
            or (name == "coverage" and words[1:2] == ("run",))
        ):
            break
        i = 2 if name == "coverage" else 1
        while i < len(words) and words[i].startswith("-") and words[i] not in ("-m", "--module"):
            i += 2 if words[i] in ("-W", "-X", "--source", "--rcfile") else 1
        if words[i : i + 1] not in (("-m",), ("--module",)):
            break
        words = words[i + 1 :]
    return words


def summary(text: str) -> dict[str, int] | None:
    """The counts of a summary line, {} for `no tests ran`; None when the line is none."""
    head, found, time = text.strip("= ").rpartition(" in ")
    if not found or text.startswith(" ") or not _TIME.fullmatch(time):
        return None
    if head == "no tests ran":
        return {}
    counts: dict[str, int] = {}
    for part in head.split(", "):
        match = _PART.fullmatch(part)
        if match is None or len(match[1]) > 9:
            return {} if part == "no tests ran" else None
        counts[match[2].removesuffix("s") if match[2] in ("errors", "warnings") else match[2]] = (
            int(match[1])
        )
    return counts


@dataclass(frozen=True, slots=True)
class Context:
    """What is known around the lines of a run.

    `green`: its status is 0; `loose`: other commands may have printed after it; `echoed`: what a later echo prints;
    `shown`: could its filters have let this line through; `end`: they show its end.
    """

    green: bool = False
    loose: bool = False
    end: bool = True
    echoed: Sequence[re.Pattern[str]] = ()
    shown: Callable[[str], bool] = bool


def fatal(lines: Sequence[Line]) -> bool:
    """Does one of these lines say that a process died?"""
    return any(_FATAL.search(line.text) for line in lines)


def closes(after: Sequence[Line], echoed: Sequence[re.Pattern[str]]) -> bool:
    """Are the lines after a result only such as others print after a run that came to its end?"""
    return all(
        not line.text.strip()
        or _TRAILER.match(line.text)
        or any(x.fullmatch(line.text) for x in echoed)
        for line in after
    )


def find(lines: Sequence[Line], around: Context, *, many: bool, stops: bool) -> Finding | None:
    """What `lines` say of one run; `many`: of a task that may run pytest more than once."""
    if any(_STOPPED.match(line.text) for line in lines):
        return None
    ends = [
        (i, counts)
        for i, line in enumerate(lines)
        if (counts := summary(line.text)) is not None and around.shown(line.text)
    ]
    if not ends:
        return _unfinished(lines, around)
    at = ends[-1][0]
    several = many and len(ends) > 1
    found = _several(lines, ends) if several else _one(lines, *ends[-1], stops=stops)
    if found is None or found.verdict == "failed":
        return found
    after = lines[at + 1 :]
    if not around.end or fatal(after) or any(_BROKEN.match(line.text) for line in lines):
        return None
    if closes(after, around.echoed):
        return found
    if around.loose and len(ends) == 1:
        return found
    # The status says it; whose counts these are is not known.
    return replace(found, passed=None, skipped=None) if around.green else None


def _one(lines: Sequence[Line], at: int, counts: dict[str, int], *, stops: bool) -> Finding | None:
    failed = counts.get("failed", 0) + counts.get("error", 0)
    line = lines[at]
    if failed or counts.get("subtests failed"):
        names, top = _names(lines, at)
        if len(names) != failed:
            top = at  # names that were not all shown are not claimed
        stops = stops or any(x.text.startswith("!!!") for x in lines[max(0, at - 3) : at])
        return Finding(
            "failed",
            lines[top],
            line,
            "pytest/summary",
            passed=None if stops else counts.get("passed", 0),
            failed=failed or None,
            skipped=None if stops else counts.get("skipped", 0),
            failing=names if len(names) == failed else None,
        )
    if not any(counts.get(name) for name in ("passed", "xfailed", "xpassed", "subtests passed")):
        return None
    passed, skipped = counts.get("passed", 0), counts.get("skipped", 0)
    return Finding("passed", line, line, "pytest/summary", passed, 0, skipped, ())


def _several(lines: Sequence[Line], ends: list[tuple[int, dict[str, int]]]) -> Finding | None:
    """Several sessions of one task: failed if one failed, passed only if all passed; no counts of the whole."""
    found = [_one(lines, at, counts, stops=False) for at, counts in ends]
    bad = [x for x in found if x is not None and x.verdict == "failed"]
    if bad:
        return Finding("failed", bad[-1].first, bad[-1].last, "pytest/summary")
    if None in found:
        return None
    return Finding(
        "passed", lines[ends[0][0]], lines[ends[-1][0]], "pytest/summary", failed=0, failing=()
    )


def _names(lines: Sequence[Line], at: int) -> tuple[tuple[str, ...], int]:
    """The names in the short summary that ends at the summary line `at`, and the first line with one."""
    names: list[str] = []
    top = at
    for i in range(at - 1, -1, -1):
        text = lines[i].text
        if not _LISTED.match(text):
            break
        if match := _NAMED.match(text):
            names.append(_name(text[match.end() :]))
            top = i
    return tuple(reversed(names)), top


def _name(text: str) -> str:
    """The test's name before ` - message`; the parameters in brackets may hold ` - ` too."""
    dash, bracket = text.find(" - "), text.find("[")
    if 0 <= bracket < dash:
        end = text.find("] - ", bracket)
        return text[: end + 1] if end >= 0 else text if text.endswith("]") else text[:dash]
    return text[:dash] if dash >= 0 else text


def _unfinished(lines: Sequence[Line], around: Context) -> Finding | None:
    for line in lines:
        if line.text.startswith("ImportError while loading conftest"):
            return Finding("failed", line, line, "pytest/conftest")
        text = line.text
        if (
            _HEADING.fullmatch(text)
            or _FAILED_LINE.match(text)
            or (".py::" in text and _FAILED_END.search(text))
        ) and around.shown(text):
            return Finding("failed", line, line, "pytest/failure-shown")
    shown = [line for line in lines if line.text]
    if around.green and shown and _PROGRESS.fullmatch(shown[-1].text):
        return Finding("passed", shown[-1], shown[-1], "pytest/progress", failed=0, failing=())
    return None
