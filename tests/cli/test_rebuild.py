"""`ef rebuild`: projections from the log anew, what differed, and what cannot be projected."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import ef as library
from ef.reducers.heads import REDUCER as HEADS
from ef.session.snapshots import track_of
from ef.testing.damage import delete_record
from tests.session.longer import NAME, STREAM, made, projections

from .conftest import SESSION, Run

PROJECTIONS = ["surface", "heads", "described", "clocks", "outline", "observers"]


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a long session; nobody writes to it."""
    return made(tmp_path_factory.mktemp("rebuild") / "s.ef", 2_100)


@pytest.fixture
def store(long: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(long, tmp_path / "s.ef"))


def test_it_names_each_projection_and_keeps_it(ef: Run, store: Path) -> None:
    first = ef("rebuild", store=store)
    assert first.code == 0, first.err
    lines = first.text.splitlines()
    assert (
        lines[0].split()
        == "session projection events seconds digest compared differed kept".split()
    )
    assert [line.split()[1] for line in lines[1:7]] == PROJECTIONS
    assert lines[-1] == "nothing was kept before"
    assert (store / "projections").is_dir()
    second = ef("rebuild", store=store)
    assert second.text.splitlines()[-1] == "12 snapshots compared, none differed"


def test_json_has_the_fields_of_each(ef: Run, store: Path) -> None:
    found = ef("rebuild", NAME[:2], "--json", store=store).json["projections"]
    assert [each["name"] for each in found] == PROJECTIONS
    for each in found:
        assert set(each) == {
            "session",
            "name",
            "events",
            "seconds",
            "digest",
            "compared",
            "differed",
            "kept",
        }
        assert (each["session"], each["compared"], each["differed"]) == (NAME, 0, [])
        assert each["events"] >= 2_100
        assert isinstance(each["seconds"], float)


def test_a_snapshot_that_differs_is_said_and_gone(ef: Run, store: Path) -> None:
    with library.open(store, create=False) as opened:
        earlier = opened.session(NAME).working(1_500).dump(HEADS)
        digest = opened.log.get(STREAM, 2_000).digest
        projections(opened).keep(track_of(STREAM, HEADS), 2_000, digest, earlier)
    lied = ef("state", NAME, "--at", "2000", "--json", store=store).json["digest"]
    assert ef("verify", "--json", store=store).json["verdict"] == "damaged"
    done = ef("rebuild", store=store)
    assert done.code == 0
    assert "1 snapshot of " in done.text.splitlines()[-1]
    assert ef("verify", store=store).code == 0
    assert ef("state", NAME, "--at", "2000", "--json", store=store).json["digest"] != lied


def test_only_the_session_that_is_named(ef: Run, copied: Path) -> None:
    everything = ef("rebuild", "--json", store=copied).json["projections"]
    assert len({each["session"] for each in everything}) == 2
    (one,) = {
        each["session"]
        for each in ef("rebuild", SESSION, "--json", store=copied).json["projections"]
    }
    assert one.startswith(SESSION)
    unknown = ef("rebuild", "nobody", store=copied)
    assert unknown.code == 66
    assert "nobody" in unknown.err


def test_a_damaged_session_is_named_with_its_problem(ef: Run, store: Path) -> None:
    delete_record(store, 1_200)
    done = ef("rebuild", store=store)
    assert done.code == 0
    assert "the record is not there" in done.text
    found = ef("rebuild", "--json", store=store).json["projections"]
    assert all("the record is not there" in each["problem"] for each in found)


def test_no_store_is_no_rebuild(ef: Run, tmp_path: Path) -> None:
    assert ef("rebuild", store=tmp_path / "none").code == 66
    assert not (tmp_path / "none").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_only_be_read_cannot_be_rebuilt_and_answers(ef: Run, store: Path) -> None:
    before = ef("state", NAME, "--json", store=store).json["digest"]
    store.chmod(0o500)
    try:
        assert ef("rebuild", store=store).code == 73
        assert ef("state", NAME, "--json", store=store).json["digest"] == before
    finally:
        store.chmod(0o700)
