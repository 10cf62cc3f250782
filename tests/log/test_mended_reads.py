"""Reads that check the chain as they go, lists that notice a lost row, and what sources say of sessions."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import lmdb
import pytest
from blake3 import blake3

from ef import events as ev
from ef.codec import cbor
from ef.codec.record import decode_frame, encode_frame, encode_header
from ef.errors import Busy, Damaged, EfError, TipConflict
from ef.log.base import Draft, Tip
from ef.log.lmdb_log import PAGE_RECORDS, LmdbLog
from ef.log.rows import U64, stream_hash
from ef.session import verify_path
from ef.session.verify import verify_log
from tests.log.build import filled, frame_at, in_child, item, opened, raw, title

STREAM = "session/a"


def forge(path: Path, position: int, **changes: Any) -> bytes:
    """Change a record's header and everything in its frame that would give it away; its new digest."""
    frame = decode_frame(frame_at(path, position), where="")
    head = encode_header(replace(frame.header, **changes))
    data = encode_frame(head, frame.salt, frame.body)
    with raw(path) as store:
        store.put(b"log", U64.pack(position), data)
    return decode_frame(data, where="").digest


def seqs(log: LmdbLog, **how: Any) -> tuple[list[int], str]:
    found: list[int] = []
    try:
        for record in log.read(STREAM, **how):
            found.append(record.header.seq)
    except Damaged as fault:
        return found, f"{fault.where}: {fault.what}"
    return found, ""


# -- the chain, as it is read -----------------------------------------------------------------------------------


def test_a_record_with_a_recomputed_digest_is_told_by_the_one_behind_it(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    with opened(path) as log:
        assert seqs(log) == ([1, 2, 3, 4, 5], "") and seqs(log, after=3) == ([4, 5], "")
    forge(path, 3, recorded_at=9)
    told = f"stream {STREAM}, seq 4: it does not follow the record before it"
    with opened(path) as log:
        assert seqs(log) == ([1, 2, 3], told)
        assert seqs(log, after=3) == ([], told)
        assert seqs(log, after=4) == ([5], "")
        assert seqs(log, upto=2) == ([1, 2], "")


def test_a_last_record_with_a_recomputed_digest_is_told_by_the_tip_row(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    forge(path, 5, recorded_at=9)
    told = f"stream {STREAM}, seq 5: it is not the record that its tip row names"
    with opened(path) as log:
        assert seqs(log) == ([1, 2, 3, 4], told)
        assert seqs(log, upto=4) == ([1, 2, 3, 4], "")


def test_a_first_record_follows_nothing_unless_it_continues_a_session(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with opened(path) as log:
        (parent,) = log.append([title(STREAM, "a")])
        begun = ev.SessionOpened(
            log.store_id, "fork", "chat", "session/a", parent.seq, parent.digest
        )
        log.append(
            [Draft("session/b", "open", begun, ev.Channel.IMPORTER), title("session/b", "x")]
        )
        assert [r.header.seq for r in log.read("session/b")] == [1, 2]
    digest = forge(path, 1, prev_stream=b"x" * 32)
    with raw(path) as store:
        store.put(b"stream", stream_hash(STREAM), cbor.encode([STREAM, 1, digest]))
    with opened(path) as log:
        assert seqs(log) == (
            [],
            f"stream {STREAM}, seq 1: it does not follow the record before it",
        )


# -- lists ------------------------------------------------------------------------------------------------------


def listed(log: LmdbLog, prefix: str) -> tuple[int, str]:
    found = 0
    try:
        for _ in log.streams(prefix):
            found += 1
    except Damaged as fault:
        return found, fault.where
    return found, ""


@pytest.mark.parametrize("count", [3, PAGE_RECORDS - 1, PAGE_RECORDS, 2 * PAGE_RECORDS + 7])
def test_a_stream_whose_tip_row_is_gone_is_named_behind_all_the_others(
    tmp_path: Path, count: int
) -> None:
    path = tmp_path / "store"
    with opened(path) as log:
        log.append([title(f"session/{n}", "k") for n in range(count)] + [title("source/x", "k")])
        assert listed(log, "session/") == (count, "") and listed(log, "") == (count + 2, "")
    ordered = sorted(f"session/{n}" for n in range(count))
    by_hash = sorted(ordered, key=stream_hash)
    for name in {by_hash[0], by_hash[-1], by_hash[count // 2]}:
        with raw(path) as store:
            row = store.rows(b"stream")[stream_hash(name)]
            store.delete(b"stream", stream_hash(name))
        with opened(path) as log:
            assert listed(log, "session/") == (count - 1, f"stream {name}")
            assert listed(log, "source/") == (1, "")
        with raw(path) as store:
            store.put(b"stream", stream_hash(name), row)
    with opened(path) as log:
        assert listed(log, "session/") == (count, "")


def test_a_lost_stream_whose_first_record_is_lost_too_is_named_by_its_hash(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    with raw(path) as store:
        store.delete(b"stream", stream_hash(STREAM))
    for value in (U64.pack(0), U64.pack(99)):
        with raw(path) as store:
            store.put(b"seq", stream_hash(STREAM) + U64.pack(1), value)
        with opened(path) as log:
            assert listed(log, "session/") == (0, f"stream {stream_hash(STREAM).hex()}")


def test_verify_goes_on_when_the_list_of_sources_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "store"
    imported(path, ("a",), ("a",))
    with raw(path) as store:
        store.delete(b"stream", stream_hash("source/x"))
    found = verify_path(path)
    assert found.verdict == "damaged" and found.events == 5
    assert any(p.where == "the sources" and "source/x" in p.what for p in found.problems)


# -- sources and sessions ---------------------------------------------------------------------------------------


def imported(
    path: Path,
    named: tuple[str, ...],
    there: tuple[str, ...],
    source: str = "x",
    names_itself: str = "x",
) -> None:
    """A source that names sessions, and sessions that come from a source."""
    line = b"{}\n"
    drafts = [
        Draft("source/x", "open", ev.SourceOpened(names_itself, "chat", "/x"), ev.Channel.IMPORTER),
        Draft("source/x", "lines", ev.SourceLines(line), ev.Channel.IMPORTER,
              origin=ev.Origin("x", 1, 0, 3)),
        Draft("source/x", "done", ev.ImportCompleted(3, 1, blake3(line).digest(), named),
              ev.Channel.IMPORTER),
    ]  # fmt: skip
    origin = ev.Origin(source, 1, 0, 2)
    drafts += [item(f"session/{name}", "k", b"{}", origin=origin) for name in there]
    with opened(path) as log:
        log.append(drafts)


def problems(path: Path) -> list[str]:
    return [f"{p.where}: {p.what}" for p in verify_path(path).problems]


def test_a_session_that_a_source_names_must_be_in_the_store(tmp_path: Path) -> None:
    imported(tmp_path / "sound", ("a", "b"), ("a", "b"))
    assert problems(tmp_path / "sound") == []
    imported(tmp_path / "lost", ("a", "b"), ("a",))
    assert problems(tmp_path / "lost") == [
        "source x: source x names session b, which is not in the store"
    ]
    with opened(tmp_path / "lost") as log:
        assert verify_log(log, quick=True).verdict == "sound"


def test_a_source_that_a_record_comes_from_and_that_is_not_here_is_a_remark(tmp_path: Path) -> None:
    imported(tmp_path / "store", ("a",), ("a",), source="gone")
    found = verify_path(tmp_path / "store")
    assert (found.verdict, found.notes) == (
        "sound",
        ["stream session/a, seq 1: it comes from source gone, which is not in the store"],
    )


def test_a_source_whose_first_event_names_another_is_told(tmp_path: Path) -> None:
    imported(tmp_path / "store", ("a",), ("a",), names_itself="y")
    assert problems(tmp_path / "store") == ["stream source/x: its first event names another source"]


# -- what verify remarks ----------------------------------------------------------------------------------------


def no_tip(path: Path) -> None:
    (path / "tip").unlink()


def garbage_tip(path: Path) -> None:
    (path / "tip").write_bytes(b"garbage")


def folder_tip(path: Path) -> None:
    (path / "tip").unlink()
    (path / "tip").mkdir()


def open_folder(path: Path) -> None:
    path.chmod(0o755)


def open_file(path: Path) -> None:
    (path / "data.mdb").chmod(0o644)


def foreign_database(path: Path) -> None:
    with lmdb.open(str(path), max_dbs=8) as env:
        env.open_db(b"theirs")


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (no_tip, "the file tip is not there: "),
        (garbage_tip, "the file tip cannot be read: "),
        (folder_tip, "the file tip is a folder: "),
        (open_folder, "the folder has mode 0755; ef makes it 0700"),
        (open_file, "the data file has mode 0644; ef makes it 0600"),
        (foreign_database, "the data file holds a database b'theirs' that is not ef's"),
    ],
)
def test_verify_remarks_on_what_lies_around_the_records(
    tmp_path: Path, change: Callable[[Path], None], note: str
) -> None:
    path = filled(tmp_path / "store")
    assert verify_path(path).notes == []
    change(path)
    found = verify_path(path)
    assert found.verdict == "sound" and len(found.notes) == 1 and found.notes[0].startswith(note)


def test_a_store_in_which_nothing_happened_has_no_tip_file_and_no_remark(tmp_path: Path) -> None:
    opened(tmp_path / "store").close()
    assert verify_path(tmp_path / "store").notes == []


# -- threads ----------------------------------------------------------------------------------------------------


def test_threads_that_race_for_one_tip_are_told_of_a_conflict_and_never_that_the_store_is_busy(
    tmp_path: Path,
) -> None:
    def race() -> tuple[int, list[str]]:
        faults: list[str] = []
        conflicts: list[Tip] = []

        def work(log: LmdbLog, name: int) -> None:
            n = 0
            while n < 40:
                tip = log.tip(STREAM)
                try:
                    log.append([title(STREAM, f"{name}-{n}")], expect={STREAM: tip})
                    n += 1
                except TipConflict:
                    conflicts.append(tip)
                except EfError as fault:
                    faults.append(type(fault).__name__)
                    return

        with opened(tmp_path / "store") as first, opened(tmp_path / "store") as second:
            threads = [
                threading.Thread(target=work, args=((first, second)[n % 2], n)) for n in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            return first.tip(STREAM).seq, faults

    assert Busy.__name__ not in (said := in_child(race))[1]
    assert said == (160, [])
