"""Damage on the disk: no read hands out what was changed, verify finds every change, and nobody is killed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ef.codec import cbor
from ef.codec.record import FRAME
from ef.errors import Damaged, EfError, NotFound, RolledBack
from ef.log.base import Draft, Record, Tip
from ef.log.check import PROBLEMS_MAX, Checker
from ef.log.lmdb_log import LmdbLog
from ef.log.pages import DataFile
from ef.log.rows import U64, stream_hash
from tests.log.build import (
    checked,
    filled,
    frame_at,
    in_child,
    item,
    opened,
    raw,
    run,
    says,
    title,
    typed,
)

STREAM = "session/a"


def at(position: int) -> bytes:
    return U64.pack(position)


def seq_key(seq: int, stream: str = STREAM) -> bytes:
    return stream_hash(stream) + U64.pack(seq)


def reads(log: LmdbLog) -> dict[str, Callable[[], Any]]:
    """Every way to be handed the record at position 3, which is event 3 of its stream."""
    return {
        "at": lambda: log.body(log.at(3)),
        "get": lambda: log.body(log.get(STREAM, 3)),
        "read": lambda: [log.body(r) for r in log.read(STREAM)],
        "read on": lambda: [log.body(r) for r in log.read(STREAM, after=2)],
        "stored": lambda: [log.body(r) for r in log.stored(STREAM)],
        "all": lambda: [log.body(r) for r in log.all()],
        "append": lambda: log.append([item(STREAM, "k2", b"C" * 40)]),
    }


def answers(path: Path) -> dict[str, Any]:
    """What each way answers; the name of the error where it raises one."""
    found: dict[str, Any] = {}
    with opened(path, create_missing=False) as log:
        for name, read in reads(log).items():
            try:
                found[name] = read()
            except EfError as fault:
                found[name] = type(fault).__name__
    return found


def damaged(path: Path) -> dict[str, str]:
    return dict.fromkeys(answers(path), "Damaged")


def drained(records: Iterator[Record]) -> tuple[list[int], str]:
    """The positions of the records that come, and the damage that they end with."""
    found: list[int] = []
    try:
        for record in records:
            found.append(record.position)
    except Damaged as fault:
        return found, str(fault)
    return found, ""


# -- flipped bits -----------------------------------------------------------------------------------------------


def test_every_flipped_byte_of_a_record_is_damage_in_every_read_and_in_verify(
    tmp_path: Path,
) -> None:
    path = filled(tmp_path / "store")
    sound, frame = answers(path), frame_at(path, 3)
    assert all(found != "Damaged" for found in sound.values())
    assert len(frame) > FRAME.size + 200
    for byte in range(len(frame)):
        with raw(path) as store:
            store.put(b"log", at(3), frame[:byte] + bytes([frame[byte] ^ 4]) + frame[byte + 1 :])
        assert answers(path) == dict.fromkeys(sound, "Damaged"), byte
        found = checked(path)
        assert "position 3" in says(found), byte
    with raw(path) as store:
        store.put(b"log", at(3), frame)
    assert answers(path) == sound and says(checked(path)) == ""


def test_the_records_around_a_damaged_one_are_still_read(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    frame = frame_at(path, 3)
    with raw(path) as store:
        store.put(b"log", at(3), frame[:-1])
    with opened(path) as log:
        assert [log.get(STREAM, n).header.key for n in (1, 2, 4, 5)] == ["k0", "k1", "k3", "k4"]
        assert [r.header.seq for r in log.read(STREAM, upto=2)] == [1, 2]
        assert [r.header.seq for r in log.read(STREAM, after=3)] == [4, 5]
        log.append([title(STREAM, "on")])
    assert checked(path).events == 6


def test_what_is_sound_before_a_damaged_record_is_given_out_before_the_error(
    tmp_path: Path,
) -> None:
    path = filled(tmp_path / "store", 20)
    with raw(path) as store:
        store.put(b"log", at(14), store.rows(b"log")[at(14)][:-1])
    with opened(path) as log:
        ways: dict[str, tuple[Iterator[Record], list[int]]] = {
            "all": (log.all(), list(range(14))),
            "read": (log.read(STREAM), list(range(1, 14))),
            "stored": (log.stored(STREAM), list(range(1, 14))),
            "back": (log.stored(STREAM, back=True), list(range(20, 14, -1))),
            "behind": (log.read(STREAM, after=14), list(range(15, 21))),
        }
        for name, (records, wanted) in ways.items():
            found, why = drained(records)
            assert found == wanted, name
            assert ("14" in why) is (name != "behind")


def test_a_quick_check_sees_headers_and_chain_but_no_bodies_and_no_indexes(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    frame = frame_at(path, 3)
    with raw(path) as store:
        store.put(b"log", at(3), frame[:-1] + b"?")
        store.delete(b"seq", seq_key(1))
    assert says(checked(path, quick=True)) == ""
    found = says(checked(path))
    assert "body does not match its commitment" in found and "index seq" in found


# -- rows that are gone, swapped or changed ---------------------------------------------------------------------


def test_a_removed_record_is_damage_wherever_it_is_met(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    with raw(path) as store:
        store.delete(b"log", at(3))
    assert answers(path) == damaged(path)
    said = says(checked(path))
    assert "positions 3 to 3 are not there" in said
    assert "its stream has no events 3 to 3" in said
    assert "does not lead to its record" in said and "for 5 records" in said


def test_a_removed_last_record_is_told_by_its_tip_row_and_by_the_tip(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    with raw(path) as store:
        store.delete(b"log", at(5))
    said = says(checked(path))
    assert f"stream {STREAM}: its tip row does not match its last record" in said
    assert "rolled-back: tip" in said
    with opened(path) as log, pytest.raises(RolledBack, match="it ends at position 4"):
        log.append([title(STREAM, "more")])
    (path / "tip").unlink()
    with opened(path) as log, pytest.raises(Damaged, match="is not there"):
        log.append([title(STREAM, "more")])


def test_a_store_that_lost_all_its_records_while_open_says_so(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    with opened(path) as log:
        run(path, "with raw(path) as s: [s.delete(b'log', k) for k in s.rows(b'log')]")
        with pytest.raises(Damaged, match="the genesis record is not there"):
            log.append([title("t", "a")])


def test_a_stream_without_any_record_left_is_told(tmp_path: Path) -> None:
    path = filled(tmp_path / "store", 1)
    with raw(path) as store:
        store.delete(b"log", at(1))
    assert "that has no records" in says(checked(path))


def test_swapped_records_are_damage(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    a, b = frame_at(path, 2), frame_at(path, 3)
    with raw(path) as store:
        store.put(b"log", at(2), b)
        store.put(b"log", at(3), a)
    found = answers(path)
    assert {k for k, v in found.items() if v == "Damaged"} == {*found} - {"at", "all"}
    said = says(checked(path))
    assert "does not follow the record before it in the store" in said
    assert "its stream has no events" in said


def test_a_record_of_another_history_is_told_by_both_chains(tmp_path: Path) -> None:
    path, other = filled(tmp_path / "store"), tmp_path / "other"
    shutil.copytree(path, other)
    with opened(other) as log:
        log.append([item(STREAM, "k5", b"theirs"), item(STREAM, "k6", b"theirs")])
    with opened(path) as log:
        log.append([item(STREAM, "k5", b"ours"), item(STREAM, "k6", b"ours")])
    theirs = frame_at(other, 7)
    with raw(path) as store:
        store.put(b"log", at(7), theirs)
    said = says(checked(path))
    assert "does not follow the record before it in the store" in said
    assert "does not follow the record before it in its stream" in said


@pytest.mark.parametrize(
    ("db", "row", "value", "where", "unread"),
    [
        (b"seq", seq_key(3), None, "index seq", {"get", "read", "read on"}),
        (b"seq", seq_key(3), at(2), "index seq", {"get", "read", "read on", "stored"}),
        (b"seq", seq_key(3), at(9), "index seq", {"get", "read", "read on", "stored"}),
        (b"seq", seq_key(3), b"", "index seq", {"get", "read", "read on", "stored"}),
        (b"seq", seq_key(3), b"\0\0\3", "index seq", {"get", "read", "read on", "stored"}),
        (b"seq", seq_key(9), at(3), "index seq", {"stored"}),
        (b"seq", seq_key(3) + b"x", at(3), "index seq", set()),
        (b"log", b"odd", b"x", "position", {"append", "all"}),
        (b"stream", stream_hash("session/a"), None, "its tip row", {"read", "read on"}),
    ],
)
def test_a_changed_index_is_damage_where_it_is_used_and_found_by_verify(
    tmp_path: Path, db: bytes, row: bytes, value: bytes | None, where: str, unread: set[str]
) -> None:
    path = filled(tmp_path / "store")
    sound = answers(path)
    with raw(path) as store:
        if value is None:
            store.delete(db, row)
        else:
            store.put(db, row, value)
    found = answers(path)
    if row == seq_key(3) and value is None:
        # Where gaps are allowed a row that is gone looks like one; only verify can tell.
        assert found.pop("stored") == [*sound["stored"][:2], *sound["stored"][3:]]
    for name, answer in found.items():
        assert answer == ("Damaged" if name in unread else sound[name]), name
    assert where in says(checked(path))


def test_a_key_row_that_leads_elsewhere_is_damage_and_one_that_is_gone_makes_no_second_event(
    tmp_path: Path,
) -> None:
    path = filled(tmp_path / "store")
    with opened(path) as log:
        uuid = log.get(STREAM, 3).header.uuid
    for value in (at(2), at(99), b"", b"x" * 9):
        with raw(path) as store:
            store.put(b"key", uuid, value)
        with opened(path) as log:
            for work in (lambda: log.find(STREAM, "k2"), lambda: log.append([item(STREAM, "k2")])):
                with pytest.raises(Damaged):
                    work()
            assert log.find(STREAM, "k1") == 2
        assert "index key" in says(checked(path))
    with raw(path) as store:
        store.delete(b"key", uuid)
    assert "it has 5 entries for 6 records" in says(checked(path))


@pytest.mark.parametrize(
    "row",
    [
        b"", b"\xff", cbor.encode(None), cbor.encode([STREAM, 5]), cbor.encode({"a": 1, "b": 2, "c": 3}),
        cbor.encode([5, 5, bytes(32)]), cbor.encode([STREAM, "5", bytes(32)]), cbor.encode([STREAM, True, bytes(32)]),
        cbor.encode([STREAM, 5, bytes(31)]), cbor.encode([STREAM, -5, bytes(32)]),
        cbor.encode([STREAM, 5, bytes(32)]), cbor.encode([STREAM, 4, bytes(32)]), cbor.encode([STREAM, 6, bytes(32)]),
        cbor.encode(["session/b", 5, bytes(32)]),
    ],
)  # fmt: skip
def test_a_changed_tip_row_is_damage_before_anything_is_appended_behind_it(
    tmp_path: Path, row: bytes
) -> None:
    path = filled(tmp_path / "store")
    with raw(path) as store:
        good = store.rows(b"stream")[stream_hash(STREAM)]
        store.put(b"stream", stream_hash(STREAM), row)
    with opened(path) as log:
        for expect in (None, {STREAM: Tip(5, bytes(32))}):
            with pytest.raises(Damaged):
                log.append([title(STREAM, "more")], expect=expect)
        assert log.append([title("t", "x")])[0].new
    assert f"stream {STREAM}: its tip row does not match its last record" in says(checked(path))
    with raw(path) as store:
        store.put(b"stream", stream_hash(STREAM), good)
    with opened(path) as log:
        assert log.append([title(STREAM, "more")])[0].seq == 6


def test_a_tip_row_that_says_less_hides_no_record_from_a_single_look(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    with raw(path) as store:
        digest = cbor.decode(store.rows(b"stream")[stream_hash(STREAM)])[2]
        store.put(b"stream", stream_hash(STREAM), cbor.encode([STREAM, 9, digest]))
    with opened(path) as log:
        with pytest.raises(Damaged, match="seq 8"):
            log.get(STREAM, 8)
        with pytest.raises(Damaged, match="seq 6"):
            list(log.read(STREAM))
        with pytest.raises(NotFound):
            log.get(STREAM, 10)


def test_the_list_of_streams_stops_at_a_row_that_cannot_be_read(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    with raw(path) as store:
        store.put(b"stream", b"\xff" * 16, b"garbage")
    with opened(path) as log, pytest.raises(Damaged, match="tip row cannot be read"):
        list(log.streams())


def test_a_uuid_that_is_not_that_of_its_stream_and_key_is_told(tmp_path: Path) -> None:
    from dataclasses import replace

    from ef.codec.record import decode_frame, encode_frame, encode_header

    path = filled(tmp_path / "store")
    frame = decode_frame(frame_at(path, 5), where="")
    header = replace(frame.header, uuid=bytes(16))
    with raw(path) as store:
        store.put(b"log", at(5), encode_frame(encode_header(header), frame.salt, frame.body))
    assert "its uuid is not that of its stream and key" in says(checked(path))


def test_a_first_record_that_continues_what_is_not_there_is_told(tmp_path: Path) -> None:
    from ef import events as ev

    path = tmp_path / "store"
    lost = ev.SessionOpened("s", "fork", "f", "session/p", 1, bytes([9] * 32))
    with opened(path) as log:
        log.append([Draft("session/c", "open", lost, ev.Channel.OPERATOR)])
    assert "does not follow the record before it in its stream" in says(checked(path))
    assert says(checked(path, quick=True)) == ""


def test_a_first_record_continues_the_record_that_it_names_and_no_other(tmp_path: Path) -> None:
    from ef import events as ev

    path = filled(tmp_path / "store")
    with opened(path) as log:
        for name, digest in (("c", log.get(STREAM, 3).digest), ("d", log.get(STREAM, 4).digest)):
            fork = ev.SessionOpened("s", "fork", "f", STREAM, 3, digest)
            log.append([Draft(f"session/{name}", "open", fork, ev.Channel.OPERATOR)])
    assert says(checked(path)) == (
        "damaged: stream session/d, seq 1 (position 7): "
        "it does not follow the record before it in its stream"
    )


def test_a_page_that_cannot_be_read_is_named_and_the_check_goes_on_behind_it(
    tmp_path: Path,
) -> None:
    path = filled(tmp_path / "store", 40, size=1_500)
    with DataFile(path / "data.mdb") as file:
        pages = {e.key: e.pages for e in file.entries(file.roots()[b"log"])}
    page = pages[at(20)][0]
    lost = {key for key, own in pages.items() if page in own}
    data = bytearray((path / "data.mdb").read_bytes())
    data[page * 4096 : page * 4096 + 8] = bytes(8)
    (path / "data.mdb").write_bytes(data)
    found = checked(path, plain="its page")
    assert f"page {page}: it says that it is page 0" in says(found)
    assert 0 < len(lost) < 20 and found.events == 41 - len(lost)
    assert "are not there" in says(found) and found.position == 40


def test_no_more_problems_are_kept_than_somebody_reads(tmp_path: Path) -> None:
    path = filled(tmp_path / "store", 300)
    with raw(path) as store:
        for n in range(1, 301):
            store.delete(b"seq", seq_key(n))
            store.put(b"seq", seq_key(n) + b"x", at(n))
    assert len(checked(path).problems) == PROBLEMS_MAX


def test_a_check_says_how_far_it_is_and_which_kinds_it_does_not_know(tmp_path: Path) -> None:
    from dataclasses import replace

    from ef.codec.record import decode_frame, encode_frame, encode_header

    path = filled(tmp_path / "store")
    frame = decode_frame(frame_at(path, 5), where="")
    header = replace(frame.header, kind="FoldCommitted", version=3)
    with raw(path) as store:
        store.put(b"log", at(5), encode_frame(encode_header(header), frame.salt, frame.body))
    seen: list[int] = []
    found = checked(path, progress=seen.append)
    assert seen == [0, 1, 2, 3, 4, 5]
    assert found.unknown == {"FoldCommitted 3"}
    assert found.tips[STREAM].seq == 5 and found.position == 5


# -- truncation -------------------------------------------------------------------------------------------------


def used(path: Path) -> str:
    """Open, read all, append, verify: the name of the error that this ends with."""

    def work() -> None:
        with opened(path, create_missing=False) as log:
            for record in log.all():
                log.body(record)
            log.append([title("s", "after")])
            assert Checker(log).run().problems == []

    return typed(work)


def test_a_file_that_was_cut_at_any_page_is_damage_and_kills_nobody(tmp_path: Path) -> None:
    path = filled(tmp_path / "store", 30, size=700)
    data = (path / "data.mdb").read_bytes()
    assert len(data) // 4096 > 10
    outcomes = {}
    for size in [*range(0, len(data), 4096), *range(100, len(data), 3_333)]:
        (path / "data.mdb").write_bytes(data[:size])
        outcomes[size] = in_child(lambda: used(path))
    assert set(outcomes.values()) == {"Damaged"}, outcomes
    (path / "data.mdb").write_bytes(data)
    assert in_child(lambda: used(path)) == ""


def test_a_file_with_zeroed_pages_ends_in_a_typed_error_or_is_read_whole(tmp_path: Path) -> None:
    path = filled(tmp_path / "store", 30, size=700)
    data = (path / "data.mdb").read_bytes()
    for start in range(0, 8192, 4096):
        (path / "data.mdb").write_bytes(data[:start] + bytes(4096) + data[start + 4096 :])
        assert in_child(lambda: used(path)) in ("Damaged", "RolledBack")
