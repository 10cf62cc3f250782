"""The store as a recorder of the eventsourcing library, beyond what the library's own suites ask."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from eventsourcing.persistence import (
    AggregateRecorder,
    IntegrityError,
    NotSupportedError,
    StoredEvent,
    Tracking,
)

from ef import events as ev
from ef.codec.digests import record_digest
from ef.codec.record import decode_frame, encode_frame, encode_header
from ef.errors import Damaged, NotProjectable
from ef.log.base import Draft, Prepared
from ef.log.lmdb_log import LmdbLog
from ef.log.recorder import (
    LmdbAggregateRecorder,
    LmdbApplicationRecorder,
    LmdbProcessRecorder,
    LmdbTrackingRecorder,
)
from ef.log.rows import U64, View
from tests.log.build import checked, in_child, opened, raw, says, title

ID = UUID("12345678-1234-5678-1234-567812345678")


SECONDS = 60


def event(name: UUID | str, version: int, state: bytes = b"s", topic: str = "t") -> StoredEvent:
    return StoredEvent(name, version, topic, state)


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[LmdbApplicationRecorder]:
    with opened(tmp_path / "store") as log:
        yield LmdbApplicationRecorder(log)
    assert says(checked(tmp_path / "store")) == ""


def versions(recorder: AggregateRecorder, name: UUID | str, **how: object) -> list[int]:
    return [e.originator_version for e in recorder.select_events(name, **how)]  # type: ignore[arg-type]


def test_versions_may_begin_at_0_have_gaps_and_come_out_of_order(
    recorder: LmdbApplicationRecorder,
) -> None:
    for batch in ([0, 7], [3], [1, 2**63, 2**64 - 1], [2]):
        recorder.insert_events([event("a", n) for n in batch])
    found = [0, 1, 2, 3, 7, 2**63, 2**64 - 1]
    assert versions(recorder, "a") == found
    assert versions(recorder, "a", gt=0, lte=7) == [1, 2, 3, 7]
    assert versions(recorder, "a", gt=-5, limit=2) == [0, 1]
    assert versions(recorder, "a", gt=2, lte=7, desc=True, limit=2) == [7, 3]
    assert versions(recorder, "a", gt=2**64 - 1) == versions(recorder, "b") == []


def test_uuids_and_texts_are_given_back_as_what_they_were(
    recorder: LmdbApplicationRecorder,
) -> None:
    recorder.insert_events([event(ID, 1, b"\x00u"), event("é/" + str(ID), 1, b"t" * 4_000)])
    (first,) = recorder.select_events(ID)
    (second,) = recorder.select_events("é/" + str(ID))
    assert (first.originator_id, first.state) == (ID, b"\x00u")
    assert (second.originator_id, second.state) == ("é/" + str(ID), b"t" * 4_000)
    notes = recorder.select_notifications(None, 10)
    assert [(n.id, n.originator_id) for n in notes] == [(1, ID), (2, "é/" + str(ID))]


@pytest.mark.parametrize("bad", [[event("a", 1)], [event("b", 5), event("b", 5)], [event("b", -1)],
                                 [event("b", 2**64)]])  # fmt: skip
def test_a_batch_with_one_version_that_cannot_be_inserted_inserts_nothing(
    recorder: LmdbApplicationRecorder, bad: list[StoredEvent]
) -> None:
    recorder.insert_events([event("a", 1)])
    for batch in ([event("c", 1), *bad], [*bad, event("c", 1)]):
        with pytest.raises(IntegrityError, match=r"version -?\d+ of [ab] is"):
            recorder.insert_events(batch)
    assert versions(recorder, "c") == versions(recorder, "b") == []
    assert recorder.max_notification_id() == 1
    assert recorder.insert_events([event("c", 1)]) == [2]


def test_nothing_inserted_is_no_notification(recorder: LmdbApplicationRecorder) -> None:
    assert recorder.insert_events([]) == []
    assert recorder.max_notification_id() is None
    assert recorder.select_notifications(None, 10) == recorder.select_notifications(1, 0) == []


def test_what_ef_appended_is_seen_as_frames_by_the_name_of_its_stream(
    recorder: LmdbApplicationRecorder,
) -> None:
    recorder.log.append([title("session/a", "k"), title("source/b", "k")])
    recorder.insert_events([event("session", 1)])
    (own,) = recorder.select_events("session/a")
    assert (own.originator_id, own.originator_version, own.topic) == (
        "session/a",
        1,
        "SessionDescribed",
    )
    record = recorder.log.get("session/a", 1)
    frame = decode_frame(own.state, where="")
    assert (frame.digest, frame.body) == (record.digest, record.frame.body)
    assert [e.topic for e in recorder.select_events("store")] == ["StoreOpened"]
    topics = [n.topic for n in recorder.select_notifications(None, 10)]
    assert topics == ["SessionDescribed", "SessionDescribed", "t"]
    assert versions(recorder, "session") == [1]


def test_notifications_are_bounded_filtered_and_in_order(recorder: LmdbApplicationRecorder) -> None:
    recorder.insert_events([event("a", n, topic="even" if n % 2 == 0 else "odd") for n in range(9)])

    def ids(*args: object, **how: object) -> list[int]:
        return [n.id for n in recorder.select_notifications(*args, **how)]  # type: ignore[arg-type]

    assert ids(None, 3) == [1, 2, 3]
    assert ids(4, 9) == [4, 5, 6, 7, 8, 9]
    assert ids(4, 9, inclusive_of_start=False) == [5, 6, 7, 8, 9]
    assert ids(4, 9, stop=6) == [4, 5, 6]
    assert ids(2, 3, topics=["odd"]) == [2, 4, 6]
    assert ids(0, 2) == ids(-7, 2) == [1, 2]
    assert ids(10, 5) == ids(2**64, 5) == ids(2**70, 5) == []


def test_a_subscription_gives_what_was_there_and_wakes_for_what_comes(
    recorder: LmdbApplicationRecorder,
) -> None:
    recorder.insert_events([event("a", n) for n in range(3)])
    seen: list[int] = []
    with recorder.subscribe(gt=1) as subscription:

        def follow() -> None:
            for note in subscription:
                seen.append(note.id)

        thread = threading.Thread(target=follow)
        thread.start()
        wait_until(lambda: seen == [2, 3])
        recorder.insert_events([event("a", 3)])
        recorder.log.append([title("session/a", "k")])
        wait_until(lambda: seen == [2, 3, 4, 5])
        subscription.stop()
        thread.join(SECONDS)
        assert not thread.is_alive()
    recorder.insert_events([event("a", 4)])
    assert recorder.log._writer.listeners == []


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_subscription_to_a_topic_passes_the_others_over(
    recorder: LmdbApplicationRecorder,
) -> None:
    recorder.insert_events([event("a", 0), event("a", 1, topic="x"), event("a", 2)])
    with recorder.subscribe(topics=["x"]) as subscription:
        assert next(iter(subscription)).id == 2


def test_a_race_for_a_version_has_one_winner(recorder: LmdbApplicationRecorder) -> None:
    def child() -> None:
        recorder.insert_events([event("a", 1, b"child")])

    real = recorder.log._env.write

    def meddle(work: object) -> object:
        recorder.log._env.write = real
        in_child(child)
        return real(work)  # type: ignore[arg-type]

    recorder.log._env.write = meddle  # type: ignore[method-assign, assignment]
    with pytest.raises(IntegrityError):
        recorder.insert_events([event("b", 1), event("a", 1, b"parent")])
    assert [e.state for e in recorder.select_events("a")] == [b"child"]
    assert versions(recorder, "b") == []


def test_an_id_that_names_a_stream_of_ef_is_for_ef_to_append_to(
    recorder: LmdbApplicationRecorder,
) -> None:
    for name in ("session/a", "source/a", "store"):
        with pytest.raises(NotSupportedError, match=f"{name} is a stream of ef"):
            recorder.insert_events([event("a", 1), event(name, 1)])
    recorder.insert_events([event(name, 1) for name in ("session", "source", "store/1", "stores")])
    assert [versions(recorder, n) for n in ("a", "session", "store/1", "stores")] == [
        [],
        [1],
        [1],
        [1],
    ]
    named = LmdbApplicationRecorder(recorder.log, "app")
    named.insert_events([event("session/a", 1), event("store", 1)])
    assert versions(named, "session/a") == versions(named, "store") == [1]
    assert versions(recorder, "session/a") == []


def test_rows_of_another_application_or_purpose_are_apart_and_are_no_notifications(
    recorder: LmdbApplicationRecorder,
) -> None:
    log = recorder.log
    assert LmdbApplicationRecorder(log, "b").max_notification_id() is None
    snapshots = LmdbAggregateRecorder(log, "a", "snapshots")
    same_as_a = LmdbAggregateRecorder(log, "a")
    names = ("", "a", "a/b", "a:b", "a%2Fb")
    apps = [recorder, *(LmdbApplicationRecorder(log, name) for name in names[1:])]
    for app, name in zip(apps, names, strict=True):
        app.insert_events([event(ID, 1, name.encode())])
    assert snapshots.insert_events([event(ID, 1, b"snapshot")]) is None
    LmdbTrackingRecorder(log, "a").insert_tracking(Tracking(str(ID), 1))
    for at, (app, name) in enumerate(zip(apps, names, strict=True), 1):
        (stored,) = app.select_events(ID)
        (note,) = app.select_notifications(None, 100)
        assert (stored.state, note.state, note.id) == (name.encode(), name.encode(), at)
        assert app.max_notification_id() == at
    assert [e.state for e in snapshots.select_events(ID)] == [b"snapshot"]
    assert same_as_a.insert_events([event(ID, 2)]) is None
    assert [n.id for n in apps[1].select_notifications(None, 100)] == [2, 8]
    assert LmdbApplicationRecorder(log, "b").max_notification_id() is None


def test_a_position_is_tracked_with_its_events_or_neither_is(
    recorder: LmdbApplicationRecorder,
) -> None:
    process = LmdbProcessRecorder(recorder.log, "app")
    assert process.insert_events([event("a", 1)], tracking=Tracking("up", 5)) == [1]
    for events, position in (
        ([event("a", 1)], 6),
        ([event("a", 2)], 5),
        ([event("a", 2)], 4),
        ([event("a", 2)], -1),
        ([event("a", 2)], 2**64),
    ):
        with pytest.raises(IntegrityError):
            process.insert_events(events, tracking=Tracking("up", position))
    assert (process.max_tracking_id("up"), versions(process, "a")) == (5, [1])
    assert process.insert_events([event("a", 2)], tracking=Tracking("up", 9)) == [3]
    assert process.insert_events([], tracking=Tracking("up/é", 0)) == []
    assert process.insert_events([], tracking=None) == []
    assert [process.max_tracking_id(name) for name in ("up", "up/é", "é")] == [9, 0, None]
    assert LmdbTrackingRecorder(recorder.log, "app").max_tracking_id("up") == 9
    assert LmdbTrackingRecorder(recorder.log).max_tracking_id("up") is None


def test_a_race_for_a_position_has_one_winner(recorder: LmdbApplicationRecorder) -> None:
    tracking = LmdbTrackingRecorder(recorder.log, "app")
    won: list[int] = []
    start = threading.Barrier(4)

    def race() -> None:
        start.wait(SECONDS)
        for n in range(1, 21):
            try:
                tracking.insert_tracking(Tracking("up", n))
                won.append(n)
            except IntegrityError:
                pass

    threads = [threading.Thread(target=race) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert won and won == sorted(set(won)) and tracking.max_tracking_id("up") == 20


def spoiled(path: Path, position: int) -> None:
    """Change a record behind the store's back."""
    with raw(path) as store:
        frame = bytearray(store.rows(b"log")[U64.pack(position)])
        frame[-1] ^= 1
        frame[70] ^= 1
        store.put(b"log", U64.pack(position), bytes(frame))


@pytest.mark.parametrize("plain", [None, "it is read in plain Python"])
def test_the_last_events_of_a_stream_are_read_without_the_others(
    tmp_path: Path, plain: str | None
) -> None:
    path = tmp_path / "store"
    with opened(path) as log:
        app = LmdbApplicationRecorder(log)
        app.insert_events([event(name, n) for n in range(0, 60, 2) for name in ("a", "b", "c")])
    for position in range(1, 88):
        spoiled(path, position)
    with opened(path, plain=plain) as log:
        app = LmdbApplicationRecorder(log)
        assert versions(app, "b", desc=True, limit=1) == [58]
        assert versions(app, "b", gt=56) == versions(app, "b", gt=57, lte=100, desc=True) == [58]
        assert versions(app, "b", desc=True, limit=0) == []
        assert versions(app, "b", gt=58, desc=True) == versions(app, "b", lte=-1, desc=True) == []
        assert versions(app, "d", desc=True) == versions(app, "d", desc=True, limit=1) == []
        for how in ({"desc": True, "limit": 2}, {"lte": 57, "desc": True, "limit": 1}, {}):
            with pytest.raises(Damaged):
                versions(app, "b", **how)
    spoiled(path, 1)
    with opened(path, plain=plain) as log:
        app = LmdbApplicationRecorder(log)
        assert versions(app, "a", limit=1) == versions(app, "a", lte=1, desc=True) == [0]


@pytest.mark.parametrize("plain", [None, "it is read in plain Python"])
def test_long_streams_are_read_backwards_as_forwards(tmp_path: Path, plain: str | None) -> None:
    path = tmp_path / "store"
    with opened(path) as log:
        app = LmdbApplicationRecorder(log)
        app.insert_events([event(name, n) for name in ("a", "b", "c") for n in range(600)])
        app.insert_events([event("b", 2**64 - 1)])
    with opened(path, plain=plain) as log:
        app = LmdbApplicationRecorder(log)
        wanted = [*range(600), 2**64 - 1]
        for gt, lte, limit in (
            (None, None, None), (3, None, 300), (None, 500, 256), (257, 257 + 256, None), (-9, 2**70, 599),
            (None, 700, 1),
        ):  # fmt: skip
            some = [n for n in wanted if (gt is None or n > gt) and (lte is None or n <= lte)]
            assert versions(app, "b", gt=gt, lte=lte, limit=limit) == some[:limit]
            back = versions(app, "b", gt=gt, lte=lte, limit=limit, desc=True)
            assert back == some[::-1][:limit]


def test_a_row_that_says_that_a_text_is_a_uuid_is_damage(recorder: LmdbApplicationRecorder) -> None:
    for key, name in (("1", "recorder/a"), ("1", f"recorder/{ID}")):
        row = Draft(name, key, ev.StoredEvent("t", b"s", True), ev.Channel.OPERATOR)
        recorder.log.append([row])
    assert versions(recorder, ID) == [1]
    with pytest.raises(Damaged, match="recorder/a, seq 1"):
        recorder.select_events("a")


def test_a_position_is_read_from_a_record_that_was_checked(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with opened(path) as log:
        tracking = LmdbTrackingRecorder(log)
        tracking.insert_tracking(Tracking("up", 5))
        tracking.insert_tracking(Tracking("up", 7))
    with raw(path) as store:
        (key,) = (k for k, row in store.rows(b"stream").items() if b"tracking" in row)
        store.put(b"stream", key, store.rows(b"stream")[key].replace(b"\x07", b"\x09", 1))
    with opened(path) as log:
        tracking = LmdbTrackingRecorder(log)
        assert tracking.max_tracking_id("up") == 7
        with pytest.raises(Damaged):
            tracking.insert_tracking(Tracking("up", 8))
    spoiled(path, 2)
    with opened(path) as log, pytest.raises(Damaged):
        LmdbTrackingRecorder(log).max_tracking_id("up")


def test_a_row_of_a_later_version_of_ef_is_named_and_not_guessed(tmp_path: Path) -> None:
    def later(log: LmdbLog, made: Prepared) -> Prepared:
        data = encode_header(replace(made.header, version=2))
        frame = decode_frame(made.frame, where="")
        return replace(
            made, header=replace(made.header, version=2), digest=record_digest(data),
            frame=encode_frame(data, frame.salt, frame.body),
        )  # fmt: skip

    with opened(tmp_path / "store") as log:
        app = LmdbApplicationRecorder(log)
        build = app.rows._build

        def rebuilt(view: View, rows: object) -> list[Prepared]:
            return [later(log, made) for made in build(view, rows)]  # type: ignore[arg-type]

        app.rows._build = rebuilt  # type: ignore[method-assign]
        app.insert_events([event("a", 1)])
        app.rows._build = build  # type: ignore[method-assign]
        app.insert_events([event("b", 1)])
        for read in (lambda: app.select_events("a"), lambda: app.select_notifications(None, 9)):
            with pytest.raises(NotProjectable, match="StoredEvent version 2"):
                read()
        assert versions(app, "b") == [1]
