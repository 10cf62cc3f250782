"""Files of a store that somebody deletes, replaces, cuts or swaps: noticed while it is open, and when it is opened."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from ef.errors import Damaged, OtherStore, StoreUnavailable
from ef.log import folder
from ef.log.lmdb_env import LmdbEnv, engine
from ef.session import verify_path
from tests.log.build import filled, in_child, opened, running, title, typed


def test_a_data_file_that_was_replaced_or_cut_while_open_stops_the_writer_before_it_writes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store"
    with opened(path) as log:
        log.append([title("s", "a")])
        data = path / "data.mdb"
        saved = data.rename(path / "kept")
        for replace in (lambda: None, lambda: shutil.copy(saved, data)):
            replace()
            with pytest.raises(StoreUnavailable, match="data file was deleted or replaced"):
                log.append([title("s", "b")])
            assert log.tip("s").seq == 1
        saved.replace(data)
        assert log.append([title("s", "b")])[0].seq == 2
        whole = data.read_bytes()
        os.truncate(data, len(whole) - 4096)
        with pytest.raises(Damaged, match="it was cut from"):
            log._env.write(lambda txn: None)
        data.write_bytes(whole)
        assert log.append([title("s", "c")])[0].seq == 3


def test_a_lock_file_that_is_gone_is_made_anew_only_if_nobody_has_the_store_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = filled(tmp_path / "store")
    monkeypatch.setattr(folder, "CLAIM_SECONDS_MAX", 0.2)
    (path / "lock.mdb").unlink()
    opened(path).close()
    assert (path / "lock.mdb").exists()
    with running(
        path, "log = opened(path)\nprint('open', flush=True)\nsys.stdin.read()\nlog.close()"
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "open\n"
        opened(path).close()
        (path / "lock.mdb").unlink()
        with pytest.raises(
            StoreUnavailable, match="its lock file was deleted while another process"
        ):
            opened(path)
        assert not (path / "lock.mdb").exists() and not LmdbEnv._open
    opened(path).close()
    assert (path / "lock.mdb").exists()


def test_who_makes_the_lock_file_is_waited_for(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    done: list[str] = []
    for gone in (True, False):
        if gone:
            (path / "lock.mdb").unlink()
        with (path / "data.mdb").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            done.clear()
            thread = threading.Thread(
                target=lambda: done.append(typed(lambda: opened(path).close()))
            )
            thread.start()
            time.sleep(0.05)
            folder.write_lock_file(path)
            if gone:
                fcntl.flock(file, fcntl.LOCK_SH)
            thread.join(60)
        assert done == [""]


def test_a_disk_without_such_locks_is_no_reason_to_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    path = filled(tmp_path / "store")
    (path / "lock.mdb").unlink()
    monkeypatch.setattr(fcntl, "flock", refuse)
    with opened(path) as log:
        assert log.append([title("s", "a")])[0].seq == 1


def test_a_child_does_not_go_on_with_another_file_in_the_place_of_the_store(tmp_path: Path) -> None:
    path, other = filled(tmp_path / "store"), filled(tmp_path / "other")
    with opened(path) as log:
        os.replace(other / "data.mdb", path / "data.mdb")
        said = in_child(lambda: typed(lambda: log.tip("session/a")))
        assert said == "StoreUnavailable"
        assert log.tip("session/a").seq == 5


@pytest.mark.parametrize("how", ["replaced", "tip of old"])
def test_the_data_file_of_another_store_is_told_by_the_tip_file(tmp_path: Path, how: str) -> None:
    path, other = filled(tmp_path / "store"), filled(tmp_path / "other")
    if how == "replaced":
        shutil.copy(other / "data.mdb", path / "data.mdb")
    else:
        shutil.copy(other / "tip", path / "tip")
    with pytest.raises(OtherStore, match="the file tip is of the store"):
        opened(path)
    found = verify_path(path)
    assert (found.verdict, found.problems[0].verdict) == ("rolled-back", "rolled-back")
    (path / "tip").unlink()
    with opened(path) as log:
        log.append([title("s", "wanted all the same")])
    assert verify_path(path).verdict == "sound"
    whole = tmp_path / "whole"
    shutil.copytree(
        other, whole
    )  # a store that was moved with its tip file is the store that it was
    assert verify_path(whole).verdict == "sound"


def test_the_environment_says_how_it_is(tmp_path: Path) -> None:
    path = filled(tmp_path / "store", 100, size=900)
    reader = "log = opened(path)\nwith log._env.read(): print('reads', flush=True); sys.stdin.read()\nlog.close()"
    with opened(path) as log, running(path, reader) as other:
        assert other.stdout is not None and other.stdout.readline() == "reads\n"
        for n in range(3):
            log.append([title("s", str(n))])
        found = log._env.condition()
        assert (other.pid, 3) in found["readers"]
        assert 0 < found["used"] <= found["pages"] <= (path / "data.mdb").stat().st_size // 4096
        assert found["flags"]["sync"] and not found["readonly"] and found["stale"] == 0
        log._env.try_write_lock()
        assert log.append([title("s", "3")])[0].seq == 4
    version, patched = engine()
    assert version.startswith("0.9.") and patched
