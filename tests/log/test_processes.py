"""Several threads, forked children and other processes on one store: nothing lost, nothing twice, no gap."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ef.errors import TipConflict
from ef.log.ahead import Ahead
from ef.log.base import EMPTY, Draft
from ef.log.lmdb_env import LmdbEnv
from ef.log.lmdb_log import LmdbLog
from ef.log.transactions import ReadGate, Reading
from ef.log.writer import OPTIMISTIC_TRIES
from tests.log.build import checked, in_child, item, opened, run, running, says, title


def keys(log: LmdbLog, stream: str) -> list[str]:
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
        thread.join(60)
    assert not faults, faults


# -- threads ----------------------------------------------------------------------------------------------------


def test_threads_append_to_one_stream_without_gap_loss_or_double(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        in_threads(6, lambda n: [log.append([title("s", f"{n}/{k}")]) for k in range(20)])
        assert sorted(keys(log, "s")) == sorted(f"{n}/{k}" for n in range(6) for k in range(20))
    assert says(checked(tmp_path / "store")) == ""


def test_threads_that_append_the_same_keys_make_each_event_once(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        got: list[list[tuple[int, bool]]] = [[] for _ in range(5)]

        def work(n: int) -> None:
            for k in range(10):
                (a,) = log.append([title("s", str(k))])
                got[n].append((a.seq, a.new))

        in_threads(5, work)
        assert sorted(keys(log, "s")) == sorted(str(k) for k in range(10))
        assert sum(new for each in got for _, new in each) == 10
        assert len({tuple(seq for seq, _ in each) for each in got}) == 1


def test_a_map_that_grows_waits_for_the_reads_of_other_threads(tmp_path: Path) -> None:
    with opened(tmp_path / "store", map_size=1 << 20) as log:
        log.append([item("s", str(n), os.urandom(2_000)) for n in range(20)])
        done = threading.Event()
        counts: list[int] = []

        def work(n: int) -> None:
            if n == 0:
                for k in range(30):
                    log.append([item("t", str(k), os.urandom(100_000))])
                done.set()
            while not done.is_set():
                counts.append(len(list(log.read("s"))))
                time.sleep(0.002)  # else the interpreter's own lock is what is tested

        in_threads(3, work)
        assert set(counts) == {20}
        assert log._env._env.info()["map_size"] >= 4 << 20


def test_a_gate_lets_nobody_in_while_somebody_is_alone_but_who_is_in_already() -> None:
    gate = ReadGate()
    order: list[str] = []
    one, two, three = Reading(), Reading(), Reading()
    gate.enter(one)
    assert gate.nested()

    def grow() -> None:
        with gate.alone():
            order.append("alone")

    def read() -> None:
        assert not gate.nested()
        gate.enter(three)
        order.append("read")
        gate.leave(three)

    grower = threading.Thread(target=grow)
    grower.start()
    while not gate._alone:
        time.sleep(0.001)
    reader = threading.Thread(target=read)
    reader.start()
    gate.enter(
        two
    )  # a second read of this thread must not wait for the one who waits for the first
    gate.leave(two)
    time.sleep(0.05)
    assert order == []
    gate.leave(one)
    grower.join(10)
    reader.join(10)
    assert order == ["alone", "read"] and not gate.nested()


# -- forks ------------------------------------------------------------------------------------------------------


def test_a_forked_child_appends_through_its_own_environment_while_the_parent_goes_on(
    tmp_path: Path,
) -> None:
    with opened(tmp_path / "store") as log:
        log.append([title("s", "parent")])
        before = log._env._env

        def child() -> tuple[bool, list[str], int]:
            log.append([title("s", "child")])
            again = opened(tmp_path / "store")
            again.append([title("s", "again")])
            same = again._env is log._env
            again.close()
            log.close()
            return same, [type(log._env._env).__name__, str(log._env._env is before)], 0

        assert in_child(child)[:2] == (True, ["Environment", "False"])
        log.append([title("s", "on")])
        assert keys(log, "s") == ["parent", "child", "again", "on"]
        assert log._env._env is before
    assert says(checked(tmp_path / "store")) == ""


def test_a_child_that_was_forked_while_every_lock_was_held_is_not_stuck(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        held, go = threading.Event(), threading.Event()

        def holder() -> None:
            with log._env.write_lock, LmdbEnv._registry_lock, log._env._gate.alone():
                held.set()
                go.wait(30)

        thread = threading.Thread(target=holder)
        thread.start()
        held.wait(10)

        def child() -> list[str]:
            log.append([title("s", "child")])
            opened(tmp_path / "store").close()
            return keys(log, "s")

        assert in_child(child, seconds=20) == ["child"]
        go.set()
        thread.join()


def test_two_threads_of_a_child_open_its_environment_once(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        log.append([title("s", "a")])

        def child() -> int:
            seen: list[int] = []
            with log._env.write_lock:
                thread = threading.Thread(target=lambda: seen.append(log.tip("s").seq))
                thread.start()
                time.sleep(0.2)  # it waits for the lock, and finds the work done
                seen.append(log.tip("s").seq)
            thread.join()
            return len(seen)

        assert in_child(child) == 2


def test_a_child_that_never_touches_the_store_leaves_it_alone(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        in_child(log.close)
        in_child(lambda: None)
        assert log.append([title("s", "a")])[0].seq == 1


# -- other processes --------------------------------------------------------------------------------------------

WRITER = """
with opened(path) as log:
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range({count}):
        log.append([title("shared", f"{name}/{{n}}"), title("own/{name}", str(n))])
        log.append([title("shared", f"both/{{n}}")])
"""


def test_two_processes_append_to_one_stream_without_gap_loss_or_double(tmp_path: Path) -> None:
    path = tmp_path / "store"
    opened(path).close()
    one, two = (WRITER.format(count=60, name=name) for name in ("one", "two"))
    with running(path, one) as a, running(path, two) as b:
        for child in (a, b):
            assert child.stdout is not None and child.stdout.readline() == "ready\n"
        for child in (a, b):
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
    with opened(path) as log:
        wanted = {f"{name}/{n}" for name in ("one", "two", "both") for n in range(60)}
        found = keys(log, "shared")
        assert len(found) == len(wanted) and set(found) == wanted
        assert keys(log, "own/one") == keys(log, "own/two") == [str(n) for n in range(60)]
        assert log.tip_position() == 180 + 120
    assert says(checked(path)) == ""


class Meddling:
    """Lets another process commit between the look of an append and its write, a number of times."""

    def __init__(self, log: LmdbLog, times: int) -> None:
        self.log, self.left, self.looks = log, times, 0
        self._write = log._env.write

    def theirs(self, n: int) -> None:
        self.left = 0
        self.log.append([title("s", f"theirs/{n}")])

    def write(self, work: object) -> object:
        if self.left:
            self.left -= 1
            n = self.left
            in_child(lambda: self.theirs(n))
        self.looks += 1
        return self._write(work)  # type: ignore[arg-type]


@pytest.mark.parametrize("times", [1, OPTIMISTIC_TRIES - 1, OPTIMISTIC_TRIES])
def test_an_append_that_is_overtaken_looks_again_and_at_last_holds_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    with opened(tmp_path / "store") as log:
        log.append([title("s", "first")])
        meddling = Meddling(log, times)
        monkeypatch.setattr(log._env, "write", meddling.write)
        woken: list[int] = []
        log.on_commit(lambda: woken.append(1))
        got = log.append([title("s", "mine"), title("s", "first"), title("s", "more")])
        assert [(a.seq, a.new) for a in got] == [(times + 2, True), (1, False), (times + 3, True)]
        assert meddling.looks == times + 1 and woken == [1]
        monkeypatch.undo()
        assert keys(log, "s")[-2:] == ["mine", "more"]
    assert says(checked(tmp_path / "store")) == ""


def test_under_contention_a_batch_that_turns_out_to_be_there_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "store") as log:
        meddling = Meddling(log, OPTIMISTIC_TRIES)
        monkeypatch.setattr(log._env, "write", meddling.write)
        got = log.append([title("s", "theirs/0")])
        assert got[0].new is False and got[0].seq == OPTIMISTIC_TRIES
        assert log.tip_position() == OPTIMISTIC_TRIES


def test_drafts_that_are_made_in_turn_rest_on_what_nobody_can_change_meanwhile(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store"
    with opened(path) as log:

        def one(name: str) -> None:
            def make(view: Ahead) -> list[Draft]:
                seq = view.tip("s").seq
                return [title("s", f"{name}/{seq}", str(seq))]

            request = log.request(make, lambda got: got, size=0)
            assert log.committer.run(request)[0].new

        def work(n: int) -> None:
            for k in range(10):
                one(f"{n}/{k}")

        in_threads(3, work)
        in_child(lambda: one("child"))
        seqs = [int(key.rsplit("/", 1)[1]) for key in keys(log, "s")]
        assert seqs == list(range(31))
        with pytest.raises(TipConflict):
            log.append([title("s", "x")], expect={"s": EMPTY})
        assert log.append([]) == []
        assert log.tip("s").seq == 31
    assert says(checked(path)) == ""


def test_a_map_that_another_process_enlarged_is_followed_by_readers_and_writers(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store"
    with opened(path, map_size=1 << 20) as log:
        grow(path, "a", 3)
        assert log.tip("s").seq == 1
    with opened(path, map_size=1 << 20) as log:
        grow(path, "b", 9)
        assert log.append([title("s", "c")])[0].seq == 3
        grow(path, "d", 20)
        assert [r.header.seq for r in log.read("s")] == [1, 2, 3, 4]
        grow(path, "e", 40)
        log._env.write(lambda txn: None)
        assert log._env._env.info()["map_size"] >= 40 << 20


def grow(path: Path, key: str, mebibytes: int) -> None:
    run(
        path,
        "import os\nwith opened(path, map_size=1 << 20) as log:"
        f" log.append([item('s', {key!r}, os.urandom({mebibytes} << 20))])",
    )


@pytest.mark.parametrize("act", ["log.tip('s')", "log.append([title('s', 'more')])"])
def test_who_cannot_follow_an_enlarged_map_says_so_and_can_go_on_when_he_can(
    tmp_path: Path, act: str
) -> None:
    path = tmp_path / "store"
    text = f"""
import os, resource
with opened(path, map_size=1 << 20) as log:
    log.append([title("s", "a")])
    print("ready", flush=True)
    sys.stdin.readline()
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 20), resource.RLIM_INFINITY))
    try:
        {act}
        print("no error", flush=True)
    except StoreUnavailable as fault:
        print(fault, flush=True)
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(len(list(log.read("s"))), log.append([title("s", "z")])[0].seq, flush=True)
"""
    with running(path, text) as child:
        assert child.stdout is not None and child.stdin is not None
        assert child.stdout.readline() == "ready\n"
        grow(path, "b", 40)
        child.stdin.write("go\n")
        child.stdin.flush()
        assert "Cannot allocate memory. Close it" in child.stdout.readline()
        assert child.stdout.readline() == "2 3\n"


def test_a_read_inside_a_read_says_busy_when_the_map_was_enlarged_meanwhile(tmp_path: Path) -> None:
    from ef.errors import Busy

    path = tmp_path / "store"
    with opened(path, map_size=1 << 20) as log:
        log.append([title("s", "a")])
        with log._env.read():
            grow(path, "b", 5)
            with pytest.raises(Busy, match="enlarged"), log._env.read():
                pass
        assert log.tip("s").seq == 2


def test_nobody_is_told_of_commits_after_he_said_stop(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        told: list[str] = []
        stop_a = log.on_commit(lambda: told.append("a"))
        stop_b = log.on_commit(lambda: (told.append("b"), stop_b()))  # type: ignore[func-returns-value]
        log.on_commit(lambda: told.append("c"))
        log.append([title("s", "1")])
        stop_a()
        stop_a()
        log.append([title("s", "2")])
        log.append([title("s", "2")])
        assert told == ["a", "b", "c", "c"]
