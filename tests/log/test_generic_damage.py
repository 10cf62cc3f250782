"""The log over a recorder of the library: what is damaged in its index rows and elsewhere is noticed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ef import events as ev
from ef.codec.digests import event_uuid
from ef.errors import Damaged, InputRefused
from ef.log.base import EMPTY
from ef.log.generic import KEYS, STREAMS, TURNS, GenericLog
from tests.log.build import item, title
from tests.log.contract import sqlite_log
from tests.log.hooked import Hooked, over


@pytest.fixture
def recorder() -> Hooked:
    return Hooked()


@pytest.fixture
def log(recorder: Hooked) -> Iterator[GenericLog]:
    with over(recorder) as found:
        yield found


def test_what_is_sound_before_a_damaged_record_is_given_out_before_the_error(
    recorder: Hooked, log: GenericLog
) -> None:
    log.append([title("s", str(n)) for n in range(20)])
    sound = recorder.state("s", 14)
    recorder.change("s", 14, sound[:-1])
    records = log.read("s")
    assert [next(records).header.seq for _ in range(13)] == list(range(1, 14))
    with pytest.raises(Damaged, match="seq 14"):
        next(records)
    assert [record.header.seq for record in log.read("s", after=15)] == list(range(16, 21))
    recorder.change("s", 14, sound)
    assert len(list(log.read("s"))) == 20


# -- damage of the index rows -----------------------------------------------------------------------------------


@pytest.fixture
def name(log: GenericLog) -> str:
    """The row of a key of a log with three records in `s` and one in `t`."""
    log.append([title("s", "a"), title("s", "b"), title("s", "c"), title("t", "d")])
    return f"{KEYS}s/{event_uuid('s', 'b').hex()}"


def test_a_row_of_a_key_that_leads_elsewhere_is_noticed(
    recorder: Hooked, log: GenericLog, name: str
) -> None:
    sound = recorder.state(name)
    assert log.find("s", "b") == 2
    for bad in (
        b"",
        sound[:-1],
        sound[:8] + bytes(32),
        (1).to_bytes(8, "big") + sound[8:],
        (9).to_bytes(8, "big") + sound[8:],
        b"\xff" * 8 + sound[8:],
    ):
        recorder.change(name, 1, bad)
        for look in (lambda: log.find("s", "b"), lambda: log.append([title("s", "b")])):
            with pytest.raises(Damaged, match="stream s, key b: its index row"):
                look()
    recorder.change(name, 1, sound)
    assert log.append([title("s", "b")])[0].new is False


@pytest.mark.parametrize("state", [b"\xff", None])
def test_a_list_of_streams_that_is_damaged_is_noticed(
    recorder: Hooked, log: GenericLog, name: str, state: bytes | None
) -> None:
    assert [found for found, _ in log.streams()] == ["store", "s", "t"]
    recorder.change(STREAMS, 2, state)
    with pytest.raises(Damaged, match="index/streams, seq 2"):
        list(log.streams())


def test_a_stream_that_is_listed_and_has_no_records_is_noticed(
    recorder: Hooked, log: GenericLog, name: str
) -> None:
    recorder.change("t", 1, None)
    with pytest.raises(Damaged, match="stream t: its records are not there"):
        list(log.streams())
    assert [found for found, _ in log.streams("s")] == ["store", "s"]


def test_turns_that_are_damaged_are_noticed(recorder: Hooked, log: GenericLog, name: str) -> None:
    newest = log.store_tip()[0]
    recorder.change(TURNS, newest, b"short")
    with pytest.raises(Damaged, match="it is no digest"):
        log.append([title("s", "x")])
    for turn in range(1, newest + 1):
        recorder.change(TURNS, turn, None)
    with pytest.raises(Damaged, match="the row is not there"):
        log.append([title("s", "x")])
    assert log.tip("s").seq == 3


def test_what_is_missing_in_the_order_of_the_store_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    log, close = sqlite_log(path)
    log.append([title("s", "a"), title("s", "b"), title("s", "c"), title("t", "d")])
    assert [r.header.key for r in log.all()][1:] == ["a", "b", "c", "d"]

    def delete(stream: str, seq: int) -> None:
        with closing(sqlite3.connect(path)) as db, db:
            which = "WHERE originator_id = ? AND originator_version = ?"
            assert db.execute(f"DELETE FROM stored_events {which}", (stream, seq)).rowcount == 1

    delete("t", 1)
    with pytest.raises(Damaged, match="its newest record is not there"):
        list(log.all())
    delete("s", 2)
    with pytest.raises(Damaged, match=r"stream s, seq 3: it does not follow .* in the store"):
        list(log.all())
    first = next(r for r in log.all() if r.header.key == "a")
    assert [r.header.key for r in log.all(after=first.position)] == ["c"]
    close()


def test_rows_that_are_no_bytes_or_vanish_while_they_are_read_are_noticed(
    recorder: Hooked, log: GenericLog, name: str
) -> None:
    begun = log.read("s")
    recorder.change("s", 1, "text")
    with pytest.raises(Damaged, match="stream s, seq 1: its row holds no bytes"):
        next(begun)
    begun = log.read("s", after=2)
    recorder.change("s", 3, None)
    with pytest.raises(Damaged, match="stream s, seq 3"):
        next(begun)


def test_a_body_whose_place_cannot_be_read_is_damage(log: GenericLog) -> None:
    log.append([item("s", "a", place=ev.Place.BLOB), item("s", "b", place=ev.Place.SOURCE)])
    for record in log.read("s"):
        with pytest.raises(Damaged, match="its body's place cannot be read"):
            log.body(record)


def test_a_draft_whose_bytes_are_none_is_refused(log: GenericLog) -> None:
    with pytest.raises(InputRefused):
        log.append([item("s", "a", "text")])  # type: ignore[arg-type]
    assert log.tip("s") == EMPTY
    assert log.append([item("s", "a", b"bytes")])[0].new
