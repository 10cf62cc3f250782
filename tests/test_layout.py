"""What is installed: one name, `ef`, with every file of the two root folders, from a build without links.

Two root folders are real and `ef/` links to them. A build that follows the links, or one that forgets them,
makes a wheel that imports here and fails elsewhere. So the sdist is built, the wheel is built from that
sdist, and what is in it is compared with the checkout and run.
"""

from __future__ import annotations

import configparser
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("reducers", "projections")


def python(*args: str, cwd: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COV", "EF_"))}
    if path is not None:
        env["PYTHONPATH"] = str(path)
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    return subprocess.run(
        [sys.executable, *args], cwd=cwd, env=env, capture_output=True, text=True, timeout=300
    )


def files_of(folder: Path) -> set[str]:
    """Each file below a folder, as a relative path; caches are not files of ours."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    }


def below(names: list[str], folder: str) -> set[str]:
    return {n.removeprefix(f"{folder}/") for n in names if n.startswith(f"{folder}/")}


def build(target: str, source: Path, out: Path) -> Path:
    """Build with the hatchling of this environment: no network, no second environment."""
    done = python("-m", "hatchling", "build", "-t", target, "-d", str(out), cwd=source)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = out.iterdir()
    return made


class Built(NamedTuple):
    sdist: tarfile.TarFile
    sdist_files: list[str]
    wheel: zipfile.ZipFile
    wheel_files: list[str]
    unpacked: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Built]:
    base = tmp_path_factory.mktemp("build")
    with tarfile.open(build("sdist", ROOT, base / "sdist")) as sdist:
        if hasattr(tarfile, "data_filter"):  # 3.11.4 and newer
            sdist.extractall(base / "source", filter="data")
        else:
            sdist.extractall(base / "source")
        (source,) = (base / "source").iterdir()
        with zipfile.ZipFile(build("wheel", source, base / "wheel")) as wheel:
            wheel.extractall(base / "unpacked")
            yield Built(
                sdist=sdist,
                sdist_files=[m.name.split("/", 1)[1] for m in sdist.getmembers() if not m.isdir()],
                wheel=wheel,
                wheel_files=[n for n in wheel.namelist() if not n.endswith("/")],
                unpacked=base / "unpacked",
            )


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_link_in_ef_is_relative_and_leads_to_the_root_folder(folder: str) -> None:
    link = ROOT / "ef" / folder
    assert link.is_symlink()
    assert os.readlink(link) == f"../{folder}"
    assert not (ROOT / folder).is_symlink()


@pytest.mark.parametrize("folder", FOLDERS)
def test_pyright_is_told_to_look_behind_the_link(folder: str) -> None:
    """By itself it does not, and says nothing: a third of the library would go unchecked."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert f"ef/{folder}" in project["tool"]["pyright"]["include"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_sdist_has_every_file_of_a_root_folder(built: Built, folder: str) -> None:
    assert below(built.sdist_files, folder) == files_of(ROOT / folder)


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_wheel_from_the_sdist_has_every_file_of_a_root_folder(
    built: Built, folder: str
) -> None:
    assert below(built.wheel_files, f"ef/{folder}") == files_of(ROOT / folder)


def test_the_wheel_has_every_file_of_ef(built: Built) -> None:
    own = {name for name in files_of(ROOT / "ef") if not name.startswith(FOLDERS)}
    packed = {name for name in below(built.wheel_files, "ef") if not name.startswith(FOLDERS)}
    assert packed == own
    assert "py.typed" in packed


def test_no_distribution_holds_a_link_or_a_file_twice(built: Built) -> None:
    assert not [m.name for m in built.sdist.getmembers() if m.issym() or m.islnk()]
    assert not [i.filename for i in built.wheel.infolist() if i.external_attr >> 28 == 0xA]
    assert len(set(built.sdist_files)) == len(built.sdist_files)
    assert len(set(built.wheel_files)) == len(built.wheel_files)


def test_a_wheel_built_straight_from_the_checkout_is_the_same(built: Built, tmp_path: Path) -> None:
    def contents(wheel: zipfile.ZipFile) -> dict[str, bytes]:
        return {name: wheel.read(name) for name in wheel.namelist()}

    with zipfile.ZipFile(build("wheel", ROOT, tmp_path / "wheel")) as straight:
        assert contents(straight) == contents(built.wheel)


def test_only_the_name_ef_is_installed(built: Built) -> None:
    tops = {name.split("/", 1)[0] for name in built.wheel_files}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"ef"}


def test_the_wheel_brings_the_command_and_the_licences(built: Built) -> None:
    (entry_points,) = (n for n in built.wheel_files if n.endswith("/entry_points.txt"))
    parsed = configparser.ConfigParser()
    parsed.read_string(built.wheel.read(entry_points).decode())
    assert dict(parsed["console_scripts"]) == {"ef": "ef.cli:main"}
    for licence in ("LICENSE", "THIRD_PARTY_NOTICES.md"):
        assert [n for n in built.wheel_files if n.endswith(f".dist-info/licenses/{licence}")]


def runtime_packages() -> set[str]:
    """What is installed for users: the dependencies of pyproject.toml and what those need in turn."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names: set[str] = set()
    queue = list(project["dependencies"])
    while queue:
        requirement = Requirement(queue.pop())
        name = requirement.name.lower().replace("_", "-")
        here = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if here and name not in names:
            names.add(name)
            queue += metadata.requires(requirement.name) or []
    return names


def test_every_package_that_users_get_is_explained_and_its_licence_named() -> None:
    notices = (ROOT / "THIRD_PARTY_NOTICES.md").read_text(encoding="utf-8")
    assert {n for n in runtime_packages() if not re.search(rf"^\| {n}\b", notices, re.M)} == set()
    page = (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for requirement in project["dependencies"]:
        name, _, bounds = requirement.partition(">=")
        assert f"### {name} `>={bounds}`" in page


def test_what_the_wheel_holds_can_be_imported_elsewhere(built: Built, tmp_path: Path) -> None:
    """Every module below ef, with nothing of the checkout on the path."""
    script = (
        "import importlib, pkgutil, ef\n"
        "names = [m.name for m in pkgutil.walk_packages(ef.__path__, 'ef.')]\n"
        "for name in names:\n"
        "    if not name.endswith('__main__'): importlib.import_module(name)\n"
        "print(ef.__file__); print(*names)"
    )
    done = python("-c", script, cwd=tmp_path, path=built.unpacked)
    assert done.returncode == 0, done.stderr
    where, names = done.stdout.splitlines()
    assert Path(where).is_relative_to(built.unpacked)
    assert {"ef.reducers", "ef.projections"} <= set(names.split())


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_bare_import_of_a_root_folder_fails_loudly_and_makes_no_twins(folder: str) -> None:
    """Twin classes are the silent harm: isinstance fails between ef.reducers.X and reducers.X."""
    inner = sorted(p.stem for p in (ROOT / folder).glob("*.py") if p.stem != "__init__")
    for name in (folder, *(f"{folder}.{stem}" for stem in inner[:1])):
        script = (
            "import sys, importlib\n"
            f"try: importlib.import_module({name!r})\n"
            "except ImportError as e: print('refused', e)\n"
            f"print(*[m for m in sys.modules if m.split('.')[0] in ({folder!r}, 'errors')])"
        )
        done = python("-c", script, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        refused, twins = done.stdout.splitlines()
        assert refused.startswith("refused attempted relative import")
        assert twins == ""
        # Without the guard it must be visible to whoever typed it, as a failure.
        assert python("-c", f"import {name}", cwd=ROOT).returncode == 1


def test_the_link_and_the_root_folder_are_one_module() -> None:
    script = (
        "import ef.reducers, ef.projections, ef.errors, sys\n"
        "errors = [v for m in (ef.reducers, ef.projections) for v in vars(m).values()\n"
        "    if getattr(v, '__name__', '') == 'EfError']\n"
        "print(len(errors), {ef.errors.EfError} == set(errors))\n"
        "print(*[m for m in sys.modules if m.split('.')[0] in ('reducers', 'projections')])"
    )
    done = python("-c", script, cwd=ROOT)
    assert done.stdout == "2 True\n\n", done.stderr


def test_importing_ef_prints_nothing_writes_nothing_and_loads_no_engine(tmp_path: Path) -> None:
    script = (
        "import os, sys\n"
        "class Env(dict):\n"
        "    def __getitem__(self, k): raise SystemExit(f'environment read: {k}')\n"
        "    get = __contains__ = __getitem__\n"
        "os.environ = Env()\n"
        "import ef\n"
        "heavy = {'lmdb', 'eventsourcing', 'pydantic', 'cbor2', 'asyncio', 'ef.session', 'ef.log'}\n"
        "sys.exit(' '.join(sorted(heavy & set(sys.modules))) or 0)"
    )
    done = python("-B", "-c", script, cwd=tmp_path, path=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not list(tmp_path.iterdir())
