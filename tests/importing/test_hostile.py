"""No file of any format, however it is broken, ends in anything but an import or a refusal; see docs/hostile-input.md.

For each case and format: the outcome is the committed one, the bytes come out as they went in, importing again adds
nothing, the store is sound, and each record that the case did not break comes in as it does from the seed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ef
from ef.errors import InputRefused
from ef.importers.formats import Format, Head, format_of, names
from ef.testing.tallies import items
from tests.importing.hostile import SEED_NAMES, joined, seeds
from tests.importing.hostile_cases import CASES
from tests.importing.hostile_runs import OUTCOMES, Ending, baseline, ending

ROOT = Path(__file__).resolve().parents[2]
SEEDS = {seed.name: seed for seed in seeds()}
NAMED = {case.name: case for case in CASES}
REFUSED_AT_MOST = 0.1


@pytest.fixture(scope="module")
def committed() -> dict[str, dict[str, str]]:
    told: dict[str, dict[str, str]] = json.loads(OUTCOMES.read_text("utf-8"))
    return told


def files_alone() -> list[Format]:
    """The formats of files; databases have cases of their own."""
    found = [form for name in names() if (form := format_of(name)) is not None]
    return [form for form in found if form.form != "database"]


def test_every_format_has_a_seed() -> None:
    assert {seed.format for seed in SEEDS.values()} == {form.name for form in files_alone()}


@pytest.mark.parametrize("name", SEED_NAMES)
def test_a_seed_is_a_session_of_its_format_alone(name: str) -> None:
    seed = SEEDS[name]
    head = Head(seed.data, seed.file, whole=True)
    assert [form.name for form in files_alone() if form.recognises(head)] == [seed.format]
    found = baseline(seed)
    assert found.format == seed.format
    assert len(found.items) >= 3
    assert found.calls >= 2
    assert found.results >= 1


@pytest.mark.parametrize("name", SEED_NAMES)
def test_every_case_ends_as_the_table_says(
    name: str, tmp_path: Path, committed: dict[str, dict[str, str]]
) -> None:
    seed = SEEDS[name]
    held = baseline(seed).items
    wrong: list[str] = []
    for case in CASES:
        end = ending(seed, case, held, tmp_path)
        wrong += [f"{case.name}: {what}" for what in end.faults]
        told = committed[case.name].get(name)
        if end.outcome != told:
            wrong.append(f"{case.name}: {end.outcome!r} is not {told!r}")
    assert wrong == []


def test_no_more_than_a_tenth_is_refused(
    committed: dict[str, dict[str, str]], figure: Callable[[str], None]
) -> None:
    assert set(committed) == set(NAMED)
    assert all(set(ends) == set(SEED_NAMES) for ends in committed.values())
    for name in SEED_NAMES:
        ends = [committed[case][name] for case in NAMED]
        refused = [end for end in ends if not end.startswith("imported")]
        figure(f"hostile: {name}: {len(ends)} cases, {len(refused)} refused")
        assert len(refused) <= REFUSED_AT_MOST * len(ends)


@pytest.mark.parametrize(("nth", "name"), list(enumerate(SEED_NAMES)), ids=SEED_NAMES)
def test_the_command_says_of_each_file_what_became_of_it(
    nth: int, name: str, tmp_path: Path, committed: dict[str, dict[str, str]]
) -> None:
    """An eighth of the cases for each seed, in turn: all of them are tried."""
    seed = SEEDS[name]
    tried = CASES[nth % 8 :: 8]
    paths: dict[str, str] = {}
    for n, case in enumerate(tried):
        folder = tmp_path / f"{n:03}"
        folder.mkdir()
        (folder / seed.file).write_bytes(case.make(seed).data)
        paths[str(folder / seed.file)] = case.name
    told = subprocess.run(
        [sys.executable, "-m", "ef", "--store", str(tmp_path / "s.ef"), "--json", "import", *paths],
        cwd=ROOT, capture_output=True, timeout=300,
    )  # fmt: skip
    assert b"Traceback" not in told.stderr
    said = json.loads(told.stdout)
    refused = {paths[r["source"]] for r in said["refused"]}
    assert {paths[s["path"]] for s in said["sources"]} | refused == {c.name for c in tried}
    assert told.returncode == (InputRefused.exit_code if refused else 0)
    assert said.get("exit", 0) == told.returncode
    assert refused == {c.name for c in tried if "refused" in committed[c.name][name]}


# --------------------------------------------------------------------------------------------- files that are no files


def as_symlink(seed_file: Path, at: Path) -> None:
    at.symlink_to(seed_file)


def as_loop(seed_file: Path, at: Path) -> None:
    at.symlink_to(at)


def as_fifo(seed_file: Path, at: Path) -> None:
    os.mkfifo(at)


def as_device(seed_file: Path, at: Path) -> None:
    at.symlink_to("/dev/zero")


def as_folder(seed_file: Path, at: Path) -> None:
    at.mkdir()


@pytest.mark.parametrize(
    ("put", "why"),
    [
        (as_loop, "symbolic links"),
        (as_fifo, "not a regular file"),
        (as_device, "not a regular file"),
        (as_folder, "not a regular file"),
    ],
)
@pytest.mark.parametrize("name", SEED_NAMES)
def test_what_is_no_file_is_refused_at_once(
    name: str, put: Callable[[Path, Path], None], why: str, tmp_path: Path
) -> None:
    at = tmp_path / SEEDS[name].file
    put(tmp_path / "seed", at)
    end = Ending.of(at, SEEDS[name])
    assert end.outcome.startswith("refused: ")
    assert why in end.outcome
    assert end.faults == []


@pytest.mark.parametrize("name", SEED_NAMES)
def test_a_link_to_a_session_is_the_session(name: str, tmp_path: Path) -> None:
    seed = SEEDS[name]
    (tmp_path / "elsewhere").write_bytes(seed.data)
    as_symlink(tmp_path / "elsewhere", tmp_path / seed.file)
    end = Ending.of(tmp_path / seed.file, seed)
    assert (end.outcome, end.faults) == ("imported", [])


@pytest.mark.parametrize("name", SEED_NAMES)
def test_what_is_written_while_a_file_is_read_waits_for_the_next_import(
    name: str, tmp_path: Path
) -> None:
    seed = SEEDS[name]
    path = tmp_path / seed.file
    first = joined(seed.rows[: seed.called + 1])
    path.write_bytes(first)
    added: list[int] = []

    def grows(done: int) -> None:
        if not added:
            path.write_bytes(seed.data)
        added.append(done)

    with ef.open(":memory:") as store:
        done = store.import_file(path, progress=grows)
        assert added[-1] == len(first)
        assert store.export_original(done.source) == first
        again = store.import_file(path)
        assert store.export_original(again.source) == seed.data
        bodies = {store.log.body(record) for n in again.sessions for record in items(store, n)} | {
            store.log.body(record) for n in done.sessions for record in items(store, n)
        }
        assert set(baseline(seed).items) <= bodies
        assert store.verify().verdict == "sound"
