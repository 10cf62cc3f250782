"""What bounds appends in flight, how they end with the log, the process or a fork, and callers that misbehave."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from concurrent.futures import TimeoutError as Late
from pathlib import Path
from typing import Any

import pytest

from ef.errors import (
    OutcomeUnknown,
    StoreUnavailable,
    UsageError,
)
from ef.log import committer as module
from ef.log.committer import Request
from tests.log.build import checked, in_child, item, opened, run, says, title
from tests.log.test_group import SECONDS, fails, keys, seqs

# -- bounds -----------------------------------------------------------------------------------------------------


def in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    got: list[Any] = []
    thread = threading.Thread(target=lambda: got.append(work()))
    thread.start()
    return thread, got


def test_a_caller_beyond_the_bytes_in_flight_waits_for_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IN_FLIGHT_BYTES_MAX", 10_000)
    with opened(tmp_path / "store") as log:
        with log.committer.alone():
            first = log.append_nowait([item("s", "a", bytes(8_000))])
            assert log.committer.in_flight == (1, 9_024)
            thread, got = in_thread(lambda: log.append_nowait([item("s", "b", bytes(8_000))]))
            thread.join(0.2)
            assert thread.is_alive() and not first.done()
        thread.join(SECONDS)
        assert seqs([first, *got]) == [1, 2]


def test_a_request_larger_than_the_bound_goes_when_nothing_else_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IN_FLIGHT_BYTES_MAX", 10_000)
    monkeypatch.setattr(module, "GROUP_BYTES_MAX", 10_000)
    with opened(tmp_path / "store") as log:
        futures = [log.append_nowait([item("s", str(n), bytes(20_000))]) for n in range(4)]
        assert seqs(futures) == [1, 2, 3, 4] and log.committer.largest == 1


def test_the_event_loop_goes_on_while_its_appends_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IN_FLIGHT_BYTES_MAX", 10_000)
    with opened(tmp_path / "store") as log:

        async def main() -> tuple[list[int], int]:
            with log.committer.alone():
                tasks = [
                    asyncio.create_task(log.aappend([item("s", str(n), bytes(4_000))]))
                    for n in range(6)
                ]
                ticks = 0
                while log.committer.in_flight[0] < 1 or ticks < 20:
                    await asyncio.sleep(0)
                    ticks += 1
                assert log.committer.in_flight[0] == 1 and not any(t.done() for t in tasks)
            return [(await task)[0].seq for task in tasks], ticks

        got, ticks = asyncio.run(main())
        assert sorted(got) == list(range(1, 7)) and ticks >= 20


def test_a_task_that_is_cancelled_while_it_waits_for_room_harms_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IN_FLIGHT_BYTES_MAX", 10_000)
    with opened(tmp_path / "store") as log:

        async def main() -> None:
            with log.committer.alone():
                kept = asyncio.create_task(log.aappend([item("s", "kept", bytes(9_000))]))
                gone = asyncio.create_task(log.aappend([item("s", "gone", bytes(9_000))]))
                await asyncio.sleep(0.01)
                gone.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await gone
            await kept

        asyncio.run(main())
        assert keys(log) == ["kept"]


def test_a_loop_that_was_closed_while_its_task_waited_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IN_FLIGHT_BYTES_MAX", 10_000)
    with opened(tmp_path / "store") as log:
        with log.committer.alone():
            first = log.append_nowait([item("s", "first", bytes(9_000))])
            loop = asyncio.new_event_loop()
            task = loop.create_task(log.aappend([item("s", "never", bytes(9_000))]))
            loop.run_until_complete(asyncio.sleep(0.01))
            task.cancel()
            loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
            loop.close()
        assert seqs([first]) == [1]


# -- ends -------------------------------------------------------------------------------------------------------


def test_closing_writes_what_waits_and_then_nothing_is_taken(tmp_path: Path) -> None:
    log = opened(tmp_path / "store")
    futures = [log.append_nowait([title("s", str(n))]) for n in range(20)]
    log.close()
    assert [f.done() for f in futures] == [True] * 20 and seqs(futures)[-1] == 20
    log.committer.flush()
    for append in (log.append, log.append_nowait):
        with pytest.raises(StoreUnavailable, match="closed"):
            append([title("s", "late")])
    with opened(tmp_path / "store") as again:
        assert len(keys(again)) == 20


def test_a_log_that_is_closed_leaves_the_writer_to_the_other_logs_of_its_store(
    tmp_path: Path,
) -> None:
    with opened(tmp_path / "store") as one:
        other = opened(tmp_path / "store")
        woken: list[int] = []
        one.on_commit(lambda: woken.append(1))
        other.append([title("s", "other")])
        assert woken == [1] and other.committer is one.committer
        waits = other.append_nowait([title("s", "waits")])
        other.close()
        assert waits.done()
        assert one.append([title("s", "one")])[0].seq == 3


def test_what_is_not_written_when_the_process_ends_has_an_unknown_outcome(tmp_path: Path) -> None:
    log = opened(tmp_path / "store")
    with log.committer.alone():
        future = log.append_nowait([title("s", "a")])
        with pytest.raises(Late):
            future.result(0.01)
        log.committer.close(0.01)
        fails(future, OutcomeUnknown, "the process ends")
    log.close()
    with opened(tmp_path / "store") as again:
        assert again.append([title("s", "a")])[0].new


ENDS = """
log = opened(path)
futures = [log.append_nowait([title("s", str(n))]) for n in range(200)]
for n, future in enumerate(futures):
    future.add_done_callback(lambda f, n=n: print(n, f.exception() or f.result()[0].seq))
"""


def test_a_process_that_ends_without_closing_tells_every_caller_how_it_went(tmp_path: Path) -> None:
    told = [line.split() for line in run(tmp_path / "store", ENDS).splitlines()]
    assert sorted(int(n) for n, *_ in told) == list(range(200))
    with opened(tmp_path / "store") as log:
        held = {key: seq for seq, key in enumerate(keys(log), 1)}
        assert {n: int(seq) for n, seq in told} == held


def test_a_child_writes_its_own_and_does_not_know_what_became_of_its_parents(
    tmp_path: Path,
) -> None:
    with opened(tmp_path / "store") as log:
        known = log.append_nowait([title("s", "known")])
        assert seqs([known]) == [1]
        with log.committer.alone():
            pending = log.append_nowait([title("s", "parent")])

            def child() -> list[Any]:
                said = [known.result()[0].seq, type(known.exception()).__name__]
                for ask in (pending.result, pending.exception):
                    with pytest.raises(OutcomeUnknown, match="another one"):
                        ask()
                assert log.committer.in_flight == (0, 0)
                return [*said, log.append_nowait([title("s", "child")]).result()[0].seq]

            assert in_child(child) == [1, "NoneType", 2]
        assert seqs([pending]) == [3] and keys(log) == ["known", "child", "parent"]
    assert says(checked(tmp_path / "store")) == ""


# -- callers that misbehave -------------------------------------------------------------------------------------


def test_an_append_inside_an_append_is_refused_and_does_not_hang(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:

        def inside(view: object) -> list[Any]:
            return [title("s", str(log.append([title("s", "inner")])))]

        for ask in (log.committer.run, lambda r: log.committer.submit(r).result(SECONDS)):
            with pytest.raises(UsageError, match="inside itself"):
                ask(log.request(inside, lambda got: got, size=0))
        assert log.append([title("s", "on")])[0].seq == 1


def test_a_result_that_cannot_be_made_is_its_callers_fault(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:
        request: Request[int] = log.request(
            lambda view: [title("s", "kept")], lambda got: got[7].seq, size=0
        )
        with pytest.raises(IndexError):
            log.committer.run(request)
        assert keys(log) == ["kept"]


def test_an_interrupt_while_a_caller_writes_leaves_the_store_usable(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as log:

        def interrupted(view: object) -> list[Any]:
            raise KeyboardInterrupt

        request = log.request(interrupted, lambda got: got, size=0)
        with pytest.raises(KeyboardInterrupt):
            log.committer.run(request)
        with pytest.raises(KeyboardInterrupt):
            request.outcome()
        assert log.append([title("s", "on")])[0].seq == 1


def test_a_future_is_settled_once(tmp_path: Path) -> None:
    future: module.Pending[int] = module.Pending(tmp_path)
    future.settle(1)
    future.settle(2)
    future.fail(ValueError())
    assert future.result() == 1 and future.exception() is None
    del future
    gc.collect()
