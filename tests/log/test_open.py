"""Opening: a store is born whole, and whatever else lies at its path is named and left alone."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lmdb
import pytest

from ef import events as ev
from ef.errors import CannotWrite, Damaged, EfError, NotFound, StoreUnavailable
from ef.log.base import EMPTY
from ef.log.lmdb_env import LmdbEnv
from ef.log.lmdb_log import LmdbLog
from tests.log.build import clock, filled, in_child, opened, raw, run, title, typed

# -- birth ------------------------------------------------------------------------------------------------------


def test_a_new_store_holds_its_genesis_and_nothing_else(tmp_path: Path) -> None:
    with opened(tmp_path / "a" / "b" / "store", made_by="ef 9") as log:
        (genesis,) = log.all()
        h = genesis.header
        assert (genesis.position, h.stream, h.seq, h.kind) == (0, "store", 1, "StoreOpened")
        assert h.key == log.store_id and len(log.store_id) == 32
        assert b"ef 9" in log.body(genesis)
        assert log.tip("store").seq == 1
    assert [p.name for p in (tmp_path / "a" / "b").iterdir()] == ["store"]


def test_salt_and_store_id_come_from_the_given_entropy(tmp_path: Path) -> None:
    with LmdbLog.open(tmp_path / "s", now=clock(), entropy=lambda n: bytes([7] * n)) as log:
        assert log.store_id == "07" * 16
        assert log.at(0).frame.salt == bytes([7] * 16)
        assert log.now() == 1_001


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_nobody_else_can_read_a_store_under_any_umask(tmp_path: Path, umask: int) -> None:
    (tmp_path / "empty").mkdir(mode=0o777)
    before = os.umask(umask)
    try:
        for name in ("store", "empty"):
            with opened(tmp_path / name) as log:
                log.append([title("s", "a")])
    finally:
        os.umask(before)
    for name in ("store", "empty"):
        folder = tmp_path / name
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()}
        assert modes == {"data.mdb": 0o600, "lock.mdb": 0o600, "tip": 0o600}
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_store_that_may_not_be_made_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="import"):
        opened(tmp_path / "store", create_missing=False)
    assert list(tmp_path.iterdir()) == []
    filled(tmp_path / "store")
    opened(tmp_path / "store", create_missing=False).close()


def test_processes_that_make_the_same_store_at_once_share_one(tmp_path: Path) -> None:
    work = (
        "with opened(path) as log: log.append([title('s', str(os.getpid()))]); print(log.store_id)"
    )
    path = tmp_path / "store"
    ids = {run(path, f"import os\n{work}") for _ in range(2)}
    assert len(ids) == 1
    with opened(path) as log:
        assert log.tip("s").seq == 2


def test_who_loses_the_race_to_make_a_store_opens_the_winners(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store"
    rename = Path.rename

    def late(self: Path, target: Any) -> Any:
        monkeypatch.setattr(Path, "rename", rename)
        in_child(lambda: filled(path, 3))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", late)
    with opened(path) as log:
        assert log.tip("session/a").seq == 3
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_a_rename_that_fails_for_another_reason_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(CannotWrite, match="Permission denied"):
        opened(tmp_path / "store")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name", ["file/store", "file/a/store", "x" * 300, "nul\0", "y" * 300 + "/s"]
)
def test_a_path_that_no_folder_can_have_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises((CannotWrite, StoreUnavailable)):
        opened(tmp_path / name)
    opened(tmp_path / ("x" * 200)).close()


# -- what is no store -------------------------------------------------------------------------------------------


def is_a_file(path: Path) -> None:
    path.write_text("x")


def is_a_full_folder(path: Path) -> None:
    path.mkdir()
    (path / "notes.txt").write_text("x")


def has_an_empty_file(path: Path) -> None:
    path.mkdir()
    (path / "data.mdb").touch()


def has_garbage(path: Path) -> None:
    path.mkdir()
    (path / "data.mdb").write_bytes(b"garbage" * 10_000)


def has_zeros(path: Path) -> None:
    path.mkdir()
    (path / "data.mdb").write_bytes(bytes(1 << 16))


def is_made_anew(path: Path) -> None:
    filled(path)
    (path / "data.mdb").unlink()
    lmdb.open(str(path)).close()


def is_emptied(path: Path) -> None:
    filled(path)
    (path / "data.mdb").write_bytes(b"")


def is_foreign(path: Path) -> None:
    with lmdb.open(str(path), max_dbs=3) as env, env.begin(write=True) as txn:
        txn.put(b"k", b"v", db=env.open_db(b"log", txn))


def has_no_genesis(path: Path) -> None:
    with lmdb.open(str(path), max_dbs=8) as env:
        for name in (b"log", b"seq", b"key", b"stream"):
            env.open_db(name)


def has_another_first_record(path: Path) -> None:
    filled(path)
    with raw(path) as store:
        rows = store.rows(b"log")
        store.put(b"log", bytes(8), rows[bytes(7) + b"\1"])


def has_a_folder_for_data(path: Path) -> None:
    (path / "data.mdb").mkdir(parents=True)


def has_a_pipe_for_data(path: Path) -> None:
    path.mkdir()
    os.mkfifo(path / "data.mdb")


def has_a_folder_for_a_lock(path: Path) -> None:
    filled(path)
    (path / "lock.mdb").unlink()
    (path / "lock.mdb").mkdir()


def is_of_the_newer_format(path: Path) -> None:
    lmdb.open(str(path), lib_version=1).close()


@pytest.mark.parametrize(
    ("make", "error", "why"),
    [
        (is_a_file, StoreUnavailable, "it exists and is not a store"),
        (is_a_full_folder, StoreUnavailable, "the folder holds no data.mdb"),
        (has_an_empty_file, Damaged, "the data file is empty"),
        (has_garbage, Damaged, "no meta page"),
        (has_zeros, Damaged, "no meta page"),
        (is_made_anew, Damaged, "database log is not there"),
        (is_emptied, Damaged, "the data file is empty"),
        (is_foreign, Damaged, "database seq is not there"),
        (has_no_genesis, Damaged, "position 0"),
        (has_another_first_record, Damaged, "not the genesis"),
        (has_a_folder_for_data, StoreUnavailable, "is not a file"),
        (has_a_pipe_for_data, StoreUnavailable, "is not a file"),
        (has_a_folder_for_a_lock, StoreUnavailable, "Is a directory"),
        (is_of_the_newer_format, Damaged, "meta page"),
    ],
)
def test_what_is_no_store_is_named_and_left_as_it_was(
    tmp_path: Path, make: Any, error: type[EfError], why: str
) -> None:
    path = tmp_path / "store"
    make(path)
    names = sorted(p.name for p in path.iterdir()) if path.is_dir() else path.read_text()
    with pytest.raises(error, match=why):
        opened(path)
    after = sorted(p.name for p in path.iterdir()) if path.is_dir() else path.read_text()
    assert set(after) - {"lock.mdb"} == set(names) - {"lock.mdb"}
    assert not LmdbEnv._open
    filled(tmp_path / "twin")
    opened(tmp_path / "twin", create_missing=False).close()


def test_a_data_file_of_garbage_with_a_sound_first_page_is_damage(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    data = bytearray((path / "data.mdb").read_bytes())
    data[8192:] = b"\xff" * (len(data) - 8192)
    (path / "data.mdb").write_bytes(data)
    assert in_child(lambda: typed(lambda: opened(path))) == "Damaged"


# -- rights, seen by somebody who is not root --------------------------------------------------------------------


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that another user can look into (the folders of pytest are closed to others)."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def as_nobody(work: Any) -> Any:
    def inside() -> Any:
        if os.getuid() == 0:
            os.setgid(65_534)
            os.setuid(65_534)
        return work()

    return in_child(inside)


def owned(folder: Path, mode: int) -> None:
    """Give the folder to nobody, with these rights."""
    for path in (folder, *folder.iterdir()):
        if os.getuid() == 0:
            os.chown(path, 65_534, 65_534)
    folder.chmod(mode)


def refusal(path: Path) -> str:
    try:
        opened(path).close()
    except EfError as fault:
        return f"{type(fault).__name__}: {fault}"
    return ""


def test_a_folder_that_cannot_be_written_is_refused_with_the_reason(shared: Path) -> None:
    (shared / "closed").mkdir()
    owned(shared / "closed", 0o500)
    for name in ("closed/store", "closed/deep/store"):
        assert "CannotWrite" in (said := as_nobody(lambda n=name: refusal(shared / n)))
        assert "Permission denied" in said
    (shared / "closed").chmod(0o700)
    assert as_nobody(lambda: refusal(shared / "closed/store")) == ""


def test_a_store_whose_files_may_not_be_read_is_unavailable_and_not_damaged(shared: Path) -> None:
    path = filled(shared / "store")
    owned(path, 0o700)
    assert as_nobody(lambda: refusal(path)) == ""
    for name, mode in ((path, 0o000), (path, 0o600), (path / "data.mdb", 0o000)):
        name.chmod(mode)
        assert as_nobody(lambda: refusal(path)).startswith("StoreUnavailable")
        name.chmod(0o700)
    assert as_nobody(lambda: refusal(path)) == ""


def test_a_store_that_may_only_be_read_is_read(shared: Path) -> None:
    path = filled(shared / "store")
    owned(path, 0o500)
    for file in path.iterdir():
        file.chmod(0o400)
    assert as_nobody(lambda: refusal(path)) == ""


# -- sharing ----------------------------------------------------------------------------------------------------


def test_two_logs_of_one_process_share_an_environment_until_the_last_is_closed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store"
    first, second = opened(path), opened(path)
    assert first._env is second._env
    first.append([title("s", "a")])
    second.append([title("s", "b")])
    first.close()
    first.close()
    assert [r.header.key for r in second.read("s")] == ["a", "b"]
    second.append([title("s", "c")])
    second.close()
    assert not LmdbEnv._open
    with opened(path / ".." / "store") as again:
        assert again.tip("s").seq == 3
        with pytest.raises(StoreUnavailable):
            first.tip("s")


def test_the_flags_of_every_environment_say_that_a_commit_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "store") as log:
        flags = log._env._env.flags()
        assert (flags["sync"], flags["metasync"], flags["writemap"], flags["map_async"]) == (
            True, True, False, False,
        )  # fmt: skip
    real = lmdb.open
    for lax in ({"sync": False}, {"metasync": False}, {"writemap": True}):
        monkeypatch.setattr(lmdb, "open", lambda *a, lax=lax, **k: real(*a, **{**k, **lax}))
        with pytest.raises(StoreUnavailable, match="LMDB would not be durable here"):
            opened(tmp_path / "store")
        assert not LmdbEnv._open


def test_address_space_that_cannot_be_had_is_asked_for_in_smaller_pieces(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, ({0} << 20,) * 2)\n"
    sizes = "with opened(path) as log: print(log._env._env.info()['map_size'] >> 20)"
    assert run(path, sizes) == "65536\n"
    assert run(path, limit.format(2_000) + sizes) == "256\n"
    told = "\ntry: opened(path)\nexcept StoreUnavailable as e: print(e)"
    used = "n = int(open('/proc/self/statm').read().split()[0]) * 4096 >> 20\n"
    said = run(path, used + limit.format("(n + 100)").replace("{0}", "") + told)
    assert "not even 256 MiB of address space could be had. Raise" in said


def test_a_lock_file_that_was_deleted_while_open_stops_the_writer_before_it_writes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store"
    with opened(path) as log:
        log.append([title("s", "a")])
        saved = (path / "lock.mdb").rename(path / "kept")
        for replace in (lambda: None, lambda: shutil.copy(saved, path / "lock.mdb")):
            replace()
            with pytest.raises(StoreUnavailable, match="lock file was deleted or replaced"):
                log.append([title("s", "b")])
            assert log.tip("s").seq == 1
        saved.replace(path / "lock.mdb")
        assert log.append([title("s", "b")])[0].seq == 2
    with opened(path) as log:
        assert log.tip("s").seq == 2 and log.tip("t") == EMPTY
        assert log.at(0).header.channel is ev.Channel.OPERATOR
