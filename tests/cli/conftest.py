"""The command line as a user meets it: a process of its own, a real store, its exit code and both of its outputs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHOPCART = ROOT / "examples" / "shopcart.jsonl"
SESSION = "589f58b8"
SECONDS = 60


class Ran(NamedTuple):
    """How a process ended."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        """Stdout as text."""
        return self.out.decode("utf-8")

    @property
    def json(self) -> dict[str, Any]:
        """Stdout as the one JSON object in ASCII that it must be."""
        assert self.out.isascii()
        assert self.out.endswith(b"\n")
        assert self.out.count(b"\n") == 1

        def refuse(name: str) -> None:
            raise AssertionError(f"{name} is no JSON")

        found = json.loads(self.out, parse_constant=refuse)
        assert isinstance(found, dict)
        return found


Run = Callable[..., Ran]


def environment(**more: str) -> dict[str, str]:
    """The environment without what would change the output."""
    gone = ("EF_STORE", "EF_DEBUG", "NO_COLOR", "COLUMNS", "XDG_DATA_HOME")
    return {k: v for k, v in os.environ.items() if k not in gone} | more


def python(
    words: list[str | bytes], cwd: Path = ROOT, env: dict[str, str] | None = None, **more: Any
) -> Ran:
    done = subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env=environment(**(env or {})),
        timeout=SECONDS,
        check=False,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
    )
    return Ran(done.returncode, done.stdout or b"", (done.stderr or b"").decode("utf-8"))


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the example session; nobody writes to it."""
    store = tmp_path_factory.mktemp("cli") / "store"
    done = python(["-m", "ef", "--store", str(store), "import", str(SHOPCART)])
    assert done.code == 0, done.err
    return store


@pytest.fixture
def copied(imported: Path, tmp_path: Path) -> Path:
    """A copy of that store, to write to or to break."""
    return Path(shutil.copytree(imported, tmp_path / "store"))


@pytest.fixture
def ef(imported: Path) -> Run:
    """Run `ef` on the example store, or on `store`."""

    def run(*words: str | bytes, store: Path | str | None = imported, **more: Any) -> Ran:
        where = [] if store is None else ["--store", str(store)]
        return python(["-m", "ef", *where, *words], **more)

    return run


@pytest.fixture
def scripted() -> Run:
    """Run `ef` with one of its worker modules replaced by a script's functions: `script` defines them."""

    def run(script: str, *words: str, **more: Any) -> Ran:
        return python(["-c", staged(script), *words], **more)

    return run


def staged(script: str) -> str:
    """The command line of `ef state …`, its work done by the function `state` of a script. All else is real."""
    return (
        "import sys, types\n"
        "from ef.cli import main\n"
        f"stage = types.ModuleType('ef.cli.do_session')\nexec({script!r}, stage.__dict__)\n"
        "sys.modules['ef.cli.do_session'] = stage\n"
        "sys.exit(main())\n"
    )
