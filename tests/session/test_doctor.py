"""Doctor names what is unusual, never waits without a bound, and changes nothing."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ef.log.tipfile import TipFile
from ef.session.doctor import Finding, doctor
from ef.session.processes import lock_holder, users
from ef.session.surroundings import file_system, package
from tests.log.build import filled, opened, running, title

linux = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="processes are read from /proc"
)

HOLDS = """
import os, signal
log = opened(path)
log.append([title("s", "a")])
def stop(txn):
    print("holds", flush=True)
    {wait}
log._env.write(stop)
log.close()
"""
STOPS = HOLDS.format(wait="os.kill(os.getpid(), signal.SIGSTOP)")
HANGS = HOLDS.format(wait="sys.stdin.read()")
OPEN = "log = opened(path)\nprint('holds', flush=True)\nsys.stdin.read()\nlog.close()"


def said(found: list[Finding], level: str) -> str:
    return "\n".join(f"{f.what} -> {f.remedy}" for f in found if f.level == level)


def worst(path: Path) -> str:
    return said(doctor(path), "error") + said(doctor(path), "warning")


@contextmanager
def held(path: Path, text: str) -> Iterator[int]:
    """Another process that has the store; it is made to go on in the end, whatever came."""
    with running(path, text) as child:
        assert child.stdout is not None and child.stdout.readline() == "holds\n"
        try:
            yield child.pid
        finally:
            os.kill(child.pid, signal.SIGCONT)


def is_stopped(pid: int) -> bool:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T":
            return True
        time.sleep(0.01)
    return False


def test_of_a_sound_store_there_is_nothing_to_warn_of_and_nothing_is_changed(
    tmp_path: Path,
) -> None:
    path = filled(tmp_path / "store", 50)
    before = {p.name: p.read_bytes() for p in path.iterdir() if p.name != "lock.mdb"}
    found = doctor(path)
    assert said(found, "error") == said(found, "warning") == ""
    good = said(found, "ok")
    for what in (
        "ef 0.", "lmdb 3.", "LMDB's engine is 0.9.", "yours alone", "file system", "free on its disk",
        "its write lock is free", "sync on, metasync on, writemap off", "memory map", "pages", "readers",
        "tip file is up to date", "snapshot of projections",
    ):  # fmt: skip
        assert what in good, what
    assert {p.name: p.read_bytes() for p in path.iterdir() if p.name != "lock.mdb"} == before


@linux
def test_a_writer_that_was_stopped_while_it_holds_the_lock_is_named(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    with held(path, STOPS) as pid:
        assert is_stopped(pid)
        holder = lock_holder(path, users(path))
        assert holder is not None and (holder.pid, holder.stopped) == (pid, True)
        found = doctor(path)
        assert f"process {pid} (" in said(found, "error")
        assert "is stopped and holds the write lock: nobody can write" in said(found, "error")
        assert f"kill -CONT {pid}" in said(found, "error")
        assert said(found, "warning") == ""
    assert worst(path) == ""
    with opened(path) as log:
        assert log.append([title("s", "b")])[0].seq == 2


@linux
def test_a_process_that_is_stopped_elsewhere_is_a_warning(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    with held(path, OPEN) as pid:
        assert f"process {pid} (" in said(doctor(path), "note")
        assert worst(path) == ""
        os.kill(pid, signal.SIGSTOP)
        assert is_stopped(pid)
        found = doctor(path)
        assert f"process {pid} (" in said(found, "warning")
        assert "has the store open and is stopped" in said(found, "warning")
        assert said(found, "error") == ""


@linux
def test_a_writer_that_takes_long_is_named_and_not_waited_for(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    with held(path, HANGS) as pid:
        found = doctor(path)
        assert f"process {pid} (" in said(found, "warning")
        assert "has held the write lock" in said(found, "warning")


@linux
def test_a_lock_file_that_was_deleted_under_a_process_is_an_error(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    with held(path, OPEN) as pid:
        (path / "lock.mdb").unlink()
        found = said(doctor(path), "error")
        assert (
            f"process {pid} (" in found and "lock.mdb open that is no longer in the folder" in found
        )
        assert "its lock file was deleted while another process has it open" in found
    assert worst(path) == ""


def test_a_reader_that_holds_old_pages_is_named(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    reads = "log = opened(path)\nwith log._env.read(): print('holds', flush=True); sys.stdin.read()\nlog.close()"
    with held(path, reads) as pid:
        with opened(path) as log:
            for n in range(3):
                log.append([title("s", str(n))])
        assert "1 other readers" in said(doctor(path), "ok")
        import ef.session.doctor as module

        before, module.BEHIND_WARNED = module.BEHIND_WARNED, 2
        try:
            assert f"a reader of process {pid} is 3 transactions behind" in said(
                doctor(path), "warning"
            )
        finally:
            module.BEHIND_WARNED = before


def test_modes_that_let_others_in_are_warned_of(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    path.chmod(0o755)
    (path / "data.mdb").chmod(0o644)
    found = said(doctor(path), "warning")
    assert f"chmod 0700 {path}" in found and f"chmod 0600 {path / 'data.mdb'}" in found
    path.chmod(0o700)
    (path / "data.mdb").chmod(0o600)
    assert worst(path) == ""


def test_what_is_missing_or_damaged_is_a_finding_and_no_failure(tmp_path: Path) -> None:
    found = doctor(tmp_path / "none")
    assert "there is no store at" in said(found, "note") and said(found, "error") == ""
    (tmp_path / "folder").mkdir()
    assert "holds no data.mdb" in said(doctor(tmp_path / "folder"), "error")
    path = filled(tmp_path / "store", 30)
    data = (path / "data.mdb").read_bytes()
    for bad in (b"", data[:5_000], bytes(len(data)), data[: len(data) // 2]):
        (path / "data.mdb").write_bytes(bad)
        assert "Run `ef verify`" in said(doctor(path), "error")
    (path / "data.mdb").write_bytes(data)
    assert worst(path) == ""


def test_the_tip_file_is_looked_at(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    tip = (path / "tip").read_text()
    (path / "tip").write_text(tip.replace("ef-tip 1 5", "ef-tip 1 9"))
    assert "its tip was once at 9: rolled back" in said(doctor(path), "error")
    with opened(path) as log:
        third = f"ef-tip 1 3 {log.at(3).digest.hex()} {log.store_id}\n"
    (path / "tip").write_text(third)
    assert "the tip file is 2 records behind" in said(doctor(path), "ok")
    (path / "tip").unlink()
    assert "would not be noticed" in said(doctor(path), "warning")


def test_a_data_file_that_is_not_the_one_the_tip_speaks_of_is_an_error(tmp_path: Path) -> None:
    path, other = filled(tmp_path / "store"), filled(tmp_path / "other")
    assert worst(path) == worst(other) == ""
    own, theirs = (path / "data.mdb").read_bytes(), (other / "data.mdb").read_bytes()
    (path / "data.mdb").write_bytes(theirs)
    found = said(doctor(path), "error")
    assert "the file tip is of the store" in found and "delete the file tip" in found
    (path / "data.mdb").write_bytes(own)
    position, digest = TipFile(path).read() or (0, b"")
    line = (path / "tip").read_text()
    (path / "tip").write_text(line.replace(digest.hex(), "ab" * 32))
    found = said(doctor(path), "error")
    assert f"its position {position} held another record once: rolled back" in found
    (path / "tip").write_text(line)
    assert worst(path) == ""


def test_what_is_in_the_place_of_the_tip_file_is_named(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    (path / "tip").unlink()
    (path / "tip").mkdir()
    found = said(doctor(path), "warning")
    assert "the file tip is a folder" in found and "-> Move that folder away" in found
    (path / "tip").rmdir()
    os.mkfifo(path / "tip")
    assert "the file tip cannot be read" in said(doctor(path), "warning")


@pytest.mark.parametrize(
    ("version", "level", "what"),
    [
        (None, "error", "is not installed"),
        ("2.9.9", "error", "is too old"),
        ("4.0", "warning", "is newer than"),
        ("3", "ok", "lmdb 3"),
        ("3.99.1.dev2", "ok", "lmdb 3.99.1.dev2"),
    ],
)
def test_packages_are_as_new_as_they_should_be(version: str | None, level: str, what: str) -> None:
    found = package("lmdb", version, (3,), (4,))
    assert found[0] == level and what in found[1]
    assert ("pip install" in found[2]) is (level != "ok")


def test_the_packages_looked_at_are_those_that_the_project_asks_for() -> None:
    import tomllib

    from ef.session.surroundings import PACKAGES

    project = tomllib.loads(
        (Path(__file__).resolve().parents[2] / "pyproject.toml").read_text("utf-8")
    )
    asked = set(project["project"]["dependencies"])
    dotted = {
        name: [".".join(map(str, v)) for v in versions] for name, versions in PACKAGES.items()
    }
    assert {f"{name}>={low},<{high}" for name, (low, high) in dotted.items()} == asked


def test_the_file_system_is_that_of_the_deepest_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    place = tmp_path / "a b" / "store"
    place.mkdir(parents=True)
    below = str(tmp_path / "a b").replace(" ", "\\040")
    mounts.write_text(
        f"/dev/x / ext4 rw 0 0\nhost:/y {below} nfs4 rw 0 0\nz {tmp_path}/a tmpfs rw 0 0\n"
    )
    assert file_system(place, mounts) == "nfs4"
    assert file_system(tmp_path, mounts) == "ext4"
    assert file_system(tmp_path, tmp_path / "none") is None
