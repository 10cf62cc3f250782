"""What stands in the way of a file: healed where nothing can be lost, else left, and named with its remedy."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ef.errors import CannotWrite
from ef.log.folder import bytes_of, put_file, told
from ef.log.projection_store import ProjectionStore, Track
from tests.log.build import opened

TRACK = Track("session/a", "heads", "f1")
DIGEST = bytes([7] * 32)


def put(path: Path) -> None:
    put_file(path, b"new", draft=path.with_name("draft"), drafted="tip.drafted")


def test_a_file_is_put_whatever_is_in_its_place_that_holds_nothing(tmp_path: Path) -> None:
    place = tmp_path / "place"
    for make in (Path.touch, Path.mkdir, os.mkfifo, lambda path: path.symlink_to("nowhere")):
        place.unlink(missing_ok=True)
        make(place)
        put(place)
        assert bytes_of(place, 10) == b"new" and place.stat().st_mode & 0o777 == 0o600
        assert [p.name for p in tmp_path.iterdir()] == ["place"]


def test_a_folder_that_holds_something_stays_and_no_draft_is_left(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "mine").touch()
    with pytest.raises(OSError, match="not empty"):
        put(tmp_path / "place")
    assert [p.name for p in tmp_path.rglob("*")] == ["place", "mine"]


def test_only_plain_files_are_read_and_nothing_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert bytes_of(tmp_path / "file", 4) == b"0123"
    assert bytes_of(tmp_path / "link", 4, follow=True) == b"0123"
    for name in ("link", "folder", "pipe", "none"):
        assert bytes_of(tmp_path / name, 4) is None, name
    for name in ("folder", "pipe"):
        assert bytes_of(tmp_path / name, 4, follow=True) is None
    if before:
        assert len(os.listdir("/proc/self/fd")) == before, "no descriptor is left open"


@pytest.mark.parametrize(
    ("fault", "why", "remedy"),
    [
        (OSError(errno.ENOSPC, "No space"), "No space", "Free some space"),
        (OSError(errno.ENOTEMPTY, "Directory not empty"), "it is there already", "Give a new path"),
        (FileExistsError(errno.EEXIST, "File exists"), "it is there already", "Give a new path"),
        (OSError(errno.ENOTDIR, "Not a directory"), "Not a directory", "A part of the path is a file"),
        (OSError(errno.EROFS, "Read-only"), "Read-only", "Use a disk that can be written"),
        (OSError(0, "odd"), "odd", "Check the path"),
        (ValueError("embedded null byte"), "embedded null byte", "Check the path"),
    ],
)  # fmt: skip
def test_each_fault_of_the_system_has_the_remedy_that_fits(
    fault: OSError | ValueError, why: str, remedy: str
) -> None:
    assert told(fault)[0] == why and told(fault)[1].startswith(remedy)


def a_file(path: Path) -> None:
    path.write_text("a file")


def a_link(path: Path) -> None:
    path.symlink_to(path.parents[2])


@pytest.mark.parametrize("make", [a_file, a_link, Path.mkdir])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_what_stands_in_the_place_of_a_snapshot_or_its_folders_is_healed(
    tmp_path: Path, make: Callable[[Path], None], depth: int
) -> None:
    store = ProjectionStore(tmp_path, "st:1")
    assert store.keep(TRACK, 5, DIGEST, b"data")
    (place,) = store.path.rglob("5")
    parts = place.relative_to(store.path).parts[:depth]
    wrong = store.path.joinpath(*parts)
    store.drop()
    wrong.parent.mkdir(parents=True)
    (tmp_path / "data.mdb").write_text("the log")
    make(wrong)
    assert store.read(TRACK, 5, DIGEST) is None
    assert store.keep(TRACK, 5, DIGEST, b"data")
    assert store.read(TRACK, 5, DIGEST) == b"data" and store.seqs(TRACK) == [5]
    assert (tmp_path / "data.mdb").read_text() == "the log"


def test_no_link_is_followed_by_who_prunes(tmp_path: Path) -> None:
    store = ProjectionStore(tmp_path / "s", "st:1")
    (tmp_path / "s").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "5").write_text("mine")
    assert store.keep(TRACK, 5, DIGEST, b"data")
    (place,) = store.path.rglob("5")
    (place.parent.parent / "other").symlink_to(tmp_path / "mine")
    (place.parent / "6").symlink_to(tmp_path / "mine")
    store.prune(TRACK.stream, {TRACK: [5]})
    assert sorted(p.name for p in place.parent.parent.rglob("*")) == ["5", place.parent.name]
    assert (tmp_path / "mine" / "5").read_text() == "mine"


def test_a_store_below_a_plain_file_is_refused_with_the_remedy_that_fits(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CannotWrite, match="give a path below a folder"):
        opened(tmp_path / "file" / "store")
    opened(tmp_path / "folder" / "store").close()
