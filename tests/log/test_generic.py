"""The log over a recorder of the library: birth, rivals, unknown outcomes, other processes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from eventsourcing.persistence import StoredEvent
from eventsourcing.sqlite import SQLiteApplicationRecorder, SQLiteDatastore

from ef.codec.digests import event_uuid
from ef.codec.record import decode_frame
from ef.errors import Busy, Damaged, InputRefused, NotFound, OutcomeUnknown, StoreUnavailable
from ef.log import generic
from ef.log.base import EMPTY, Draft
from ef.log.generic import KEYS, STREAMS, TOPIC, TURNS, UNKNOWN_POSITION, GenericLog
from ef.log.memory import MemoryLog
from ef.log.rowlog import PUT_TRIES
from tests.log.build import ROOT, clock, in_child, item, title, typed
from tests.log.contract import sqlite_log
from tests.log.hooked import Hooked, fails, over
from tests.log.test_contract import chained, keys


@pytest.fixture
def recorder() -> Hooked:
    return Hooked()


@pytest.fixture
def log(recorder: Hooked) -> Iterator[GenericLog]:
    with over(recorder) as found:
        yield found


# -- birth ------------------------------------------------------------------------------------------------------


def test_a_store_is_born_once_and_known_by_its_genesis(recorder: Hooked) -> None:
    with pytest.raises(NotFound, match="store 'Hooked'"), over(recorder, create_missing=False):
        pass
    assert recorder.max_notification_id() is None
    with over(recorder, name="here", made_by="test") as one, over(recorder) as two:
        with over(recorder, create_missing=False) as three:
            assert one.store_id == two.store_id == three.store_id
        genesis = one.get("store", 1)
        assert (genesis.header.kind, genesis.header.key) == ("StoreOpened", one.store_id)
        assert b"test" in one.body(genesis) and str(one.path) == "here"


def test_of_two_that_make_the_store_at_once_both_get_the_same(recorder: Hooked) -> None:
    rivals: list[GenericLog] = []
    recorder.before = lambda: rivals.append(GenericLog(recorder, now=clock()))
    with over(recorder) as log, rivals[0] as rival:
        assert log.store_id == rival.store_id
        assert log.get("store", 1).digest == rival.get("store", 1).digest


def test_a_recorder_that_holds_other_events_is_no_store(recorder: Hooked) -> None:
    recorder.insert_events([StoredEvent("order/1", 1, "Ordered", b"{}")])
    with pytest.raises(StoreUnavailable, match="holds events and is not a store"), over(recorder):
        pass
    assert recorder.max_notification_id() == 1


def test_a_store_whose_first_record_is_another_one_is_damaged(
    recorder: Hooked, log: GenericLog
) -> None:
    log.append([title("s", "a")])
    with MemoryLog(now=clock()) as other:
        other.append([title("store", "not a genesis")])
        (frame,) = (f for f in other._frames if b"not a genesis" in f)
    recorder.change("store", 1, frame)
    with pytest.raises(Damaged), over(recorder):
        pass


def test_a_store_without_its_genesis_kind_is_damaged(recorder: Hooked) -> None:
    with MemoryLog(now=clock()) as other:
        other._streams["store"].clear()
        other.append([title("store", "a")])
        recorder.insert_events([StoredEvent("store", 1, "SessionDescribed", other._frames[-1])])
    with pytest.raises(Damaged, match="not the genesis"), over(recorder):
        pass


def test_originator_ids_must_be_text(tmp_path: Path) -> None:
    datastore = SQLiteDatastore(str(tmp_path / "uuid.db"))
    recorder = SQLiteApplicationRecorder(datastore)
    recorder.create_table()
    try:
        with pytest.raises(StoreUnavailable, match='originator_id_type="text"'), over(recorder):
            pass
        assert recorder.max_notification_id() is None
    finally:
        datastore.close()
    log, close = sqlite_log(tmp_path / "text.db")
    assert [name for name, _ in log.streams()] == ["store"]
    close()


# -- through the library ----------------------------------------------------------------------------------------


def test_the_library_sees_records_as_stored_events_in_the_order_of_the_store(
    recorder: Hooked, log: GenericLog
) -> None:
    got = log.append([title("s", "a"), item("t", "b"), title("s", "c")])
    stored = recorder.select_events("s")
    assert [(s.originator_version, s.topic) for s in stored] == [
        (1, "SessionDescribed"),
        (2, "SessionDescribed"),
    ]
    assert [decode_frame(s.state, where="here").digest for s in stored] == [
        got[0].digest,
        got[2].digest,
    ]
    seen = recorder.select_notifications(None, 100, topics=["ItemAppended", "SessionDescribed"])
    assert [(n.originator_id, n.originator_version) for n in seen] == [
        ("s", 1),
        ("t", 1),
        ("s", 2),
    ]
    assert [r.position for r in log.read("s")] == [UNKNOWN_POSITION] * 2
    assert [r.position for r in log.all()][1:] == [n.id for n in seen]
    assert [r.header.key for r in log.all(after=seen[0].id)] == ["b", "c"]
    digests = [r.digest for r in log.all()]
    assert [r.header.prev_store for r in log.all()] == [bytes(32), *digests[:-1]]


def test_streams_that_are_called_like_its_own_rows_are_refused(log: GenericLog) -> None:
    log.append([title("s", "a"), title("index", "a"), title("keys/s", "a"), title("key", "a")])
    taken = (STREAMS, TURNS, "index/x", KEYS + "s/" + event_uuid("s", "a").hex(), "key/")
    for name in taken:
        with pytest.raises(InputRefused, match="such names are the log's own"):
            log.append([title("s", "b"), title(name, "x")])
        assert log.tip(name) == EMPTY and list(log.read(name)) == []
        with pytest.raises(NotFound):
            log.get(name, 1)
    assert keys(log, "s") == ["a"]


def test_a_view_knows_which_seqs_there_are(log: GenericLog) -> None:
    log.append([title("s", "a")])
    found: list[list[bool]] = []

    def make(view: Any) -> list[Draft]:
        found.append([view.has("s", n) for n in range(3)])
        return []

    assert log.committer.run(log.request(make, len, size=0)) == 0
    assert found == [[False, True, False]]


# -- rivals -----------------------------------------------------------------------------------------------------


def test_who_comes_second_prepares_again_on_what_the_first_appended(
    recorder: Hooked, log: GenericLog
) -> None:
    with over(recorder) as rival:
        recorder.before = lambda: rival.append([title("s", "first", "theirs")])
        assert log.append([title("s", "a"), title("s", "b")])[1].seq == 3
        recorder.before = lambda: rival.append([title("s", "same"), title("u", "x")])
        assert [a.new for a in log.append([title("s", "same"), title("t", "y")])] == [False, True]
        recorder.before = lambda: rival.append([title("s", "k", "theirs")])
        with pytest.raises(Exception, match="already names event 5"):
            log.append([title("s", "k", "mine")])
        tip = log.tip("s")
        recorder.before = lambda: rival.append([title("s", "moved")])
        with pytest.raises(Exception, match="expected its tip"):
            log.append([title("v", "k")], expect={"s": tip})
    assert chained(log, "s") == ["first", "a", "b", "same", "k", "moved"]
    assert log.tip("v") == EMPTY
    assert [name for name, _ in log.streams()] == ["store", "s", "u", "t"]


def test_a_retry_is_answered_as_of_one_moment(recorder: Hooked, log: GenericLog) -> None:
    """What is known already needs no insert; that its precondition held is looked at once more."""
    log.append([title("s", "a"), title("t", "b")])
    tip = log.tip("t")

    def make(view: Any) -> list[Draft]:
        if log.tip("t") == tip:
            recorder.insert_events(
                [StoredEvent(TURNS, log.store_tip()[0] + 1, TOPIC, log.store_tip()[1])]
            )
            looks.append(1)
        return [title("s", "a")]

    looks: list[int] = []
    request = log.request(make, lambda got: got, size=0, expect={"t": tip})
    recorder_turns = log.store_tip()[0]
    with pytest.raises(Busy, match="other processes kept appending first"):
        log.committer.run(request)
    assert len(looks) == PUT_TRIES == log.store_tip()[0] - recorder_turns
    assert log.append([title("s", "a")], expect={"t": tip})[0].new is False


def test_who_never_gets_its_turn_is_told_so(
    recorder: Hooked, log: GenericLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generic, "PAUSE_SECONDS_MAX", 0)
    numbers = count()
    with over(recorder) as rival:

        def first() -> None:
            rival.append([title("t", str(next(numbers)))])
            recorder.before = first

        recorder.before = first
        with pytest.raises(Busy, match="is busy: other processes kept appending first"):
            log.append([title("s", "a")])
        recorder.before = None
        assert log.tip("s") == EMPTY
        assert log.append([title("s", "a")])[0].seq == 1


# -- unknown outcomes -------------------------------------------------------------------------------------------


def test_an_insert_that_fails_after_it_was_kept_is_acknowledged(
    recorder: Hooked, log: GenericLog
) -> None:
    recorder.after = fails
    assert log.append([title("s", "a"), title("s", "b")])[1].new is True
    assert chained(log, "s") == ["a", "b"]


def test_an_insert_that_fails_before_it_was_kept_has_an_unknown_outcome(
    recorder: Hooked, log: GenericLog
) -> None:
    recorder.before = fails
    with pytest.raises(OutcomeUnknown, match="the connection was lost"):
        log.append([title("s", "a")])
    with over(recorder) as rival:

        def other_then_fail() -> None:
            rival.append([title("s", "a", "other")])
            fails()

        recorder.before = other_then_fail
        with pytest.raises(OutcomeUnknown):
            log.append([title("s", "a")])
    assert log.append([title("s", "a", "other")])[0].new is False


def test_an_insert_whose_outcome_cannot_be_looked_up_is_unknown(
    recorder: Hooked, log: GenericLog
) -> None:
    def fails_for_good() -> None:
        recorder.broken = True
        fails()

    recorder.after = fails_for_good
    with pytest.raises(OutcomeUnknown, match="lost; looking it up failed"):
        log.append([title("s", "a")])
    with pytest.raises(StoreUnavailable, match="its recorder failed: it is gone"):
        log.tip("s")
    recorder.broken = False
    assert log.append([title("s", "a")])[0].new is False


# -- processes --------------------------------------------------------------------------------------------------

WRITER = """
import sys
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.log.build import title
from tests.log.contract import sqlite_log
log, close = sqlite_log(Path({path!r}))
sys.stdin.readline()
for k in range({count}):
    own, same = log.append([title("s", f"{n}/{{k}}"), title("s", f"same/{{k}}")])
    print(own.seq, same.new)
close()
"""


def test_processes_append_to_one_file_without_gap_loss_or_double(tmp_path: Path) -> None:
    path, most, many = tmp_path / "store.db", 12, 3
    scripts = [WRITER.format(root=str(ROOT), path=str(path), count=most, n=n) for n in range(many)]
    children = [
        subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd=ROOT,
        )
        for script in scripts
    ]  # fmt: skip
    try:
        said = []
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        for child in children:
            out, _ = child.communicate(timeout=120)
            assert child.returncode == 0
            said += [line.split() for line in out.splitlines()]
    finally:
        for child in children:
            child.kill()
            child.communicate()
    log, close = sqlite_log(path)
    made = chained(log, "s")
    assert sorted(made) == sorted(
        [f"{n}/{k}" for n in range(many) for k in range(most)] + [f"same/{k}" for k in range(most)]
    )
    assert len({seq for seq, _ in said}) == most * many
    assert sum(new == "True" for _, new in said) == most
    assert len(list(log.all())) == 1 + len(made)
    close()


def test_a_forked_child_is_refused_and_opens_its_own(tmp_path: Path) -> None:
    log, close = sqlite_log(tmp_path / "store.db")
    log.append([title("s", "parent")])

    def child() -> tuple[list[str], list[int]]:
        said = [typed(lambda: log.tip("s")), typed(lambda: log.append([title("s", "lost")]))]
        own, close_own = sqlite_log(tmp_path / "store.db")
        seqs = [a.seq for a in own.append([title("s", "parent"), title("s", "child")])]
        close_own()
        return said, seqs

    assert in_child(child) == (["StoreUnavailable"] * 2, [1, 2])
    log.append([title("s", "on")])
    assert chained(log, "s") == ["parent", "child", "on"]
    close()


def test_a_log_in_memory_is_its_process_s_own() -> None:
    with MemoryLog(now=clock()) as log:
        log.append([title("s", "a")])

        def child() -> list[str]:
            looks: list[Callable[[], object]] = [
                lambda: log.append([title("s", "b")]),
                lambda: list(log.read("s")),
                lambda: log.find("s", "a"),
                lambda: list(log.streams()),
                lambda: list(log.all()),
            ]
            return [typed(look) for look in looks]

        assert in_child(child) == ["StoreUnavailable"] * 5
        assert chained(log, "s") == ["a"]
        assert [r.position for r in log.all()] == [0, 1]
        assert [r.header.key for r in log.all(after=0)] == ["a"]
    with pytest.raises(StoreUnavailable, match="closed"):
        log.append([title("s", "b")])
