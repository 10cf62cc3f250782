"""The verdicts of test runs, decided from a shell command and its output.

Rule: a run is what a command line starts (`pytest`, `go test`, or a task that plainly says test and prints the output
of one of them). The runner's own lines decide; the exit status decides only where no pipe or later command masks it
and the output went elsewhere. A run of less than the whole suite has its normalised scope in its entity.

Invariants: pure (no clock, disk, environment); linear in command and output; never raises on any `str`. Spans are
offsets in the bytes of the output (UTF-8, lone surrogates kept). A verdict by the status of a silent command cites
the line `Exit code N`, or, for status 0, the empty span 0..0: there are no bytes to cite.

Refuses, and so gives nothing for: runs in the background or cut short, runs whose deciding lines are hidden by a
filter, output that contradicts the status, text that another command of the line printed, and lines that cannot be
divided between several runs.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from . import gotest, pytest_runs
from .pytest_runs import Finding, Line, View, lines_of
from .shellwords import Command, Step, steps

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_EXIT_LINE = re.compile(r"Exit code \d+")
_CUT_SHORT = re.compile(
    r"[Cc]ommand (?:timed out|was aborted|running in background)|\[Request interrupted|<persisted-output>"
    r"|Killed$|Terminated$"
)
_TESTLIKE = re.compile(r"(?:^|[:_./-])(?:tests?|check|pytest|ci)(?=$|[:_./-])")
# Launchers that run the rest of their words, each with its options that take the next word as a value.
_PREFIXES: dict[str, tuple[str, ...]] = {
    "time": ("-f", "-o"),
    "nohup": (),
    "command": (),
    "exec": (),
    "unbuffer": (),
    "env": ("-u", "-C"),
    "sudo": ("-u", "-g"),
    "timeout": ("-k", "-s"),
    "gtimeout": ("-k", "-s"),
    "nice": ("-n",),
    "stdbuf": ("-o", "-e", "-i"),
    "xvfb-run": ("-s", "-n"),
    "uvx": ("--with", "--from", "-p", "--python"),
}
_RUNNERS = ("uv", "poetry", "pdm", "pipenv", "rye", "hatch", "conda", "mamba", "micromamba")
_TASKS = frozenset(
    "mise make gmake npm pnpm yarn bun just task tox nox inv invoke rake hatch pdm poetry".split()
)
_SHELLS = frozenset(("bash", "sh", "zsh", "dash"))
_PRINTERS = frozenset(
    "cat grep egrep fgrep rg tail head sed awk less more bat jq find diff strings tac nl".split()
)


@dataclass(frozen=True, slots=True)
class Run:
    """The verdict of one test run, and the bytes of the output that ground it."""

    runner: str
    entity: str
    verdict: str
    passed: int | None
    failed: int | None
    skipped: int | None
    failing: tuple[str, ...] | None
    start: int
    end: int
    rule: str


@dataclass(frozen=True, slots=True)
class _Started:
    """A run that the command line starts; `runner` "" when only its output can tell."""

    runner: str
    scope: tuple[str, ...]
    step: Step
    single: bool = False
    verbose: bool = False
    stops: bool = False
    limited: bool = False
    task: str = ""
    at: int = 0


@dataclass(frozen=True, slots=True)
class _Status:
    """The exit status of the whole command, and all lines of its output."""

    code: int | None
    lines: list[Line]


def test_runs(
    command: str, output: str, *, exit_code: int | None, background: bool = False
) -> tuple[Run, ...]:
    """The test runs of `command` whose verdict its `output` (and unmasked status) can ground, in order."""
    lines = list(lines_of(output))
    if background or any(_CUT_SHORT.match(line.text) for line in (*lines[:3], *lines[-3:])):
        return ()
    whole = _expand(steps(command), 0)
    started = [
        replace(run, at=at) for at, step in enumerate(whole) if (run := _started(step)) is not None
    ]
    if not started or any(run.step.background for run in started):
        return ()
    status = _Status(exit_code, lines)
    found: list[tuple[_Started, str, Finding]] = []
    for part, shown in _sections(whole, lines):
        here = [run for run in started if part.start <= run.at < part.stop]
        inside = [_shown_later(whole, run) for run in here]
        kept = {file for run in here for file in _files(run.step)}
        quiet = not any(_prints(whole[at], kept) for at in part)
        for runner in ("pytest", "go test"):
            mine = [run for run in inside if run.runner in ("", runner)]
            found += [
                (run, runner, x) for run, x in _judge(runner, mine, shown if quiet else [], status)
            ]
    found.sort(key=lambda x: x[0].at)
    return tuple(_run(output, *x) for x in found)


def _run(output: str, run: _Started, runner: str, found: Finding) -> Run:
    start, end = (
        len(output[:at].encode("utf-8", "surrogatepass"))
        for at in (found.first.start, found.last.end)
    )
    entity = ":".join(filter(None, (runner.split()[0], " ".join(run.scope))))
    counts = found.passed, found.failed, found.skipped, found.failing
    return Run(runner, entity, found.verdict, *counts, start, end, found.rule)


test_runs.__test__ = False  # type: ignore[attr-defined]  # no test, in spite of its name


# -- what is started --------------------------------------------------------------------------------------------


def _expand(found: Sequence[Step], depth: int) -> list[Step]:
    """The steps with the text of `bash -c TEXT` in the place of the shell that runs it."""
    out: list[Step] = []
    for step in found:
        words, _, limited = _unprefixed(step.words)
        at = next((i for i, word in enumerate(words) if re.fullmatch("-[a-z]*c", word)), len(words))
        if (
            words
            and words[0].rpartition("/")[2] in _SHELLS
            and at + 1 < len(words)
            and depth < 5
            and not limited
        ):
            out += _expand(steps(words[at + 1], step), depth + 1)
        else:
            out.append(step)
    return out


def _unprefixed(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    """The words after assignments and launchers, the assignments, and whether a time limit is set."""
    env: list[str] = []
    limited = False
    i = 0
    while i < len(words):
        name = words[i].rpartition("/")[2]
        if _ASSIGNMENT.match(words[i]):
            env.append(words[i])
        elif name in _PREFIXES:
            while i + 1 < len(words) and words[i + 1].startswith("-"):
                i += 2 if words[i + 1] in _PREFIXES[name] else 1
            if name.endswith("timeout"):
                limited = True
                i += 1
        else:
            break
        i += 1
    return words[i:], tuple(env), limited


def _started(step: Step) -> _Started | None:
    """The run that this step starts."""
    words, env, limited = _unprefixed(step.words)
    place = [
        f"cd={shlex.quote(path.rstrip('/') or path)}"
        for path in step.directory
        if path not in (".", "./")
    ]
    place += [shlex.quote(x) for x in env if x.startswith(("PYTEST_ADDOPTS=", "GOFLAGS="))]
    if len(words) > 1 and words[0] in _RUNNERS and words[1] == "run":
        words, more = pytest_runs.launched(words[2:])
        place += more
    words = pytest_runs.unlaunched(words)
    name = words[0].rpartition("/")[2] if words else ""
    run = _Started("", (), step, limited=limited)
    if name in ("pytest", "py.test", "pytest-3"):
        chosen = pytest_runs.scope(words[1:])
        if chosen is None:
            return None
        return replace(run, runner="pytest", scope=(*place, *chosen[0]), stops=chosen[1])
    if name == "go" and words[1:2] == ("-C",):
        place.append(f"cd={shlex.quote(words[2])}" if len(words) > 2 else "cd=?")
        words = (words[0], *words[3:])
    if (name == "go" and words[1:2] == ("test",)) or name == "gotestsum":
        go = gotest.scope(words[2:]) if name == "go" else gotest.summed(words[1:])
        if go is None:
            return None
        return replace(
            run, runner="go test", scope=(*place, *go.parts), single=go.single, verbose=go.verbose
        )
    task = _task(words, name)
    if task not in ("", "test"):
        place.append(shlex.join(words).removeprefix("./"))
    return replace(run, scope=tuple(place), task=task) if task else None


def _task(words: tuple[str, ...], name: str) -> str:
    """ "test" for a plain test task, the task's words for another that says test, "" for what is none."""
    if name in _SHELLS and len(words) > 1 and not words[1].startswith("-"):
        words, name = words[1:], ""
    if name not in _TASKS:
        script = bool(words) and "/" in words[0] and not name.endswith((".py", ".txt", ".log"))
        script = script or bool(words and re.search(r"\.sh$", words[0]))
        return (
            " ".join(words)
            if script and _TESTLIKE.search(words[0].rpartition("/")[2].removesuffix(".sh"))
            else ""
        )
    args = [
        word
        for word in words[1:]
        if word not in ("-s", "--silent", "-q", "--quiet", "-B", "-k", "--no-print-directory")
    ]
    if args[:1] in (["run"], ["r"]) or (name == "npm" and args[:1] == ["run-script"]):
        args = args[1:]
    if name in ("tox", "nox"):
        return (
            "test"
            if not args
            else ""
            if {"-l", "--list", "-h", "--help", "--version"} & set(args)
            else " ".join(args)
        )
    if args == ["test"] or (args == ["t"] and name == "npm"):
        return "test"
    tasks = args[: args.index("--")] if "--" in args else args
    said = any(
        _TESTLIKE.search(word) for word in tasks if not word.startswith("-") and "=" not in word
    )
    return " ".join(args) if said and not {"-n", "--dry-run", "--help", "-h"} & set(args) else ""


# -- what is shown ----------------------------------------------------------------------------------------------


def _files(step: Step) -> list[str]:
    """The files that keep the step's output."""
    kept = [step.out] if step.out is not None else []
    return kept + [word for x in step.filters if x.words[:1] == ("tee",) for word in x.words[1:]]


def _displays(step: Step, file: str) -> Command | None:
    """The filter that `tail -5 FILE` is to what was written to FILE."""
    if (
        step.piped
        or step.out is not None
        or file not in step.words[1:]
        or step.words[0] not in _PRINTERS
    ):
        return None
    rest = tuple(word for word in step.words if word != file)
    plain = [word for word in rest[1:] if not word.startswith("-") and not word.isdigit()]
    return (
        Command(rest)
        if len(plain) <= (step.words[0] in ("grep", "egrep", "rg", "sed", "awk"))
        else None
    )


def _shown_later(whole: Sequence[Step], run: _Started) -> _Started:
    """A run that writes to a file which a later step displays, as if it were piped into that step."""
    out = run.step.out
    if out is None or out.startswith(("&", "/dev/")) or sum(step.out == out for step in whole) > 1:
        return run
    shown = [(step, x) for step in whole[run.at + 1 :] if (x := _displays(step, out)) is not None]
    if not shown:
        return run
    step, command = shown[0]
    filters = (command, *step.filters) if len(shown) == 1 else (Command(("sort",)),)
    return replace(run, step=replace(run.step, out=None, filters=filters, zero=False, last=False))


def _prints(step: Step, kept: set[str]) -> bool:
    """Could this step print lines that look like a runner's, without being one?"""
    words, _, _ = _unprefixed(step.words)
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
    if words[0] not in _PRINTERS or any(_displays(step, file) for file in kept):
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


def _sections(whole: Sequence[Step], lines: Sequence[Line]) -> list[tuple[range, Sequence[Line]]]:
    """The steps and the lines between the texts that `echo` printed, where those are found without doubt."""
    cuts = [(0, 0)]
    where: dict[str, list[int]] = {}
    for i, line in enumerate(lines):
        where.setdefault(line.text, []).append(i)
    for at, step in enumerate(whole):
        text = " ".join(step.words[1:]).rstrip()
        if (
            step.words[:1] != ("echo",)
            or step.piped
            or step.out is not None
            or step.filters
            or len(text) < 3
        ):
            continue
        found = where.get(text, ())
        if (
            len(found) == 1
            and found[0] >= cuts[-1][1]
            and not text.startswith("-n ")
            and text not in ("FAIL", "PASS")
        ):
            cuts.append((at + 1, found[0] + 1))
    ends = [*cuts[1:], (len(whole), len(lines))]
    return [(range(a, c), lines[b:d]) for (a, b), (c, d) in zip(cuts, ends, strict=True)]


# -- the verdict ------------------------------------------------------------------------------------------------


def _judge(
    runner: str, runs: Sequence[_Started], lines: Sequence[Line], status: _Status
) -> list[tuple[_Started, Finding]]:
    out: list[tuple[_Started, Finding]] = []
    visible: list[tuple[_Started, View]] = []
    for run in runs:
        view = gotest.view(run.step.filters, lines)
        if run.step.out is None and view.lines:
            visible.append((run, view))
        elif run.runner and (found := _silent(run, status)) is not None:
            out.append((run, found))
    if len(visible) == 1:
        parts = [lines]
    else:
        parts = _parts(runner, [run for run, _ in visible], lines)
    for (run, view), part in zip(visible, parts, strict=False):
        found = _find(runner, run, part, view, status)
        if found is not None and not _contradicts(run, found, lines, status.code):
            out.append((run, found))
    # Fewer results than runs: only a failure that stopped the chain accounts for the rest.
    if 0 < len(parts) < len(visible) and not (
        out and out[-1][0] is visible[len(parts) - 1][0] and out[-1][1].verdict == "failed"
    ):
        return []
    return out


def _parts(runner: str, runs: Sequence[_Started], lines: Sequence[Line]) -> list[Sequence[Line]]:
    """The lines of each of several runs, divided after their results; [] when that cannot be done honestly."""
    if any(not run.runner or (runner == "go test" and not run.single) for run in runs):
        return []
    if runner == "pytest":
        ends = [i for i, line in enumerate(lines) if pytest_runs.summary(line.text) is not None]
    else:
        ends = gotest.results(lines)
    chained = all(run.step.before == "&&" for run in runs[1:])
    if len(ends) > len(runs) or (len(ends) < len(runs) and not chained):
        return []
    return [
        lines[a:b] for a, b in zip([0, *(x + 1 for x in ends)], [x + 1 for x in ends], strict=False)
    ]


def _find(
    runner: str, run: _Started, lines: Sequence[Line], view: View, status: _Status
) -> Finding | None:
    green = status.code == 0 and run.step.zero
    if runner == "pytest":
        return pytest_runs.find(lines, many=bool(run.task), stops=run.stops, green=green)
    sure = status.code is not None and (green or not run.limited)
    return gotest.find(lines, view, single=run.single, verbose=run.verbose, sure=sure)


def _contradicts(run: _Started, found: Finding, lines: Sequence[Line], code: int | None) -> bool:
    """Does the status, or the task that printed the run, say otherwise?"""
    if found.verdict == "failed":
        return code == 0 and run.step.zero
    if run.step.last and code not in (0, None):
        return True
    words = set(run.task.split())
    return any(
        re.search(r"ERROR|\*\*\*|npm err", line.text, re.IGNORECASE)
        and words & set(re.findall(r"[\w:.-]+", line.text))
        for line in (lines if run.task else ())
    )


def _silent(run: _Started, status: _Status) -> Finding | None:
    """The verdict of a run whose output went elsewhere, by a status that is its own."""
    first = status.lines[0]
    exits = _EXIT_LINE.fullmatch(first.text) is not None
    cited = first if exits else Line("", 0, 0)
    if not run.step.alone or any(line.text for line in status.lines[exits:]):
        return None  # what is printed may be the reason why no test ran
    # 0 of `go test` may mean that there were no tests; pytest has a status of its own for that.
    if status.code == 0 and run.step.zero and run.runner == "pytest":
        return Finding("passed", cited, cited, "exit-status", failed=0, failing=())
    if status.code == 1 and run.step.last:
        return Finding("failed", cited, cited, "exit-status")
    return None
