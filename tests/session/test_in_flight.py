"""Messages that are appended without waiting: the same session, event for event, as if each had been waited for."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.errors import InputRefused, KeyConflict, OutcomeUnknown
from ef.session.appending import Appender
from ef.testing.pairing import violations
from tests.log.build import in_child

SECONDS = 60


def conversation(turns: int) -> list[dict[str, Any]]:
    """Calls, results (failing and passing runs), an interrupted call every seventh turn."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "Make the tests pass."}]
    for n in range(turns):
        use = {
            "type": "tool_use",
            "id": f"c{n % 5}",
            "name": "Bash",
            "input": {"command": "pytest -q"},
        }
        said.append({"role": "assistant", "content": [{"type": "text", "text": f"Run {n}."}, use]})
        if n % 7 == 6:
            said.append({"role": "user", "content": f"Stop, try {n} again."})
            continue
        text = "3 passed in 0.1s" if n % 3 else "FAILED a.py::t - x\n1 failed, 2 passed in 0.1s"
        block = {"type": "tool_result", "tool_use_id": f"c{n % 5}", "content": text}
        said.append({"role": "user", "content": [block]})
    return said


MESSAGES = conversation(40)


def told(store: ef.Store, name: str = "one") -> list[Any]:
    """What a session is, without what differs from store to store."""
    session = store.session(name)
    context, state = session.context(), session.state()
    events = [(e.header.seq, e.header.kind, e.header.key) for e in session.events()]
    return [context.messages, state.digest, [n.seq for n in context.nodes], events]


@pytest.fixture(scope="module")
def waited(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    with ef.open(tmp_path_factory.mktemp("waited") / "store") as store:
        session = store.session("one")
        for n, message in enumerate(MESSAGES):
            session.append(message, key=f"k{n}")
        assert session.state().heads["test/pytest/status"].value == "passed"
        return told(store)


def submitted(session: ef.Session, first: int = 0, upto: int | None = None) -> list[Future[int]]:
    return [
        session.append_nowait(message, key=f"k{n}")
        for n, message in enumerate(MESSAGES[:upto])
        if n >= first
    ]


def settled(futures: list[Future[int]]) -> list[int]:
    seqs = [future.result(SECONDS) for future in futures]
    assert seqs == sorted(seqs)
    return seqs


def test_one_group_is_the_session_that_one_by_one_would_be(
    tmp_path: Path, waited: list[Any]
) -> None:
    with ef.open(tmp_path / "store") as store:
        with store.log.committer.alone():
            futures = submitted(store.session("one"))
            assert store.session("one").seq == 0
        settled(futures)
        assert store.log.committer.groups == 1 and told(store) == waited
        assert not violations(store.session("one").context().messages)
        assert store.verify().ok


def test_groups_as_they_come_are_so_too(tmp_path: Path, waited: list[Any]) -> None:
    with ef.open(tmp_path / "store") as store:
        session = store.session("one")
        settled(submitted(session, upto=30))
        assert session.append(MESSAGES[30], key="k30")
        settled(submitted(session, first=31))
        assert told(store) == waited


def test_an_async_caller_gets_its_seqs(tmp_path: Path) -> None:
    with ef.open(tmp_path / "store") as store:
        session = store.session("one")

        async def main() -> list[int]:
            texts = ({"role": "user", "content": str(n)} for n in range(40))
            return await asyncio.gather(*(session.aappend(text) for text in texts))

        assert sorted(asyncio.run(main())) == list(range(2, 42))
        assert session.seq == 41


@pytest.mark.parametrize("bad", [5, 17])
def test_a_message_that_conflicts_fails_alone(tmp_path: Path, waited: list[Any], bad: int) -> None:
    with ef.open(tmp_path / "store") as store:
        session = store.session("one")
        with store.log.committer.alone():
            before = submitted(session, upto=bad)
            other = session.append_nowait({"role": "user", "content": "Other words."}, key="k0")
            same = session.append_nowait(MESSAGES[0], key="k0")
            after = submitted(session, first=bad)
        with pytest.raises(KeyConflict, match="body"):
            other.result(SECONDS)
        assert same.result(SECONDS) == before[0].result() == 2
        settled(before + after)
        assert told(store) == waited


def test_what_cannot_be_read_is_refused_before_it_waits(tmp_path: Path) -> None:
    with ef.open(tmp_path / "store") as store:
        with pytest.raises(InputRefused):
            store.session("one").append_nowait({"role": "user"})
        assert store.log.committer.groups == 0


def test_two_handles_of_a_session_share_a_group(tmp_path: Path, waited: list[Any]) -> None:
    with ef.open(tmp_path / "store") as store:
        handles = [store.session("one"), store.session("one")]
        half = len(MESSAGES) // 2
        for first, upto in ((0, half), (half, len(MESSAGES))):
            with store.log.committer.alone():
                futures = [
                    handles[n % 2].append_nowait(MESSAGES[n], key=f"k{n}")
                    for n in range(first, upto)
                ]
            settled(futures)
        assert told(store) == waited


@pytest.fixture
def restarts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often an appender began again from the log."""
    seen: list[int] = []
    real = Appender._restart

    def counted(self: Appender) -> None:
        seen.append(1)
        real(self)

    monkeypatch.setattr(Appender, "_restart", counted)
    return seen


def meddle(
    store: ef.Store, monkeypatch: pytest.MonkeyPatch, times: int, message: Any, to: str
) -> None:
    """Another process appends to session `to` between the look of a group and its write, a number of times."""
    env = store.log._env
    real = env.write
    left = [times]

    def theirs(n: int) -> None:
        left[0] = 0
        store.session(to).append({"role": "user", "content": message}, key=f"theirs{n}")

    def write(work: Any) -> Any:
        if left[0]:
            left[0] -= 1
            n = left[0]
            in_child(lambda: theirs(n))
        return real(work)

    monkeypatch.setattr(env, "write", write)


@pytest.mark.parametrize("times", [1, 4])
def test_another_process_on_another_session_costs_no_new_look(
    tmp_path: Path,
    waited: list[Any],
    monkeypatch: pytest.MonkeyPatch,
    restarts: list[int],
    times: int,
) -> None:
    with ef.open(tmp_path / "store") as store:
        session = store.session("one")
        settled(submitted(session, upto=20))
        meddle(store, monkeypatch, times, "Elsewhere.", "two")
        with store.log.committer.alone():
            futures = submitted(session, first=20)
        settled(futures)
        assert len(restarts) == 1
        assert told(store) == waited and store.verify().ok


@pytest.mark.parametrize("times", [1, 4])
def test_another_process_on_the_same_session_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, restarts: list[int], times: int
) -> None:
    with ef.open(tmp_path / "store") as store:
        session = store.session("one")
        settled(submitted(session, upto=20))
        meddle(store, monkeypatch, times, "Mine too.", "one")
        with store.log.committer.alone():
            futures = submitted(session, first=20)
        seqs = settled(futures)
        assert len(restarts) > 1
        keys = [e.header.key for e in session.events() if e.header.item is not None]
        theirs = [f"theirs{n}" for n in reversed(range(times))]
        assert keys == [f"k{n}" for n in range(20)] + theirs + [
            f"k{n}" for n in range(20, len(MESSAGES))
        ]
        assert not violations(session.context().messages) and store.verify().ok
    with ef.open(tmp_path / "again") as again:  # the same words in the same order, one by one
        replay = again.session("one")
        for n in range(20):
            replay.append(MESSAGES[n], key=f"k{n}")
        for key in theirs:
            replay.append({"role": "user", "content": "Mine too."}, key=key)
        for n in range(20, len(MESSAGES)):
            replay.append(MESSAGES[n], key=f"k{n}")
        one_by_one = told(again)
    with ef.open(tmp_path / "store") as store:
        at = seqs[-1]
        assert one_by_one[0] == store.session("one").context(at).messages
        kinds = [e.header.kind for e in store.session("one").events(at=at)]
        assert kinds == [kind for _, kind, _ in one_by_one[3]][: len(kinds)]


def test_a_message_that_breaks_its_preparation_leaves_the_next_ones_whole(
    tmp_path: Path, waited: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ef.open(tmp_path / "store") as store:
        session = store.session("one")
        real = Appender._closers

        def closers(self: Appender, group: Any, key: str) -> Any:
            if key == "broken":
                raise OutcomeUnknown(path="x", why="a fault in the middle")
            return real(self, group, key)

        monkeypatch.setattr(Appender, "_closers", closers)
        with store.log.committer.alone():
            before = submitted(session, upto=11)
            broken = session.append_nowait(
                {"role": "assistant", "content": "Broken."}, key="broken"
            )
            after = submitted(session, first=11)
        with pytest.raises(OutcomeUnknown):
            broken.result(SECONDS)
        settled(before + after)
        assert told(store) == waited


def test_a_forked_child_begins_from_the_log(tmp_path: Path, waited: list[Any]) -> None:
    with ef.open(tmp_path / "store") as store:
        session = store.session("one")
        settled(submitted(session, upto=15))
        with store.log.committer.alone():
            pending = submitted(session, first=15, upto=16)
            got = in_child(lambda: settled(submitted(session, first=15, upto=30)))
        assert pending[0].result(SECONDS) == got[0]
        settled(submitted(session, first=30))
        assert told(store) == waited


def test_threads_that_share_a_session_lose_nothing(tmp_path: Path) -> None:
    with ef.open(tmp_path / "store") as store:
        session = store.session("one")

        def work(name: int) -> None:
            for n in range(20):
                session.append({"role": "user", "content": f"{name}/{n}"}, key=f"{name}/{n}")

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert session.seq == 121 and store.verify().ok
