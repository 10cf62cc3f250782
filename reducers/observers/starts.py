"""What a command line starts: test runs with their normalised scope, and tasks that plainly say test.

Rule: launchers and assignments are taken off, `bash -c TEXT` is read as TEXT, and what is left names the run: pytest,
go test, or a task (then only its output can tell the runner). A run of less than the whole suite has its scope in its
parts; a directory or a setting that changes what is run is a part too.

Invariants: pure; linear in the words. Refuses: what runs no test (help, lists, dry runs).
"""

import posixpath
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...events.quick import quick
from . import gotest, pytest_runs
from .shellwords import Step, steps

# Settings that change no choice of tests; every other one belongs to the scope.
_HARMLESS = frozenset(
    "PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED PYTHONIOENCODING PYTHONUTF8 NO_COLOR CI FORCE_COLOR CLICOLOR"
    " CLICOLOR_FORCE PY_COLORS TERM COLUMNS LINES LANG LC_ALL GOCACHE GOMODCACHE GOTMPDIR GOPROXY GOSUMDB CGO_ENABLED"
    " TMPDIR PIP_CACHE_DIR UV_CACHE_DIR UV_LINK_MODE VIRTUAL_ENV DEBIAN_FRONTEND PAGER GIT_PAGER".split()
)
_SILENT = frozenset(
    "cd pushd popd export unset set source . true false : test [ mkdir rmdir rm cp mv touch chmod ln sleep ulimit umask"
    " wait alias hash kill tee sed exit".split()
)
# Programs that show what is in files: what is shown must be looked at.
PRINTERS = frozenset(
    "cat grep egrep fgrep rg tail head sed awk less more bat jq find diff strings tac nl".split()
)
# Programs that print, but never a line like those of a test runner.
_TAME = frozenset(
    "ruff mypy pyright black isort flake8 pylint eslint prettier tsc biome golangci-lint gofmt goimports staticcheck ls"
    " pwd date wc du df stat file which type uname id hostname pip pip3 echo printf xargs".split()
)
_TAME_SUB = {
    "go": frozenset("build vet mod fmt generate install get env version list clean".split()),
    "git": frozenset(
        "status add commit stash checkout switch restore reset branch fetch pull push rev-parse".split()
    ),
    "coverage": frozenset("report html xml json combine erase".split()),
    "uv": frozenset("sync pip lock add venv".split()),
    "poetry": frozenset("install lock add".split()),
}
_TAME_TASK = re.compile(
    r"(?:lint|fmt|format|type-?check|check-types|mypy|ruff|vet|install|ci|add|i|sync|tidy|build|clean|generate)"
    r"(?::[\w:-]+)?"
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_TESTLIKE = re.compile(r"(?:^|[:_./-])(?:tests?|check|pytest|ci)(?=$|[:_./-])")
_SIGNS = re.compile("test|check|tox|nox|ci|npm")
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


@quick
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


def may_start(command: str) -> bool:
    """Whether a command line may start a run at all: each that does has one of a few texts among its words."""
    words = command.replace('"', "").replace("'", "")
    return "\\" in words or _SIGNS.search(words) is not None


def expand(found: Sequence[Step], depth: int) -> list[Step]:
    """The steps with the text of `bash -c TEXT` in the place of the shell that runs it."""
    out: list[Step] = []
    for step in found:
        words, env, limited = unprefixed(step.words)
        at = next((i for i, word in enumerate(words) if re.fullmatch("-[a-z]*c", word)), len(words))
        if (
            words
            and words[0].rpartition("/")[2] in _SHELLS
            and at + 1 < len(words)
            and depth < 5
            and not limited
        ):
            out += expand(steps(words[at + 1], replace(step, env=step.env + env)), depth + 1)
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


def start_of(step: Step, cwd: str | None = None, home: str | None = None) -> Started | None:
    """The run that this step starts; `cwd` and `home`: the directories of the call and of the whole session."""
    words, env, limited = unprefixed(step.words)
    place = [f"cd={shlex.quote(path)}" for path in _places(step.directory, cwd, home)]
    place += sorted({shlex.quote(x) for x in (*step.env, *env) if not _harmless(x)})
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
            name
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


def _harmless(assignment: str) -> bool:
    name, _, value = assignment.partition("=")
    return name.rstrip("+") in _HARMLESS or (name == "PATH" and "$PATH" in value)


def _places(directory: tuple[str, ...], cwd: str | None, home: str | None) -> list[str]:
    """The directories that lead from the session's own one to that of a run."""
    unclear = any(path.startswith(("~", "-")) or "$" in path or "`" in path for path in directory)
    start = cwd or (home if directory and directory[0].startswith("/") else None)
    if home is None or start is None or unclear or not home.startswith("/"):
        moved = [cwd] if cwd and home and cwd != home else []
        return [
            path.rstrip("/") or path for path in (*moved, *directory) if path not in (".", "./")
        ]
    base, place = posixpath.normpath(home), posixpath.normpath(posixpath.join(start, *directory))
    if place == base:
        return []
    inside = base.rstrip("/") + "/"
    return [place.removeprefix(inside) if place.startswith(inside) else place]


def revised(earlier: Sequence[Step]) -> tuple[str, ...]:
    """The commands before a run that put another revision of the files in the place of the present one."""
    found: list[str] = []
    for step in earlier:
        words = list(unprefixed(step.words)[0])
        if words[:1] != ["git"]:
            continue
        words = [word for word in words[1:] if word != "--no-pager"]
        while words[:1] in (["-C"], ["-c"]):
            words = words[2:]
        name, rest = words[0] if words else "", words[1:]
        if name == "stash" and rest[:1] in (["pop"], ["apply"]):
            found = [x for x in found if x != "git stash"]
        elif (name == "stash" and rest[:1] in ([], ["push"], ["save"])) or (
            name == "stash" and rest[0][:1] == "-"
        ):
            found.append("git stash")
        elif name == "reset" and {"--hard", "--keep", "--merge"} & set(rest):
            found.append(shlex.join(["git", name, *rest]))
        elif name in ("checkout", "switch", "restore"):
            fresh = len(rest) == 2 and rest[0] in ("-b", "-B", "-c", "-C")
            found += [] if fresh else [shlex.join(["git", name, *rest])]
    return tuple(f"after={shlex.quote(x)}" for x in found)


def loudness(step: Step) -> int:
    """What this step, no test run, adds to the output: 0 nothing, 1 no line like a runner's, 2 nobody knows."""
    words, _, _ = unprefixed(step.words)
    if not words or step.piped or step.out is not None:
        return 0
    if len(words) > 1 and words[0] in _RUNNERS and words[1] == "run":
        words = pytest_runs.launched(words[2:])[0]
    words = pytest_runs.unlaunched(words) or ("?",)
    name, rest = words[0].rpartition("/")[2], words[1:]
    if name in _SILENT or name in PRINTERS:
        return 0
    operands = [word for word in rest if not word.startswith("-")]
    if name in _TAME or (name in _TAME_SUB and operands[:1] and operands[0] in _TAME_SUB[name]):
        return 1
    if name == "git":
        brief = {"--stat", "--oneline", "--name-only", "--shortstat", "--quiet"} & set(rest)
        return 1 if brief and operands[:1] in (["log"], ["show"], ["diff"]) else 2
    tasks = [word for word in operands if word not in ("run", "run-script")]
    tame = name in _TASKS and tasks and all(map(_TAME_TASK.fullmatch, tasks))
    return 1 if tame else 2
