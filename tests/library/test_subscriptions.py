"""Subscriptions miss nothing: writers in threads and in another process, commits that are late, and one oracle.

The oracle: a subscriber that begins behind a position sees every later one, once, in order. It must also find fault
with a subscription that is broken in the usual way: it takes the newest position that it saw for what it gave out.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from eventsourcing.persistence import StoredEvent, Tracking

from ef.errors import Damaged, NotFound
from ef.log import points
from ef.log.base import Record
from ef.log.lmdb_log import LmdbLog
from ef.log.recorder import LmdbApplicationRecorder, LmdbProcessRecorder
from ef.log.rows import U64
from ef.log.subscription import Subscription
from tests.log.build import checked, filled, opened, raw, running, says, title

SECONDS = 60
WRITERS, BATCHES = 3, 25
LATE = {"group.begun", "group.put", "group.durable", "group.told"}
"""Where a commit is made late: before it, and between it and the news of it."""

OTHER_WRITER = """
import random, time
from ef.log import points
chance = random.Random({seed})
points.hold(lambda at: time.sleep(chance.random() * 0.004) if at in {late} else None)
with opened(path) as log:
    print("open", flush=True)
    for n in range({batches}):
        log.append([title("session/other", f"{{n}}.{{m}}") for m in range(chance.randint(1, 4))])
        time.sleep(chance.random() * 0.004)
    print(log.tip("session/other").seq, flush=True)
"""


def missed(seen: list[int], after: int, last: int) -> str:
    """What is wrong with the positions that a subscriber saw; "" when nothing is."""
    wanted = list(range(after + 1, last + 1))
    if seen == wanted:
        return ""
    lost, twice = sorted(set(wanted) - set(seen)), len(seen) - len(set(seen))
    return f"after {after}: {len(lost)} lost ({lost[:5]}), {twice} twice, ordered: {seen == sorted(seen)}"


@contextmanager
def late_commits(seed: int) -> Iterator[None]:
    chance = random.Random(seed)
    points.hold(lambda at: time.sleep(chance.random() * 0.004) if at in LATE else None)
    try:
        yield
    finally:
        points.hold(None)


@contextmanager
def ended(stop: Callable[[], object]) -> Iterator[None]:
    """A subscription that waits for ever fails the test instead."""
    timer = threading.Timer(SECONDS, stop)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


class Broken:
    """Remembers the newest position of the store as what it has given out, though a commit may have come between."""

    def __init__(self, log: LmdbLog, after: int) -> None:
        self._log, self._after = log, after
        self._stopped = threading.Event()

    def __iter__(self) -> Iterator[int]:
        while not self._stopped.is_set():
            yield from [record.position for record in self._log.all(after=self._after)]
            time.sleep(0.002)
            self._after = max(self._after, self._log.tip_position())

    def stop(self) -> None:
        self._stopped.set()


Subscribe = Callable[[LmdbLog, int], tuple[Iterable[int], Callable[[], object]]]


def ours(log: LmdbLog, after: int) -> tuple[Iterable[int], Callable[[], object]]:
    subscription = Subscription(log, after=after)
    return (record.position for record in subscription), subscription.stop


def the_library_s(log: LmdbLog, after: int) -> tuple[Iterable[int], Callable[[], object]]:
    subscription = LmdbApplicationRecorder(log).subscribe(gt=after)
    return (note.id for note in subscription), subscription.stop


def broken(log: LmdbLog, after: int) -> tuple[Iterable[int], Callable[[], object]]:
    subscription = Broken(log, after)
    return subscription, subscription.stop


class Follower(threading.Thread):
    """Follows a log to the position "last" of the stream "end", from a position that exists when it begins."""

    def __init__(self, log: LmdbLog, after: int, subscribe: Subscribe, last: list[int]) -> None:
        super().__init__()
        self.after, self.seen, self._last = after, list[int](), last
        self._positions, self.stop = subscribe(log, after)
        self.start()

    def run(self) -> None:
        for position in self._positions:
            self.seen.append(position)
            if self._last and position >= self._last[0]:
                self.stop()
                return


def followed(path: Path, subscribes: list[Subscribe], seed: int) -> list[str]:
    """What is wrong with what each subscriber saw while several wrote."""
    chance = random.Random(seed)
    last: list[int] = []
    followers: list[Follower] = []
    with opened(path) as log, late_commits(seed):
        recorder = LmdbApplicationRecorder(log)
        recorder.insert_events([StoredEvent("first", n, "t", b"") for n in range(20)])

        def write(name: str) -> None:
            own = random.Random(f"{seed} {name}")
            for n in range(BATCHES):
                size = range(own.randint(1, 5))
                if own.random() < 0.5:
                    log.append([title(f"session/{name}", f"{n}.{m}") for m in size])
                else:
                    recorder.insert_events([StoredEvent(name, n * 10 + m, "t", b"") for m in size])
                time.sleep(own.random() * 0.003)

        threads = [threading.Thread(target=write, args=(f"w{n}",)) for n in range(WRITERS)]
        text = OTHER_WRITER.format(seed=seed, late=LATE, batches=BATCHES)
        with running(path, text) as other:
            assert other.stdout is not None
            assert other.stdout.readline() == "open\n"
            for thread in threads:
                thread.start()
            for subscribe in subscribes:
                time.sleep(chance.random() * 0.02)
                after = chance.randint(0, log.tip_position())
                followers.append(Follower(log, after, subscribe, last))
            for thread in threads:
                thread.join()
            written = int(other.stdout.readline())
        assert written >= BATCHES
        log.append([title("end", "k")])
        last.append(log.tip_position())
        end = time.monotonic() + SECONDS
        while any(f.is_alive() for f in followers):
            # Whoever passed the last one before it was named, or left it out, ends with one of these.
            log.append([title("end", str(time.monotonic()))])
            time.sleep(0.05)
            if time.monotonic() > end:
                for follower in followers:
                    follower.stop()
        for follower in followers:
            follower.join()
        return [missed([p for p in f.seen if p <= last[0]], f.after, last[0]) for f in followers]


@pytest.mark.parametrize("seed", range(4))
def test_every_subscriber_sees_every_position_once_in_order(tmp_path: Path, seed: int) -> None:
    found = followed(tmp_path / "store", [ours, the_library_s] * 3, seed)
    assert found == [""] * 6
    assert says(checked(tmp_path / "store")) == ""


def test_the_oracle_catches_a_subscription_that_remembers_what_it_did_not_give(
    tmp_path: Path,
) -> None:
    found = followed(tmp_path / "store", [broken, ours, broken], seed=1)
    assert found[1] == ""
    assert "lost" in found[0] and "lost" in found[2], found


def test_a_commit_of_another_process_is_noticed_without_any_of_our_own(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log, Subscription(log) as records, ended(records.stop):
        text = 'with opened(path) as log: log.append([title("session/a", "k")])'
        with running(tmp_path / "store", text):
            assert next(records).header.stream == "session/a"


def test_a_commit_of_this_process_wakes_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ef.log.subscription.POLL_SECONDS", 3600)
    with opened(tmp_path / "store") as log, Subscription(log) as records, ended(records.stop):
        for n in range(50):
            thread = threading.Thread(target=log.append, args=([title("session/a", str(n))],))
            thread.start()
            assert next(records).header.key == str(n)
            thread.join()


def test_a_commit_between_the_look_and_the_wait_wakes_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ef.log.subscription.POLL_SECONDS", 3600)
    with opened(tmp_path / "store") as log:
        looks: list[int] = []

        def look(*, after: int) -> Iterator[Record]:
            yield from LmdbLog.all(log, after=after)
            if not looks:
                looks.append(after)
                log.append([title("session/a", "k")])

        log.all = look  # type: ignore[method-assign]
        with Subscription(log) as records, ended(records.stop):
            assert next(records).position == 1
        assert looks == [0]


def test_a_subscription_gives_the_streams_that_were_asked_for_and_knows_where_it_is(
    tmp_path: Path,
) -> None:
    with opened(tmp_path / "store") as log, Subscription(log, prefix="session/") as records:
        log.append([title("source/a", "k"), title("session/a", "k"), title("session/b", "k")])
        first: Record = next(records)
        assert (first.header.stream, first.position, records.position) == ("session/a", 2, 2)
        with Subscription(log, after=records.position, prefix="source/") as others:
            log.append([title("source/a", "l")])
            with ended(others.stop):
                assert next(others).position == 4
        with Subscription(log, after=-1) as everything:
            assert next(everything).header.kind == "StoreOpened"


def test_stop_ends_a_subscription_that_waits_and_it_is_woken_no_more(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        records = Subscription(log)
        seen: list[Record] = []
        thread = threading.Thread(target=lambda: seen.extend(records))
        thread.start()
        assert log._writer.listeners
        records.stop()
        records.stop()
        thread.join(SECONDS)
        assert not thread.is_alive() and seen == []
        assert log._writer.listeners == []
        log.append([title("session/a", "k")])
        assert next(records, None) is None


def test_a_subscription_to_a_log_that_was_closed_has_ended(tmp_path: Path) -> None:
    log = opened(tmp_path / "store")
    with Subscription(log) as records:
        log.append([title("session/a", "k")])
        log.close()
        assert list(records) == []


def test_a_subscription_whose_log_is_closed_while_it_reads_has_ended(tmp_path: Path) -> None:
    log = opened(tmp_path / "store")
    log.append([title("session/a", "k")])

    def closing() -> Iterator[Record]:
        log.close()
        yield log.at(1)

    records = Subscription(log)
    records._records = closing()
    assert list(records) == []


def test_a_damaged_record_ends_a_subscription_with_its_error_behind_those_before_it(
    tmp_path: Path,
) -> None:
    path = filled(tmp_path / "store", 9)
    with raw(path) as store:
        store.put(b"log", U64.pack(5), store.rows(b"log")[U64.pack(5)][:-1])
    with opened(path) as log, Subscription(log, after=0) as records:
        assert [next(records).position for _ in range(4)] == [1, 2, 3, 4]
        with pytest.raises(Damaged, match="position 5"):
            next(records)
        with Subscription(log, after=5) as behind:
            assert next(behind).position == 6


def test_a_subscription_begins_no_further_than_the_log_has_come(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        with pytest.raises(NotFound, match="0 to 0"):
            Subscription(log, after=1)
        Subscription(log, after=0).stop()


def test_a_process_s_notifications_pass_over_its_tracking(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        recorder = LmdbProcessRecorder(log, "app")
        for n in range(1, 4):
            event = StoredEvent("a", n, "t", b"")
            recorder.insert_events([event], tracking=Tracking("up", n))
        with recorder.subscribe(gt=1) as notes, ended(notes.stop):
            assert [next(notes).id for _ in range(2)] == [3, 5]
        assert recorder.max_notification_id() == 5
        assert log.tip_position() == 6
