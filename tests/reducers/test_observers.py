"""Observers: what an exchange grounds, and that nothing is claimed which its bytes do not say."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ef.codec import cbor
from ef.events import Channel, Kind, Part, PartKind, Reading, ToolCall, ToolResult
from ef.reducers import gate
from ef.reducers.observers import Observers, Proposal
from ef.reducers.observers.contract import ENTITY_BYTES_MAX, Observed, first_line, plain
from ef.reducers.observers.every import ALL
from ef.reducers.observers.runs import FAILING_NAMES_MAX
from ef.reducers.scopes import whole_suite
from tests.reducers.build import anchor

GREEN = "..........                                        [100%]\n10 passed in 0.12s\n"
RED = "FAILED tests/a.py::test_x - no\n1 failed, 2 passed, 3 skipped in 0.12s\n"


def call(call_id: str = "c", name: str = "Bash", action: str = "shell", **how: Any) -> Part:
    made = ToolCall(call_id, name, action, **how)
    return Part(PartKind.TOOL_CALL, Channel.ASSISTANT, call_id=call_id, call=made)


def result(
    text: str, call_id: str = "c", *, error: bool = False, code: int | None = None, by: Channel = Channel.TOOL
) -> Part:  # fmt: skip
    made = ToolResult(call_id, text, error, code)
    return Part(PartKind.TOOL_RESULT, by, text, call_id, result=made)


def after(*parts: Part) -> list[Proposal]:
    """What the last part grounds, each part in an item of its own."""
    observers = Observers()
    for part in parts[:-1]:
        observers.item(Reading("r", (part,)))
    return observers.item(Reading("r", (Part(PartKind.TEXT, Channel.TOOL, "note"), parts[-1])))


def said(proposals: list[Proposal]) -> dict[str, Any]:
    return {str(p.key): p.value for p in proposals}


def quote(proposal: Proposal, text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    assert 0 <= proposal.start < proposal.end <= len(data) and proposal.part == 1
    return data[proposal.start : proposal.end].decode("utf-8", "surrogatepass")


# -- exchanges --------------------------------------------------------------------------------------------------


def test_an_exchange_is_a_call_with_its_result_and_nothing_else_is_one() -> None:
    seen = Observed()

    def pairs(*parts: Part) -> list[tuple[str, str, int]]:
        return [(x.call.name, x.result.text, x.part) for x in seen.exchanges(Reading("r", parts))]

    assert pairs(result("nobody asked")) == []
    assert pairs(call("a", "one"), call("b", "two")) == []
    assert pairs(result("B", "b"), result("A", "a"), result("again", "a")) == [
        ("two", "B", 0), ("one", "A", 1),
    ]  # fmt: skip
    assert pairs(call("a", "one"), call("a", "two"), result("A", "a"), result("B", "a")) == [
        ("one", "A", 2), ("two", "B", 3),
    ]  # fmt: skip
    assert pairs(call("a", "old")) == pairs(call("a", "new")) == []
    assert pairs(result("A", "a"), result("B", "a")) == [("new", "A", 0)]
    assert (
        pairs(
            Part(PartKind.TOOL_RESULT, Channel.TOOL, "no view"), Part(PartKind.TEXT, Channel.TOOL)
        )
        == []
    )


def test_observers_see_the_same_whether_items_come_in_one_reading_or_in_several() -> None:
    parts = [call("a", command="pytest"), result(RED, "a", error=True, code=1),
             call("b", "Read", "read", path="x.py"), result("1 import os", "b")]  # fmt: skip
    whole = Observers().item(Reading("r", tuple(parts)))
    one_by_one = Observers()
    found = [p for part in parts for p in one_by_one.item(Reading("r", (part,)))]
    assert said(found) == said(whole) and len(whole) == 4
    assert [p.part for p in whole] == [1, 1, 1, 3]


# -- words ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        ("a  b\n\tc", 20, "a  b\\n\\tc"),
        ("\x1b[1m\x7f", 20, "\\x1b[1m\\x7f"),
        ("", 20, ""),
        ("x" * 20, 20, "x" * 20),
        ("\ud800", 20, "?"),
    ],
)
def test_a_plain_text_is_one_line(text: str, most: int, shown: str) -> None:
    assert plain(text, most) == shown


@given(st.text(st.characters(), max_size=80), st.integers(12, 60))
def test_a_plain_text_is_bounded_valid_and_tells_long_texts_apart(text: str, most: int) -> None:
    shown = plain(text, most)
    assert len(shown.encode()) <= most and "\n" not in shown
    assert plain(text + "y" * 60, most) != plain(text + "z" * 60, most)


@pytest.mark.parametrize(
    ("text", "lines", "line"),
    [
        ("", 1, ""),
        (" \n\t", 1, ""),
        ("\n  one\ntwo", 1, "one"),
        ("one", 1, "one"),
        ("one\ntwo\nthree", 2, "one\ntwo"),
        ("one\ntwo", 3, "one\ntwo"),
        ("x" * 300, 1, "x" * 240),
        ("é" * 200, 1, "é" * 120),
        ("a" + "é" * 200, 1, "a" + "é" * 119),
        ("a\ud800b", 1, "a\ud800b"),
    ],
)
def test_the_first_line_is_cited_in_bytes_and_never_inside_a_character(
    text: str, lines: int, line: str
) -> None:
    start, end = first_line(text, lines=lines)
    data = text.encode("utf-8", "surrogatepass")[start:end]
    assert data.decode("utf-8", "surrogatepass") == line


# -- test runs --------------------------------------------------------------------------------------------------


def test_a_test_run_grounds_its_status_counts_and_failing_names() -> None:
    found = after(call(command="pytest -q tests"), result(RED, error=True, code=1))
    assert said(found) == {
        "test/pytest:tests/status": "failed",
        "test/pytest:tests/counts": {"passed": 2, "failed": 1, "skipped": 3},
        "test/pytest:tests/failing": ["tests/a.py::test_x"],
    }
    assert all(quote(p, RED) == RED.rstrip("\n") and p.kind is Kind.EVIDENCE for p in found)
    assert {p.because for p in found} == {"pytest/summary"}


def test_many_failing_names_end_with_how_many_more_there_are() -> None:
    most = FAILING_NAMES_MAX
    for count in (most, most + 1, most + 30):
        names = "".join(f"FAILED t.py::test_{n} - no\n" for n in range(count))
        output = f"{names}{count} failed in 0.1s\n"
        found = said(after(call(command="pytest"), result(output, error=True, code=1)))
        failing = found["test/pytest/failing"]
        assert len(failing) == min(count, most + 1)
        assert (failing[-1] == f"… and {count - most} more") is (count > most)
    hidden = said(after(call(command="pytest"), result("9 failed in 0.1s\n", error=True, code=1)))
    assert hidden["test/pytest/failing"] is None


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (call(command="pytest", action="read"), result(GREEN)),
        (call(), result(GREEN)),
        (call(command="pytest"), result(GREEN, by=Channel.SUBAGENT)),
        (call(command="pytest", background=True), result(GREEN)),
        (call(command="ls"), result(GREEN)),
        (call(command="pytest > log"), result("", code=0)),
        (call(command="pytest"), result("no summary")),
    ],
)
def test_what_is_no_visible_test_run_grounds_no_status(asked: Part, answer: Part) -> None:
    assert not [p for p in after(asked, answer) if p.key.namespace == "test"]
    assert "test/pytest/status" in said(after(call(command="pytest"), result(GREEN)))


@pytest.mark.parametrize(
    ("entity", "suite"),
    [
        ("pytest:tests/a.py", "pytest"),
        ("pytest:tests/ -k='a b'", "pytest"),
        ("pytest:tests/a.py::test_x -m=slow", "pytest"),
        ("go:./pkg -run=TestX", "go"),
        ("pytest", None),
        ("pytest:cd=sub tests/a.py", None),
        ("pytest:--lf", None),
        ("go:-tags=e2e ./...", None),
    ],
)
def test_a_narrow_run_is_part_of_the_whole_suite_only_where_that_is_plain(
    entity: str, suite: str | None
) -> None:
    key = anchor().key.__class__("test", entity, "failing")
    found = whole_suite(key)
    assert (found and found.entity) == suite
    assert found is None or found.property == "status"
    assert whole_suite(key.__class__("call", entity, "failing")) is None


# -- outcomes ---------------------------------------------------------------------------------------------------


def test_an_error_is_an_outcome_until_the_same_target_succeeds() -> None:
    broken = [call(command="make"), result("\nboom: x\nmore", error=True, code=2)]
    (error,) = after(*broken)
    assert said([error]) == {"call/Bash:make/outcome": {"outcome": "error", "exit": 2}}
    assert quote(error, "\nboom: x\nmore") == "boom: x"
    fine = [call(command="make"), result("done", code=0)]
    assert said(after(*broken, *fine)) == {"call/Bash:make/outcome": {"outcome": "ok", "exit": 0}}
    assert after(*broken, *fine, *fine) == [], "a second success is nothing new"
    assert after(*fine) == []
    assert after(*broken, call(command="make test"), result("done")) == [], "another target"
    assert after(*broken, call(command="make", background=True), result("started")) == []


def test_an_exit_code_is_cited_together_with_what_was_said() -> None:
    text = "Exit code 3\nno such file\nmore"
    (error,) = after(call(command="cat x"), result(text, error=True, code=3))
    assert quote(error, text) == "Exit code 3\nno such file"


def test_a_rejected_call_is_told_from_one_that_failed() -> None:
    text = "The user doesn't want to proceed with this tool use. It was rejected."
    (found,) = after(call(command="rm -rf x"), result(text, error=True))
    assert found.value == {"outcome": "rejected", "exit": None}
    fine = (call(command="rm -rf x"), result("ok"))
    assert after(call(command="rm -rf x"), result(text, error=True), *fine) == []


def test_an_error_that_a_test_run_explains_is_left_to_it() -> None:
    found = said(after(call(command="pytest"), result(RED, error=True, code=1)))
    assert not [key for key in found if key.startswith("call/")]
    broken = said(after(call(command="pytest"), result("no module", error=True, code=1)))
    assert broken == {"call/Bash:pytest/outcome": {"outcome": "error", "exit": 1}}


@pytest.mark.parametrize(
    "by", sorted(set(Channel) - {Channel.TOOL, Channel.CI, Channel.FILESYSTEM})
)
def test_who_is_no_machine_grounds_no_outcome(by: Channel) -> None:
    assert after(call(command="make"), result("boom", error=True, by=by)) == []
    assert after(call(command="make"), result("boom", error=True, by=Channel.CI)) != []


def test_an_error_without_a_word_grounds_nothing() -> None:
    assert after(call(command="make"), result(" \n", error=True)) == []


@pytest.mark.parametrize(
    ("asked", "key"),
    [
        (call(name="Read", action="read", path="/x y"), "call/Read:/x y/outcome"),
        (call(name="Odd", action="other"), "call/Odd#/outcome"),
        (call(name="", action="other", given="0a1b"), "call/unnamed#0a1b/outcome"),
    ],
)
def test_a_target_is_the_tool_with_what_it_was_given(asked: Part, key: str) -> None:
    assert list(said(after(asked, result("boom", error=True)))) == [key]


def test_long_targets_are_bounded_and_told_apart() -> None:
    keys = {
        next(iter(said(after(call(command="x" * 500 + tail), result("boom", error=True)))))
        for tail in "ab"
    }
    assert len(keys) == 2 and all(len(key.encode()) < ENTITY_BYTES_MAX + 20 for key in keys)


# -- files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "text", "key", "value"),
    [
        ("read", None, "file/a.py/read", {"by": "T"}),
        ("edit", "new", "file/a.py/content", {"by": "T", "digest": None}),
        ("notebook", None, "file/a.py/content", {"by": "T", "digest": None}),
        ("write", None, "file/a.py/content", {"by": "T", "digest": None}),
        ("write", "", "file/a.py/content", {"by": "T", "digest": "blake3:af1349b9f5f9a1a6"}),
        ("search", None, None, None),
        ("shell", None, None, None),
    ],
)
def test_a_file_is_read_or_changed_and_only_a_whole_content_has_a_digest(
    action: str, text: str | None, key: str | None, value: Any
) -> None:
    found = said(after(call(name="T", action=action, path="a.py", text=text), result("done")))
    if value and value.get("digest"):
        assert found[key or ""].pop("digest").startswith(value.pop("digest"))
    assert found == ({key: value} if key else {})


@pytest.mark.parametrize(
    "answer",
    [result("no", error=True), result(""), result(" \n"), result("done", by=Channel.WEB)],
)
def test_a_file_that_was_not_surely_touched_grounds_nothing(answer: Part) -> None:
    asked = call(name="T", action="write", path="a.py", text="x")
    assert not [p for p in after(asked, answer) if p.key.namespace == "file"]
    assert after(call(name="T", action="write", text="x"), result("done")) == []
    assert len(after(asked, result("done"))) == 1


# -- all of them ------------------------------------------------------------------------------------------------

_TEXTS = st.sampled_from(
    [GREEN, RED, "", "boom", "\ud800 x", "Exit code 1\nno", "ok  \tex.org/m\t0.2s\n", "é" * 300]
)
_PARTS = st.one_of(
    st.builds(
        call, st.sampled_from("ab"), st.sampled_from(["Bash", "Read"]),
        st.sampled_from(["shell", "read", "write", "edit", "search"]),
        command=st.none() | st.sampled_from(["pytest", "make", "go test .", "ls \ud800"]),
        path=st.none() | st.sampled_from(["a.py", "\ud800/é"]), text=st.none() | st.text(max_size=5),
        background=st.booleans(),
    ),
    st.builds(
        result, _TEXTS, st.sampled_from("ab"), error=st.booleans(), code=st.none() | st.integers(0, 2),
        by=st.sampled_from(Channel),
    ),
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(st.lists(_PARTS, min_size=1, max_size=3), max_size=12))
def test_all_that_is_proposed_is_grounded_storable_and_let_through_by_the_gate(
    items: list[list[Part]],
) -> None:
    observers, again = Observers(), Observers()
    for parts in items:
        reading = Reading("r", tuple(parts))
        found = observers.item(reading)
        assert found == again.item(reading)
        for p in found:
            cited = parts[p.part].text.encode("utf-8", "surrogatepass")
            assert 0 <= p.start < p.end <= len(cited)
            cbor.encode([str(p.key), p.value, p.because])
            channel = parts[p.part].channel
            made = anchor(channel=channel, kind=p.kind, authority=p.authority)
            assert gate.refusal(made) is None
            assert p.rule in {o.rule for o in ALL}


def test_a_run_in_another_folder_than_the_sessions_own_is_another_key() -> None:
    at_home = call(command="pytest", cwd="/home/me/app")
    inside = call(command="pytest", cwd="/home/me/app/sub")
    assert "test/pytest/status" in said(after(at_home, result(GREEN)))
    found = said(after(at_home, result(GREEN), inside, result(GREEN)))
    assert "test/pytest:cd=sub/status" in found
    assert said(after(inside, result(GREEN))) == said(after(at_home, result(GREEN)))
