"""Sessions of a store, exported: appended messages, moments, and contexts of sessions of other formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.errors import NotFound, UsageError
from ef.render.export import WRITERS
from tests.render.checks import refusals

ROOT = Path(__file__).resolve().parents[2]
SAID: list[dict[str, Any]] = [
    {"role": "user", "content": "do"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}},
        ],
    },
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "out"}],
    },
    {"role": "assistant", "content": "done "},
]


@pytest.fixture
def session(tmp_path: Path) -> Any:
    with ef.open(tmp_path / "s.ef") as store:
        found = store.session("s")
        for message in SAID:
            found.append(message)
        yield found


@pytest.mark.parametrize("form", WRITERS)
def test_appended_messages_are_exported_at_every_moment(form: str, session: Any) -> None:
    for at in range(1, session.seq + 1):
        assert refusals(session.export(form, at=at)) == []
    found = session.export(form, everything=True)
    assert found.messages == session.export(form).messages
    assert json.loads(json.dumps(found.to_json()))["messages"] == found.messages


def test_the_context_stays_what_it_was_and_the_export_is_what_the_provider_takes(
    session: Any,
) -> None:
    assert session.context().messages[-1]["content"] == [{"type": "text", "text": "done "}]
    assert session.export("anthropic").messages[-1]["content"] == [{"type": "text", "text": "done"}]
    assert session.export("anthropic").messages[1]["content"] == SAID[1]["content"]


def test_a_format_that_is_not_known_is_refused(session: Any) -> None:
    with pytest.raises(UsageError, match="anthropic, openai, responses, gemini"):
        session.export("cohere")
    with pytest.raises(UsageError):
        session.export(["openai"])


def test_a_session_that_is_not_there_has_no_export(tmp_path: Path) -> None:
    with ef.open(tmp_path / "s.ef") as store, pytest.raises(NotFound):
        store.session("nobody").export("openai")


def test_the_context_of_a_session_of_another_format_counts_what_it_leaves_out(
    tmp_path: Path,
) -> None:
    items = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "be kind"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "do"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VhbGVk"},
        {"type": "function_call", "call_id": "call_1", "name": "shell", "arguments": "{\"command\": [\"ls\"]}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "out"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
    ]  # fmt: skip
    (tmp_path / "items.json").write_text(json.dumps(items))
    with ef.open(tmp_path / "s.ef") as store:
        (name,) = store.import_file(tmp_path / "items.json").sessions
        found = store.session(name).context()
        assert found.system == [{"type": "text", "text": "be kind"}]
        assert found.left_out == {"reasoning": 1}
        assert [m["role"] for m in found.messages] == ["user", "assistant", "user", "assistant"]
        back = store.session(name).export("responses").messages
        assert back[2:5] == items[2:5]
        for form in WRITERS:
            assert refusals(store.session(name).export(form)) == []
