"""The floors: imports go down only, and a pure floor reaches nothing outside its arguments.

The contracts of import-linter say who may import whom. Here they are run, and shown to find a violation that
is planted, also one behind the linked folders. What import-linter cannot see (a clock, an id source, a
disk, the environment) is kept out of the pure floors by an allow-list of imports and a list of names.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

PURE_FLOORS = (
    "errors", "events", "codec", "readers", "reducers", "projections", "render", "meter", "policy",
)  # fmt: skip

ALLOWED = frozenset(
    """
    __future__ abc base64 bisect blake3 cbor2 collections contextlib copy dataclasses datetime enum fnmatch
    functools hashlib heapq html itertools json math numbers operator posixpath re shlex string struct
    textwrap types typing unicodedata urllib.parse zlib ef
    """.split()
)

# Allowed from a module that is otherwise forbidden: paths as values, without a disk behind them.
ALLOWED_NAMES = {"pathlib": frozenset({"PurePath", "PurePosixPath", "PureWindowsPath"})}

# What a pure floor may not call: the world, and what differs between two runs of the same program.
FORBIDDEN_CALLS = frozenset(
    "open input print breakpoint eval exec compile __import__ globals id vars".split()
)
FORBIDDEN_ATTRIBUTES = frozenset({"now", "today", "utcnow", "localtime"})


def modules_of(floor: str) -> list[Path]:
    """The modules of a floor; the two root folders are floors of ef as well. A floor may not exist yet."""
    for base in (ROOT / "ef" / floor, ROOT / floor):
        if base.is_dir() and not base.is_symlink():
            return sorted(base.rglob("*.py"))
    single = ROOT / "ef" / f"{floor}.py"
    return [single] if single.is_file() else []


def imported(tree: ast.AST) -> Iterator[tuple[int, str, str | None]]:
    """Line, module and name of each absolute import, wherever in the module it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, None
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            for alias in node.names:
                yield node.lineno, node.module or "", alias.name


def is_allowed(module: str, name: str | None) -> bool:
    if name is not None and name in ALLOWED_NAMES.get(module, ()):
        return True
    parts = module.split(".")
    return any(".".join(parts[: n + 1]) in ALLOWED for n in range(len(parts)))


def hash_methods(tree: ast.AST) -> set[ast.AST]:
    """Nodes inside a __hash__: hash() differs between processes, and only there is that no harm."""
    return {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name == "__hash__"
        for inner in ast.walk(node)
    }


def impurities(source: str) -> list[str]:
    """Why a module is not pure, one line for each reason."""
    tree = ast.parse(source)
    found = [
        f"line {line}: imports {module}{'.' + name if name else ''}"
        for line, module, name in imported(tree)
        if not is_allowed(module, name)
    ]
    in_hash = hash_methods(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called = node.func.id
            if called in FORBIDDEN_CALLS or (called == "hash" and node not in in_hash):
                found.append(f"line {node.lineno}: calls {called}()")
        elif isinstance(node, ast.Attribute) and node.attr in FORBIDDEN_ATTRIBUTES:
            found.append(f"line {node.lineno}: uses .{node.attr}")
    return found


@pytest.mark.parametrize("floor", PURE_FLOORS)
def test_a_pure_floor_reaches_no_clock_no_chance_no_disk_and_no_environment(floor: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {reason}"
        for path in modules_of(floor)
        for reason in impurities(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import os.path",
        "from random import random",
        "from uuid import uuid4",
        "import pydantic",
        "from pathlib import Path",
        "import urllib.request",
        "def late():\n    import socket",
        "from datetime import datetime\nx = datetime.now()",
        "import datetime\nx = datetime.date.today",
        "x = open('f')",
        "x = hash('f')",
        "x = id(object())",
        "print('x')",
    ],
)
def test_an_impure_module_is_found(source: str) -> None:
    assert len(impurities(source)) == 1


def test_a_pure_module_is_not_accused() -> None:
    assert not impurities(
        "from __future__ import annotations\n"
        "import re, json, hashlib\n"
        "from collections.abc import Mapping\n"
        "from datetime import UTC, datetime\n"
        "from pathlib import PurePosixPath\n"
        "from urllib.parse import urlsplit\n"
        "from ..events import items\n"
        "from ef.errors import EfError\n"
        "class K:\n    def __hash__(self) -> int:\n        return hash(('k', 1))\n"
        "def f(text: str) -> str:\n    return re.sub('a', 'b', text).open\n"
    )


def test_pure_floors_are_there_to_be_checked() -> None:
    """A floor that moved would be checked as an empty list."""
    for floor in ("errors", "events", "codec", "readers", "reducers", "projections", "render"):
        assert modules_of(floor), floor


# ------------------------------------------------------------------------------------------ one place for each engine


def importers_of(package: str, root: Path = ROOT) -> set[str]:
    """The modules of the library that import a package, as paths."""
    return {
        path.relative_to(root).as_posix()
        for folder in ("ef", "reducers", "projections")
        for path in (root / folder).rglob("*.py")
        if any(
            module.split(".")[0] == package
            for _, module, _ in imported(ast.parse(path.read_text(encoding="utf-8")))
        )
    }


def test_lmdb_is_imported_in_one_module_of_the_log() -> None:
    found = importers_of("lmdb")
    assert len(found) <= 1, found
    assert all(path.startswith("ef/log/") for path in found), found


def test_a_second_module_that_imports_lmdb_is_found(tmp_path: Path) -> None:
    for folder in ("ef/log", "ef/cli", "reducers", "projections"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "ef/log/store.py").write_text("import lmdb\n")
    (tmp_path / "ef/cli/quick.py").write_text("def f():\n    from lmdb import open\n")
    assert importers_of("lmdb", tmp_path) == {"ef/log/store.py", "ef/cli/quick.py"}


@pytest.mark.parametrize("folder", ["reducers", "projections"])
def test_imports_inside_a_root_folder_are_relative(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in (ROOT / folder).rglob("*.py")
        for line, module, _ in imported(ast.parse(path.read_text(encoding="utf-8")))
        if module.split(".")[0] in ("ef", "reducers", "projections")
    ]
    assert not found, found


# --------------------------------------------------------------------------------------------------- import-linter


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    script = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    return subprocess.run(
        [sys.executable, "-B", "-c", script], cwd=root, capture_output=True, text=True, timeout=120
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The library as it is, links kept, in a place where it can be broken."""
    leave = shutil.ignore_patterns("__pycache__")
    for folder in ("ef", "reducers", "projections"):
        shutil.copytree(ROOT / folder, tmp_path / folder, symlinks=True, ignore=leave)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_imports_go_down_the_floors_only() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("module", "source", "said"),
    [
        ("reducers/zz_planted.py", "from ..log import __doc__ as _d", "ef.reducers.zz_planted"),
        ("projections/zz_planted.py", "from ..session import x", "ef.projections.zz_planted"),
        ("reducers/observers/zz_planted.py", "from ... import recall", "is not allowed to import"),
        ("ef/events/zz_planted.py", "import ef.codec", "ef.events.zz_planted"),
        ("ef/codec/zz_planted.py", "def late():\n    import ef.readers", "ef.codec.zz_planted"),
        ("ef/audit/zz_planted.py", "import ef.testing", "ef.audit.zz_planted"),
        ("ef/session/zz_planted.py", "import lmdb", "ef.session.zz_planted"),
        ("ef/zz_planted.py", "x = 1", "zz_planted"),
    ],
)
def test_a_planted_import_against_the_floors_is_found(
    checkout: Path, module: str, source: str, said: str
) -> None:
    (checkout / module).write_text(f'"""Planted."""\n\n{source}\n')
    if "recall" in source:
        (checkout / "ef/recall").mkdir(exist_ok=True)
        (checkout / "ef/recall/__init__.py").touch()
    done = lint(checkout)
    assert done.returncode != 0, done.stdout
    assert said in done.stdout, done.stdout
