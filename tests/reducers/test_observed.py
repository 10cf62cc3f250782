"""Calls that wait and calls that were answered: what a replaced item may still speak of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ef.codec import cbor
from ef.events import Part, PartKind, Reading
from ef.reducers.observers import Observers, contract
from ef.reducers.observers.contract import ANSWERED_KEPT, Observed
from tests.reducers.test_observers import RED, call, result, said


def pairs(seen: Observed, *parts: Part, replaces: bool = False) -> list[tuple[str, str]]:
    found = seen.exchanges(Reading("r", parts), replaces=replaces)
    return [(x.call.name, x.result.text) for x in found]


def test_a_replaced_result_answers_the_call_that_its_item_answered() -> None:
    seen = Observed()
    assert pairs(seen, call("a", "one"), result("A", "a")) == [("one", "A")]
    assert pairs(seen, result("again", "a")) == []
    assert pairs(seen, result("other", "a"), replaces=True) == [("one", "other")]
    assert pairs(seen, result("nobody", "b"), replaces=True) == []


def test_a_replaced_call_speaks_for_its_answer_and_waits_for_no_other() -> None:
    seen = Observed()
    pairs(seen, call("a", "one"), result("A", "a"))
    assert pairs(seen, call("a", "two"), replaces=True) == []
    assert pairs(seen, result("stray", "a")) == []
    assert pairs(seen, result("A2", "a"), replaces=True) == [("two", "A2")]
    assert pairs(seen, call("w", "new"), replaces=True) == []
    assert pairs(seen, result("W", "w")) == [("new", "W")]


def test_which_call_a_result_would_answer_can_be_asked() -> None:
    observers = Observers()
    assert observers.call("a") is None
    observers.item(Reading("r", (call("a", "one"),)))
    assert (found := observers.call("a")) is not None and found.name == "one"
    observers.item(Reading("r", (result("A", "a"),)))
    assert observers.call("a") == found


def test_answered_calls_are_kept_up_to_a_number_the_oldest_go_first() -> None:
    seen = Observed()
    for n in range(ANSWERED_KEPT + 2):
        pairs(seen, call(str(n)), result("x", str(n)))
    assert [seen.call(str(n)) is None for n in (0, 1, 2, ANSWERED_KEPT + 1)] == [
        True,
        True,
        False,
        False,
    ]
    pairs(seen, result("y", "2"), replaces=True)
    pairs(seen, call("late"), result("x", "late"))
    assert seen.call("2") is not None and seen.call("3") is None


def test_a_copy_goes_on_by_itself() -> None:
    first = Observers()
    first.item(Reading("r", (call("a", command="make"), result("boom", "a", error=True))))
    first.item(Reading("r", (call("b", command="pytest"),)))
    trial = first.copy()
    fine = (call("c", command="make"), result("done", "c"))
    assert said(trial.item(Reading("r", fine))) != {}
    assert trial.item(Reading("r", (result(RED, "b", error=True, code=1),)))
    assert first.item(Reading("r", (result(RED, "b", error=True, code=1),)))
    assert said(first.item(Reading("r", fine))) != {}, "what the copy saw is not known here"
    assert first.item(Reading("r", (Part(PartKind.TEXT, fine[0].channel, "x"),))) == []


def again(observers: Observers) -> Observers:
    """Observers out of the bytes of a dump."""
    return Observers.load(cbor.decode(cbor.encode(observers.dump())))


TEXTS = st.text(st.characters(), max_size=8)
CALLS = st.builds(
    call,
    st.sampled_from("abc"),
    TEXTS,
    st.sampled_from(["shell", "read", "write", "edit", "patch", "other"]),
    command=st.none() | st.sampled_from(["make", "pytest", "cd x && pytest -q a.py"]) | TEXTS,
    path=st.none() | st.sampled_from(["x.py", "\ud800"]),
    text=st.none() | TEXTS,
    cwd=st.none() | st.sampled_from(["/home/a", "/b\udc80"]),
    background=st.booleans(),
    given=TEXTS,
    input=st.none() | st.just({"command": "make"}),
    paths=st.lists(st.sampled_from(["x.py", "\ud800"]), max_size=2).map(tuple),
    query=st.none() | TEXTS,
)
RESULTS = st.builds(
    result, st.sampled_from([RED, "3 passed in 0.1s", "fine", ""]), st.sampled_from("abc"), error=st.booleans()
)  # fmt: skip


@settings(max_examples=150)
@given(st.lists(st.tuples(CALLS | RESULTS, st.booleans()), max_size=14))
def test_observers_that_were_loaded_go_on_as_the_first_would_have(
    items: list[tuple[Part, bool]],
) -> None:
    first, reloaded = Observers(), Observers()
    for part, replaces in items:
        reading = Reading("r", (part,))
        proposed = first.item(reading, replaces=replaces)
        assert reloaded.item(reading, replaces=replaces) == proposed
        reloaded = again(reloaded)
        assert reloaded.dump() == first.dump()


def test_calls_that_nothing_answers_are_kept_up_to_a_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(contract, "WAITING_KEPT", 3)
    seen = Observed()
    for call_id in "abacd":
        pairs(seen, call(call_id))
    assert [call_id for call_id in "abcd" if seen.call(call_id)] == ["a", "c", "d"]


@pytest.mark.parametrize(
    "value",
    [[], [[[], []]], [[[], [], []], []], [[[["a"]], []], []], [[[], []], [[], []]],
     [[[], []], [[], ["x", 1], None]], [[[["a"] * 9], []], []], 7],
)  # fmt: skip
def test_what_is_no_dump_is_refused(value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        Observers.load(value)
    assert Observers.load([[[], []], []]).dump() == [[[], []], []]
    assert Observers.load([[[], []], [[], ["x"], None]]).dump() == [[[], []], [[], ["x"], None]]
