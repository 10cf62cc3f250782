"""The checks can fail: they refuse a broken export, and what the renderers write without one of their rules."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from ef.events import PartKind
from ef.render import anthropic, gemini, limits, openai, responses, turns, writer
from ef.render.export import WRITERS
from ef.session.views import Export
from tests.render.checks import CHECKS, refusals
from tests.render.test_random import export_of

SEEDS = 120
Mutation = Callable[[list[Any]], bool]
"""Breaks messages where they can be broken so; whether it did."""


def _first(messages: list[Any], wanted: Callable[[Any], bool]) -> Any:
    return next((m for m in messages if wanted(m)), None)


def without_an_answer(messages: list[Any]) -> bool:
    for message in messages:
        if message.get("role") == "tool" or str(message.get("type")).endswith("_call_output"):
            messages.remove(message)
            return True
        held = message.get("content") if "content" in message else message.get("parts")
        for block in held if isinstance(held, list) else []:
            if block.get("type") == "tool_result" or "functionResponse" in block:
                held.remove(block)
                return True
    return False


def without_a_call(messages: list[Any]) -> bool:
    for message in messages:
        if message.get("tool_calls"):
            del message["tool_calls"]
            message["content"] = message["content"] or "said"
            return True
        if str(message.get("type")).endswith("_call"):
            messages.remove(message)
            return True
        held = message.get("content") if "content" in message else message.get("parts")
        for block in held if isinstance(held, list) else []:
            if block.get("type") == "tool_use" or "functionCall" in block:
                held.remove(block)
                return True
    return False


def an_answer_twice(messages: list[Any]) -> bool:
    for n, message in enumerate(messages):
        if message.get("role") == "tool" or str(message.get("type")).endswith("_call_output"):
            messages.insert(n, message)
            return True
        held = message.get("content") if "content" in message else message.get("parts")
        for block in held if isinstance(held, list) else []:
            if block.get("type") == "tool_result" or "functionResponse" in block:
                held.insert(0, block)
                return True
    return False


def another_id(messages: list[Any]) -> bool:
    for message in messages:
        if message.get("role") == "tool":
            message["tool_call_id"] = "another"
            return True
        if str(message.get("type")).endswith("_call_output"):
            message["call_id"] = "another"
            return True
        held = message.get("content") if "content" in message else message.get("parts")
        for block in held if isinstance(held, list) else []:
            if block.get("type") == "tool_result":
                block["tool_use_id"] = "another"
                return True
            if "functionResponse" in block:
                block["functionResponse"]["name"] = "another"
                return True
    return False


def a_key_that_no_type_names(messages: list[Any]) -> bool:
    messages[0]["novel"] = 1
    return True


def a_role_that_is_none(messages: list[Any]) -> bool:
    found = _first(messages, lambda m: "role" in m)
    if found:
        found["role"] = "narrator"
    return bool(found)


MUTATIONS: tuple[Mutation, ...] = (
    without_an_answer, without_a_call, an_answer_twice, another_id, a_key_that_no_type_names, a_role_that_is_none
)  # fmt: skip


@pytest.mark.parametrize("form", CHECKS)
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_broken_export_is_refused_and_the_whole_one_is_not(form: str, mutation: Mutation) -> None:
    broken = 0
    for seed in range(20):
        _, export = export_of(form, seed)
        messages = copy.deepcopy(export.messages)
        if not messages or not mutation(messages):
            continue
        broken += 1
        assert refusals(export) == []
        assert refusals(Export("s", 1, form, export.system, messages, {}, {}, {})), seed
    assert broken >= 5


def _refused(form: str) -> bool:
    return any(refusals(export_of(form, seed)[1]) for seed in range(SEEDS))


def test_ids_that_are_not_mapped_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits.CallIds, "of", lambda self, place, given: given)
    for form in ("anthropic", "openai", "responses"):
        assert _refused(form)


def test_names_that_are_not_mapped_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "tool_name", lambda name, most: name)
    for form in WRITERS:
        assert _refused(form)


def test_reasoning_that_stands_last_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anthropic.Export, "blocks", anthropic.Exact.blocks)
    assert _refused("anthropic")


def test_texts_that_say_nothing_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anthropic.Export, "own", anthropic.Exact.own)
    assert _refused("anthropic")


def test_a_history_that_begins_with_the_assistant_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(anthropic.Export, "write", anthropic.Exact.write)
    assert _refused("anthropic")


def test_calls_without_their_closers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    closer = {"type": "text", "text": "closed", "role": "user", "content": "closed"}
    for kind in (anthropic.Exact, openai.Export, responses.Export):
        kept = kind._answer  # type: ignore[attr-defined]
        monkeypatch.setattr(kind, "_answer", _without(kept, closer))
    for form in ("anthropic", "openai", "responses"):
        assert _refused(form)


def _without(kept: Callable[..., Any], closer: Any) -> Callable[..., Any]:
    return lambda self, answer: kept(self, answer) if answer.result else closer


def test_results_that_do_not_follow_the_order_of_the_calls_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = turns.told

    def turned(*args: Any, **how: Any) -> turns.Told:
        found = kept(*args, **how)
        for turn in found.turns:
            turn.answers.reverse()
        return found

    monkeypatch.setattr("ef.render.export.told", turned)
    assert _refused("gemini")


def test_pending_calls_that_are_handed_out_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = gemini.Export.blocks

    def more(self: Any, pieces: Any) -> Any:
        pieces = list(pieces)
        calls = [p for p in pieces if p.kind is PartKind.TOOL_CALL and p.part]
        return kept(self, [*pieces, *calls[:1]])

    for kind in (anthropic.Export, openai.Export, responses.Export, gemini.Export):
        monkeypatch.setattr(kind, "blocks", more)
    for form in WRITERS:
        assert _refused(form)
