"""OpenHands, both architectures: pairing, parallel calls, delegates, what the harness adds, condensations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ef
from ef.events import RouteChanged, SessionDescribed, SessionOpened, UsageReported
from tests.importing.vendors import FIXTURES, SEEDS, store_of, took, translated, written

OURS = FIXTURES / "trajectories"
DOCUMENT, EVENTS = OURS / "openhands-v0-trajectory.json", OURS / "openhands-v0-events.jsonl"
OUTPUT, SDK = OURS / "openhands-v0-output.jsonl", OURS / "openhands-v1-events.jsonl"
SHARED = "openhands/OpenHands"


def rows(path: Path = EVENTS) -> list[dict[str, Any]]:
    return [json.loads(row) for row in path.read_text("utf-8").splitlines()]


def event(kind: str, n: int, **more: Any) -> dict[str, Any]:
    name = f"03d5b5c0-6890-4b43-831a-1{n:011d}"
    return {"id": name, "timestamp": "2026-03-02T09:10:00", "source": "agent", "kind": kind, **more}


# The first architecture.


def test_calls_of_one_response_are_one_response_with_its_words_once(tmp_path: Path) -> None:
    with store_of(EVENTS, tmp_path) as taken:
        made = [r for r in taken.main if r.group == "gen-1"]
        assert [[p.kind.value for p in r.parts] for r in made] == [
            ["text", "tool_call"],
            ["tool_call"],
        ]
        used = taken.events(UsageReported)
        assert [(u.input, u.output, u.cache_read, u.cache_write) for u in used] == [(6, 3, 4, 2)]
        assert [r.model for r in taken.events(RouteChanged)] == ["made-up"]


def test_a_result_answers_what_its_metadata_or_its_cause_name(tmp_path: Path) -> None:
    with store_of(EVENTS, tmp_path) as taken:
        results = [p.result for p in taken.parts() if p.result]
        assert [(r.call_id, r.is_error, r.exit_code) for r in results] == [
            ("t1", True, 2), ("t2", False, None), ("event-9", False, None),
        ]  # fmt: skip
        assert [p.call.action for p in taken.parts() if p.call] == ["shell", "read", "agent"]


def test_a_code_that_a_file_or_an_output_quotes_is_none(tmp_path: Path) -> None:
    """The metadata say the code; the text alone counts where a command has none, and only at its end."""
    values = rows()[:8]
    quoted = "[The command completed with exit code 7.]\n$"
    values[6] |= {"content": quoted, "success": True}
    values[6]["extras"]["metadata"] = {"exit_code": 0}
    bare: dict[str, Any] = {"source": "agent", "timestamp": "x", "observation": "run", "extras": {}}
    more = [
        {**values[4], "id": 20, "tool_call_metadata": None, "args": {"command": "a"}},
        {**bare, "id": 21, "cause": 20, "content": quoted},
        {**values[4], "id": 22, "tool_call_metadata": None, "args": {"command": "b"}},
        {**bare, "id": 23, "cause": 22, "content": quoted[:-2]},
    ]
    with store_of(written(tmp_path / "s.jsonl", [*values, *more]), tmp_path) as taken:
        results = [p.result for p in taken.parts() if p.result]
        assert [(r.exit_code, r.is_error) for r in results] == [
            (0, False), (None, False), (None, False), (7, True),
        ]  # fmt: skip


def test_who_speaks_is_said_by_the_event(tmp_path: Path) -> None:
    with store_of(EVENTS, tmp_path) as taken:
        assert [(c, t) for c, t in taken.said() if c != "assistant"] == [
            ("system", "Be kind."),
            ("user_typed", "Mend the kettle, please."),
            ("system", "Kettles are made of copper."),
            ("system", "A lid has a knob."),
            ("importer", "The kettle was looked at."),
            ("system", "git status"),
            ("tool", "clean"),
            ("tool", "Parameter 'path' is missing."),
            ("user_typed", "<returncode>0</returncode> thanks"),
        ]


def test_a_message_of_the_environment_is_the_harnesss(tmp_path: Path) -> None:
    word = rows()[1]
    for source, channel in (("user", "user_typed"), ("environment", "system"), (None, "system")):
        folder = tmp_path / str(source)
        path = written(folder / "s.jsonl", [{**word, "source": source}])
        with store_of(path, folder) as taken:
            assert taken.said() == [(channel, "Mend the kettle, please.")]


def test_an_observation_that_looks_like_the_users_words_is_a_tools(tmp_path: Path) -> None:
    values = rows()
    words = values[1]["args"]["content"]
    values[6]["content"] = values[7]["content"] = words
    stray = {**values[7], "id": 99, "cause": 77, "tool_call_metadata": None, "content": words}
    with store_of(written(tmp_path / "s.jsonl", [*values, stray]), tmp_path) as taken:
        assert [c for c, t in taken.said() if t == words] == ["user_typed", "tool"]
        assert [p.channel.value for p in taken.parts() if p.result and p.text == words] == [
            "tool",
            "tool",
        ]


def test_a_delegates_events_are_a_session_of_the_call_that_asked(tmp_path: Path) -> None:
    with store_of(EVENTS, tmp_path) as taken:
        main, agent = taken.done.sessions
        opened = taken.events(SessionOpened, agent)[0]
        assert (opened.relation, opened.parent_stream) == ("subagent", f"session/{main}")
        asked = taken.store.log.get(f"session/{main}", opened.parent_seq or 0)
        assert asked.header.item is not None
        assert asked.header.item.parts[-1].call_id == "event-9"
        assert taken.said(agent) == [
            ("assistant", "Look for copper."),
            ("subagent", "I browse."),
            ("subagent", "Copper is red."),
        ]
        kinds = [(p.kind.value, p.channel.value) for p in taken.items[agent][2].parts]
        assert kinds == [("tool_result", "web"), ("image", "tool")]
        answer = next(p for p in taken.parts() if p.result and p.call_id == "event-9")
        assert answer.channel.value == "subagent"


def test_two_delegates_are_two_sessions_also_where_events_have_no_numbers(tmp_path: Path) -> None:
    ask: dict[str, Any] = {
        "source": "agent",
        "timestamp": "x",
        "action": "delegate",
        "args": {"agent": "B", "inputs": {}},
    }
    word = {"source": "user", "timestamp": "x", "action": "message", "args": {"content": "Look."}}
    done: dict[str, Any] = {
        "source": "agent",
        "timestamp": "x",
        "observation": "delegate",
        "content": "no",
        "extras": {},
    }
    values = [word, ask, word, done, ask, word, done]
    with store_of(written(tmp_path / "s.jsonl", values), tmp_path) as taken:
        assert len(taken.done.sessions) == 3
        assert [len(taken.items[s]) for s in taken.done.sessions] == [5, 1, 1]


def test_a_condensation_says_which_events_it_drops(tmp_path: Path) -> None:
    listed = {
        **rows()[15],
        "id": 40,
        "args": {"forgotten_event_ids": [1, 2, "x", True], "summary": None},
    }
    with store_of(written(tmp_path / "s.jsonl", [*rows(), listed]), tmp_path) as taken:
        assert [(c.form, c.dropped) for c in taken.compactions()] == [
            ("compact", ("4", "5", "6", "7")), ("compact", ("1", "2")),
        ]  # fmt: skip


def test_a_document_says_what_its_lines_say(tmp_path: Path) -> None:
    lines, _ = translated("openhands-v0-jsonl", EVENTS.read_bytes())
    whole, _ = translated("openhands-v0", DOCUMENT.read_bytes())
    bare, _ = translated("openhands-v0", json.dumps(rows()).encode())
    said = [
        [(r.role, r.parts) for m in each if (r := m.reading) is not None]
        for each in (lines, whole, bare)
    ]
    assert said[0] == said[1] == said[2]


def test_of_an_evaluation_only_the_task_was_typed(tmp_path: Path) -> None:
    with store_of(OUTPUT, tmp_path) as taken:
        first, second = taken.done.sessions
        assert [s.title for s in taken.events(SessionDescribed)] == ["kettle-1"]
        assert taken.events(SessionDescribed, second)[0].title == "kettle-2"
        assert [(c, t) for c, t in taken.said(first) if c != "assistant"] == [
            ("user_typed", "Mend the kettle, please."), ("system", "Please continue working."),
        ]  # fmt: skip


def test_a_pair_is_a_call_and_its_result_with_and_without_numbers(tmp_path: Path) -> None:
    with store_of(OUTPUT, tmp_path) as taken:
        calls = [p.call_id for p in taken.parts() if p.call]
        results = [p.result for p in taken.parts() if p.result]
        assert [(r.call_id, r.exit_code) for r in results] == [(calls[0], 0), ("event-4", 1)]
        assert calls[1] == "event-4"


def test_a_broken_line_of_an_evaluation_is_one_run_less(tmp_path: Path) -> None:
    first, second = OUTPUT.read_bytes().splitlines(keepends=True)
    path = tmp_path / "s.jsonl"
    for broken, line in ((first[:-200] + b"\n" + second, 1), (first + second[:-200] + b"\n", 2)):
        path.write_bytes(broken)
        folder = tmp_path / str(line)
        folder.mkdir()
        with store_of(path, folder) as taken:
            assert len(taken.done.sessions) == 1
            assert {(n["kind"], n["line"]) for n in taken.done.notes} == {("not-json", line)}


def test_an_output_that_is_laid_out_over_lines_is_a_document(tmp_path: Path) -> None:
    value = rows(OUTPUT)[1]
    path = tmp_path / "s.json"
    path.write_text(json.dumps(value, indent=1), "utf-8")
    with store_of(path, tmp_path) as taken:
        assert taken.done.format == "openhands-v0"
        assert [p.call_id for p in taken.parts() if p.result] == ["t1", "t2"]


def test_lines_that_are_added_add(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    for values, growing in ((rows(), 8), (rows(OUTPUT), 1)):
        with ef.open(tmp_path / f"{growing}.ef") as store:
            first = took(store, written(path, values[:growing]))
            second = took(store, written(path, values))
            assert second.done.relation == "grown"
            assert second.main[: len(first.main)] == first.main
            assert len(second.done.sessions) > len(first.done.sessions)


def test_an_action_of_an_unknown_kind_is_remarked_and_kept(tmp_path: Path) -> None:
    odd: dict[str, Any] = {
        "id": 50,
        "source": "agent",
        "timestamp": "x",
        "action": "boil",
        "args": {"cups": 2},
    }
    silent: dict[str, Any] = {
        "id": 51,
        "source": "environment",
        "timestamp": "x",
        "action": "null",
        "args": {},
    }
    with store_of(written(tmp_path / "s.jsonl", [*rows(), odd, silent]), tmp_path) as taken:
        assert [(n["kind"], n["line"]) for n in taken.done.notes] == [
            ("unknown-type", len(rows()) + 1)
        ]


def test_files_of_one_event_go_into_the_session_that_their_folder_names(tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "kettle-0001" / "events"
    with ef.open(tmp_path / "s.ef") as store:
        for value in rows()[1:8]:
            done = store.import_file(written(folder / f"{value['id']}.json", value))
            assert (done.format, done.sessions) == ("openhands-v0-jsonl", ["kettle-0001"])
        surface = store.session("kettle-0001").working().surface
        assert surface.open == {}
        assert surface.orphans == set()
        assert len(surface.nodes) == 6


def test_recorded_runs_are_read_as_an_independent_count_has_them(
    shared_data: Path, tmp_path: Path
) -> None:
    path = shared_data / SHARED / "evaluation__benchmarks__multi_swe_bench__examples__output.jsonl"
    values = rows(path)
    with store_of(path, tmp_path) as taken:
        assert len(taken.done.sessions) == len(values)
        for session, value in zip(taken.done.sessions, values, strict=True):
            history = value["history"]
            meta = [e.get("tool_call_metadata") for e in history]
            made = [
                m["tool_call_id"] for e, m in zip(history, meta, strict=True) if m and "action" in e
            ]
            seen = [
                (m["tool_call_id"], e["content"])
                for e, m in zip(history, meta, strict=True) if m and "observation" in e
            ]  # fmt: skip
            parts = taken.parts(session)
            assert [p.call_id for p in parts if p.call] == made
            assert [(p.call_id, p.text) for p in parts if p.result] == seen
            assert [t for c, t in taken.said(session) if c == "user_typed"] == [
                history[1]["args"]["content"]
            ]


# The agent SDK.


def test_the_sdks_calls_results_errors_and_rejections_are_paired(tmp_path: Path) -> None:
    with store_of(SDK, tmp_path) as taken:
        assert [(p.call_id, p.call.action) for p in taken.parts() if p.call] == [
            ("terminal:0", "shell"), ("file_editor:1", "edit"), ("finish:2", "other"), ("acp-1", "read"),
        ]  # fmt: skip
        results = [p.result for p in taken.parts() if p.result]
        assert [(r.call_id, r.is_error, r.exit_code, r.text) for r in results] == [
            ("terminal:0", False, 1, "lid"),
            ("file_editor:1", True, None, "The arguments are not JSON."),
            ("finish:2", True, None, "Not yet."),
            ("acp-1", False, None, "lid"),
        ]
        assert [r.group for r in taken.main if r.role == "assistant"][:3] == [
            "resp-1",
            "resp-1",
            "resp-2",
        ]
        thoughts = [p for p in taken.parts() if p.kind.value == "reasoning"]
        assert [p.text for p in thoughts] == ["A kettle needs a lid.", "It is."]
        assert thoughts[0].block["signature"] == "c2ln"


def test_an_acp_agents_tool_that_is_told_again_ran_once(tmp_path: Path) -> None:
    values = rows(SDK)
    again = {**values[12], "id": "again"}
    with store_of(written(tmp_path / "s.jsonl", [*values, again]), tmp_path) as taken:
        assert [p.call_id for p in taken.parts() if p.call].count("acp-1") == 1
        assert [p.call_id for p in taken.parts() if p.result].count("acp-1") == 1


def test_what_the_sdk_adds_to_the_users_words_is_not_the_users(tmp_path: Path) -> None:
    with store_of(SDK, tmp_path) as taken:
        assert [(c, t) for c, t in taken.said() if c != "assistant"] == [
            ("system", "Be kind."),
            ("system", "You are in /w."),
            ("user_typed", "Mend the kettle, please."),
            ("system", "<EXTRA_INFO>A lid has a knob.</EXTRA_INFO>"),
            ("importer", "The kettle was looked at."),
            ("system", "Your last answer was empty."),
        ]
        dropped = rows(SDK)[10]["forgotten_event_ids"]
        assert [(c.form, list(c.dropped)) for c in taken.compactions()] == [("compact", dropped)]


def test_context_that_is_added_to_a_result_and_words_of_another_agent_are_told_apart(
    tmp_path: Path,
) -> None:
    values = rows(SDK)
    values[5]["extended_content"] = [{"type": "text", "text": "Lids are brass."}]
    sent: dict[str, Any] = {**values[2], "id": "sent", "sender": "agent-2", "extended_content": []}
    with store_of(written(tmp_path / "s.jsonl", [*values, sent]), tmp_path) as taken:
        assert ("system", "Lids are brass.") in taken.said()
        assert next(p.text for p in taken.parts() if p.result) == "lid"
        assert [c for c, t in taken.said() if t == "Mend the kettle, please."] == [
            "user_typed",
            "assistant",
        ]


def test_a_result_of_the_sdk_that_looks_like_a_message_stays_a_tools(tmp_path: Path) -> None:
    values = rows(SDK)
    words = "Mend the kettle, please."
    values[5]["observation"]["content"][0]["text"] = words
    with store_of(written(tmp_path / "s.jsonl", values), tmp_path) as taken:
        found = [(p.kind.value, p.channel.value) for p in taken.parts() if p.text == words]
        assert found == [("text", "user_typed"), ("tool_result", "tool")]


def test_an_event_of_the_sdk_of_an_unknown_kind_is_remarked(tmp_path: Path) -> None:
    values = [*rows(SDK), event("KettleEvent", 1, text="hot"), event("PauseEvent", 2)]
    with store_of(written(tmp_path / "s.jsonl", values), tmp_path) as taken:
        assert [(n["kind"], n["line"]) for n in taken.done.notes] == [
            ("unknown-type", len(rows(SDK)) + 1)
        ]


def test_the_sdks_files_of_one_event_go_into_one_session_which_grows(tmp_path: Path) -> None:
    folder = tmp_path / "3d1f0c2e8b7a4f6d9c5e" / "events"
    with ef.open(tmp_path / "s.ef") as store:
        for n, value in enumerate(rows(SDK)):
            name = f"event-{n:05d}-{value['id']}.json"
            done = store.import_file(written(folder / name, value))
            assert done.sessions in ([], ["3d1f0c2e8b7a4f6d9c5e"])
        whole = [
            m.reading
            for m in translated("openhands-v1", SDK.read_bytes())[0]
            if m.reading is not None
        ]
        surface = store.session("3d1f0c2e8b7a4f6d9c5e").working().surface
        assert len(surface.nodes) == len(whole)
        assert surface.open == {}


def test_the_sdks_recorded_events_are_read_as_an_independent_count_has_them(
    shared_data: Path, tmp_path: Path
) -> None:
    path = (
        shared_data
        / "openhands/software-agent-sdk/tests__sdk__conversation__goal__fixtures__events.jsonl"
    )
    values = rows(path)
    with ef.open(tmp_path / "s.ef") as store:
        taken = took(store, path)
        made = [v["tool_call_id"] for v in values if v["kind"] == "ActionEvent"]
        seen = [v["tool_call_id"] for v in values if v["kind"] == "ObservationEvent"]
        assert [p.call_id for p in taken.parts() if p.call] == made
        assert [p.call_id for p in taken.parts() if p.result] == seen
        assert [n["kind"] for n in taken.done.notes] == ["orphan-result"]


def test_the_seeds_hold_an_image_and_a_compaction_each(tmp_path: Path) -> None:
    for name in ("openhands-v0.json", "openhands-v1.jsonl"):
        folder = tmp_path / name
        folder.mkdir()
        with store_of(SEEDS / name, folder) as taken:
            assert [p.media.mime for p in taken.parts() if p.media] == ["image/png"]
            assert [c.form for c in taken.compactions()] == ["compact"]
