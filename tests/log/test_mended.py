"""Where a store is made, where it may only be read, and what is noticed when rows or older copies were put back."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ef.errors import CannotWrite, EfError, RolledBack, StoreUnavailable
from ef.log import folder as folders
from ef.log.rows import U64
from ef.session import verify_path
from tests.log.build import (
    PRELUDE,
    ROOT,
    checked,
    filled,
    frame_at,
    in_child,
    item,
    opened,
    raw,
    says,
    title,
)

STREAM = "session/a"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(path: Path) -> list[str]:
    return sorted(p.name for p in path.iterdir())


# -- where a store is made --------------------------------------------------------------------------------------


def test_an_empty_working_folder_becomes_the_store_and_stays_the_same_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    inode = home.stat().st_ino
    monkeypatch.chdir(home)
    with opened(Path(".")) as log:
        log.append([title("s", "a")])
    assert home.stat().st_ino == inode and Path.cwd() == home
    assert names(home) == ["data.mdb", "lock.mdb", "tip"]
    assert (mode(home), mode(home / "data.mdb"), mode(home / "tip")) == (0o700, 0o600, 0o600)
    with opened(Path(".")) as log:
        assert log.tip("s").seq == 1
    assert says(checked(home)) == ""


@pytest.mark.parametrize("there", [True, False])
def test_a_link_to_a_folder_is_a_place_for_a_store(tmp_path: Path, there: bool) -> None:
    if there:
        (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    filled(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    with opened(tmp_path / "real", create_missing=False) as log:
        assert log.tip(STREAM).seq == 5


def test_a_birth_that_came_to_nothing_is_no_obstacle_and_anything_else_is(tmp_path: Path) -> None:
    (tmp_path / ".birth.dead").mkdir()
    (tmp_path / ".birth.dead" / "data.mdb").write_bytes(b"half")
    filled(tmp_path)
    assert names(tmp_path) == ["data.mdb", "lock.mdb", "tip"]
    other = tmp_path.parent / f"{tmp_path.name}-other"
    other.mkdir()
    (other / ".hidden").touch()
    with pytest.raises(StoreUnavailable, match=r"holds no data\.mdb"):
        opened(other)
    assert names(other) == [".hidden"]


@pytest.mark.parametrize("links", [True, False])
def test_who_comes_second_in_an_empty_folder_opens_the_store_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    link = os.link

    def late(source: Any, target: Any) -> None:
        if str(source).endswith("data.mdb"):
            monkeypatch.setattr(os, "link", link)
            in_child(lambda: filled(tmp_path, 3))
            if not links:
                raise OSError(errno.EPERM, "Operation not permitted")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with opened(tmp_path) as log:
        assert log.tip(STREAM).seq == 3
    assert names(tmp_path) == ["data.mdb", "lock.mdb", "tip"]


def test_a_data_file_that_is_there_at_the_last_step_is_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    theirs, link = filled(tmp_path / "theirs", 3) / "data.mdb", os.link

    def late(source: Any, target: Any) -> None:
        if str(source).endswith("data.mdb"):
            shutil.copy(theirs, target)
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with opened(place) as log:
        assert log.tip(STREAM).seq == 3


def test_a_disk_without_links_holds_a_store_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def none(source: Any, target: Any) -> None:
        if str(source).endswith("data.mdb"):
            raise OSError(errno.EPERM, "Operation not permitted")
        link(source, target)

    monkeypatch.setattr(os, "link", none)
    filled(tmp_path)
    assert says(checked(tmp_path)) == ""


def test_a_creator_that_fails_in_an_empty_folder_leaves_it_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(folders, "fsync", fail)
    with pytest.raises(CannotWrite, match="Input/output error"):
        opened(tmp_path)
    assert names(tmp_path) == []
    monkeypatch.undo()
    filled(tmp_path)


def drop() -> None:
    if os.getuid() == 0:
        os.setgid(65_534)
        os.setuid(65_534)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder of everybody's (the folders of pytest are closed to others)."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("umask", [0o777, 0o277, 0o022])
@pytest.mark.parametrize("there", [True, False])
def test_no_umask_keeps_a_user_from_the_store_that_was_made_under_it(
    shared: Path, umask: int, there: bool
) -> None:
    path = shared / "deep" / "store"
    if there:
        path.mkdir(parents=True)
        for each in (path, path.parent):
            os.chown(each, *((65_534, 65_534) if os.getuid() == 0 else (-1, -1)))

    def work() -> dict[str, int]:
        drop()
        os.umask(umask)
        filled(path)
        filled(path, 6)
        return {p.name: mode(p) for p in (path, *path.iterdir())}

    assert in_child(work) == {"store": 0o700, "data.mdb": 0o600, "lock.mdb": 0o600, "tip": 0o600}


def test_a_folder_of_somebody_else_keeps_its_mode_and_verify_says_so(shared: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder to somebody else")

    def work() -> list[str]:
        drop()
        filled(shared)
        return checked(shared).notes

    assert in_child(work) == ["the folder has mode 0777; ef makes it 0700"]
    (shared / "mine").mkdir(mode=0o755)
    assert checked(filled(shared / "mine")).notes == []


def test_a_path_outside_ascii_under_a_locale_of_ascii(tmp_path: Path) -> None:
    path = tmp_path / "ünï"
    code = PRELUDE.format(root=str(ROOT), path="") + "filled(Path(sys.argv[1])); print('made')"
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for add in (plain, {}):
        done = subprocess.run(
            [sys.executable, "-c", code, os.fsencode(path)],
            capture_output=True, env={**os.environ, **add}, cwd=ROOT, timeout=60,
        )  # fmt: skip
        assert done.stdout == b"made\n", done.stderr
    assert says(checked(path)) == ""


# -- mounts -----------------------------------------------------------------------------------------------------


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """An empty mount point."""
    place = tmp_path / "mount"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "none", str(place)], capture_output=True
    )
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True, capture_output=True)


def remount(place: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(place)], check=True, capture_output=True)


def test_an_empty_mount_point_is_a_place_for_a_store(mounted: Path) -> None:
    assert says(checked(filled(mounted))) == ""
    assert os.path.ismount(mounted)


@pytest.mark.parametrize("lock", [True, False])
def test_a_store_on_a_disk_that_can_only_be_read_is_read_and_verified(
    mounted: Path, lock: bool
) -> None:
    path = filled(mounted / "store")
    if not lock:
        (path / "lock.mdb").unlink()
    remount(mounted, "ro")
    with opened(path) as log:
        assert [r.header.seq for r in log.read(STREAM)] == [1, 2, 3, 4, 5]
        with pytest.raises(CannotWrite, match="read only"):
            log.append([title("s", "a")])
    assert verify_path(path).verdict == "sound"
    remount(mounted, "rw")
    with opened(path) as log:
        log.append([title("s", "a")])


@pytest.mark.parametrize("lock", [True, False])
def test_a_store_that_a_user_may_only_read_is_read_and_not_written(
    shared: Path, lock: bool
) -> None:
    path = filled(shared / "store")
    if not lock:
        (path / "lock.mdb").unlink()
    for each in (*path.iterdir(), path):
        os.chown(each, *((65_534, 65_534) if os.getuid() == 0 else (-1, -1)))
        each.chmod(0o500 if each is path else 0o400)

    def work() -> tuple[int, str, str]:
        drop()
        with opened(path) as log:
            try:
                log.append([title("s", "a")])
                said = ""
            except EfError as fault:
                said = type(fault).__name__
            return log.tip(STREAM).seq, said, verify_path(path).verdict

    assert in_child(work) == (5, "CannotWrite", "sound")
    path.chmod(0o700)
    for each in path.iterdir():
        each.chmod(0o600)
    assert in_child(work) == (5, "", "sound")


def test_a_lock_file_that_a_full_disk_does_not_take_is_no_reason_to_read_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = filled(tmp_path / "store")
    (path / "lock.mdb").unlink()

    def full(*a: Any, **k: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "mkstemp", full)
    with pytest.raises(StoreUnavailable, match="No space left"):
        opened(path)
    monkeypatch.undo()
    opened(path).close()


# -- an older copy ----------------------------------------------------------------------------------------------


def test_a_store_that_was_put_back_is_read_and_takes_nothing_until_somebody_decides(
    tmp_path: Path,
) -> None:
    path = filled(tmp_path / "store")
    older = (path / "data.mdb").read_bytes()
    filled(path, 7)
    newer, tip = (path / "data.mdb").read_bytes(), (path / "tip").read_bytes()
    (path / "data.mdb").write_bytes(older)
    with opened(path) as log:
        assert len(list(log.read(STREAM))) == 5
        for drafts in ([title("s", "a")], [item(STREAM, "k0", b"A" * 40)]):
            with pytest.raises(
                RolledBack, match=r"ends at position 5.*once at 7.*file tip"
            ) as told:
                log.append(drafts)
        assert told.value.exit_code == 3
    assert (path / "tip").read_bytes() == tip
    assert verify_path(path).verdict == "rolled-back"
    (path / "data.mdb").write_bytes(newer)
    with opened(path) as log:
        log.append([title("s", "a")])
    (path / "data.mdb").write_bytes(older)
    (path / "tip").unlink()
    with opened(path) as log:
        log.append([title("s", "b")])
    assert verify_path(path).verdict == "sound"


def test_another_history_takes_nothing_and_a_damaged_record_at_the_tip_is_no_history(
    tmp_path: Path,
) -> None:
    path = filled(tmp_path / "store", 6)
    kept = (path / "tip").read_text()
    (path / "tip").write_text(f"ef-tip 1 4 {'01' * 32}\n")
    with opened(path) as log, pytest.raises(RolledBack, match="position 4 held another"):
        log.append([title("s", "a")])
    digest = frame_at(path, 4)[28:60].hex()
    (path / "tip").write_text(f"ef-tip 1 4 {digest}\n")
    with raw(path) as store:
        store.put(b"log", U64.pack(4), b"?")
    with opened(path) as log:
        log.append([title("s", "a")])
    assert (path / "tip").read_text() == f"ef-tip 1 4 {digest}\n" != kept
    with raw(path) as store:
        store.delete(b"log", U64.pack(4))
    with opened(path) as log:
        log.append([title("s", "b")])
