"""The recorded log and store of format 1: opened, verified, projected, appended to and rebuilt."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

import ef
from ef.codec import kinds, record
from ef.events import Recorded
from ef.log import databytes
from ef.log.items import recorded
from ef.log.lmdb_log import LmdbLog
from ef.projections.working import Working
from ef.session.session import Session
from tests.golden.v1 import history
from tests.log.build import DATABASES, checked, opened, raw, says, title

V1 = Path(__file__).resolve().parent.parent / "golden" / "v1"
SESSION: dict[str, Any] = json.loads((V1 / "session.json").read_text(encoding="utf-8"))
STORE: dict[str, Any] = json.loads((V1 / "store.json").read_text(encoding="utf-8"))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A copy of the recorded store."""
    return Path(shutil.copytree(V1 / "store", tmp_path / "store"))


def agree(log: LmdbLog, stream: str, expected: dict[str, Any]) -> None:
    working = Working(stream).apply(recorded(log, stream))
    assert (working.seq, log.tip(stream).digest.hex()) == (expected["events"], expected["tip"])
    assert working.state_digest().hex() == expected["state_digest"]
    assert blake3(working.canonical()).hexdigest() == expected["canonical_digest"]
    assert [list(each) for each in working.refused] == expected["refused"]
    context = Session(log, stream.removeprefix("session/"), lambda: "k").context()
    assert context.digest == expected["context_digest"]


# -- the log ----------------------------------------------------------------------------------------------------


def test_the_recorded_frames_form_one_chain_and_are_written_again_byte_for_byte() -> None:
    before = bytes(32)
    for position, text in enumerate(SESSION["frames"]):
        frame = record.decode_frame(bytes.fromhex(text), where=f"{position}", strict=True)
        assert frame.header.prev_store == before
        before = frame.digest
        head = record.encode_header(frame.header)
        assert record.encode_frame(head, frame.salt, frame.body).hex() == text
    assert before.hex() == SESSION["store_digest"]


def test_the_recorded_frames_alone_give_the_recorded_projection() -> None:
    events = []
    for text in SESSION["frames"]:
        frame = record.decode_frame(bytes.fromhex(text), where="golden")
        h = frame.header
        if h.stream == history.SESSION:
            plain = record.unpack_body(h, frame.salt, frame.body, where="golden")
            event = kinds.decode_body(h.kind, h.version, plain, where="golden")
            events.append(Recorded(h, frame.digest, event))
    expected = SESSION["streams"][history.SESSION]
    for cut in range(len(events) + 1):
        working = Working(history.SESSION).apply(events[:cut])
        working.apply(events[cut:])
        assert working.state_digest().hex() == expected["state_digest"]
        assert blake3(working.canonical()).hexdigest() == expected["canonical_digest"]


def test_the_same_events_appended_today_are_the_recorded_frames(tmp_path: Path) -> None:
    with history.opened(tmp_path / "store") as log:
        history.append_all(log)
        frames = [
            record.encode_frame(r.frame.header_bytes, r.frame.salt, r.frame.body).hex()
            for r in log.all()
        ]
        assert frames == SESSION["frames"]
        for stream, expected in SESSION["streams"].items():
            agree(log, stream, expected)
        tip = log.store_tip()
        history.append_all(log)
        assert log.store_tip() == tip


def test_the_recorded_session_holds_all_that_the_test_is_about() -> None:
    state = Working(history.SESSION)
    frames = [record.decode_frame(bytes.fromhex(t), where="") for t in SESSION["frames"]]
    found = {f.header.kind for f in frames}
    assert {
        "ItemAppended",
        "ItemReplaced",
        "CallClosed",
        "ForeignCompaction",
        "AnchorDeclared",
    } <= found
    assert state.seq == 0 and len(frames) == 18


# -- the store --------------------------------------------------------------------------------------------------


def test_the_recorded_store_is_small_and_sound_without_lmdb(store: Path) -> None:
    assert (store / "data.mdb").stat().st_size < 200_000
    assert databytes.check(store / "data.mdb") == []


def test_the_recorded_store_opens_verifies_and_says_what_it_said(store: Path) -> None:
    assert says(checked(store)) == ""
    with opened(store, create_missing=False) as log:
        assert log.store_id == STORE["store"]
        assert log.store_tip() == (STORE["position"], bytes.fromhex(STORE["digest"]))
        assert {name: tip.seq for name, tip in log.streams()} == STORE["streams"]
        for stream, expected in STORE["sessions"].items():
            agree(log, stream, expected)
        for record_ in log.all():
            log.body(record_)


def test_the_recorded_store_gives_back_the_file_that_was_imported(store: Path) -> None:
    with ef.open(store) as opened_store:
        assert opened_store.export_original("imported").decode() == STORE["original"]
        assert opened_store.verify().verdict == "sound"


def test_the_recorded_store_is_appended_to_and_still_verifies(store: Path) -> None:
    with opened(store) as log:
        before = {name: tip.seq for name, tip in log.streams()}
        log.append([title("session/golden", "more"), title("session/new", "first")])
        assert log.tip("session/golden").seq == before["session/golden"] + 1
        assert [a.new for a in log.append(history.batches()[0])] == [False] * 5
    found = checked(store)
    assert says(found) == "" and found.position == STORE["position"] + 2
    with ef.open(store) as again:
        assert again.verify().verdict == "sound"
        seq = again.session("golden").append({"role": "user", "content": "Still here."})
        assert seq > before["session/golden"] + 1


def rows_of(path: Path) -> dict[bytes, dict[bytes, bytes]]:
    with raw(path) as rows:
        return {db: rows.rows(db) for db in DATABASES}


def test_the_recorded_store_is_rebuilt_record_by_record(store: Path, tmp_path: Path) -> None:
    """Its records put into a new store in their order make the same indexes and the same tips."""
    from ef.log.base import Prepared
    from ef.log.lmdb_env import LmdbEnv, create
    from ef.log.rows import put_records

    with opened(store) as log:
        prepared = [
            Prepared(
                r.header,
                r.digest,
                record.encode_frame(r.frame.header_bytes, r.frame.salt, r.frame.body),
                r.frame.body,
            )
            for r in log.all()
        ]
    rows = rows_of(store)
    create(tmp_path / "again", lambda txn: put_records(txn, prepared, 0))
    assert not LmdbEnv._open
    with opened(tmp_path / "again") as log:
        for stream, expected in STORE["sessions"].items():
            agree(log, stream, expected)
    assert rows_of(tmp_path / "again") == rows
    assert says(checked(tmp_path / "again")) == ""


@pytest.mark.parametrize("at", [0.3, 0.5, 0.7, 0.9])
def test_the_recorded_store_with_a_changed_byte_in_a_record_is_not_sound(
    store: Path, at: float
) -> None:
    frames = list(rows_of(store)[b"log"].values())
    data = bytearray((store / "data.mdb").read_bytes())
    frame = frames[int(len(frames) * at)]
    data[bytes(data).index(frame) + len(frame) // 2] ^= 1
    (store / "data.mdb").write_bytes(data)
    assert databytes.check(store / "data.mdb") == []
    assert "damaged" in says(checked(store))


# -- the script -------------------------------------------------------------------------------------------------


def test_the_script_writes_nothing_over_without_being_told_to() -> None:
    before = {p: p.read_bytes() for p in V1.rglob("*") if p.is_file() and p.suffix != ".pyc"}
    done = subprocess.run(
        [sys.executable, "-B", str(V1 / "make.py")], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1 and "kinds.json" in done.stdout and "--force" in done.stdout
    assert {p: p.read_bytes() for p in before} == before
