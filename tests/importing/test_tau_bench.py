"""tau-bench and tau2-bench: each run is a session; the agent's calls are its own, the simulated user's are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ef.events import RouteChanged, UsageReported
from ef.render.export import WRITERS
from tests.importing.vendors import FIXTURES, SEEDS, store_of, taken_by, written
from tests.render.checks import refusals

RUNS, SIMULATIONS = FIXTURES / "tau_bench/runs.json", FIXTURES / "tau_bench/simulations.json"
SPOKEN = "tau2-bench/49b22f0c-4a56-41c5-922f-bc2a56e53a23.json"


def test_each_run_of_a_list_is_a_session(tmp_path: Path) -> None:
    with store_of(RUNS, tmp_path) as taken:
        assert taken.done.sessions == ["task-3", "task-4", "task-3.2", "task-4.3"]
        for name, number in zip(taken.done.sessions, (3, 4, 3, 4), strict=True):
            assert taken.said(name) == [
                ("system", "You sell kettles."),
                ("user_typed", "Mend the kettle, please."),
                ("assistant", "There is none."),
                ("user_typed", "###STOP###"),
            ]
            parts = taken.parts(name)
            assert [p.call_id for p in parts if p.call] == [f"call_{number}"]
            assert [(p.call_id, p.text) for p in parts if p.result] == [
                (f"call_{number}", "Error: no such kettle")
            ]


def test_several_answers_in_one_message_are_as_many_results(tmp_path: Path) -> None:
    with store_of(SIMULATIONS, tmp_path) as taken:
        assert taken.done.sessions == ["sim-1", "sim-2"]
        assert taken.done.notes == []
        results = [p.result for p in taken.parts("sim-2") if p.result]
        assert [(r.call_id, r.text, r.is_error) for r in results] == [
            ("call_1", "lid", False),
            ("call_2", "no such place", True),
        ]
        assert [u.output for u in taken.events(UsageReported, "sim-2")] == [3, 3, 3]
        assert taken.events(RouteChanged, "sim-2") == [RouteChanged(None, "gpt-made-up")]


def test_what_the_simulated_user_calls_the_agent_never_sees(tmp_path: Path) -> None:
    with store_of(SIMULATIONS, tmp_path) as taken:
        assert [p.call_id for p in taken.parts() if p.call] == ["call_1", "call_2"]
        assert [text for channel, text in taken.said() if channel == "user_typed"] == [
            "Mend the kettle, please.",
            "It is on.",
        ]
        assert all("turn_on" not in text for _, text in taken.said())


def test_a_run_alone_is_named_by_its_id(tmp_path: Path) -> None:
    with store_of(SEEDS / "tau-bench.json", tmp_path) as taken:
        assert taken.done.sessions == ["49b22f0c-0000-4000-8000-000000000001"]
        assert [p.call_id for p in taken.parts() if p.call] == ["call_1", "call_2"]
        assert [p.result.is_error for p in taken.parts() if p.result] == [False, True]


def test_a_spoken_run_without_words_is_a_session_without_items(
    shared_data: Path, tmp_path: Path
) -> None:
    with store_of(shared_data / SPOKEN, tmp_path) as taken:
        assert taken.done.sessions == ["49b22f0c-4a56-41c5-922f-bc2a56e53a23"]
        assert taken.main == []


def test_what_a_spoken_run_calls_comes_in(tmp_path: Path) -> None:
    call = {"id": "call_1", "name": "look", "arguments": {"at": "lid"}, "requestor": "assistant"}
    ticks: list[dict[str, Any]] = [
        {"tick_id": 0, "agent_chunk": {"role": "assistant", "content": None, "tool_calls": None}},
        {"tick_id": 1, "agent_chunk": {"role": "assistant", "content": "I look.", "tool_calls": [call]}},
        {"tick_id": 2, "agent_tool_results": {"id": "call_1", "role": "tool", "content": "lid"}},
    ]  # fmt: skip
    run = {"id": "spoken", "task_id": "4", "trial": 0, "mode": "full_duplex", "ticks": ticks}
    with store_of(written(tmp_path / "r.json", run), tmp_path) as taken:
        assert taken.said() == [("assistant", "I look.")]
        assert [p.result.text for p in taken.parts() if p.result] == ["lid"]


@pytest.mark.parametrize("path", [RUNS, SIMULATIONS], ids=lambda p: p.stem)
def test_each_provider_takes_what_is_exported(path: Path, tmp_path: Path) -> None:
    with store_of(path, tmp_path) as taken:
        for name in taken.done.sessions:
            for form in WRITERS:
                assert refusals(taken.store.session(name).export(form)) == []


@pytest.mark.parametrize("path", [RUNS, SIMULATIONS], ids=lambda p: p.stem)
def test_a_run_is_known_as_its_own_format_alone(path: Path) -> None:
    assert taken_by(path.read_bytes(), str(path)) == ["tau-bench"]
    assert taken_by(json.dumps(json.loads(path.read_text("utf-8"))).encode(), "x.json") == [
        "tau-bench"
    ]


@pytest.mark.parametrize("wrong", [b'[{"task_id":1}]', b'{"simulations":[]}', b'[{"traj":[]}]'])
def test_what_says_too_little_is_no_run(wrong: bytes) -> None:
    assert "tau-bench" not in taken_by(wrong, "x.json")
