"""Appending from an agent's loop: who speaks, what a retry is, and many writers on one session."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.errors import InputRefused, KeyConflict, UsageError
from ef.testing.pairing import violations

Blocks = list[dict[str, Any]]


def call(name: str, call_id: str, **given: Any) -> dict[str, Any]:
    use = {"type": "tool_use", "id": call_id, "name": name, "input": given}
    return {"role": "assistant", "content": [use]}


def result(call_id: str, text: str, *, error: bool = False) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": error}
    return {"role": "user", "content": [block]}


@pytest.fixture
def session(tmp_path: Path) -> Any:
    with ef.open(tmp_path / "store") as store:
        yield store.session("one")


@pytest.mark.parametrize(
    ("tool", "grounds"), [("Task", False), ("WebFetch", False), ("Bash", True), ("Grep", True)]
)
def test_what_a_sub_agent_or_the_web_says_is_no_evidence(
    session: ef.Session, tool: str, grounds: bool
) -> None:
    session.append(call(tool, "c", command="x"))
    session.append(result("c", "Error: it failed", error=True))
    assert bool(session.state().heads) is grounds


def test_a_result_is_told_by_its_newest_call(session: ef.Session) -> None:
    session.append(call("Bash", "c", command="pytest -q"))
    session.append(result("c", "FAILED a.py::t - x\n1 failed, 2 passed in 0.1s", error=True))
    assert session.state().heads["test/pytest/status"].value == "failed"
    session.append(call("Bash", "c", command="pytest -q"))
    session.append(result("c", "3 passed in 0.1s"))
    assert session.state().heads["test/pytest/status"].value == "passed"


def test_a_retry_says_the_same_json_by_the_same_speaker(session: ef.Session) -> None:
    one = {"role": "user", "content": "Go."}
    seq = session.append(one, key="k")
    assert session.append({"content": "Go.", "role": "user"}, key="k") == seq
    with pytest.raises(KeyConflict, match="body"):
        session.append({"role": "user", "content": "Stop."}, key="k")
    with pytest.raises(KeyConflict, match="channel"):
        session.append(one, key="k", channel="tool")
    declared = session.declare("decision", key="a/b/c", value=1, idempotency_key="d")
    assert session.declare("decision", key="a/b/c", value=1, idempotency_key="d") == declared
    with pytest.raises(KeyConflict, match="kind"):
        session.append(one, key="d")


@pytest.mark.parametrize("key", ["ef:open", "ef:close/b/0", "an:0123", "", "x" * 201, "\ud800"])
def test_keys_of_our_own_and_keys_that_are_none_are_refused(session: ef.Session, key: str) -> None:
    with pytest.raises(UsageError, match="idempotency key"):
        session.append({"role": "user", "content": "Go."}, key=key)


@pytest.mark.parametrize("key", ["open", "b/close/0", "x" * 200, "schlüssel"])
def test_any_other_key_serves(session: ef.Session, key: str) -> None:
    seq = session.append({"role": "user", "content": "Go."}, key=key)
    assert session.append({"role": "user", "content": "Go."}, key=key) == seq


def test_an_internal_key_is_never_in_a_callers_way(session: ef.Session) -> None:
    session.append({"role": "user", "content": "Go."}, key="b/close/0")
    session.append(call("Bash", "c", command="sleep 9"), key="a")
    session.append({"role": "user", "content": "Never mind."})
    session.append({"role": "assistant", "content": "Stopped."}, key="b")
    assert not violations(session.context().messages)


class TestDeclared:
    """What may be declared."""

    @pytest.mark.parametrize("value", [None, True, 7, "text", [1, {"a": None}], {"a": [1]}])
    def test_a_plain_value_can_be_read_back_as_json(self, session: ef.Session, value: Any) -> None:
        session.declare("value", key="a/b/c", value=value)
        assert session.state().to_json()["heads"]["a/b/c"]["value"] == value

    @pytest.mark.parametrize("value", [b"x", [b"x"], {"a": (b"x",)}, 1.5, "x" * 70_000, {1: 2}])
    def test_another_value_is_refused_and_nothing_kept(
        self, session: ef.Session, value: Any
    ) -> None:
        with pytest.raises(InputRefused):
            session.declare("value", key="a/b/c", value=value)
        assert session.seq == 0

    @pytest.mark.parametrize("shape", [lambda v: [v], lambda v: {"k": v}, lambda v: (v,)])
    def test_a_value_is_nested_so_deep_that_the_state_can_still_be_told(
        self, session: ef.Session, shape: Any
    ) -> None:
        value: Any = 1
        for _ in range(32):
            value = shape(value)
        session.declare("value", key="a/b/c", value=value)
        assert session.state().to_json()["heads"]["a/b/c"] and session.audit("a/b/c").current
        assert session.working().canonical()
        with pytest.raises(InputRefused, match="nesting is deeper than 32"):
            session.declare("value", key="a/b/c", value=shape(value))

    def test_a_value_that_shares_its_parts_is_refused_before_it_is_written_out(
        self, session: ef.Session
    ) -> None:
        value: Any = [1]
        for _ in range(30):
            value = [value, value]
        with pytest.raises(InputRefused, match="nesting"):
            session.declare("value", key="a/b/c", value=value)

    def test_a_value_that_holds_itself_is_refused(self, session: ef.Session) -> None:
        value: list[Any] = []
        value.append(value)
        with pytest.raises(InputRefused, match="nesting"):
            session.declare("value", key="a/b/c", value=value)

    def test_two_declarations_with_one_quote_are_two_anchors(self, session: ef.Session) -> None:
        seq = session.append({"role": "user", "content": "Keep it at 30."})
        for value in (30, 31):
            session.declare("value", key="a/b/c", value=value, quote="30", source=seq)
        ids = [h.anchor.id for h in session.audit("a/b/c").history]
        assert len(set(ids)) == 2


class TestResponses:
    """Calls of several responses and their results."""

    def test_calls_of_two_responses_in_a_row_both_get_their_results(
        self, session: ef.Session
    ) -> None:
        session.append(call("Bash", "a", command="git push"))
        session.append(call("Bash", "b", command="git status"))
        session.append(result("b", "clean"))
        session.append(result("a", "pushed"))
        messages = session.context().messages
        assert not violations(messages)
        said = [b["content"] for b in messages[-1]["content"]]
        assert said == ["pushed", "clean"]

    def test_a_late_result_is_shown_once_where_it_came(self, session: ef.Session) -> None:
        session.append(call("Bash", "a", command="sleep 9"))
        session.append({"role": "user", "content": "Never mind."})
        session.append({"role": "assistant", "content": "Stopped."})
        session.append(result("a", "slept"))
        messages = session.context().messages
        assert not violations(messages)
        assert str(messages).count("slept") == 1
        assert messages[-1]["content"][0]["text"].endswith("closed before it came]\nslept")
        closing = messages[1]["content"][0]
        assert closing["tool_use_id"] == "a"
        assert "no result had come" in closing["content"]


class TestManyWriters:
    """Several threads, objects and processes on one session."""

    def test_readers_beside_a_writer_see_a_sound_session(self, tmp_path: Path) -> None:
        with ef.open(tmp_path / "store") as store:
            session = store.session("one")
            session.append({"role": "user", "content": "0"})
            faults: list[BaseException] = []
            done = threading.Event()

            def read() -> None:
                while not done.is_set():
                    try:
                        session.context()
                        session.state()
                    except BaseException as fault:
                        faults.append(fault)
                        return

            readers = [threading.Thread(target=read) for _ in range(2)]
            for reader in readers:
                reader.start()
            for n in range(60):
                session.append(call("Bash", f"c{n}", command="pytest -q"))
                session.append(result(f"c{n}", f"{n} passed in 0.1s"))
            done.set()
            for reader in readers:
                reader.join()
            assert faults == []

    def test_threads_with_objects_of_their_own_lose_and_repeat_nothing(
        self, tmp_path: Path
    ) -> None:
        with ef.open(tmp_path / "store") as store:
            faults: list[BaseException] = []

            def write(who: int) -> None:
                try:
                    own = store.session("one")
                    for n in range(30):
                        own.append({"role": "user", "content": f"{who}-{n}"}, key=f"{who}-{n}")
                except BaseException as fault:
                    faults.append(fault)

            writers = [threading.Thread(target=write, args=(who,)) for who in range(4)]
            for writer in writers:
                writer.start()
            for writer in writers:
                writer.join()
            assert faults == []
            texts = [n.excerpt for n in store.session("one").context().nodes]
            assert sorted(texts) == sorted(f"{w}-{n}" for w in range(4) for n in range(30))

    def test_no_process_starves_on_a_busy_session(self, tmp_path: Path) -> None:
        path = tmp_path / "store"
        ef.open(path).close()
        code = (
            "import sys, time, ef\n"
            "with ef.open(sys.argv[1]) as store:\n"
            "    session, end, n = store.session('one'), time.monotonic() + 2.5, 0\n"
            "    while time.monotonic() < end:\n"
            "        session.append({'role': 'user', 'content': sys.argv[2]}); n += 1\n"
            "print(n)\n"
        )
        writers = [
            subprocess.Popen([sys.executable, "-c", code, str(path), w], stdout=subprocess.PIPE)
            for w in "abc"
        ]
        counts = [int(w.communicate(timeout=60)[0]) for w in writers]
        print("appends of each process:", counts)
        assert all(w.returncode == 0 for w in writers)
        assert min(counts) >= 5
        with ef.open(path) as store:
            assert store.verify().ok
            assert len(store.session("one").context().nodes) == sum(counts)
