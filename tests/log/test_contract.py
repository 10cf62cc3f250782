"""What every log owes, whatever keeps it: one test case, run on each kind."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ef import events as ev
from ef.codec.digests import ZERO, event_uuid
from ef.codec.record import decode_frame, encode_frame, encode_header
from ef.errors import Damaged, InputRefused, KeyConflict, NotFound, TipConflict
from ef.log.base import EMPTY, Appended, Draft, Log, Tip
from ef.log.sources import source_stream
from tests.log.build import item, title
from tests.log.contract import Kind, Lmdb, Memory, Popo, Sqlite

PAGES = 600
"""More records than two pages hold."""


def keys(log: Log, stream: str) -> list[str]:
    return [r.header.key for r in log.read(stream)]


def in_threads(count: int, work: Callable[[int], object]) -> None:
    faults: list[BaseException] = []

    def one(n: int) -> None:
        try:
            work(n)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not faults, faults
    assert not any(thread.is_alive() for thread in threads)


def cites(stream: str, key: str) -> Any:
    return lambda assigned: ev.SessionDescribed(
        f"{assigned[stream, key].seq} {assigned[stream, key].digest.hex()}"
    )


def chained(log: Log, stream: str) -> list[str]:
    """The keys of a stream, after a look at its seqs, links, bodies, keys and tip."""
    records = list(log.read(stream))
    assert [r.header.seq for r in records] == list(range(1, len(records) + 1))
    assert [r.header.prev_stream for r in records] == [ZERO, *(r.digest for r in records)][:-1]
    for r in records:
        log.body(r)
        assert log.find(stream, r.header.key) == r.header.seq
        assert log.get(stream, r.header.seq).digest == r.digest
    assert log.tip(stream) == (Tip(len(records), records[-1].digest) if records else EMPTY)
    return [r.header.key for r in records]


class LogContract:
    """Subclasses say which kind. Not collected itself: its name does not begin with Test."""

    kind_class: ClassVar[type[Kind]]

    @pytest.fixture
    def kind(self, tmp_path: Path) -> Iterator[Kind]:
        kind = self.kind_class(tmp_path)
        yield kind
        kind.close()
        if isinstance(kind, Memory):
            kind.end()

    @pytest.fixture
    def log(self, kind: Kind) -> Log:
        return kind.open()

    # -- batches ------------------------------------------------------------------------------------------------

    def test_what_is_appended_is_read_in_order_with_its_fields(self, log: Log) -> None:
        origin, group = ev.Origin("src", 3, 10, 20), ev.Group("g", True)
        draft = item(
            "session/a", "k1", b"\x00\xffbytes", occurred_at=77, basis=ev.Basis.CLAIMED,
            origin=origin, group=group, reader=("claude_code", 1), cause=ev.Cause("store", 1),
        )  # fmt: skip
        (got,) = log.append([draft])
        record = log.get("session/a", 1)
        h = record.header
        assert got == Appended(1, record.digest, True)
        assert (h.kind, h.version, h.required, h.stream, h.seq, h.key) == (
            "ItemAppended", 1, True, "session/a", 1, "k1",
        )  # fmt: skip
        assert (h.occurred_at, h.basis, h.origin, h.group) == (77, ev.Basis.CLAIMED, origin, group)
        assert (h.reader, h.cause, h.item) == (
            ("claude_code", 1),
            ev.Cause("store", 1),
            draft.item,
        )
        assert (h.channel, h.uuid) == (ev.Channel.USER_TYPED, event_uuid("session/a", "k1"))
        assert log.body(record) == b"\x00\xffbytes"
        log.append([title("session/a", "k2")])
        assert chained(log, "session/a") == ["k1", "k2"]

    def test_all_of_a_batch_is_kept_or_nothing(self, log: Log) -> None:
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
            assert (log.tip("s"), log.tip("t"), log.find("s", "a")) == (EMPTY, EMPTY, None)
            assert {name for name, _ in log.streams()} == {"store"}
        assert log.append([]) == []
        got = log.append([title("s", "a"), title("t", "b"), title("s", "b")])
        assert [(a.seq, a.new) for a in got] == [(1, True), (1, True), (2, True)]
        assert (chained(log, "s"), chained(log, "t")) == (["a", "b"], ["b"])

    def test_readers_see_whole_batches_while_they_are_appended(self, kind: Kind, log: Log) -> None:
        other, done = kind.open(), threading.Event()

        def work(n: int) -> None:
            if n == 0:
                for k in range(15):
                    log.append([title("s", f"{k}/{i}") for i in range(4)])
                done.set()
            while not done.is_set():
                assert other.tip("s").seq % 4 == 0
                assert len(list(other.read("s"))) % 4 == 0

        in_threads(2, work)
        assert len(chained(other, "s")) == 60

    # -- preconditions ------------------------------------------------------------------------------------------

    def test_an_append_that_expects_another_tip_is_refused_and_one_that_expects_this_tip_is_not(
        self, log: Log
    ) -> None:
        log.append([title("s", "a")], expect={"s": EMPTY, "t": EMPTY})
        tip = log.tip("s")
        for wrong in (EMPTY, Tip(1, ZERO), Tip(2, tip.digest), Tip(0, tip.digest)):
            with pytest.raises(
                TipConflict, match=r"stream s: expected its tip to be .*, found 1:"
            ) as e:
                log.append([title("s", "b")], expect={"t": EMPTY, "s": wrong})
            assert e.value.stream == "s"
        with pytest.raises(TipConflict):
            log.append([title("s", "a")], expect={"s": EMPTY})
        assert log.tip("s") == tip
        assert log.append([title("s", "a")], expect={"s": tip})[0].new is False
        log.append([title("s", "b"), title("t", "a")], expect={"s": tip, "t": EMPTY})
        assert keys(log, "s") == ["a", "b"]

    def test_a_precondition_on_a_stream_that_nothing_is_appended_to_holds_up_to_the_commit(
        self, kind: Kind, log: Log
    ) -> None:
        """Two writers, each of whom wants to be the only one: never both, and somebody each time."""
        pair = (log, kind.open())
        for n in range(12):
            start, kept = threading.Barrier(2), [0, 0]

            def work(
                who: int, n: int = n, start: threading.Barrier = start, kept: list[int] = kept
            ) -> None:
                start.wait(60)
                mine, theirs = f"{n}/{who}", f"{n}/{1 - who}"
                try:
                    pair[who].append([title(mine, "k")], expect={theirs: EMPTY})
                    kept[who] = 1
                except TipConflict:
                    pass

            in_threads(2, work)
            assert sum(kept) == 1
            assert [log.tip(f"{n}/{who}").seq for who in (0, 1)] == kept

    # -- keys ---------------------------------------------------------------------------------------------------

    def test_the_same_key_with_the_same_content_is_one_event(self, kind: Kind, log: Log) -> None:
        first = log.append([item("s", "a"), item("s", "b")])
        for one in (log, kind.open()):
            again = one.append([item("s", "b", occurred_at=9, reader=("r", 2)), item("s", "a")])
            assert again == [replace(first[1], new=False), replace(first[0], new=False)]
        mixed = log.append([item("s", "a"), item("s", "c"), item("s", "c")])
        assert [(a.seq, a.new) for a in mixed] == [(1, False), (3, True), (3, False)]
        assert chained(log, "s") == ["a", "b", "c"]

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
        self, log: Log, draft: Draft, differs: str
    ) -> None:
        log.append([item("s", "a")])
        for drafts in ([draft], [item("s", "a"), draft], [item("s", "z"), draft]):
            with pytest.raises(KeyConflict, match=rf"key a already names event 1.*\({differs}\)"):
                log.append(drafts)
        assert log.append([item("s", "a")])[0].new is False
        assert log.append([replace(draft, stream="t")])[0].new is True
        assert (log.find("s", "a"), log.find("t", "a"), log.find("u", "a")) == (1, 1, None)

    def test_keys_and_names_that_run_into_each_other_are_told_apart(self, log: Log) -> None:
        pairs = [("a", "b/c"), ("a/b", "c"), ("a", "b"), ("key", "a/b"), ("", "a/b/c")]
        log.append([title(stream, key, f"{stream} {key}") for stream, key in pairs])
        for stream, key in pairs:
            assert log.find(stream, key) is not None
            assert f"{stream} {key}".encode() in log.body(log.get(stream, log.find(stream, key)))  # type: ignore[arg-type]

    # -- late events, causes, child sessions --------------------------------------------------------------------

    def test_a_late_event_cites_what_its_batch_or_an_earlier_one_appended(self, log: Log) -> None:
        (first,) = log.append([title("s", "a")])
        drafts = [title("s", "b"), replace(title("s", "c"), event=cites("s", "b"))]
        drafts += [replace(title("t", "d"), event=cites("s", "a"))]
        b, _, _ = log.append(drafts)
        assert b.digest.hex().encode() in log.body(log.get("s", 3))
        assert first.digest.hex().encode() in log.body(log.get("t", 1))
        assert [a.new for a in log.append(drafts)] == [False] * 3
        with pytest.raises(NotFound, match="event 'later' is not in stream s"):
            log.append([replace(title("s", "x"), event=cites("s", "later")), title("s", "later")])
        assert chained(log, "s") == ["a", "b", "c"]

    def test_a_cause_by_key_is_the_seq_of_that_event(self, log: Log) -> None:
        drafts = [title("s", "a"), title("s", "b", cause_key="a"), title("s", "c", cause_key="b")]
        log.append(drafts)
        log.append([title("s", "d", cause_key="b"), title("s", "e", cause=ev.Cause("t", 9))])
        causes = [r.header.cause for r in log.read("s")]
        s1, s2 = ev.Cause("s", 1), ev.Cause("s", 2)
        assert causes == [None, s1, s2, s2, ev.Cause("t", 9)]

    def test_a_session_that_continues_another_begins_with_its_digest(self, log: Log) -> None:
        (parent,) = log.append([title("session/p", "a")])
        event = ev.SessionOpened("s", "fork", "f", "session/p", 1, parent.digest)
        log.append(
            [Draft("session/c", "open", event, ev.Channel.OPERATOR), title("session/c", "b")]
        )
        first, second = log.read("session/c")
        assert (first.header.prev_stream, second.header.prev_stream) == (
            parent.digest,
            first.digest,
        )

    # -- reading ------------------------------------------------------------------------------------------------

    def test_reading_goes_on_beyond_a_page_and_stops_where_it_is_told(self, log: Log) -> None:
        log.append([title("s", str(n)) for n in range(PAGES)])
        log.append([title("t", str(n)) for n in range(3)])
        assert keys(log, "s") == [str(n) for n in range(PAGES)]
        for after, upto in ((255, 258), (0, 1), (511, 514), (PAGES - 1, 10**9), (2**70, None)):
            expected = list(range(after + 1, min(upto or 0, PAGES) + 1))
            assert [r.header.seq for r in log.read("s", after=after, upto=upto)] == expected
        for none in (log.read("s", after=PAGES), log.read("s", upto=0), log.read("no")):
            assert list(none) == []

    def test_a_read_gives_what_was_there_when_it_was_called(self, log: Log) -> None:
        log.append([title("s", "a"), title("s", "b")])
        begun, not_begun = log.read("s"), log.read("s")
        assert next(begun).header.key == "a"
        log.append([title("s", "c")])
        assert [r.header.key for r in begun] == ["b"]
        assert [r.header.key for r in not_begun] == ["a", "b"]

    def test_what_is_not_there_is_not_found(self, log: Log) -> None:
        log.append([title("s", "a")])
        for seq in (0, -1, 2, 2**63, 2**64, 2**70):
            with pytest.raises(NotFound, match=f"event {seq} is not in stream s"):
                log.get("s", seq)
        assert log.get("s", 1).header.key == "a"

    def test_long_and_foreign_names_are_streams_like_any_other(self, log: Log) -> None:
        names = ["é", "日本語/流", "a" * 256, "é" * 128, "a b", "\x00nul", "🜂", "", "e\u0301"]
        log.append([title(name, name) for name in names])
        for name in names:
            assert chained(log, name) == [name]
        assert {name for name, _ in log.streams()} == {*names, "store"}
        for name in ("a" * 257, "é" * 129, "\ud800", "key/\ud800"):
            with pytest.raises(InputRefused):
                log.append([title(name, "k")])
            with pytest.raises(InputRefused):
                log.append([title("s", name)])
            assert log.tip(name) == EMPTY and list(log.read(name)) == []
            with pytest.raises(NotFound):
                log.get(name, 1)
        assert log.tip("s") == EMPTY

    def test_many_streams_are_listed_with_their_tips_and_by_prefix(self, log: Log) -> None:
        names = [f"session/{n}" for n in range(300)] + [f"source/{n}" for n in range(40)]
        log.append([title(name, "k") for name in names])
        assert dict(log.streams()) == {name: log.tip(name) for name in [*names, "store"]}
        assert {n for n, _ in log.streams("source/")} == set(names[300:])
        assert list(log.streams("none")) == []

    def test_a_body_comes_back_as_it_was_whatever_its_size_and_place(self, log: Log) -> None:
        bodies = [b"", b"\x00", b"a" * 511, b"a" * 512, b"ab" * 40_000, os.urandom(70_000)]
        log.append([item("s", str(n), body) for n, body in enumerate(bodies)])
        assert [log.body(r) for r in log.read("s")] == bodies
        assert [r.header.encoding for r in log.read("s")] == [
            "none", "none", "none", "zlib", "zlib", "none",
        ]  # fmt: skip
        raw, at = os.urandom(5_000), 3_000
        source = [
            Draft(
                source_stream("f"), f"at/{a}", ev.SourceLines(raw[a:b]), ev.Channel.IMPORTER,
                origin=ev.Origin("f", 1, a, b),
            )
            for a, b in ((0, at), (at, len(raw)))
        ]  # fmt: skip
        placed = item(
            "s", "placed", raw[2_000:4_000], origin=ev.Origin("f", 1, 2_000, 4_000),
            place=ev.Place.SOURCE,
        )  # fmt: skip
        for new in (True, False):
            assert [a.new for a in log.append([*source, placed])] == [new] * 3
            assert log.body(log.get("s", 7)) == raw[2_000:4_000]
        with pytest.raises(KeyConflict):
            log.append([replace(placed, event=ev.ItemAppended(raw[2_000:4_001]))])

    # -- many writers -------------------------------------------------------------------------------------------

    def test_many_writers_append_without_gap_loss_or_double(self, kind: Kind, log: Log) -> None:
        handles = (log, kind.open())
        made: list[list[bool]] = [[] for _ in range(8)]

        def work(n: int) -> None:
            for k in range(8):
                own, same = title("s", f"{n}/{k}"), title("s", f"same/{k}")
                got = handles[n % 2].append([own, same, title(f"t{n}", str(k))])
                made[n].append(got[1].new)
                assert got[0].new and got[2].seq == k + 1

        in_threads(8, work)
        expected = [f"{n}/{k}" for n in range(8) for k in range(8)] + [
            f"same/{k}" for k in range(8)
        ]
        assert sorted(chained(log, "s")) == sorted(expected)
        assert sum(new for each in made for new in each) == 8
        for n in range(8):
            assert chained(handles[1], f"t{n}") == [str(k) for k in range(8)]

    def test_of_writers_who_expect_the_same_tip_one_wins_each_time(
        self, kind: Kind, log: Log
    ) -> None:
        handles, won = (log, kind.open()), [0] * 4

        def work(n: int) -> None:
            while (tip := handles[n % 2].tip("s")).seq < 24:
                try:
                    handles[n % 2].append([title("s", f"{n}/{tip.seq}")], expect={"s": tip})
                    won[n] += 1
                except TipConflict:
                    pass

        in_threads(4, work)
        assert sum(won) == len(chained(log, "s"))
        assert [int(key.split("/")[1]) for key in keys(log, "s")] == list(range(sum(won)))

    def test_appends_that_nobody_waits_for_keep_their_order_and_fail_alone(self, log: Log) -> None:
        waiting = [log.append_nowait([title("s", str(n))]) for n in range(30)]
        failing = log.append_nowait([title("s", "3", "other")])
        refused = log.append_nowait([title("s", "new")], expect={"s": EMPTY})
        last = log.append([title("s", "last")])
        assert [f.result(60)[0].seq for f in waiting] == list(range(1, 31))
        assert isinstance(failing.exception(60), KeyConflict)
        assert isinstance(refused.exception(60), TipConflict)
        assert last[0].seq == 31
        assert chained(log, "s") == [*map(str, range(30)), "last"]

    def test_tasks_append_while_the_event_loop_goes_on(self, log: Log) -> None:
        async def work() -> list[list[Appended]]:
            return await asyncio.gather(*(log.aappend([title("s", str(n))]) for n in range(20)))

        async def refused() -> None:
            await log.aappend([title("s", "x")], expect={"s": EMPTY})

        assert [got[0].seq for got in asyncio.run(work())] == list(range(1, 21))
        with pytest.raises(TipConflict):
            asyncio.run(refused())
        assert chained(log, "s") == [str(n) for n in range(20)]

    # -- reopen, damage -----------------------------------------------------------------------------------------

    def test_a_log_that_is_opened_again_is_the_same(self, kind: Kind, log: Log) -> None:
        first = log.append([item("s", str(n), b"x" * n) for n in range(5)])
        before = dict(log.streams())
        kind.close()
        log = kind.open()
        assert dict(log.streams()) == before
        assert log.append([item("s", "2", b"xx")]) == [replace(first[2], new=False)]
        assert log.append([title("s", "on")], expect={"s": before["s"]})[0].seq == 6
        assert chained(log, "s") == ["0", "1", "2", "3", "4", "on"]

    def damaged(self, kind: Kind, change: Callable[[bytes], bytes | None], seq: int = 3) -> Log:
        log = kind.open()
        log.append([item("s", str(n), bytes([65 + n]) * 40) for n in range(5)])
        log.append([title("t", "a"), title("t", "b")])
        kind.close()
        kind.damage("s", seq, change)
        return kind.open()

    @pytest.mark.parametrize("at", [0, 5, 13, 40, 75, 110, -60])
    def test_a_record_whose_header_was_changed_is_never_handed_out(
        self, kind: Kind, at: int
    ) -> None:
        def flip(frame: bytes) -> bytes:
            changed = bytearray(frame)
            changed[at] ^= 0x10
            return bytes(changed)

        log = self.damaged(kind, flip)
        if at == 13:  # the salt, which the header does not cover and the body's commitment does
            with pytest.raises(Damaged, match="seq 3: the body"):
                log.body(log.get("s", 3))
        else:
            for look in (
                lambda: log.get("s", 3),
                lambda: list(log.read("s")),
                lambda: log.find("s", "2"),
                lambda: log.append([item("s", "2", b"C" * 40)]),
            ):
                with pytest.raises(Damaged):
                    look()
        assert [r.header.seq for r in log.read("s", upto=2)] == [1, 2]
        assert keys(log, "t") == ["a", "b"]

    def test_a_body_that_was_changed_is_never_handed_out(self, kind: Kind) -> None:
        log = self.damaged(kind, lambda frame: frame[:-1] + b"?")
        assert keys(log, "s") == ["0", "1", "2", "3", "4"]
        with pytest.raises(Damaged, match="stream s, seq 3: the body"):
            log.body(log.get("s", 3))
        with pytest.raises(Damaged):
            log.append([item("s", "2", b"C" * 40)])
        assert log.body(log.get("s", 4)) == b"D" * 40

    def test_a_record_that_is_gone_or_stands_in_anothers_place_is_noticed(self, kind: Kind) -> None:
        frames: list[bytes] = []
        log = self.damaged(kind, lambda frame: frames.append(frame) or frame, seq=2)
        assert len(list(log.read("s"))) == 5
        kind.close()
        kind.damage("s", 3, lambda frame: frames[0])
        log = kind.open()
        for look in (lambda: log.get("s", 3), lambda: list(log.read("s"))):
            with pytest.raises(Damaged, match="seq 3"):
                look()
        kind.close()
        kind.damage("s", 3, lambda frame: None)
        log = kind.open()
        for look in (lambda: log.get("s", 3), lambda: list(log.read("s"))):
            with pytest.raises(Damaged, match="s"):
                look()

    def test_a_sound_record_that_does_not_follow_the_one_before_it_is_noticed(
        self, kind: Kind
    ) -> None:
        def relinked(frame: bytes) -> bytes:
            found = decode_frame(frame, where="here")
            header = replace(found.header, prev_stream=b"\x01" * 32)
            return encode_frame(encode_header(header), found.salt, found.body)

        log = self.damaged(kind, relinked)
        for after in (0, 2):
            with pytest.raises(Damaged, match="seq 3: it does not follow"):
                list(log.read("s", after=after))
        with pytest.raises(Damaged, match="seq 4: it does not follow"):
            list(log.read("s", after=3))


class TestMemory(LogContract):
    kind_class = Memory


class TestLmdb(LogContract):
    kind_class = Lmdb


class TestGenericOnSqlite(LogContract):
    kind_class = Sqlite


class TestGenericOnPopo(LogContract):
    kind_class = Popo
