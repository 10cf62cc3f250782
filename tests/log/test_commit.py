"""A commit that fails: nothing that was acknowledged is lost, and what became of it is looked up, never guessed."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lmdb
import pytest

from ef.errors import CannotWrite, Damaged, OutcomeUnknown, StoreUnavailable
from ef.log.lmdb_env import LOCK_BYTES
from ef.log.lmdb_log import LmdbLog
from ef.log.rows import U64, stream_hash
from tests.log.build import checked, in_child, item, opened, raw, run, says, title, typed
from tests.log.faults import Faulty


def keys(log: LmdbLog, stream: str = "s") -> list[str]:
    return [r.header.key for r in log.read(stream)]


# -- a full map -------------------------------------------------------------------------------------------------


def test_a_map_that_is_full_grows_and_the_append_goes_on(tmp_path: Path) -> None:
    with opened(tmp_path / "store", map_size=1 << 20) as log:
        for n in range(12):
            log.append([item("s", str(n), os.urandom(300_000)), title("t", str(n))])
        assert log._env._env.info()["map_size"] == 4 << 20
        assert keys(log) == keys(log, "t") == [str(n) for n in range(12)]
    assert says(checked(tmp_path / "store")) == ""


def test_a_map_that_is_full_at_the_commit_grows_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "store") as log:
        transactions = Faulty(log, monkeypatch)
        transactions.fail("commit", lmdb.MapFullError("at the commit"), before=True)
        size = log._env._env.info()["map_size"]
        assert log.append([title("s", "a")])[0].seq == 1
        assert log._env._env.info()["map_size"] == size * 2


LIMITED = """
import os, resource
with opened(path, map_size=4 << 20) as log:
    log.append([title("s", "kept")])
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (12 << 20), resource.RLIM_INFINITY))
    for n in range(40):
        try:
            log.append([item("s", str(n), os.urandom(300_000))])
        except CannotWrite as fault:
            print(n, fault)
            break
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    log.append([title("s", "on")])
"""


def test_a_map_that_cannot_grow_refuses_the_append_and_keeps_what_was_there(tmp_path: Path) -> None:
    said = run(tmp_path / "store", LIMITED)
    kept, _, why = said.partition(" ")
    assert "the memory map is full and cannot grow" in why and "Raise the process's" in why
    with opened(tmp_path / "store") as log:
        assert keys(log) == ["kept", *(str(n) for n in range(int(kept))), "on"]
    assert says(checked(tmp_path / "store")) == ""


# -- a disk that refuses ----------------------------------------------------------------------------------------

SHORT = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with opened(path) as log:
    log.append([title("s", "kept")])
    size = (path / "data.mdb").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 8192, resource.RLIM_INFINITY))
    big = [item("s", "big", __import__("os").urandom(1 << 20)), title("t", "with it")]
    try:
        log.append(big)
    except CannotWrite as fault:
        print("refused:", fault)
    print(log.find("s", "big"), log.tip("t").seq, log.tip("s").seq)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print([a.seq for a in log.append(big)])
"""


def test_a_file_that_may_not_grow_refuses_the_commit_and_a_retry_goes_through(
    tmp_path: Path,
) -> None:
    refused, looked, again = run(tmp_path / "store", SHORT).splitlines()
    assert (
        refused.startswith("refused: cannot write to")
        and "Nothing of this append was kept" in refused
    )
    assert (looked, again) == ("None 0 1", "[2, 1]")
    with opened(tmp_path / "store") as log:
        assert keys(log) == ["kept", "big"]
    assert says(checked(tmp_path / "store")) == ""


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of a few MiB, where the tests may make one."""
    folder = Path(tempfile.mkdtemp())
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.getuid() != 0 or shutil.which("mount") is None:
        folder.rmdir()
        pytest.skip("needs root and mount")
    if subprocess.run(mount, capture_output=True).returncode != 0:
        folder.rmdir()
        pytest.skip("this machine allows no mount")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
    folder.rmdir()


def test_a_full_disk_refuses_the_append_and_keeps_what_was_acknowledged(small_disk: Path) -> None:
    path = small_disk / "store"
    kept: list[str] = []
    with opened(path) as log:

        def fill() -> None:
            for n in range(100):
                log.append([item("s", str(n), os.urandom(100_000))])
                kept.append(str(n))

        with pytest.raises(CannotWrite, match="Free space"):
            fill()
        assert keys(log) == kept
    with opened(path) as log:
        assert kept and keys(log) == kept
    assert says(checked(path)) == ""


def stuff(disk: Path) -> None:
    handle = os.open(disk / "rest", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with contextlib.suppress(OSError):
        while os.write(handle, bytes(4_096)):
            pass
    os.close(handle)


def test_a_store_cannot_be_made_on_a_full_disk_and_leaves_nothing_behind(small_disk: Path) -> None:
    stuff(small_disk)
    assert in_child(lambda: typed(lambda: opened(small_disk / "store"))) == "CannotWrite"
    assert [p.name for p in small_disk.iterdir()] == ["rest"]
    (small_disk / "rest").unlink()
    opened(small_disk / "store").close()


def test_a_store_on_a_full_disk_can_be_read_and_nobody_is_killed(small_disk: Path) -> None:
    path = small_disk / "store"
    with opened(path) as log:
        log.append([title("s", "a")])
        assert (path / "lock.mdb").stat().st_size == LOCK_BYTES
    stuff(small_disk)

    def child() -> tuple[list[str], str]:
        with opened(path) as log:
            return keys(log), typed(lambda: log.append([item("s", "b", os.urandom(20_000))]))

    assert in_child(child) == (["a"], "CannotWrite")
    (path / "lock.mdb").unlink()
    stuff(small_disk)
    assert in_child(lambda: typed(lambda: opened(path))) == "StoreUnavailable"
    (small_disk / "rest").unlink()
    assert in_child(child) == (["a"], "")


# -- outcomes, with a transaction that fails where it is told to -------------------------------------------------


def test_a_commit_that_failed_and_was_not_kept_is_refused_and_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "store") as log:
        log.append([title("s", "a")])
        Faulty(log, monkeypatch).fail("commit", lmdb.DiskError("no space"), before=True)
        with pytest.raises(CannotWrite, match="no space"):
            log.append([title("s", "b"), title("t", "c")])
        assert isinstance(log._env._env, lmdb.Environment), "it was opened again"
        assert keys(log) == ["a"] and log.tip("t").seq == 0
        assert [a.new for a in log.append([title("s", "b"), title("t", "c")])] == [True, True]
    assert says(checked(tmp_path / "store")) == ""


def test_a_commit_that_failed_and_was_kept_all_the_same_is_an_append_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "store") as log:
        Faulty(log, monkeypatch).fail("commit", lmdb.PanicError("after all"), before=False)
        assert [a.seq for a in log.append([title("s", "a"), title("s", "b")])] == [1, 2]
        assert [a.new for a in log.append([title("s", "b")])] == [False]
        assert log.tipfile.read() == log.store_tip()
    assert says(checked(tmp_path / "store")) == ""


def test_an_outcome_that_cannot_be_looked_up_is_unknown_and_the_keys_tell_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store"
    log = opened(path)

    def lose() -> None:
        shutil.move(path, tmp_path / "away")

    Faulty(log, monkeypatch).fail("commit", lmdb.PanicError("gone"), before=False, after=lose)
    with pytest.raises(OutcomeUnknown, match=r"\(gone; opening it again failed: .*same keys") as e:
        log.append([title("s", "a")])
    assert e.value.exit_code == 75
    shutil.move(tmp_path / "away", path)
    log.close()
    with opened(path) as again:
        assert again.append([title("s", "a"), title("s", "b")])[0].new is False


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (lmdb.CorruptedError("a page"), Damaged),
        (lmdb.PageNotFoundError("a page"), Damaged),
        (lmdb.DiskError("no space"), CannotWrite),
        (lmdb.Error("input/output"), CannotWrite),
        (lmdb.TxnFullError("too much"), CannotWrite),
    ],
)
def test_a_put_that_fails_ends_the_transaction_and_nothing_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception, error: type[Exception]
) -> None:
    with opened(tmp_path / "store") as log:
        Faulty(log, monkeypatch).fail("put", fault, before=True)
        with pytest.raises(error, match=str(fault)):
            log.append([title("s", "a")])
        assert log.tip("s").seq == 0
        assert log.append([title("s", "a")])[0].seq == 1


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (lmdb.PanicError("dead"), StoreUnavailable),
        (lmdb.ReadersFullError("many"), StoreUnavailable),
        (lmdb.CorruptedError("a page"), Damaged),
    ],
)
def test_a_transaction_that_cannot_begin_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception, error: type[Exception]
) -> None:
    def refuse(**how: Any) -> Any:
        if bool(how.get("write")) is writes:
            raise fault
        return real.begin(**how)

    with opened(tmp_path / "store") as log:
        real = log._env._env
        faulty = Faulty(log, monkeypatch)
        monkeypatch.setattr(faulty, "begin", refuse)
        for writes in (False, True):  # noqa: B007  (`refuse` reads it)
            with pytest.raises(error, match=str(fault)):
                log.append([title("s", "a")])
        monkeypatch.undo()
        assert log.append([title("s", "a")])[0].seq == 1


def test_a_page_that_is_found_damaged_while_reading_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "store") as log, pytest.raises(Damaged, match="a page"), log._env.read():
        raise lmdb.CorruptedError("a page")


def test_a_row_that_is_there_already_is_damage_and_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with opened(path) as log:
        log.append([title("s", "a")])
    with raw(path) as store:
        store.put(b"seq", stream_hash("s") + U64.pack(2), U64.pack(1))
    with opened(path) as log:
        there = (stream_hash("s") + U64.pack(2)).hex()
        with pytest.raises(Damaged, match=f"database seq: key {there} is there already"):
            log.append([title("t", "c"), title("s", "b")])
        assert log.tip("s").seq == 1 and log.tip("t").seq == 0
        log.append([title("t", "c")])
