"""A data file that is written over in place, handles that may not write, and things that stand where files belong."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import ef
from ef.errors import BackupFailed, CannotWrite, RolledBack, StoreUnavailable
from ef.log.projection_store import ProjectionStore, Track
from ef.log.rows import stream_hash
from tests.log.build import in_child, opened, title


@pytest.mark.parametrize("other", ["another store", "an older copy"])
def test_a_data_file_that_was_written_over_under_a_writer_takes_no_append(
    tmp_path: Path, other: str
) -> None:
    path, copy = tmp_path / "store", tmp_path / "copy"
    if other == "another store":
        with opened(copy) as log:
            log.append([title("s", str(n)) for n in range(30)])
    with opened(path) as log:
        log.append([title("s", "first")])
    if other == "an older copy":
        shutil.copytree(path, copy)
    with opened(path) as log:
        log.append([title("s", str(n)) for n in range(5)])
        whole = (path / "data.mdb").read_bytes()
        data = (copy / "data.mdb").read_bytes()
        with (path / "data.mdb").open("r+b") as file:
            file.write(data.ljust(len(whole), b"\0"))
        for append in (log.append, lambda drafts: log.append_nowait(drafts).result(60)):
            with pytest.raises(RolledBack, match="written over while it was open"):
                append([title("s", "late")])
        with (path / "data.mdb").open("r+b") as file:
            file.write(whole)
        assert log.append([title("s", "again")])[0].seq == 7


def test_what_another_process_appends_is_the_same_history(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        log.append([title("s", "a")])
        for n in range(3):
            in_child(lambda n=n: log.append([title("s", f"child/{n}")])[0].seq)
            assert log.append([title("s", f"mine/{n}")])[0].seq == 3 + 2 * n


def test_a_handle_that_only_reads_and_one_that_is_closed_take_no_append(tmp_path: Path) -> None:
    with ef.open(tmp_path / "store") as store:
        reader = ef.open(tmp_path / "store", readonly=True)
        message = {"role": "user", "content": "Hello."}
        with pytest.raises(CannotWrite, match="read only"):
            reader.session("one").append(message)
        with pytest.raises(CannotWrite, match="read only"):
            reader.log.write(lambda view: [])
        assert store.session("one").append(message) == 2
        other = ef.open(tmp_path / "store")
        other.close()
        for append in (other.session("one").append, other.session("one").append_nowait):
            with pytest.raises(StoreUnavailable, match="closed"):
                append(message)
        assert store.session("one").append(message) == 3
        reader.close()


@pytest.mark.parametrize("what", ["fifo", "link", "link to a snapshot", "folder"])
def test_what_is_no_plain_file_in_a_snapshots_place_is_passed_over(
    tmp_path: Path, what: str
) -> None:
    track = Track("session/a", "heads", "form")
    store = ProjectionStore(tmp_path, "id")
    assert store.keep(track, 1, bytes(32), b"kept") and store.read(track, 1, bytes(32)) == b"kept"
    place = store.path / next(store.path.iterdir()).name / "heads-form" / "2"
    if what == "fifo":
        os.mkfifo(place)
    elif what == "link":
        place.symlink_to("/dev/zero")
    elif what == "link to a snapshot":
        place.symlink_to(place.with_name("1"))
    else:
        place.mkdir()
    assert store.size(track, 2) == 0 and store.read(track, 2, bytes(32)) is None
    assert store.read(track, 1, bytes(32)) == b"kept"


def test_a_folder_of_snapshots_that_leads_elsewhere_is_not_written_to(tmp_path: Path) -> None:
    elsewhere, home = tmp_path / "elsewhere", tmp_path / "store"
    elsewhere.mkdir()
    home.mkdir()
    store = ProjectionStore(home, "id")
    store.path.symlink_to(elsewhere)
    assert not store.writable()
    theirs = elsewhere / stream_hash("session/a").hex() / "theirs"
    theirs.mkdir(parents=True)
    (theirs / "1").write_text("kept")
    store.prune("session/a", {})
    assert (theirs / "1").read_text() == "kept"


def test_a_backup_goes_outside_the_store(tmp_path: Path) -> None:
    with ef.open(tmp_path / "store") as store:
        for inside in ("inner", "projections/x"):
            with pytest.raises(BackupFailed, match="in the store itself"):
                store.backup(tmp_path / "store" / inside)
        assert store.backup(tmp_path / "beside").events >= 0


def test_names_that_no_file_can_have_are_answered(tmp_path: Path) -> None:
    from ef.session.doctor import doctor
    from ef.session.verifying import verify_path

    long = tmp_path / ("x" * 300)
    assert verify_path(long).verdict == "unreadable"
    assert any("no store" in finding.what for finding in doctor(long))
    with ef.open(tmp_path / "store") as store, pytest.raises(BackupFailed):
        store.backup(long)
