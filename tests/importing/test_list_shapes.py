"""Importers of rollouts, message lists, runs and spans: each knows its own, says of an item what its reader makes of
the bytes, bears all in any field, and so do the recognisers of all formats.
"""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ef.importers.formats import Head, format_of, names
from tests.importing.test_trajectory_shapes import ODD, content, packed
from tests.importing.test_vendor_shapes import JSON, places
from tests.importing.vendors import FIXTURES, SEEDS, agreed, taken_by, translated

FILES = {
    SEEDS / "codex.jsonl": "codex",
    SEEDS / "codex-old.jsonl": "codex",
    FIXTURES / "codex/moments.jsonl": "codex",
    FIXTURES / "codex/old.jsonl": "codex",
    SEEDS / "openai-chat.json": "openai-chat",
    FIXTURES / "openai_chat/exchange.json": "openai-chat",
    FIXTURES / "openai_chat/messages.jsonl": "openai-chat",
    SEEDS / "openai-responses.json": "openai-responses",
    FIXTURES / "openai_responses/exchange.json": "openai-responses",
    FIXTURES / "openai_responses/items.json": "openai-responses",
    SEEDS / "anthropic-messages.json": "anthropic-messages",
    FIXTURES / "anthropic_messages/exchange.json": "anthropic-messages",
    FIXTURES / "anthropic_messages/messages.jsonl": "anthropic-messages",
    SEEDS / "gemini-contents.json": "gemini-contents",
    FIXTURES / "gemini_contents/exchange.json": "gemini-contents",
    FIXTURES / "gemini_contents/contents.json": "gemini-contents",
    SEEDS / "tau-bench.json": "tau-bench",
    FIXTURES / "tau_bench/runs.json": "tau-bench",
    FIXTURES / "tau_bench/simulations.json": "tau-bench",
    SEEDS / "otel-genai.jsonl": "otel-genai",
    FIXTURES / "otel_genai/otlp.jsonl": "otel-genai",
}
ALL = [pytest.param(path, form, id=f"{path.parent.name}-{path.name}") for path, form in FILES.items()]  # fmt: skip
LINES = [each for each in ALL if str(each.values[0]).endswith(".jsonl")]
EXAMPLES = 25


@pytest.mark.parametrize(("path", "form"), ALL)
def test_a_session_is_known_as_its_own_format_alone(path: Path, form: str) -> None:
    assert taken_by(path.read_bytes(), str(path)) == [form]


@pytest.mark.parametrize(("path", "form"), ALL)
def test_what_an_importer_says_of_an_item_is_what_its_reader_makes_of_the_bytes(
    path: Path, form: str
) -> None:
    meanings, remarks = translated(form, path.read_bytes(), str(path))
    assert agreed(meanings) >= 3
    assert remarks == []


@pytest.mark.parametrize(("path", "form"), LINES)
def test_what_is_said_of_the_first_lines_does_not_depend_on_later_ones(
    path: Path, form: str
) -> None:
    rows = path.read_bytes().splitlines(keepends=True)
    whole = [m.key for m in translated(form, b"".join(rows))[0]]
    for n in range(len(rows)):
        part = [m.key for m in translated(form, b"".join(rows[:n]))[0]]
        assert whole[: len(part)] == part


@pytest.mark.parametrize(("path", "form"), ALL)
def test_anything_may_stand_in_any_field(path: Path, form: str) -> None:
    whole = content(path)
    count = len(places(whole))

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(st.lists(st.tuples(st.integers(0, count - 1), JSON), min_size=1, max_size=3))
    def check(changes: list[tuple[int, Any]]) -> None:
        value = copy.deepcopy(whole)
        there = places(value)
        for n, new in changes:
            container, key = there[n]
            container[key] = new
        data = packed(path, value)
        agreed(translated(form, data)[0])
        assert len(taken_by(data, str(path))) <= 2

    check()


@pytest.mark.parametrize(("path", "form"), ALL)
def test_each_field_may_hold_a_value_of_another_type(path: Path, form: str) -> None:
    """One of the odd values in each, another in the next; every recogniser looks at what that gives."""
    whole = content(path)
    for n, (container, key) in enumerate(places(whole)):
        held = container[key]
        container[key] = ODD[n % len(ODD)]
        data = packed(path, whole)
        agreed(translated(form, data)[0])
        taken_by(data, str(path))
        container[key] = held


ITEMS: list[dict[str, Any]] = [
    {"type": "message", "role": "user", "content": "x"},
    {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"},
    {"type": "mcp_call", "id": "m", "name": "look", "arguments": "{}", "error": {"message": "y"}},
]
MESSAGES: list[dict[str, Any]] = [
    {"type": "human", "content": "x", "id": "1"},
    {
        "type": "ai",
        "content": [{"type": "text", "text": "x"}],
        "tool_calls": [{"id": "c", "name": "look", "args": {}}],
        "usage_metadata": {"input_tokens": 1, "output_tokens": 2},
        "response_metadata": {"model_name": "m", "id": "r"},
    },
    {"type": "tool", "content": "x", "tool_call_id": "c", "status": "error"},
]


@pytest.mark.parametrize("form", ["agents-sdk", "langgraph"])
def test_rows_of_databases_may_hold_anything(form: str) -> None:
    row = {"table": "agent_messages", "session_id": "s", "created_at": "2026-03-02 09:00:00"}
    point = {"thread_id": "t", "checkpoint_ns": "", "ts": "2026-03-02T09:00:00Z"}
    rows: list[dict[str, Any]] = [{**row, "message_data": item} for item in ITEMS]
    if form == "langgraph":
        told = [{"message": message} for message in MESSAGES]
        told += [{"removed": ["1"]}, {"unread": "why"}, {"checkpoint_ns": "a:b", **told[0]}]
        rows = [{**point, **each} for each in told]
    chosen = random.Random(form)
    whole = places(rows)
    for n, (container, key) in enumerate(whole):
        held = container[key]
        container[key] = ODD[(n + chosen.randrange(3)) % len(ODD)]
        data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
        agreed(translated(form, data)[0])
        container[key] = held


def test_no_recogniser_raises_over_any_beginning() -> None:
    """The beginnings of all seeds, cut anywhere: which format takes them is another test's business."""
    chosen = random.Random(4)
    for path in sorted(SEEDS.glob("*.json*")):
        data = path.read_bytes()
        for _ in range(12):
            head = data[: chosen.randrange(len(data))]
            taken_by(head, path.name)


def test_all_of_them_are_in_the_table() -> None:
    assert {*FILES.values(), "agents-sdk", "langgraph"} <= set(names())


def test_no_other_session_of_the_shared_folder_is_taken(shared_data: Path) -> None:
    folders = ("codex", "tau2-bench")
    ours = set(FILES.values())
    strange: list[str] = []
    for path in sorted(shared_data.rglob("*.json*")):
        if path.relative_to(shared_data).parts[0] in folders:
            continue
        with path.open("rb") as file:
            data = file.read(1 << 20)
        head = Head(data, str(path), len(data) < 1 << 20)
        for name in sorted(ours):
            form = format_of(name)
            if form is not None and form.recognises(head):
                strange.append(f"{path}: {name}")
    assert strange == []
