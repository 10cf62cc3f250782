"""The validator of pairs accepts what a provider takes and names each thing that it does not."""

from __future__ import annotations

from typing import Any

import pytest

from ef.testing.pairing import violations


def use(name: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {}}


def result(name: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": "ok"}


TEXT = {"type": "text", "text": "words"}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [user(TEXT)],
        [user(TEXT), assistant(TEXT, use("a"), use("b")), user(result("b"), result("a"), TEXT)],
        [assistant(use("a")), user(result("a")), assistant(use("a")), user(result("a"))],
    ],
)
def test_messages_that_a_provider_takes_are_not_accused(messages: list[Any]) -> None:
    assert violations(messages) == []


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ([user(TEXT), user(TEXT)], "twice in a row"),
        ([{"role": "system", "content": [TEXT]}], "role 'system'"),
        ([user()], "no content"),
        ([user("words")], "is no block"),
        ([assistant(use("a"))], "leaves calls without results"),
        ([assistant(use("a")), user(TEXT)], "do not answer the calls"),
        ([assistant(use("a")), user(result("b"))], "do not answer the calls"),
        ([assistant(use("a")), user(result("a"), result("a"))], "do not answer the calls"),
        ([user(result("a"))], "do not answer the calls"),
        ([assistant(use("a")), user(TEXT, result("a"))], "behind other blocks"),
        ([assistant(use("a"), use("a")), user(result("a"), result("a"))], "stands twice"),
        ([assistant(result("a"))], "an assistant message holds results"),
        ([user(use("a"))], "a user message holds calls"),
        ([assistant(use("a"), result("a"))], "an assistant message holds results"),
        ([assistant({"type": "tool_use", "id": 5}), user(TEXT)], "an id is no text"),
    ],
)
def test_messages_that_a_provider_refuses_are_named(messages: list[Any], says: str) -> None:
    assert any(says in what for what in violations(messages)), violations(messages)
