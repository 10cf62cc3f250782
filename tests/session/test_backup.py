"""A backup is a prefix of the log, verified before it appears; one that could not be made leaves nothing."""

from __future__ import annotations

import os
import resource
import stat
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.errors import BackupFailed, Damaged, StoreUnavailable
from ef.log.lmdb_env import LmdbEnv
from ef.log.tipfile import TipFile
from ef.session import Store, verify_path
from tests.log.build import filled, in_child, opened, raw, running

WRITER = """
with opened(path) as log:
    print("ready", flush=True)
    n = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        log.append([item(f"session/{name}", str(n), os.urandom(700)), title(f"session/{name}", f"t{{n}}")])
        n += 1
    print(n, flush=True)
"""


def store_of(path: Path, count: int = 30) -> Path:
    with ef.open(path) as store:
        for n in range(count):
            store.session("a").append({"role": "user", "content": f"message {n}"})
    return path


def test_a_copy_made_while_others_write_is_a_prefix_of_the_log_and_verifies(tmp_path: Path) -> None:
    path = filled(tmp_path / "store", 200, size=900)
    text = "import os, select\n" + WRITER
    with (
        running(path, text.format(name="one")) as one,
        running(path, text.format(name="two")) as two,
    ):
        for child in (one, two):
            assert child.stdout is not None and child.stdout.readline() == "ready\n"
        with ef.open(path, create=False) as store:
            ends: list[int] = []
            for n in range(4):
                before = store.log.tip_position()
                done = store.backup(tmp_path / f"copy{n}")
                assert before <= done.position <= store.log.tip_position()
                ends.append(done.position)
        for child in (one, two):
            assert child.stdin is not None
            child.stdin.close()
            child.stdin = None
    assert ends == sorted(ends) and ends[-1] > ends[0] >= 200
    with opened(path) as log:
        for n, end in enumerate(ends):
            copy = tmp_path / f"copy{n}"
            assert verify_path(copy).verdict == "sound"
            with opened(copy, create_missing=False) as again:
                assert again.store_id == log.store_id
                assert [r.digest for r in again.all()] == [log.at(p).digest for p in range(end + 1)]
                assert TipFile(copy).read() == again.store_tip() == (end, log.at(end).digest)


def test_a_copy_is_a_store_like_any_other_and_only_ours(tmp_path: Path) -> None:
    path = store_of(tmp_path / "store")
    (path / "projections").mkdir(exist_ok=True)
    before = os.umask(0)
    try:
        with ef.open(path) as store:
            done = store.backup(tmp_path / "deep" / "copy")
            state = store.session("a").state()
    finally:
        os.umask(before)
    copy = tmp_path / "deep" / "copy"
    assert done.path == copy and done.bytes == (copy / "data.mdb").stat().st_size
    assert (done.events, done.position) == (31, 30) or done.events == done.position + 1
    assert stat.S_IMODE(copy.stat().st_mode) == 0o700
    assert {p.name: stat.S_IMODE(p.stat().st_mode) for p in copy.iterdir()} == {
        "data.mdb": 0o600, "lock.mdb": 0o600, "tip": 0o600,
    }  # fmt: skip
    assert [p.name for p in copy.parent.iterdir()] == ["copy"]
    with ef.open(copy, create=False) as store:
        assert store.session("a").state() == state
        store.session("a").append({"role": "user", "content": "on"})
    assert verify_path(copy).verdict == "sound"


@pytest.mark.parametrize("what", ["store", "file", "folder", "link"])
def test_what_is_there_is_never_touched(tmp_path: Path, what: str) -> None:
    path, target = store_of(tmp_path / "store", 1), tmp_path / "target"
    if what == "store":
        store_of(target, 2)
    elif what == "file":
        target.write_text("mine")
    elif what == "folder":
        target.mkdir()
    else:
        target.symlink_to(tmp_path / "nowhere")
    with ef.open(path) as store:
        with pytest.raises(BackupFailed, match="it is there already"):
            store.backup(target)
        store.backup(tmp_path / "free")
    assert what != "file" or target.read_text() == "mine"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["free", "store", "target"]


def test_a_copy_that_is_torn_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = store_of(tmp_path / "store")
    copy_to = LmdbEnv.copy_to

    def torn(self: LmdbEnv, target: Path) -> None:
        copy_to(self, target)
        data = bytearray((target / "data.mdb").read_bytes())
        data[data.index(b"message 7") + 3] ^= 1
        (target / "data.mdb").write_bytes(data)

    with ef.open(path) as store:
        monkeypatch.setattr(LmdbEnv, "copy_to", torn)
        with pytest.raises(Damaged, match="the copy is damaged"):
            store.backup(tmp_path / "copy")
        assert [p.name for p in tmp_path.iterdir()] == ["store"]
        monkeypatch.undo()
        store.backup(tmp_path / "copy")
    assert verify_path(tmp_path / "copy").verdict == "sound"


def test_a_copy_of_another_history_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = store_of(tmp_path / "store"), store_of(tmp_path / "other")

    def theirs(self: LmdbEnv, target: Path) -> None:
        (target / "data.mdb").write_bytes((other / "data.mdb").read_bytes())

    with ef.open(path) as store:
        monkeypatch.setattr(LmdbEnv, "copy_to", theirs)
        with pytest.raises(Damaged, match="is not that of the store"):
            store.backup(tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_a_store_that_is_damaged_has_no_backup(tmp_path: Path) -> None:
    path = store_of(tmp_path / "store")
    with raw(path) as store:
        key, frame = list(store.rows(b"log").items())[9]
        store.put(b"log", key, frame[:-1] + b"?")
    with ef.open(path) as store, pytest.raises(Damaged, match="the body does not match"):
        store.backup(tmp_path / "copy")
    data = (path / "data.mdb").read_bytes()
    (path / "data.mdb").write_bytes(bytes(4096) + data[4096:])
    with ef.open(path) as store, pytest.raises(Damaged, match="meta page"):
        store.backup(tmp_path / "copy")
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_a_full_disk_is_told_and_leaves_no_half_copy(tmp_path: Path) -> None:
    path = filled(tmp_path / "store", 3)
    with opened(path) as log:
        from tests.log.build import item

        log.append([item("session/b", str(n), os.urandom(50_000)) for n in range(40)])

    def limited() -> Any:
        with ef.open(path) as store:
            import signal

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
            try:
                store.backup(tmp_path / "copy")
            except BackupFailed as fault:
                return str(fault)
            return ""

    said = in_child(limited)
    assert "no backup was made at" in said
    assert "File too large" in said and "ulimit -f" in said
    assert [p.name for p in tmp_path.iterdir()] == ["store"]
    with ef.open(path) as store:
        store.backup(tmp_path / "copy")


def test_of_two_backups_at_once_to_one_place_the_second_is_told_that_it_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ef.open(store_of(tmp_path / "store")) as store:
        copy_to = LmdbEnv.copy_to

        def meanwhile(self: LmdbEnv, target: Path) -> None:
            copy_to(self, target)
            monkeypatch.undo()
            store.backup(tmp_path / "copy")

        monkeypatch.setattr(LmdbEnv, "copy_to", meanwhile)
        with pytest.raises(BackupFailed, match=r"it is there already.* Give a new path"):
            store.backup(tmp_path / "copy")
        assert sorted(p.name for p in tmp_path.iterdir()) == ["copy", "store"]
        assert verify_path(tmp_path / "copy").ok
        store.backup(tmp_path / "other")


def test_a_backup_below_a_plain_file_is_told_what_to_give(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with ef.open(store_of(tmp_path / "store", 1)) as store:
        with pytest.raises(BackupFailed, match="give a path below a folder"):
            store.backup(tmp_path / "file" / "copy")
        store.backup(tmp_path / "folder" / "copy")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_store_that_was_closed_is_not_copied(tmp_path: Path) -> None:
    store: Store = ef.open(store_of(tmp_path / "store", 1))
    store.close()
    with pytest.raises((BackupFailed, StoreUnavailable)):
        store.backup(tmp_path / "copy")
    assert [p.name for p in tmp_path.iterdir()] == ["store"]
