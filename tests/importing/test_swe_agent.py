"""SWE-agent: history against trajectory, collapsed observations, demonstrations, both kinds of calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.importing.vendors import FIXTURES, SEEDS, store_of, written

OURS = FIXTURES / "trajectories"
COLLAPSED, HISTORY, TOOLS = (
    OURS / "swe-agent-collapsed.traj",
    OURS / "swe-agent-history.traj",
    SEEDS / "swe-agent.json",
)
REPLAYED = "marshmallow-code__marshmallow-1867"
OLD = "Old environment output: (3 lines omitted)"


def value(path: Path = COLLAPSED) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def test_a_collapsed_observation_is_told_and_its_whole_text_is_the_item(tmp_path: Path) -> None:
    with store_of(COLLAPSED, tmp_path) as taken:
        calls = [p.call for p in taken.parts() if p.call]
        assert [(c.name, c.action) for c in calls] == [
            ("bash", "shell"), ("bash", "shell"), ("submit", "other"),
        ]  # fmt: skip
        results = [p.result for p in taken.parts() if p.result]
        assert [(r.call_id, r.text) for r in results] == [
            (calls[0].call_id, "lid\nspout\nhandle"),
            (calls[1].call_id, value()["history"][6]["content"]),
            (calls[2].call_id, "diff --git a/kettle b/kettle"),
        ]
        assert [(c.form, c.dropped) for c in taken.compactions()] == [
            ("prune", (calls[0].call_id,))
        ]


def test_an_output_that_only_says_so_is_not_collapsed(tmp_path: Path) -> None:
    whole = value()
    whole["trajectory"][0]["observation"] = OLD
    with store_of(written(tmp_path / "s.traj", whole), tmp_path) as taken:
        assert taken.compactions() == []
        assert next(p.text for p in taken.parts() if p.result) == OLD


def test_a_demonstration_is_the_harnesss_text_and_calls_nothing(tmp_path: Path) -> None:
    whole = value()
    shown = [
        {**whole["history"][2], "content": "Mend the cup.", "is_demo": True},
        {**whole["history"][3], "action": "rm -r cup", "is_demo": True},
        {**whole["history"][4], "content": "gone", "is_demo": True},
    ]
    whole["history"][2:2] = shown
    with store_of(written(tmp_path / "s.traj", whole), tmp_path) as taken:
        assert [c for c, _ in taken.said()][:6] == ["system"] * 5 + ["user_typed"]
        assert next(p.call.command for p in taken.parts() if p.call) == "ls kettle\n"
        assert sum(1 for p in taken.parts() if p.call) == 3


def test_a_demonstration_answers_no_call(tmp_path: Path) -> None:
    whole = value()
    shown = {**whole["history"][2], "content": "USER: Mend the cup.", "is_demo": True}
    whole["history"].insert(6, shown)
    with store_of(written(tmp_path / "s.traj", whole), tmp_path) as taken:
        assert ("system", "USER: Mend the cup.") in taken.said()
        assert [p.text for p in taken.parts() if p.result][1] == whole["history"][7]["content"]


def test_only_the_first_message_was_typed(tmp_path: Path) -> None:
    whole = value(HISTORY)
    whole["history"].append({"role": "user", "content": "Please go on.", "agent": "main"})
    with store_of(written(tmp_path / "s.traj", whole), tmp_path) as taken:
        told = [(c, t) for c, t in taken.said() if c != "assistant"]
        assert told[-2:] == [
            ("user_typed", "Mend the kettle, please."),
            ("system", "Please go on."),
        ]


def test_a_history_alone_is_read_as_it_stands(tmp_path: Path) -> None:
    with store_of(HISTORY, tmp_path) as taken:
        assert taken.compactions() == []
        assert [p.text for p in taken.parts() if p.result] == [OLD, "no such file"]


def test_tools_have_ids_and_their_actions_are_no_second_calls(tmp_path: Path) -> None:
    with store_of(TOOLS, tmp_path) as taken:
        assert [p.call_id for p in taken.parts() if p.call] == ["call_1", "call_2"]
        assert [p.call_id for p in taken.parts() if p.result] == ["call_1", "call_2"]
        assert next(p.call.command for p in taken.parts() if p.call) == "ls kettle"


def test_a_collapsed_answer_of_a_tool_keeps_its_id(tmp_path: Path) -> None:
    whole = value(TOOLS)
    whole["history"][4]["content"] = OLD
    with store_of(written(tmp_path / "s.traj", whole), tmp_path) as taken:
        first = next(p.result for p in taken.parts() if p.result)
        assert (first.call_id, first.text) == ("call_1", "lid\nspout")
        assert [c.dropped for c in taken.compactions()] == [("call_1",)]


@pytest.mark.parametrize(
    "name",
    [
        "ctf__crypto__katy.traj",
        "function_calling_simple.traj",
        f"replay__{REPLAYED}__function_calling_replace_from_source__{REPLAYED}.traj",
    ],
)
def test_a_recorded_run_pairs_each_action_with_what_it_gave(
    name: str, shared_data: Path, tmp_path: Path
) -> None:
    path = shared_data / "swe-agent" / "SWE-agent" / name
    whole = value(path)
    own = [m for m in whole["history"] if m.get("is_demo") is not True]
    with store_of(path, tmp_path) as taken:
        calls = [p.call_id for p in taken.parts() if p.call]
        assert len(calls) == sum(1 for m in own if m["role"] == "assistant")
        assert [p.call_id for p in taken.parts() if p.result] == calls
        typed = [text for channel, text in taken.said() if channel == "user_typed"]
        assert len(typed) == 1
        if "trajectory" in whole:
            last = whole["trajectory"][-1]["observation"]
            assert [p.text for p in taken.parts() if p.result][-1] in (last, own[-1].get("content"))
