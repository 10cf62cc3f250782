"""The store as a recorder of the eventsourcing library, beyond what the library's own suites ask."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from uuid import UUID

import pytest
from eventsourcing.persistence import IntegrityError, StoredEvent

from ef.codec.record import decode_frame
from ef.log.recorder import LmdbApplicationRecorder
from tests.log.build import checked, in_child, opened, says, title

ID = UUID("12345678-1234-5678-1234-567812345678")


def event(name: UUID | str, version: int, state: bytes = b"s", topic: str = "t") -> StoredEvent:
    return StoredEvent(name, version, topic, state)


@pytest.fixture
def recorder(tmp_path: Path):  # type: ignore[no-untyped-def]
    with opened(tmp_path / "store") as log:
        yield LmdbApplicationRecorder(log)
    assert says(checked(tmp_path / "store")) == ""


def versions(recorder: LmdbApplicationRecorder, name: UUID | str, **how: object) -> list[int]:
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
        thread.join(10)
        assert not thread.is_alive()
    recorder.insert_events([event("a", 4)])
    assert recorder.log._listeners == []


def wait_until(holds: object) -> None:
    end = time.monotonic() + 10
    while not holds():  # type: ignore[operator]
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
