"""Appending: whole batches or nothing, one event for a key, seqs without a gap, both chains."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ef import events as ev
from ef.codec.digests import ZERO, event_uuid
from ef.codec.record import LEVEL, LEVEL_KEPT
from ef.errors import InputRefused, KeyConflict, NotFound, TipConflict
from ef.log.base import EMPTY, Appended, Draft, Tip
from ef.log.lmdb_log import PAGE_RECORDS, LmdbLog
from tests.log.build import checked, item, opened, title


@pytest.fixture
def log(tmp_path: Path) -> Iterator[LmdbLog]:
    with opened(tmp_path / "store") as found:
        yield found


def keys(log: LmdbLog, stream: str) -> list[str]:
    return [r.header.key for r in log.read(stream)]


# -- batches ----------------------------------------------------------------------------------------------------


def test_what_is_appended_is_read_in_order_with_its_fields(log: LmdbLog) -> None:
    origin, group = ev.Origin("src", 3, 10, 20), ev.Group("g", True)
    draft = item(
        "session/a", "k1", b"\x00\xffbytes", occurred_at=77, basis=ev.Basis.CLAIMED, origin=origin,
        group=group, reader=("claude_code", 1), cause=ev.Cause("store", 1),
    )  # fmt: skip
    (got,) = log.append([draft])
    record = log.get("session/a", 1)
    h = record.header
    assert got == Appended(1, record.digest, True)
    assert (h.kind, h.version, h.required, h.stream, h.seq, h.key) == (
        "ItemAppended", 1, True, "session/a", 1, "k1",
    )  # fmt: skip
    assert (h.occurred_at, h.basis, h.origin, h.group) == (77, ev.Basis.CLAIMED, origin, group)
    assert (h.reader, h.cause, h.item) == (("claude_code", 1), ev.Cause("store", 1), draft.item)
    assert (h.channel, h.uuid) == (ev.Channel.USER_TYPED, event_uuid("session/a", "k1"))
    assert log.body(record) == b"\x00\xffbytes"


def test_a_time_that_equals_the_recording_is_that_of_the_record(log: LmdbLog) -> None:
    log.append([title("s", "a", basis=ev.Basis.EQUAL), title("s", "b", occurred_at=3)])
    a, b = (r.header for r in log.read("s"))
    assert a.occurred_at == a.recorded_at == b.recorded_at
    assert b.occurred_at == 3


def test_all_of_a_batch_or_nothing_is_kept(log: LmdbLog) -> None:
    tip = log.store_tip()
    bad = [
        ([title("s", "a"), title("s", "x" * 257)], InputRefused),
        ([title("s", "a"), title("s", "b", "\ud800")], InputRefused),
        ([title("s", "a"), title("t", "b"), title("s", "a", "other")], KeyConflict),
        ([title("s", "a"), title("s", "b", cause_key="nowhere")], NotFound),
        ([title("s", "a"), replace(title("s", "b"), event=lambda _: 1 / 0)], ZeroDivisionError),
    ]
    for drafts, error in bad:
        with pytest.raises(error):
            log.append(drafts)
        assert (log.store_tip(), log.tip("s"), log.tip("t")) == (tip, EMPTY, EMPTY)
        assert log.find("s", "a") is None
    assert [a.seq for a in log.append([title("s", "a"), title("t", "b"), title("s", "b")])] == [
        1,
        1,
        2,
    ]


def test_source_lines_are_compressed_harder_than_what_somebody_waits_for(log: LmdbLog) -> None:
    data = b"".join(b"%d of many lines, and %d\n" % (n, n * n) for n in range(900))
    lines = Draft("source/x", "0", ev.SourceLines(data), ev.Channel.IMPORTER)
    log.append([lines, item("s", "a", data)])
    kept, waited_for = log.get("source/x", 1), log.get("s", 1)
    assert kept.frame.body == zlib.compress(data, LEVEL_KEPT)
    assert waited_for.frame.body == zlib.compress(data, LEVEL)
    assert len(kept.frame.body) < len(waited_for.frame.body)
    assert log.body(kept) == log.body(waited_for) == data


def test_an_empty_batch_writes_nothing(log: LmdbLog) -> None:
    tip = log.store_tip()
    assert log.append([]) == []
    assert log.store_tip() == tip


# -- preconditions ----------------------------------------------------------------------------------------------


def test_an_append_that_expects_another_tip_is_refused_and_one_that_expects_this_tip_is_not(
    log: LmdbLog,
) -> None:
    log.append([title("s", "a")], expect={"s": EMPTY, "t": EMPTY})
    tip = log.tip("s")
    for wrong in (EMPTY, Tip(1, ZERO), Tip(2, tip.digest), Tip(0, tip.digest)):
        with pytest.raises(
            TipConflict, match=r"stream s: expected its tip to be .*, found 1:"
        ) as e:
            log.append([title("s", "b")], expect={"t": EMPTY, "s": wrong})
        assert e.value.stream == "s" and e.value.exit_code == 75
    assert log.tip("s") == tip
    log.append([title("s", "b"), title("t", "a")], expect={"s": tip, "t": EMPTY})
    assert keys(log, "s") == ["a", "b"]


def test_a_precondition_holds_for_streams_that_nothing_is_appended_to(log: LmdbLog) -> None:
    log.append([title("s", "a")])
    with pytest.raises(TipConflict, match="expected its tip to be empty"):
        log.append([title("t", "b")], expect={"s": EMPTY})
    assert log.tip("t") == EMPTY


# -- idempotency ------------------------------------------------------------------------------------------------


def test_the_same_key_with_the_same_content_is_one_event(log: LmdbLog) -> None:
    first = log.append([item("s", "a"), item("s", "b")])
    tip = log.store_tip()
    again = log.append([item("s", "b", occurred_at=9, reader=("r", 2)), item("s", "a")])
    assert again == [replace(first[1], new=False), replace(first[0], new=False)]
    assert log.store_tip() == tip
    mixed = log.append([item("s", "a"), item("s", "c"), item("s", "c")])
    assert [(a.seq, a.new) for a in mixed] == [(1, False), (3, True), (3, False)]


@pytest.mark.parametrize(
    ("draft", "differs"),
    [
        (item("s", "a", b"other"), "body"),
        (title("s", "a"), "kind, channel, body"),
        (replace(item("s", "a"), channel=ev.Channel.TOOL), "channel"),
        (replace(item("s", "a"), event=ev.ItemReplaced(b"body")), "kind"),
    ],
)
def test_the_same_key_with_other_content_is_a_conflict(
    log: LmdbLog, draft: Draft, differs: str
) -> None:
    log.append([item("s", "a")])
    for drafts in ([draft], [item("s", "a"), draft], [item("s", "z"), draft]):
        with pytest.raises(KeyConflict, match=rf"key a already names event 1.*\({differs}\)"):
            log.append(drafts)
    assert log.append([item("s", "a")])[0].new is False
    assert log.append([replace(draft, stream="t")])[0].new is True


def test_a_key_names_an_event_of_its_own_stream_only(log: LmdbLog) -> None:
    log.append([title("s", "a", "one"), title("t", "a", "two")])
    assert (log.find("s", "a"), log.find("t", "a"), log.find("u", "a")) == (1, 1, None)


# -- late events and causes -------------------------------------------------------------------------------------


def cites(stream: str, key: str) -> Any:
    return lambda assigned: ev.SessionDescribed(
        f"{assigned[stream, key].seq} {assigned[stream, key].digest.hex()}"
    )


def test_a_late_event_cites_what_its_batch_or_an_earlier_one_appended(log: LmdbLog) -> None:
    (first,) = log.append([title("s", "a")])
    drafts = [title("s", "b"), replace(title("s", "c"), event=cites("s", "b"))]
    drafts += [replace(title("t", "d"), event=cites("s", "a"))]
    b, _, _ = log.append(drafts)
    assert b.digest.hex().encode() in log.body(log.get("s", 3))
    assert first.digest.hex().encode() in log.body(log.get("t", 1))
    assert [a.new for a in log.append(drafts)] == [False] * 3


def test_a_late_event_that_cites_nothing_known_is_refused(log: LmdbLog) -> None:
    with pytest.raises(NotFound, match="event 'later' is not in stream s"):
        log.append([replace(title("s", "a"), event=cites("s", "later")), title("s", "later")])
    assert log.tip("s") == EMPTY


def test_a_cause_by_key_is_the_seq_of_that_event(log: LmdbLog) -> None:
    log.append([title("s", "a"), title("s", "b", cause_key="a"), title("s", "c", cause_key="b")])
    log.append([title("s", "d", cause_key="b"), title("s", "e", cause=ev.Cause("t", 9))])
    causes = [r.header.cause for r in log.read("s")]
    assert causes == [None, ev.Cause("s", 1), ev.Cause("s", 2), ev.Cause("s", 2), ev.Cause("t", 9)]


# -- density, chains, order -------------------------------------------------------------------------------------


def test_seqs_positions_and_both_chains_have_no_gap(log: LmdbLog, tmp_path: Path) -> None:
    for n in range(40):
        log.append([title(f"s{k % 3}", f"{n}/{k}") for k in range(n % 4)])
    records = list(log.all())
    assert [r.position for r in records] == list(range(len(records)))
    assert records[0].header.prev_store == ZERO
    assert [r.header.prev_store for r in records[1:]] == [r.digest for r in records[:-1]]
    for stream in ("s0", "s1", "s2"):
        own = list(log.read(stream))
        assert [r.header.seq for r in own] == list(range(1, len(own) + 1))
        assert [r.header.prev_stream for r in own] == [ZERO, *(r.digest for r in own[:-1])]
        assert log.tip(stream) == Tip(len(own), own[-1].digest)
        positions = [r.position for r in own]
        assert positions == sorted(positions)
    assert log.store_tip() == (records[-1].position, records[-1].digest)


def test_a_session_that_continues_another_takes_its_digest_as_the_one_before_its_first(
    log: LmdbLog,
) -> None:
    (parent,) = log.append([title("session/p", "a")])
    event = ev.SessionOpened("s", "fork", "f", "session/p", 1, parent.digest)
    log.append([Draft("session/c", "open", event, ev.Channel.OPERATOR), title("session/c", "b")])
    log.append([replace(title("session/d", "x"), event=event), title("session/d", "y")])
    first, second = log.read("session/c")
    assert first.header.prev_stream == parent.digest
    assert second.header.prev_stream == first.digest
    log.append([replace(title("session/p", "late"), event=event)])
    assert log.get("session/p", 2).header.prev_stream == parent.digest


# -- reading ----------------------------------------------------------------------------------------------------


def test_reading_goes_on_beyond_a_page_and_stops_where_it_is_told(log: LmdbLog) -> None:
    most = PAGE_RECORDS * 2 + 3
    log.append([title("s", str(n)) for n in range(most)])
    log.append([title("t", str(n)) for n in range(3)])
    assert keys(log, "s") == [str(n) for n in range(most)]
    assert [r.header.seq for r in log.read("s", after=255, upto=258)] == [256, 257, 258]
    assert [r.header.seq for r in log.read("s", after=most - 1, upto=10**9)] == [most]
    assert (
        list(log.read("s", after=most)) == list(log.read("s", upto=0)) == list(log.read("no")) == []
    )
    assert [r.position for r in log.all(after=most - 2)] == list(range(most - 1, most + 4))
    assert [r.header.seq for r in log.stored("s", 500)] == list(range(500, most + 1))
    assert list(log.stored("s", 2**64)) == list(log.all(after=2**64)) == []


def test_a_read_gives_what_was_there_when_it_was_called(log: LmdbLog) -> None:
    log.append([title("s", "a"), title("s", "b")])
    found = log.read("s")
    assert next(found).header.key == "a"
    log.append([title("s", "c")])
    assert [r.header.key for r in found] == ["b"]


def test_what_is_not_there_is_not_found(log: LmdbLog) -> None:
    log.append([title("s", "a")])
    for seq in (0, -1, 2, 2**64, 2**70):
        with pytest.raises(NotFound, match=f"event {seq} is not in stream s"):
            log.get("s", seq)
    assert log.get("s", 1).header.key == "a"


NAMES = [
    "é",
    "日本語/流",
    "a" * 256,
    "é" * 128,
    "session/ with space",
    "\x00nul",
    "🜂",
    "",
    "e\u0301",
]


def test_long_and_foreign_names_are_streams_like_any_other(log: LmdbLog, tmp_path: Path) -> None:
    log.append([title(name, name) for name in NAMES])
    for name in NAMES:
        assert keys(log, name) == [name]
        assert log.find(name, name) == 1
    assert {name for name, _ in log.streams()} == {*NAMES, "store"}
    for name in ("a" * 257, "é" * 129, "\ud800"):
        with pytest.raises(InputRefused):
            log.append([title(name, "k")])
        assert log.tip(name) == EMPTY and list(log.read(name)) == []


def test_a_thousand_streams_are_listed_with_their_tips_and_by_prefix(log: LmdbLog) -> None:
    names = [f"session/{n}" for n in range(700)] + [f"source/{n}" for n in range(300)]
    log.append([title(name, "k") for name in names])
    found = dict(log.streams())
    assert found == {name: log.tip(name) for name in [*names, "store"]}
    assert {n for n, _ in log.streams("source/")} == set(names[700:])
    assert list(log.streams("none")) == []


def test_a_store_with_all_of_this_verifies(tmp_path: Path) -> None:
    with opened(tmp_path / "v") as log:
        (parent,) = log.append([title("session/p", "a")])
        event = ev.SessionOpened("s", "fork", "f", "session/p", 1, parent.digest)
        log.append([Draft("session/c", "open", event, ev.Channel.OPERATOR), title("é" * 128, "b")])
        log.append([item("session/p", str(n), b"x" * n) for n in range(600)])
    found = checked(tmp_path / "v")
    assert (found.problems, found.events, found.position) == ([], 604, 603)
    assert checked(tmp_path / "v", quick=True).problems == []
