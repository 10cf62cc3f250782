"""A rebuild that cannot keep what it made says so, with what is in the way and what to do; no answer is another one."""

from __future__ import annotations

import os
import resource
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ef
from ef.errors import RebuildFailed
from ef.log.projection_store import FREE_BYTES_MIN
from ef.session.rebuilding import Rebuilt
from tests.log.build import in_child
from tests.session.longer import NAME, files, kept, projections


@pytest.fixture
def path(warm: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(warm, tmp_path / "s.ef"))


@pytest.fixture
def store(path: Path) -> Iterator[ef.Store]:
    with ef.open(path, create=False) as opened:
        yield opened


def of(found: list[Rebuilt], name: str) -> Rebuilt:
    return next(each for each in found if each.name == name)


def test_a_disk_that_takes_no_more_is_told_and_what_was_kept_stays(path: Path) -> None:
    def limited() -> Any:
        with ef.open(path) as store:
            before = store.session(NAME).state(1_500).digest
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
            try:
                store.rebuild()
            except RebuildFailed as fault:
                return str(fault), store.session(NAME).state(1_500).digest == before
        return "", False

    with ef.open(path) as store:
        names = files(store)
    said, same = in_child(limited)
    assert "the projections were not rebuilt" in said and "File too large" in said
    assert "ulimit -f" in said and "append" not in said
    assert same
    with ef.open(path) as store:
        assert files(store) == names, "nothing is lost and no draft is left"
        assert of(store.rebuild(), "heads").problem is None


def test_too_little_room_is_told_with_how_much_there_is(
    store: ef.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SimpleNamespace(f_bavail=FREE_BYTES_MIN - 1, f_frsize=1)
    with monkeypatch.context() as full:
        full.setattr(os, "statvfs", lambda _: disk)
        with pytest.raises(RebuildFailed, match=r"63 MiB are free .* Free some space"):
            store.rebuild()
    assert of(store.rebuild(), "heads").kept == 3


def test_a_file_or_a_link_in_the_place_of_the_folder_is_named_and_stays(
    store: ef.Store, tmp_path: Path
) -> None:
    place = projections(store).path
    shutil.rmtree(place)
    place.write_text("mine")
    with pytest.raises(RebuildFailed, match=r"it is not a folder.* Move it away"):
        store.rebuild()
    assert place.read_text() == "mine"
    place.rename(tmp_path / "mine")
    assert of(store.rebuild(), "heads").kept == 3
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RebuildFailed, match="it is not a folder"):
        store.rebuild()


def test_a_folder_in_the_place_of_a_snapshot_goes_when_it_is_empty(store: ef.Store) -> None:
    place = next(p for p in files(store) if p.name == "2000" and p.parent.name.startswith("heads"))
    place.unlink()
    place.mkdir()
    found = of(store.rebuild(), "heads")
    assert (found.problem, found.kept) == (None, 3)
    assert place.is_file() and kept(store)["heads"] == [1_000, 2_000, 3_000]


def test_a_folder_that_holds_something_stays_and_is_named_and_stops_no_other(
    store: ef.Store,
) -> None:
    place = next(p for p in files(store) if p.name == "2000" and p.parent.name.startswith("heads"))
    answer = store.session(NAME).state(2_100)
    place.unlink()
    place.mkdir()
    (place / "mine").write_text("mine")
    found = store.rebuild()
    heads = of(found, "heads")
    assert str(place) in (heads.problem or "") and "move it away" in (heads.problem or "")
    assert heads.kept == 2
    assert all(each.problem is None for each in found if each.name != "heads")
    assert (place / "mine").read_text() == "mine"
    assert store.session(NAME).state(2_100) == answer
    shutil.rmtree(place)
    assert of(store.rebuild(), "heads").problem is None
