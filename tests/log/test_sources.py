"""Bytes of sources by range, and items as what they say."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ef import events as ev
from ef.errors import Damaged, NotFound
from ef.log import items
from ef.log.base import Draft
from ef.log.lmdb_log import LmdbLog
from ef.log.rows import U64, stream_hash
from ef.log.sources import CHUNKS_KEPT, SourceBytes, source_stream
from ef.readers import claude_code
from tests.log.build import checked, frame_at, opened, raw, says, title

CHUNKS = [bytes([65 + n]) * (10 + n) for n in range(CHUNKS_KEPT + 4)]
WHOLE = b"".join(CHUNKS)


def chunks(parts: list[bytes], start: int = 0, source: str = "f") -> list[Draft]:
    drafts = []
    for part in parts:
        origin = ev.Origin(source, 1, start, start + len(part))
        drafts.append(
            Draft(source_stream(source), f"at/{start}", ev.SourceLines(part), ev.Channel.IMPORTER, origin=origin)
        )  # fmt: skip
        start += len(part)
    return drafts


def span(key: str, start: int, end: int, data: bytes = WHOLE, **how: Any) -> Draft:
    draft = Draft(
        "session/a", key, ev.ItemAppended(data[start:end]), ev.Channel.USER_TYPED,
        origin=ev.Origin("f", 1, start, end), place=ev.Place.SOURCE,
        item=ev.ItemFacts("user", (ev.PartFacts(ev.PartKind.TEXT, ev.Channel.USER_TYPED),)),
    )  # fmt: skip
    return replace(draft, **how)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LmdbLog]:
    with opened(tmp_path / "store") as found:
        found.append(chunks(CHUNKS))
        yield found


# -- ranges -----------------------------------------------------------------------------------------------------


def test_every_range_of_a_source_is_read_across_its_chunks(log: LmdbLog) -> None:
    source = SourceBytes(log)
    for start in range(0, len(WHOLE), 7):
        for end in (start, start + 1, start + 11, start + 40, len(WHOLE)):
            assert source.read("f", start, min(end, len(WHOLE))) == WHOLE[start:end]
    assert len(source._chunks) == CHUNKS_KEPT


def test_a_body_in_a_source_is_stored_once_and_read_through_its_span(log: LmdbLog) -> None:
    log.append([span("one", 3, 30), span("all", 0, len(WHOLE))])
    one, whole = log.read("session/a")
    assert one.frame.body == whole.frame.body == b""
    assert (log.body(one), log.body(whole)) == (WHOLE[3:30], WHOLE)
    assert one.header.encoding == "none" and one.header.body_size == 27
    assert log.append([span("one", 3, 30)])[0].new is False


def test_a_source_that_grew_is_read_on(log: LmdbLog) -> None:
    source = SourceBytes(log)
    assert source.read("f", 0, 5) == WHOLE[:5]
    with pytest.raises(Damaged, match=r"bytes .* are in no record"):
        source.read("f", len(WHOLE) - 1, len(WHOLE) + 5)
    log.append([title(source_stream("f"), "a note"), *chunks([b"12345678"], len(WHOLE))])
    assert source.read("f", len(WHOLE) - 1, len(WHOLE) + 5) == WHOLE[-1:] + b"12345"


@pytest.mark.parametrize("name", ["other", ""])
def test_a_source_that_is_not_there_has_no_bytes(log: LmdbLog, name: str) -> None:
    with pytest.raises(Damaged, match=f"source {name}"):
        SourceBytes(log).read(name, 0, 1)
    assert SourceBytes(log).read(name, 0, 0) == b""


def test_a_chunk_that_was_never_stored_is_a_hole_and_not_other_bytes(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        log.append(chunks([b"aaaa"]))
        log.append(chunks([b"cccc"], 8))
        source = SourceBytes(log)
        assert source.read("f", 0, 4) + source.read("f", 8, 12) == b"aaaacccc"
        for start, end in ((0, 5), (4, 6), (6, 9), (11, 13), (0, 12)):
            with pytest.raises(Damaged, match="source f"):
                source.read("f", start, end)


def test_a_chunk_that_is_shorter_than_its_range_says_is_damage(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        short = replace(chunks([b"aaaa"])[0], event=ev.SourceLines(b"aa"))
        log.append([short, *chunks([b"bbbb"], 4)])
        source = SourceBytes(log)
        assert source.read("f", 0, 2) == b"aa"
        with pytest.raises(Damaged):
            source.read("f", 0, 3)


def test_a_record_whose_chunk_was_removed_is_damage_and_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with opened(path) as log:
        log.append([*chunks(CHUNKS), span("in", 0, 15), span("out", 60, 70)])
    frame = frame_at(path, 2)
    with raw(path) as store:
        store.put(b"log", U64.pack(2), frame[:-1] + b"?")
    with opened(path) as log:
        inside, outside = log.read("session/a")
        with pytest.raises(Damaged, match="body does not match its commitment"):
            log.body(inside)
        assert log.body(outside) == WHOLE[60:70]
    said = says(checked(path))
    assert "stream source/f, seq 2" in said and "stream session/a, seq 1" in said
    assert "session/a, seq 2" not in said


def test_bytes_of_a_source_that_changed_under_an_item_are_not_handed_out(log: LmdbLog) -> None:
    log.append([span("moved", 0, 10, data=b"x" * 10)])
    with pytest.raises(Damaged, match="session/a, seq 1: the body does not match"):
        log.body(log.get("session/a", 1))


@pytest.mark.parametrize("how", [{"place": ev.Place.BLOB}, {"origin": None}])
def test_a_place_that_cannot_be_read_is_damage(log: LmdbLog, how: dict[str, Any]) -> None:
    log.append([span("odd", 0, 10, **how)])
    with pytest.raises(Damaged, match="its body's place cannot be read"):
        log.body(log.get("session/a", 1))


def test_several_threads_read_one_source_that_grows(log: LmdbLog) -> None:
    source, faults = SourceBytes(log), []

    def work() -> None:
        for start in range(0, len(WHOLE) - 40, 3):
            try:
                assert source.read("f", start, start + 40) == WHOLE[start : start + 40]
            except BaseException as fault:
                faults.append(fault)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for n in range(5):
        log.append(chunks([b"more"], len(WHOLE) + 4 * n))
    for thread in threads:
        thread.join(60)
    assert not faults
    assert source.read("f", len(WHOLE), len(WHOLE) + 20) == b"more" * 5


# -- items ------------------------------------------------------------------------------------------------------

LINE = json.dumps(
    {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "Grüße an alle"}},
    ensure_ascii=False,
).encode()


def read_by(channel: ev.Channel, parts: int = 1) -> Draft:
    facts = ev.ItemFacts("user", (ev.PartFacts(ev.PartKind.TEXT, channel),) * parts)
    return Draft(
        "session/a", f"{channel}{parts}", ev.ItemAppended(LINE), ev.Channel.IMPORTER, item=facts,
        reader=(claude_code.NAME, claude_code.VERSION),
    )  # fmt: skip


def test_an_item_is_read_by_its_reader_and_its_header_says_who_speaks(log: LmdbLog) -> None:
    log.append([read_by(ev.Channel.SUBAGENT)])
    reading = items.reading_of(log, log.get("session/a", 1))
    assert [(p.text, p.channel) for p in reading.parts] == [("Grüße an alle", ev.Channel.SUBAGENT)]


def test_facts_that_do_not_fit_the_parts_do_not_speak_for_them(log: LmdbLog) -> None:
    log.append([read_by(ev.Channel.SUBAGENT, 2), replace(read_by(ev.Channel.WEB), item=None)])
    for record in log.read("session/a"):
        reading = items.reading_of(log, record)
        assert len(reading.parts) == 1 and reading.parts[0].channel is not ev.Channel.WEB


def ref(log: LmdbLog, **how: Any) -> ev.SourceRef:
    record = log.get("session/a", 1)
    whole = ev.SourceRef(
        "session/a", 1, 0, 0, 7, record.digest, ev.Channel.USER_TYPED, "text", record.header.key
    )
    return replace(whole, **how)


def test_a_reference_gives_exactly_the_bytes_that_it_cites_or_nothing(log: LmdbLog) -> None:
    log.append([read_by(ev.Channel.USER_TYPED)])
    assert items.quote_of(log, ref(log)).decode() == "Grüße"
    assert items.quote_of(log, ref(log, start=8, end=15)) == b"an alle"
    for how, why in (
        ({"digest": bytes(32)}, "not the one that the reference cites"),
        ({"part": 1}, "it has no part 1"),
        ({"part": -1}, "it has no part -1"),
        ({"start": -1}, "has no bytes -1 to 7"),
        ({"start": 7}, "has no bytes 7 to 7"),
        ({"end": 16}, "has no bytes 0 to 16"),
    ):
        with pytest.raises(Damaged, match=why):
            items.quote_of(log, ref(log, **how))
    with pytest.raises(NotFound):
        items.quote_of(log, ref(log, seq=9))


def test_events_are_met_without_the_bytes_of_raw_kinds(log: LmdbLog) -> None:
    log.append([read_by(ev.Channel.TOOL), title("session/a", "t", "A title")])
    met = list(items.recorded(log, "session/a"))
    assert [m.event for m in met] == [ev.ItemAppended(b""), ev.SessionDescribed("A title")]
    assert [m.digest for m in met] == [r.digest for r in log.read("session/a")]
    assert [m.header.seq for m in items.recorded(log, "session/a", after=1)] == [2]
    assert [m.header.seq for m in items.recorded(log, "session/a", upto=1)] == [1]
    assert items.event_of(log, log.get("session/a", 1)) == ev.ItemAppended(LINE)
    assert items.where_of(log.get("session/a", 2)) == "stream session/a, seq 2"


# -- a stream of which not every record can be read ---------------------------------------------------------------


def test_a_damaged_record_takes_only_its_own_range_with_it(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with opened(path) as log:
        log.append([*chunks([b"aaaa", b"bbbb", b"cccc"]), title(source_stream("f"), "done")])
    frame = frame_at(path, 2)
    with raw(path) as store:
        store.put(b"log", U64.pack(2), frame[:70] + b"?" + frame[71:])
    with opened(path) as log:
        source = SourceBytes(log)
        assert (source.read("f", 0, 4), source.read("f", 8, 12)) == (b"aaaa", b"cccc")
        for start, end in ((4, 8), (3, 5), (0, 12), (7, 9)):
            with pytest.raises(Damaged):
                source.read("f", start, end)
    with raw(path) as store:
        store.put(b"log", U64.pack(2), frame)
        tip = store.rows(b"stream")[stream_hash(source_stream("f"))]
        store.put(b"stream", stream_hash(source_stream("f")), b"?")
    with opened(path) as log:
        assert SourceBytes(log).read("f", 0, 12) == b"aaaabbbbcccc"
        with pytest.raises(Damaged):
            SourceBytes(log).read("f", 0, 13)
    with raw(path) as store:
        store.put(b"stream", stream_hash(source_stream("f")), tip)
    with opened(path) as log:
        assert SourceBytes(log).read("f", 0, 12) == b"aaaabbbbcccc"
