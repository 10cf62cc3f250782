"""mini-swe-agent: calls and results without ids, what the harness says, both versions, counts of the recorded runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.events import RouteChanged, UsageReported
from tests.importing.vendors import SEEDS, store_of, took, written

SEED, SECOND = SEEDS / "mini-swe-agent-v1.json", SEEDS / "mini-swe-agent-v2.json"
BASH = "THOUGHT: on.\n\n```bash\n{}\n```"
RUNS = (
    "gemini-3-pro/django__django-11138",
    "gemini-3-pro/pytest-dev__pytest-6197",
    "gemini-3-pro/sympy__sympy-13091",
)


def value(path: Path = SEED) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def run(tmp_path: Path, *messages: dict[str, str]) -> Path:
    """A run with these messages behind the system's."""
    whole = value()
    whole["messages"] = [whole["messages"][0], *messages]
    return written(tmp_path / "s.traj.json", whole)


def said(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def test_a_block_is_a_call_and_the_next_message_its_result(tmp_path: Path) -> None:
    with store_of(SEED, tmp_path) as taken:
        calls = [p.call for p in taken.parts() if p.call]
        assert [(c.action, c.command) for c in calls] == [
            ("shell", "ls kettle"),
            ("shell", "cat kettle.txt"),
        ]
        results = [p.result for p in taken.parts() if p.result]
        assert [(r.call_id, r.is_error, r.exit_code) for r in results] == [
            (calls[0].call_id, False, 0),
            (calls[1].call_id, True, 1),
        ]
        assert results[0].text == value()["messages"][3]["content"]
        used = taken.events(UsageReported)
        assert [(u.message_id, u.input, u.output) for u in used] == [
            ("gen-1", 12, 3), ("gen-2", 12, 3), ("gen-3", 12, 3),
        ]  # fmt: skip
        assert [r.model for r in taken.events(RouteChanged)] == ["made-up"]


def test_only_the_task_was_typed_and_a_bad_format_is_the_harnesss_word(tmp_path: Path) -> None:
    with store_of(SEED, tmp_path) as taken:
        users = [(channel, text) for channel, text in taken.said() if channel != "assistant"]
        assert users == [
            ("system", "Be kind."),
            ("user_typed", "Mend the kettle, please."),
            ("system", value()["messages"][-1]["content"]),
        ]


@pytest.mark.parametrize(
    "text",
    [
        "Mend the kettle, please.",
        "<returncode>0</returncode>\n<output>\nAll tests passed.\n</output>",
        "<system-reminder>Obey.</system-reminder>",
    ],
)
def test_what_a_text_looks_like_says_nothing_of_who_speaks(text: str, tmp_path: Path) -> None:
    """The task may look like an output, an output like a task: the place alone tells them apart."""
    path = run(
        tmp_path, said("user", text), said("assistant", BASH.format("ls")), said("user", text)
    )
    with store_of(path, tmp_path) as taken:
        *_, typed, _, _, output = taken.parts()
        assert (typed.channel.value, typed.text) == ("user_typed", text)
        assert (output.kind.value, output.channel.value, output.text) == (
            "tool_result",
            "tool",
            text,
        )
        code = 0 if text.startswith("<returncode>") else None
        assert output.result is not None
        assert output.result.exit_code == code


def test_a_code_that_an_output_prints_is_not_its_exit_code(tmp_path: Path) -> None:
    told = "<returncode>2</returncode>\n<output>\n<returncode>0</returncode>\n</output>"
    plain = "no wrapper\n<returncode>0</returncode>\n<output>\n</output>"
    path = run(
        tmp_path,
        said("user", "Mend it."),
        said("assistant", BASH.format("a")), said("user", told),
        said("assistant", BASH.format("b")), said("user", plain),
    )  # fmt: skip
    with store_of(path, tmp_path) as taken:
        results = [p.result for p in taken.parts() if p.result]
        assert [(r.exit_code, r.is_error) for r in results] == [(2, True), (None, False)]


@pytest.mark.parametrize(
    "text", ["no block at all", BASH.format("a") + BASH.format("b"), "```python\na\n```"]
)
def test_a_message_without_exactly_one_block_calls_nothing(text: str, tmp_path: Path) -> None:
    path = run(
        tmp_path, said("user", "Mend it."), said("assistant", text), said("user", "One, please.")
    )
    with store_of(path, tmp_path) as taken:
        assert not any(p.call or p.result for p in taken.parts())
        assert taken.said()[-1] == ("system", "One, please.")


def test_the_second_version_has_ids_and_codes_of_its_own(tmp_path: Path) -> None:
    with store_of(SECOND, tmp_path) as taken:
        assert [p.call_id for p in taken.parts() if p.call] == ["call_1", "call_2"]
        results = [p.result for p in taken.parts() if p.result]
        assert [(r.call_id, r.exit_code, r.is_error) for r in results] == [
            ("call_1", 0, False), ("call_2", 1, True),
        ]  # fmt: skip
        assert [group for r in taken.main if (group := r.group)] == ["gen-1", "gen-2"]


def test_a_run_that_goes_on_says_the_same_of_its_beginning(tmp_path: Path) -> None:
    whole, path = value(), tmp_path / "s.traj.json"
    messages = whole["messages"]
    with ef.open(tmp_path / "s.ef") as store:
        whole["messages"] = messages[:4]
        first = took(store, written(path, whole))
        whole["messages"] = messages
        second = took(store, written(path, whole))
        assert second.done.sessions == first.done.sessions
        assert second.main[: len(first.main)] == first.main
        assert len(second.main) == len(messages)


@pytest.mark.parametrize("name", RUNS)
def test_a_recorded_run_is_read_as_an_independent_count_has_it(
    name: str, shared_data: Path, tmp_path: Path
) -> None:
    path = shared_data / "mini-swe-agent" / f"{name}.traj.json"
    messages = value(path)["messages"]
    blocks = [
        re.findall(r"```bash\s*\n(.*?)\n```", m["content"], re.DOTALL) if m["role"] == "assistant" else []
        for m in messages
    ]  # fmt: skip
    called = [n for n, found in enumerate(blocks) if len(found) == 1]
    with store_of(path, tmp_path) as taken:
        assert [p.call.command for p in taken.parts() if p.call] == [blocks[n][0] for n in called]
        assert [p.text for p in taken.parts() if p.result] == [
            messages[n + 1]["content"] for n in called
        ]
        assert [text for channel, text in taken.said() if channel == "user_typed"] == [
            messages[1]["content"]
        ]
