"""The tip outside the data file: it may be behind the store for a moment, and the store may never be behind it."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from ef.errors import Damaged, RolledBack
from ef.log.base import Record
from ef.log.lmdb_log import LmdbLog
from ef.log.rows import U64
from ef.log.tipfile import BEHIND_SECONDS_MAX, TipFile
from tests.log.build import (
    checked,
    filled,
    frame_at,
    in_child,
    opened,
    raw,
    run,
    says,
    title,
)

D1, D2 = bytes([1] * 32), bytes([2] * 32)


def tip_of(path: Path) -> tuple[int, bytes] | None:
    return TipFile(path).read()


def waited(path: Path, position: int, seconds: float = 60) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if (tip_of(path) or (-1,))[0] == position:
            return True
        time.sleep(0.01)
    return False


def test_the_line_is_what_the_format_says(tmp_path: Path) -> None:
    tip = TipFile(tmp_path)
    tip.moved(7, D1)
    assert (tmp_path / "tip").read_text() == f"ef-tip 1 7 {'01' * 32}\n"
    assert tip.read() == (7, D1)
    assert BEHIND_SECONDS_MAX == 0.25


def test_a_first_move_is_written_at_once_and_later_ones_soon(tmp_path: Path) -> None:
    tip = TipFile(tmp_path)
    tip.moved(1, D1)
    assert tip.read() == (1, D1)
    started = time.monotonic()
    for n in range(2, 50):
        tip.moved(n, D2)
    behind = tip.read()
    assert behind == (1, D1) or time.monotonic() - started > BEHIND_SECONDS_MAX
    assert waited(tmp_path, 49)
    mine = [t for t in threading.enumerate() if getattr(t, "function", None) == tip.flush]
    for timer in mine:  # it has written, and ends
        timer.join(60)
        assert not timer.is_alive()


def test_it_is_equal_after_close_and_never_goes_back(tmp_path: Path) -> None:
    tip = TipFile(tmp_path)
    tip.moved(1, D1)
    tip.moved(3, D2)
    tip.moved(2, D1)
    tip.flush()
    assert tip.read() == (3, D2)
    tip.moved(3, D1)
    tip.flush()
    other = TipFile(tmp_path)
    other.moved(2, D1)
    other.flush()
    assert tip.read() == (3, D2)
    assert [p.name for p in tmp_path.iterdir()] == ["tip"]


@pytest.mark.parametrize(
    "text",
    [b"", b"garbage", b"ef-tip 2 7 " + b"01" * 32 + b"\n", b"ef-tip 1 7 " + b"01" * 31 + b"\n",
     b"ef-tip 1 -7 " + b"01" * 32 + b"\n", b"ef-tip 1 7 " + b"01" * 32, b"\xff" * 100,
     "ef-tip 1 ٧ ".encode() + b"01" * 32 + b"\n"],
)  # fmt: skip
def test_garbage_is_no_tip_and_is_written_over(tmp_path: Path, text: bytes) -> None:
    path = filled(tmp_path / "store")
    assert tip_of(path) is not None
    (path / "tip").write_bytes(text)
    assert tip_of(path) is None
    assert says(checked(path)) == ""
    with opened(path) as log:
        log.append([title("s", "a")])
    assert tip_of(path) == (6, opened_tip(path)[1])


def opened_records(path: Path) -> list[Record]:
    with opened(path) as log:
        return list(log.all())


def opened_tip(path: Path) -> tuple[int, bytes]:
    with opened(path) as log:
        return log.store_tip()


def test_a_tip_that_cannot_be_written_does_not_stop_the_store(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    (path / "tip").unlink()
    (path / "tip").mkdir()
    (path / "tip" / "x").touch()
    with opened(path) as log:
        assert log.append([title("s", "a")])[0].seq == 1


def test_each_commit_of_a_log_moves_the_tip_to_its_last_record(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        log.append([title("s", "a"), title("t", "b")])
        assert tip_of(log.path) == log.store_tip()
        log.append([title("s", "c")])
        log.append([title("s", "c")])
        assert waited(log.path, 3)
        log.append([title("s", "d")])
    assert tip_of(tmp_path / "store") == opened_tip(tmp_path / "store")


def test_the_tip_is_that_of_our_own_record_when_another_process_is_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store"
    with opened(path) as log:
        write = log._env.write

        def then_another(work: object) -> object:
            done = write(work)  # type: ignore[arg-type]
            monkeypatch.undo()
            run(path, "with opened(path) as log: log.append([title('s', 'theirs')])")
            (path / "tip").unlink()  # as if they had not come to it yet
            return done

        monkeypatch.setattr(log._env, "write", then_another)
        (path / "tip").unlink(missing_ok=True)
        log.append([title("s", "mine")])
        assert [r.header.key for r in log.read("s")] == ["mine", "theirs"]
    assert tip_of(path) == (1, [r.digest for r in opened_records(path)][1])
    assert says(checked(path)) == ""


# -- what verify makes of it ------------------------------------------------------------------------------------


def copied(path: Path) -> bytes:
    return (path / "data.mdb").read_bytes()


def more(path: Path, key: str) -> None:
    with opened(path) as log:
        log.append([title("s", key)])


def test_a_tip_that_is_behind_is_no_problem(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    before = (path / "tip").read_bytes()
    more(path, "a")
    (path / "tip").write_bytes(before)
    assert says(checked(path)) == ""


@pytest.mark.parametrize("quick", [False, True])
def test_an_older_copy_that_was_put_back_is_reported_as_rolled_back(
    tmp_path: Path, quick: bool
) -> None:
    path = filled(tmp_path / "store")
    before = copied(path)
    more(path, "a")
    (path / "data.mdb").write_bytes(before)
    found = checked(path, quick=quick)
    assert says(found) == "rolled-back: tip: the store ends at position 5; its tip was once at 6"
    assert found.events == 6


def test_another_history_of_the_same_length_is_reported_as_rolled_back(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    before = copied(path)
    more(path, "a")
    kept = (path / "tip").read_bytes()
    (path / "data.mdb").write_bytes(before)
    (path / "tip").unlink()
    more(path, "b")
    assert says(checked(path)) == ""
    (path / "tip").write_bytes(kept)
    assert says(checked(path)) == "rolled-back: tip: position 6 held another record once"


def test_a_rolled_back_store_that_is_written_to_is_still_reported(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    before = copied(path)
    more(path, "a")
    (path / "data.mdb").write_bytes(before)
    kept = (path / "tip").read_bytes()
    (path / "tip").unlink()
    for key in ("b", "c", "d"):
        more(path, key)
    (path / "tip").write_bytes(kept)
    assert says(checked(path)) == "rolled-back: tip: position 6 held another record once"
    with opened(path) as log:
        assert log.tip("s").seq == 3
    (path / "tip").unlink()
    more(path, "e")
    assert says(checked(path)) == ""
    assert tip_of(path) == opened_tip(path)


def test_a_tip_beyond_all_numbers_or_at_a_damaged_record_is_kept_too(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    for line in (f"ef-tip 1 {10**20 - 1} {'01' * 32}\n", f"ef-tip 1 2 {'01' * 32}\n"):
        (path / "tip").write_text(line)
        with pytest.raises(RolledBack):
            more(path, line[9:12].strip())
        assert (path / "tip").read_text() == line
        assert "rolled-back" in says(checked(path))


def test_a_tip_at_a_record_that_is_damaged_now_is_kept(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    kept = (path / "tip").read_bytes()
    frame = frame_at(path, 5)
    with raw(path) as store:
        store.put(b"log", U64.pack(5), frame[:20])
    with opened(path) as log, pytest.raises(Damaged, match="position 5"):
        log.append([title("t", "a")])
    with raw(path) as store:
        store.put(b"log", U64.pack(5), frame)
    assert (path / "tip").read_bytes() == kept
    assert says(checked(path)) == ""


def test_a_whole_folder_that_was_put_back_is_a_store_like_any_other(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    shutil.copytree(path, tmp_path / "copy")
    more(path, "a")
    shutil.rmtree(path)
    shutil.copytree(tmp_path / "copy", path)
    assert says(checked(path)) == ""


# -- forks ------------------------------------------------------------------------------------------------------


def test_a_forked_child_writes_its_own_tip_even_while_the_parents_lock_is_held(
    tmp_path: Path,
) -> None:
    tip = TipFile(tmp_path)
    tip.moved(1, D1)
    tip.moved(2, D1)  # a timer waits

    def child() -> tuple[int, bytes] | None:
        tip.moved(5, D2)
        tip.flush()
        return tip.read()

    with tip._lock:
        assert in_child(child) == (5, D2)
    with tip._lock:
        in_child(tip.flush)
    tip.flush()
    assert tip.read() == (5, D2)


def test_a_log_that_was_closed_twice_in_a_child_is_still_open_here(tmp_path: Path) -> None:
    log: LmdbLog = opened(tmp_path / "store")
    log.append([title("s", "a")])
    in_child(log.close)
    log.append([title("s", "b")])
    log.close()
    assert opened_tip(tmp_path / "store") == tip_of(tmp_path / "store")


def test_what_is_put_in_the_place_of_the_file_is_healed_by_the_next_move(tmp_path: Path) -> None:
    def folder(path: Path) -> None:
        path.mkdir()

    def linked(path: Path) -> None:
        path.symlink_to(path.with_name("nowhere"))

    for number, put in enumerate((folder, linked, os.mkfifo, Path.touch), 1):
        (tmp_path / "tip").unlink(missing_ok=True)
        put(tmp_path / "tip")
        assert tip_of(tmp_path) is None, "and nothing is waited for"
        TipFile(tmp_path).moved(number, D1)
        assert tip_of(tmp_path) == (number, D1)
        assert [p.name for p in tmp_path.iterdir()] == ["tip"]


def test_a_folder_that_holds_something_is_left_and_named(tmp_path: Path) -> None:
    (tmp_path / "tip").mkdir()
    (tmp_path / "tip" / "mine").write_text("mine")
    tip = TipFile(tmp_path)
    tip.moved(1, D1)
    assert (tmp_path / "tip" / "mine").read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["tip"], "no draft is left"
    what, remedy = tip.remark() or ("", "")
    assert "is a folder" in what and remedy.startswith("Move that folder away")
    (tmp_path / "tip").rename(tmp_path / "elsewhere")
    tip.moved(2, D1)
    tip.flush()
    assert tip_of(tmp_path) == (2, D1) and tip.remark() is None


def test_a_file_that_is_linked_to_is_read(tmp_path: Path) -> None:
    TipFile(tmp_path).moved(1, D1)
    (tmp_path / "tip").rename(tmp_path / "kept")
    (tmp_path / "tip").symlink_to("kept")
    assert tip_of(tmp_path) == (1, D1)
