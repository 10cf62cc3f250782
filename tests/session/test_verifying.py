"""Verify answers of one moment while others write, and names what is wrong wherever it lies."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.codec.record import decode_frame, encode_frame, encode_header
from ef.log import databytes
from ef.session import verify_path
from ef.session.snapshots import EVERY
from tests.log.build import filled, item, opened, raw, running, title

WRITER = """
import os, select
with opened(path) as log:
    print("ready", flush=True)
    n = 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        log.append([item("session/w", str(n), os.urandom(900)), title("session/w", f"t{n}")])
        n += 1
"""


def test_a_store_that_is_written_to_is_sound_at_every_moment(tmp_path: Path) -> None:
    path = filled(tmp_path / "store", 300, size=900)
    events: list[int] = []
    with running(path, WRITER) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        for quick in (True, False) * 4:
            found = verify_path(path, quick=quick)
            assert (found.verdict, found.problems) == ("sound", [])
            assert found.events == found.position + 1
            events.append(found.events)
    assert events == sorted(events) and events[-1] > events[0] > 300


def test_pages_that_seem_wrong_while_somebody_commits_are_looked_at_in_one_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = filled(tmp_path / "store")
    check, looks = databytes.check, list[int]()

    def seen(data: Path) -> list[str]:
        looks.append(len(looks))
        if len(looks) > 1:
            return check(data)
        with opened(path) as log:
            log.append([title("s", "in between")])
        return ["page 7 says that it is page 0"]

    monkeypatch.setattr(databytes, "check", seen)
    assert verify_path(path).verdict == "sound" and len(looks) == 2
    monkeypatch.setattr(databytes, "check", lambda data: ["page 7 says that it is page 0"])
    found = verify_path(path)
    assert (found.verdict, found.events) == ("damaged", 7)
    assert [p.what for p in found.problems] == ["page 7 says that it is page 0"]


def test_a_snapshot_that_is_not_what_the_log_says_is_named_and_rebuilt(tmp_path: Path) -> None:
    from ef.log.lmdb_log import LmdbLog
    from ef.session.snapshots import Snapshots, track_of

    path = filled(tmp_path / "store", EVERY + 5)
    with ef.open(path) as store:
        store.rebuild()
        log = store.log
        assert isinstance(log, LmdbLog)
        snapshots = Snapshots(log, "session/a")
        from ef.reducers import ALL

        tracks = [track_of("session/a", reducer) for reducer in ALL]
        kept = [(t, seq) for t in tracks for seq in snapshots.store.seqs(t)]
        assert verify_path(path).verdict == "sound"
        track, seq = kept[0]
        snapshots.store.keep(track, seq, log.get("session/a", seq).digest, b"another state")
        found = verify_path(path)
        assert [p.what for p in found.problems] == [
            f"the snapshot of {track.name} is not what the log says; `ef rebuild` makes it anew"
        ]
        store.rebuild()
        assert verify_path(path).verdict == "sound"


def test_quick_sees_a_broken_chain_in_a_common_record(tmp_path: Path) -> None:
    path = filled(tmp_path / "store", 40)
    with raw(path) as store:
        frames = list(store.rows(b"log").items())
        store.put(b"log", frames[20][0], frames[21][1])
    found = verify_path(path, quick=True)
    assert found.verdict == "damaged" and found.problems[0].where.startswith(
        "stream session/a, seq 21"
    )
    with raw(path) as store:
        store.put(b"log", frames[20][0], frames[20][1])
        store.put(b"log", frames[30][0], b"short")
    assert "position 30" in verify_path(path, quick=True).problems[0].where
    with raw(path) as store:
        store.put(b"log", frames[30][0], frames[30][1])
    with opened(path) as log:
        log.append([item("session/é", "large", os.urandom(100_000))])
    seen: list[int] = []
    assert verify_path(path, quick=True, progress=seen.append).problems == []
    assert seen == sorted(seen) and seen[-1] == 41


def test_quick_sees_every_changed_byte_of_a_header(tmp_path: Path) -> None:
    path = filled(tmp_path / "store", 5)
    with raw(path) as store:
        key, frame = list(store.rows(b"log").items())[3]
    size = int.from_bytes(frame[4:8], "big")
    for at in (*range(12), *range(28, 60 + size)):  # the salt between them is of the body
        with raw(path) as store:
            store.put(b"log", key, frame[:at] + bytes([frame[at] ^ 4]) + frame[at + 1 :])
        assert verify_path(path, quick=True).verdict == "damaged", at
    with raw(path) as store:
        store.put(b"log", key, frame)
    assert verify_path(path, quick=True).verdict == "sound"


def test_quick_sees_a_record_whose_stream_fits_and_whose_store_does_not(tmp_path: Path) -> None:
    path, other = filled(tmp_path / "store", 2), tmp_path / "other"
    shutil.copytree(path, other)
    for each, key in ((path, "ours"), (other, "theirs")):
        with opened(each) as log:
            log.append([title("u", key), title("z", "the same")])
    with raw(other) as store:
        key, theirs = list(store.rows(b"log").items())[4]
    with raw(path) as store:
        store.put(b"log", key, theirs)
    (path / "tip").unlink()
    (problem,) = verify_path(path, quick=True).problems
    assert problem.what == "it does not follow the record before it in the store"
    assert (problem.stream, problem.seq) == ("z", 1)


@pytest.mark.parametrize("how", [{"seq": 9}, {"prev_stream": bytes(32)}])
def test_quick_sees_a_record_whose_store_fits_and_whose_stream_does_not(
    tmp_path: Path, how: dict[str, Any]
) -> None:
    path = filled(tmp_path / "store", 5)
    with raw(path) as store:
        key, data = list(store.rows(b"log").items())[5]
        frame = decode_frame(data, where="")
        header = encode_header(replace(frame.header, **how))
        store.put(b"log", key, encode_frame(header, frame.salt, frame.body))
    (path / "tip").unlink()
    (problem,) = verify_path(path, quick=True).problems
    assert "its stream" in problem.what


def test_a_damaged_record_at_the_tip_is_said_once_and_is_no_roll_back(tmp_path: Path) -> None:
    path = filled(tmp_path / "store", 5)
    tip = (path / "tip").read_text()
    with opened(path) as log:
        log.append([title("s", "one more")])
    (path / "tip").write_text(tip)  # it may be behind
    with raw(path) as store:
        key, frame = list(store.rows(b"log").items())[5]
        store.put(b"log", key, frame[:70] + b"?" + frame[71:])
    found = verify_path(path, quick=True)
    assert found.verdict == "damaged"
    assert [p.verdict for p in found.problems] == ["damaged"]
