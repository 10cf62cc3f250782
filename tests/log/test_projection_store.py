"""The projection store: what holds is given back, what does not is never given out, and none of it can fail a caller.

A snapshot that was cut off, altered, moved, made by another store or made of another history is no snapshot.
"""

from __future__ import annotations

import os
import shutil
import stat
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from blake3 import blake3

from ef.codec.cbor import encode
from ef.log import projection_store
from ef.log.points import hold
from ef.log.projection_store import FREE_BYTES_MIN, MAGIC, ProjectionStore, Track

TRACK = Track("session/a", "heads", "f1")
DIGEST, OTHER = bytes([7] * 32), bytes([8] * 32)
DATA = b"what is kept " * 40


@pytest.fixture
def kept(tmp_path: Path) -> ProjectionStore:
    store = ProjectionStore(tmp_path, "st:1")
    assert store.keep(TRACK, 1_000, DIGEST, DATA)
    return store


def file_of(store: ProjectionStore, seq: int = 1_000) -> Path:
    (found,) = store.path.rglob(str(seq))
    return found


def test_what_was_kept_is_given_back(kept: ProjectionStore) -> None:
    assert kept.read(TRACK, 1_000, DIGEST) == DATA
    assert kept.seqs(TRACK) == [1_000]
    assert kept.size(TRACK, 1_000) == len(DATA)
    assert file_of(kept).stat().st_size < len(DATA)


def test_what_was_never_kept_is_not_there(kept: ProjectionStore) -> None:
    unknown = Track("session/b", "heads", "f1")
    assert kept.seqs(unknown) == []
    assert kept.read(TRACK, 2_000, DIGEST) is None
    assert kept.size(TRACK, 2_000) == 0
    kept.take_away(TRACK, 2_000)
    assert kept.read(TRACK, 1_000, DIGEST) == DATA


def test_nothing_is_kept_is_something(tmp_path: Path) -> None:
    store = ProjectionStore(tmp_path, "st:1")
    assert store.keep(TRACK, 3, DIGEST, b"")
    assert store.read(TRACK, 3, DIGEST) == b""


def test_seqs_are_in_order_and_drafts_are_none(kept: ProjectionStore) -> None:
    for seq in (10_000, 9_000, 20_000):
        kept.keep(TRACK, seq, DIGEST, DATA)
    (file_of(kept).parent / "5000.12.34.new").write_bytes(b"half")
    assert kept.seqs(TRACK) == [1_000, 9_000, 10_000, 20_000]


def cut(data: bytes) -> bytes:
    return data[:-1]


def flipped(at: int) -> Callable[[bytes], bytes]:
    return lambda data: data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda _: b"",
    "magic": flipped(0),
    "check": flipped(len(MAGIC)),
    "record digest": flipped(len(MAGIC) + 32),
    "size": flipped(len(MAGIC) + 71),
    "last byte": flipped(-1),
    "cut": cut,
    "longer": lambda data: data + b"\0",
    "head only": lambda data: data[: len(MAGIC) + 32],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_no_snapshot_and_goes(kept: ProjectionStore, damage: str) -> None:
    file = file_of(kept)
    file.write_bytes(DAMAGE[damage](file.read_bytes()))
    assert kept.read(TRACK, 1_000, DIGEST) is None
    assert not file.exists()
    assert kept.keep(TRACK, 1_000, DIGEST, DATA)
    assert kept.read(TRACK, 1_000, DIGEST) == DATA


def test_each_bit_of_a_file_counts(kept: ProjectionStore) -> None:
    file = file_of(kept)
    whole = file.read_bytes()
    for at in range(len(whole)):
        file.write_bytes(flipped(at)(whole))
        assert kept.read(TRACK, 1_000, DIGEST) is None, at
    file.write_bytes(whole)
    assert kept.read(TRACK, 1_000, DIGEST) == DATA


def test_a_snapshot_of_another_history_is_none(kept: ProjectionStore) -> None:
    assert kept.read(TRACK, 1_000, OTHER) is None
    assert kept.seqs(TRACK) == []


@pytest.mark.parametrize(
    ("store_id", "track", "seq"),
    [
        ("st:2", TRACK, 1_000),
        ("st:1", Track("session/b", "heads", "f1"), 1_000),
        ("st:1", Track("session/a", "surface", "f1"), 1_000),
        ("st:1", Track("session/a", "heads", "f2"), 1_000),
        ("st:1", TRACK, 2_000),
    ],
)
def test_a_file_that_was_moved_is_no_snapshot(
    kept: ProjectionStore, tmp_path: Path, store_id: str, track: Track, seq: int
) -> None:
    there = ProjectionStore(tmp_path / "there", store_id)
    (tmp_path / "there").mkdir()
    assert there.keep(track, seq, DIGEST, b"its own")
    assert there.read(track, seq, DIGEST) == b"its own"
    shutil.copy(file_of(kept), file_of(there, seq))
    assert there.read(track, seq, DIGEST) is None


@pytest.mark.parametrize(
    ("size", "packed"),
    [
        (5, b"no zlib"),
        (4, zlib.compress(b"12345")),
        (6, zlib.compress(b"12345")),
        (2**62, zlib.compress(b"12345")),
        (10, zlib.compress(b"0" * (1 << 24))),
    ],
)
def test_a_forged_file_whose_size_is_a_lie_is_no_snapshot(
    kept: ProjectionStore, size: int, packed: bytes
) -> None:
    def forged(size: int, packed: bytes) -> bytes:
        checked = DIGEST + size.to_bytes(8, "big") + packed
        of = encode(["st:1", TRACK.stream, TRACK.name, TRACK.form, 1_000])
        return MAGIC + blake3(of + checked).digest() + checked

    file_of(kept).write_bytes(forged(5, zlib.compress(b"12345")))
    assert kept.read(TRACK, 1_000, DIGEST) == b"12345"
    file_of(kept).write_bytes(forged(size, packed))
    assert kept.read(TRACK, 1_000, DIGEST) is None


def test_only_we_can_look_at_it_whatever_the_umask_is(tmp_path: Path) -> None:
    before = os.umask(0o277)
    try:
        store = ProjectionStore(tmp_path, "st:1")
        assert store.keep(TRACK, 1, DIGEST, DATA)
    finally:
        os.umask(before)
    for path in (store.path, *store.path.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_where_it_cannot_be_written_nothing_fails(tmp_path: Path) -> None:
    store = ProjectionStore(tmp_path / "gone", "st:1")
    assert not store.writable()
    assert not store.keep(TRACK, 1, DIGEST, DATA)
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "projections").write_text("a file stands in its way")
    assert store.obstacle() == (
        "it is not a folder", "Move it away: the folder is made anew."
    )  # fmt: skip
    assert not store.keep(TRACK, 1, DIGEST, DATA)
    assert store.seqs(TRACK) == []
    store.prune("session/a", {})
    store.drop()


def test_a_draft_that_cannot_be_finished_is_taken_away(kept: ProjectionStore) -> None:
    file_of(kept).unlink()
    (file_of_folder := next(kept.path.glob("*/*")) / "1000").mkdir()
    (file_of_folder / "mine").touch()
    assert not kept.keep(TRACK, 1_000, DIGEST, DATA)
    assert [p.name for p in file_of_folder.parent.iterdir()] == ["1000"]
    assert kept.read(TRACK, 1_000, DIGEST) is None
    assert kept.size(TRACK, 1_000) == 0
    with pytest.raises(OSError, match="not empty") as caught:
        kept.put(TRACK, 1_000, DIGEST, DATA)
    assert caught.value.filename == str(file_of_folder)
    kept.take_away(TRACK, 1_000)
    kept.prune(TRACK.stream, {})
    assert (file_of_folder / "mine").exists()
    (file_of_folder / "mine").unlink()
    assert kept.keep(TRACK, 1_000, DIGEST, DATA)


def test_the_last_room_of_a_disk_is_left_to_the_log(
    kept: ProjectionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for free, writable in ((FREE_BYTES_MIN, True), (FREE_BYTES_MIN - 1, False)):
        disk = SimpleNamespace(f_bavail=free, f_frsize=1)
        monkeypatch.setattr(os, "statvfs", lambda _, disk=disk: disk)
        assert kept.writable() is writable


def test_what_is_too_large_is_not_kept(
    kept: ProjectionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projection_store, "SNAPSHOT_BYTES_MAX", 10)
    assert kept.keep(TRACK, 2_000, DIGEST, b"0123456789")
    assert not kept.keep(TRACK, 3_000, DIGEST, b"0123456789a")
    assert kept.seqs(TRACK) == [1_000, 2_000]


def test_prune_leaves_what_it_is_told_to_and_nothing_else_of_the_stream(
    kept: ProjectionStore,
) -> None:
    older, other = Track("session/a", "heads", "f0"), Track("session/b", "heads", "f1")
    for track, seq in ((TRACK, 2_000), (older, 1_000), (other, 1_000)):
        assert kept.keep(track, seq, DIGEST, DATA)
    draft = kept.path.rglob("2000").__next__().with_name("2000.1.2.new")
    draft.write_bytes(b"half")
    kept.prune("session/a", {TRACK: [2_000]})
    assert (kept.seqs(TRACK), kept.seqs(older), kept.seqs(other)) == ([2_000], [], [1_000])
    assert not draft.exists()
    kept.prune("session/a", {})
    assert (kept.seqs(TRACK), kept.seqs(other)) == ([], [1_000])
    kept.drop()
    assert not kept.path.exists()


def test_many_who_keep_the_same_at_once_leave_one_that_holds(kept: ProjectionStore) -> None:
    seen: list[bytes | None] = []

    def work() -> None:
        for _ in range(30):
            kept.keep(TRACK, 5_000, DIGEST, DATA)
            seen.append(kept.read(TRACK, 5_000, DIGEST))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(seen) == {DATA}
    assert len(list(kept.path.rglob("*.new"))) == 0


def test_its_points_come_in_order(kept: ProjectionStore) -> None:
    seen: list[tuple[str, bool]] = []
    target = file_of(kept).with_name("2000")
    hold(lambda name: seen.append((name, target.exists())))
    try:
        kept.keep(TRACK, 2_000, DIGEST, DATA)
    finally:
        hold(None)
    assert seen == [
        ("snapshot.built", False),
        ("snapshot.drafted", False),
        ("snapshot.written", True),
    ]
