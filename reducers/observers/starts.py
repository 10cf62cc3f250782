"""What a command line starts: test runs with their normalised scope, and tasks that plainly say test.

Rule: launchers and assignments are taken off, `bash -c TEXT` is read as TEXT, and what is left names the run: pytest,
go test, or a task (then only its output can tell the runner). A run of less than the whole suite has its scope in its
parts; a directory or a setting that changes what is run is a part too.

Invariants: pure; linear in the words. Refuses: what runs no test (help, lists, dry runs).
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from . import gotest, pytest_runs
from .shellwords import Step, steps

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
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


@dataclass(frozen=True, slots=True)
class Started:
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


def expand(found: Sequence[Step], depth: int) -> list[Step]:
    """The steps with the text of `bash -c TEXT` in the place of the shell that runs it."""
    out: list[Step] = []
    for step in found:
        words, _, limited = unprefixed(step.words)
        at = next((i for i, word in enumerate(words) if re.fullmatch("-[a-z]*c", word)), len(words))
        if (
            words
            and words[0].rpartition("/")[2] in _SHELLS
            and at + 1 < len(words)
            and depth < 5
            and not limited
        ):
            out += expand(steps(words[at + 1], step), depth + 1)
        else:
            out.append(step)
    return out


def unprefixed(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
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


def start_of(step: Step) -> Started | None:
    """The run that this step starts."""
    words, env, limited = unprefixed(step.words)
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
    run = Started("", (), step, limited=limited)
    if name in ("pytest", "py.test", "pytest-3"):
        chosen = pytest_runs.scope(words[1:])
        if chosen is None:
            return None
        return replace(run, runner="pytest", scope=(*place, *chosen[0]), stops=chosen[1])
    if name == "go" and words[1:2] == ("-C",):
        place += [f"cd={shlex.quote(folder)}" for folder in words[2:3] or ("?",)]
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


def _task(words: Sequence[str], name: str) -> str:
    """ "test" for a plain test task, the task's words for another that says test, "" for what is none."""
    if not words:
        return ""
    if name in _SHELLS and len(words) > 1 and not words[1].startswith("-"):
        words, name = words[1:], ""
    if name not in _TASKS:
        script = "/" in words[0] and not name.endswith((".py", ".txt", ".log"))
        script = script or words[0].endswith(".sh")
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
