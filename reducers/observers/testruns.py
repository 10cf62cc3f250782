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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from . import filters, gotest, pytest_runs
from .pytest_runs import Context, Finding, Line, View, lines_of
from .shellwords import Step, steps
from .starts import Started, expand, loudness, may_start, revised, start_of

_WRAPPER = re.compile(
    r"</?(?:system-reminder|new-diagnostics|user-prompt-submit-hook|ide_[a-z_]{1,40})>"
)
_SIGN = re.compile(r"[^\n]")
_EXIT_LINE = re.compile(r"Exit code \d+")
_CUT_SHORT = re.compile(
    r"[Cc]ommand (?:timed out|was aborted|running in background)|\[Request interrupted|<persisted-output>"
    r"|Killed$|Terminated$"
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
class _Status:
    """The exit status of the whole command, and all lines of its output."""

    code: int | None
    lines: list[Line]


def test_runs(
    command: str,
    output: str,
    *,
    exit_code: int | None,
    background: bool = False,
    cwd: str | None = None,
    home: str | None = None,
) -> tuple[Run, ...]:
    """The test runs of `command` whose verdict its `output` (and unmasked status) can ground, in order.

    `cwd` is the directory of the call, `home` that of the session: a run in another one is another entity.
    """
    if background or not may_start(command):
        return ()
    whole = expand(steps(command), 0)
    started = [
        replace(run, at=at)
        for at, step in enumerate(whole)
        if (run := start_of(step, cwd, home)) is not None
    ]
    if not started or any(run.step.background for run in started):
        return ()
    lines = list(lines_of(_unwrapped(output)))
    if any(_CUT_SHORT.match(line.text) for line in (*lines[:3], *lines[-3:])):
        return ()
    started = [replace(run, scope=(*run.scope, *revised(whole[: run.at]))) for run in started]
    status = _Status(exit_code, lines)
    loud = [loudness(step) for step in whole]
    for run in started:
        loud[run.at] = 1
    found: list[tuple[Started, str, Finding]] = []
    for part, shown in _sections(whole, lines):
        here = [run for run in started if part.start <= run.at < part.stop]
        inside = [filters.shown_later(whole, run) for run in here]
        kept = {file for run in here for file in filters.files(run.step)}
        quiet = not any(filters.replays(whole[at], kept) for at in part)
        for runner in ("pytest", "go test"):
            mine = [run for run in inside if run.runner in ("", runner)]
            own = quiet and all(_is_own(runner, whole, loud, part, run, status) for run in mine)
            around = {run.at: _around(whole, loud, part, run, status) for run in mine}
            found += [
                (run, runner, x)
                for run, x in _judge(runner, mine, shown if own else [], status, around)
            ]
    found.sort(key=lambda x: x[0].at)
    return tuple(_run(output, *x) for x in found)


def _run(output: str, run: Started, runner: str, found: Finding) -> Run:
    start, end = (
        len(output[:at].encode("utf-8", "surrogatepass"))
        for at in (found.first.start, found.last.end)
    )
    entity = ":".join(filter(None, (runner.split()[0], " ".join(run.scope))))
    counts = found.passed, found.failed, found.skipped, found.failing
    return Run(runner, entity, found.verdict, *counts, start, end, found.rule)


test_runs.__test__ = False  # type: ignore[attr-defined]  # no test, in spite of its name


# -- what is shown ----------------------------------------------------------------------------------------------


def _unwrapped(output: str) -> str:
    """The output with spaces in the place of what was put into it by who ran the command."""
    parts: list[str] = []
    depth = at = 0
    for match in _WRAPPER.finditer(output):
        if match[0][1] == "/":
            if depth == 0:
                continue
            depth -= 1
        else:
            depth += 1
        if depth == (match[0][1] != "/"):  # a span starts or ends here
            piece = output[at : match.end()] if depth == 0 else output[at : match.start()]
            parts.append(_SIGN.sub(" ", piece) if depth == 0 else piece)
            at = match.end() if depth == 0 else match.start()
    rest = output[at:]
    return "".join((*parts, _SIGN.sub(" ", rest) if depth else rest))


def _is_own(
    runner: str,
    whole: Sequence[Step],
    loud: Sequence[int],
    part: range,
    run: Started,
    status: _Status,
) -> bool:
    """Is a result in this part of the output plainly this run's, and no other program's?"""
    green = status.code == 0 and run.step.zero
    if any(loud[at] == 2 for at in range(run.at + 1, part.stop)):
        return green
    before = [at for at in range(part.start, run.at) if loud[at] == 2]
    if not before or green or (status.code not in (0, None) and run.step.last):
        return True
    if runner == "pytest":
        return filters.shows_any_summary(run.step.filters)
    return all(step.before == "&&" for step in whole[before[-1] + 1 : run.at + 1])


def _around(
    whole: Sequence[Step], loud: Sequence[int], part: range, run: Started, status: _Status
) -> Context:
    later = range(run.at + 1, part.stop)
    echoes = [x for at in later for x in filters.echoed(whole[at])]
    # A task runner may print the lines of an earlier task after those of a later one.
    others = [*later, *(range(part.start, run.at) if run.task else ())]
    loose = any(loud[at] and whole[at].words[:1] != ("echo",) for at in others)
    return Context(
        green=status.code == 0 and run.step.zero,
        loose=loose,
        echoed=echoes,
        shown=partial(filters.may_show, run.step.filters),
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
    runner: str,
    runs: Sequence[Started],
    lines: Sequence[Line],
    status: _Status,
    around: Mapping[int, Context],
) -> list[tuple[Started, Finding]]:
    out: list[tuple[Started, Finding]] = []
    visible: list[tuple[Started, View]] = []
    for run in runs:
        view = filters.view(run.step.filters, lines)
        if run.step.out is None and view.lines:
            visible.append((run, view))
        elif run.runner and (found := _silent(run, status)) is not None:
            out.append((run, found))
    if len(visible) == 1:
        parts = [lines]
    else:
        parts = _parts(runner, [run for run, _ in visible], lines)
    for (run, view), part in zip(visible, parts, strict=False):
        found = _find(runner, run, part, view, status, around[run.at])
        if found is not None and not _contradicts(run, found, lines, status.code):
            out.append((run, found))
    # Fewer results than runs: only a failure that stopped the chain accounts for the rest.
    if 0 < len(parts) < len(visible) and not (
        out and out[-1][0] is visible[len(parts) - 1][0] and out[-1][1].verdict == "failed"
    ):
        return []
    return out


def _parts(runner: str, runs: Sequence[Started], lines: Sequence[Line]) -> list[Sequence[Line]]:
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
    runner: str,
    run: Started,
    lines: Sequence[Line],
    view: View,
    status: _Status,
    around: Context,
) -> Finding | None:
    if runner == "pytest":
        around = replace(around, end=view.end)
        return pytest_runs.find(lines, around, many=bool(run.task), stops=run.stops)
    sure = status.code is not None and (around.green or not run.limited)
    return gotest.find(lines, view, around, single=run.single, verbose=run.verbose, sure=sure)


def _contradicts(run: Started, found: Finding, lines: Sequence[Line], code: int | None) -> bool:
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


def _silent(run: Started, status: _Status) -> Finding | None:
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
