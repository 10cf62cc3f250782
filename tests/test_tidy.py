"""A lint of the repository itself: what a reader relies on and no other tool checks.

Each rule is a function from text to complaints, so that each can be shown to complain about a bad snippet:
a check that cannot fail is a defect.
"""

from __future__ import annotations

import ast
import importlib
import io
import re
import subprocess
import tokenize
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parent.parent
LIBRARY = ("ef/", "reducers/", "projections/")
RECORDED = re.compile(r"tests/(fixtures|golden)/|\.jsonl$")  # what somebody said, kept as it was

LINES_MAX = 500
FUNCTION_LINES_MAX = 80
FILE_BYTES_MAX = 1_000_000
AGENTS_LINES_MAX = 80

# Written in pieces, so that this file does not hold what it looks for.
WORKPLACE = "/wo" + "rk/"
OPEN_WORK = ("TO" + "DO", "FIX" + "ME")
HOSTS = ("py" + "pi.org", "pythonhosted" + ".org", "npm" + "js.org", "debian" + ".org")


# -------------------------------------------------------------------------------------------------- what is looked at


def tracked() -> list[str]:
    """The files of the repository, also those not yet added, none that are ignored."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout.split("\0")  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        listed = [path.relative_to(ROOT).as_posix() for path in walk(ROOT)]
    return sorted({n for n in listed if n and (ROOT / n).is_file() and not (ROOT / n).is_symlink()})


def walk(folder: Path) -> Iterator[Path]:
    """Where git is not at hand: every file but caches and environments."""
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or path.name in ("__pycache__", "build", "dist", "htmlcov"):
            continue
        if path.is_dir():
            if not path.name.startswith(".") or path.name == ".ci":
                yield from walk(path)
        elif not path.name.startswith(".coverage"):
            yield path


FILES = tracked()
OURS = [name for name in FILES if not RECORDED.search(name)]
PYTHON = [name for name in OURS if name.endswith(".py")]


def read(name: str) -> str:
    """A file's text; empty where it is not text or was taken away meanwhile."""
    try:
        return (ROOT / name).read_text(encoding="utf-8")
    except (UnicodeDecodeError, FileNotFoundError):
        return ""


def complaints(names: Iterable[str], rule: Callable[[str], list[str]]) -> str:
    return "\n".join(f"{name}: {found}" for name in names for found in rule(read(name)))


# -------------------------------------------------------------------------------------------------------- the rules


def too_long(text: str) -> list[str]:
    lines = text.count("\n")
    return [f"{lines} lines, at most {LINES_MAX}"] if lines > LINES_MAX else []


def docstring_lines(node: ast.AST) -> int:
    first = node.body[0] if getattr(node, "body", None) else None
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        return (first.end_lineno or first.lineno) - first.lineno + 1
    return 0


def long_functions(text: str) -> list[str]:
    """Functions longer than a screen; their docstrings do not count."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1 - docstring_lines(node)
            if lines > FUNCTION_LINES_MAX:
                found.append(f"{node.name}: {lines} lines, at most {FUNCTION_LINES_MAX}")
    return found


def no_docstring(text: str) -> list[str]:
    """A module says what it is for. An empty file (a package that is only a folder) need not."""
    if not text.strip() or (ast.get_docstring(ast.parse(text)) or "").strip():
        return []
    return ["no module docstring"]


def open_work(text: str) -> list[str]:
    """Comments that put work off. In a string such a word may be data."""
    pattern = re.compile(rf"\b({'|'.join(OPEN_WORK)})\b")
    return [
        f"line {token.start[0]}: {token.string}"
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and pattern.search(token.string)
    ]


def tracker_words(text: str) -> list[str]:
    """Numbers of a tracker: they say nothing to who reads the file."""
    pattern = r"\b(?:issue|ticket|pull request|PR|MR)s?\s*#?\d+\b|\bGH-\d+\b|\(#\d+\)|\bcloses #\d+"
    return [f"names {m.group()!r}" for m in re.finditer(pattern, text, re.IGNORECASE)]


def workplace(text: str) -> list[str]:
    """Paths of the machine it was written on."""
    pattern = rf"(?<![\w.\-]){WORKPLACE}|/root/\."
    return [f"names {m.group()!r}" for m in re.finditer(pattern, text)]


def own_checkout(text: str) -> list[str]:
    """The same for recorded bytes, where other people's paths are data."""
    return [f"names {m.group()!r}" for m in re.finditer(rf"{WORKPLACE}(main|shared)\b", text)]


def hosts(text: str) -> list[str]:
    """Registries: the ordinary clients know where theirs is, and another place may have another."""
    return [f"names {host}" for host in HOSTS if host in text]


def has_no_tests(text: str) -> list[str]:
    """A test file holds a test function, or a class that runs a suite made elsewhere."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(
            "test"
        ):
            return []
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test") and node.bases:
            return []
    return ["no tests"]


def holds_tests(text: str) -> list[str]:
    """A file with tests that pytest would never look into."""
    return [
        f"{node.name} is never collected: name the file test_*.py"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def undocumented(package: object) -> list[str]:
    """Public functions and classes of a package without a docstring of their own."""
    return [
        name
        for name in getattr(package, "__all__", ())
        if callable(thing := getattr(package, name)) and not (thing.__doc__ or "").strip()
    ]


# ----------------------------------------------------------------------------------------------------- the repository


def test_there_are_files_to_look_at() -> None:
    assert len(PYTHON) > 10
    assert {"pyproject.toml", "Makefile", "ef/__init__.py", ".ci/run"} <= set(FILES)
    assert any(name.startswith("reducers/") for name in PYTHON)


def test_every_module_can_be_read_in_one_sitting() -> None:
    assert not complaints(PYTHON, too_long)


def test_every_function_of_the_library_fits_a_screen() -> None:
    assert not complaints((n for n in PYTHON if n.startswith(LIBRARY)), long_functions)


def test_every_module_says_what_it_is_for() -> None:
    assert not complaints(PYTHON, no_docstring)


def test_no_comment_puts_work_off() -> None:
    assert not complaints(PYTHON, open_work)


def test_no_file_names_a_tracker() -> None:
    assert not complaints(OURS, tracker_words)


def test_no_file_names_the_machine_it_was_written_on() -> None:
    assert not complaints(OURS, workplace)
    assert not complaints(FILES, own_checkout)


def test_no_file_names_a_registry() -> None:
    assert not complaints(OURS, hosts)


def test_every_test_file_has_tests_and_every_test_is_in_a_test_file() -> None:
    tests = [n for n in PYTHON if n.startswith("tests/")]
    named = [n for n in tests if Path(n).name.startswith("test_")]
    assert named
    assert not complaints(named, has_no_tests)
    assert not complaints((n for n in tests if n not in named), holds_tests)


def test_no_file_is_over_a_megabyte() -> None:
    assert not [n for n in FILES if (ROOT / n).stat().st_size > FILE_BYTES_MAX]


def test_every_public_name_says_what_it_does() -> None:
    assert not undocumented(importlib.import_module("ef"))


def test_the_page_for_newcomers_stays_short() -> None:
    assert read("AGENTS.md").count("\n") <= AGENTS_LINES_MAX


# --------------------------------------------------------------------------------------------------- each rule can fail

LONG = "def f():\n" + "    x = 1\n" * FUNCTION_LINES_MAX


@pytest.mark.parametrize(
    ("rule", "bad", "good"),
    [
        (too_long, "x = 1\n" * (LINES_MAX + 1), "x = 1\n" * LINES_MAX),
        (long_functions, LONG, LONG.removesuffix("    x = 1\n")),
        (long_functions, f"class C:\n  async {LONG}".replace("\n    ", "\n     "), "x = 1\n" * 99),
        (
            long_functions,
            "def f():\n    'd'\n" + "    x = 1\n" * 80,
            'def f():\n    """d\n\n    e"""\n',
        ),
        (no_docstring, "x = 1\n", '"""What it is."""\nx = 1\n'),
        (no_docstring, '"""  """\n', ""),
        (open_work, f"x = 1  # {OPEN_WORK[0]}: later\n", f"x = '# {OPEN_WORK[0]}: data'\n"),
        (open_work, f"# {OPEN_WORK[1]}\n", "# nothing is put off\n"),
        (tracker_words, "see " + "iss" + "ue 12", "an issue of 12 pages"),
        (tracker_words, "fixed (" + "#7)", "colour (#fff)"),
        (tracker_words, "GH" + "-7", "GHz"),
        (workplace, f"see {WORKPLACE}main", f"see https://host{WORKPLACE}main and net{WORKPLACE}x"),
        (workplace, "/ro" + "ot/.cache", "/root"),
        (own_checkout, f"cd {WORKPLACE}main", f"cd {WORKPLACE}app"),
        (hosts, f"https://{HOSTS[0]}/simple", "from the package registry"),
        (has_no_tests, "def helper(): ...\n", "def test_a(): ...\n"),
        (has_no_tests, "class TestA: ...\n", "class TestA(Suite): ...\n"),
        (holds_tests, "def test_a(): ...\n", "def a(): ...\n"),
        (
            undocumented,
            SimpleNamespace(__all__=["f"], f=lambda: 1),
            SimpleNamespace(__all__=["f", "VERSION"], f=no_docstring, VERSION="1"),
        ),
    ],
)
def test_a_rule_complains_about_what_it_is_for_and_about_nothing_else(
    rule: Callable[[object], list[str]], bad: object, good: object
) -> None:
    assert rule(bad)
    assert not rule(good)


def test_without_git_the_same_files_are_found() -> None:
    found = {path.relative_to(ROOT).as_posix() for path in walk(ROOT)}
    assert set(PYTHON) <= found
    assert not [name for name in found if "__pycache__" in name or name.startswith(".git/")]
