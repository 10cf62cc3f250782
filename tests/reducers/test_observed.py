"""Calls that wait and calls that were answered: what a replaced item may still speak of."""

from __future__ import annotations

from ef.events import Part, PartKind, Reading
from ef.reducers.observers import Observers
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
