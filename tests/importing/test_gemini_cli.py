"""Gemini CLI: the document that is rewritten as a whole, and the newer lines as the program itself wrote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ef
from ef.events import ItemReplaced, RouteChanged, SessionDescribed, SessionOpened, UsageReported
from tests.importing.vendors import FIXTURES, SEEDS, store_of, took, written

OWN = FIXTURES / "gemini_cli" / "session.jsonl"
OLD = SEEDS / "gemini-cli.json"
SHARED = "gemini-cli/entireio-cli/ab__2b9748b105__0__full.json"


def document(path: Path = OLD) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def rows() -> list[dict[str, Any]]:
    return [json.loads(row) for row in OWN.read_text("utf-8").splitlines()]


def test_a_message_is_what_was_said_and_what_the_calls_gave(tmp_path: Path) -> None:
    with store_of(OLD, tmp_path) as taken:
        kinds = [(r.role, [p.kind.value for p in r.parts]) for r in taken.main]
        assert kinds == [
            ("user", ["text"]),
            ("assistant", ["reasoning", "text", "tool_call", "tool_call"]),
            ("user", ["tool_result", "tool_result"]),
            ("assistant", ["text"]),
        ]
        results = [p.result for p in taken.parts() if p.result]
        assert [(r.call_id, r.is_error) for r in results] == [
            ("run_shell_command-1", False),
            ("read_file-1", True),
        ]
        assert [(u.input, u.output, u.cache_read) for u in taken.events(UsageReported)] == [
            (7, 4, 5),
            (8, 4, 12),
        ]
        assert [r.model for r in taken.events(RouteChanged)] == ["gemini-made-up"]


def test_a_document_that_is_rewritten_adds_what_is_new_and_replaces_what_changed(
    tmp_path: Path,
) -> None:
    value = document()
    short = json.loads(json.dumps({**value, "messages": value["messages"][:2]}))
    call = short["messages"][1]["toolCalls"].pop()
    short["messages"][1]["toolCalls"][0] |= {"status": "executing", "result": None}
    with ef.open(tmp_path / "s.ef") as store:
        first = took(store, written(tmp_path / "g.json", short))
        assert [p.call_id for p in first.parts() if p.call] == ["run_shell_command-1"]
        assert not any(p.result for p in first.parts())
        second = took(store, written(tmp_path / "g.json", value))
        assert second.kinds().count(ItemReplaced.__name__) == 1
        messages = store.session(second.done.sessions[0]).context().messages
        answers = [b for m in messages for b in m["content"] if b["type"] == "tool_result"]
        assert [b["tool_use_id"] for b in answers] == ["run_shell_command-1", call["id"]]
        assert took(store, written(tmp_path / "g.json", value)).done.new_events == {}


def test_only_what_the_human_typed_is_typed(tmp_path: Path) -> None:
    words = "Set the timeout to 30."
    value = document()

    def user(n: int, content: Any, **more: Any) -> dict[str, Any]:
        return {
            "id": f"u{n}",
            "timestamp": "2026-03-02T09:10:00.000Z",
            "type": "user",
            "content": content,
            **more,
        }

    mention = [
        {"text": f"{words} @a"},
        {"text": "\n--- Content from referenced files ---"},
        {"text": words},
    ]
    value["messages"] += [
        user(1, words), user(2, [{"text": words}]), user(3, f"<session_context>{words}</session_context>"),
        user(4, f"<hook_context>{words}</hook_context>"), user(5, f"/memory add {words}"), user(6, mention),
        user(7, [{"text": f"{words} (file)"}, {"text": words}], displayContent=words),
        user(8, f"<state_snapshot>{words}</state_snapshot>"),
    ]  # fmt: skip
    with store_of(written(tmp_path / "g.json", value), tmp_path) as taken:
        assert [c for c, text in taken.said() if words in text or "referenced" in text] == [
            "user_typed", "user_typed", "system", "system", "system",
            "user_typed", "system", "system", "system", "user_typed", "importer",
        ]  # fmt: skip


def test_the_programs_own_lines_come_in_with_what_it_dropped_cleared_and_rewound(
    tmp_path: Path,
) -> None:
    with store_of(OWN, tmp_path) as taken:
        assert taken.done.notes == []
        told = [(c.form, c.dropped) for c in taken.compactions()]
        assert told == [("prune", ("shell-1",)), ("rewind", ()), ("compact", ("shell-1", "read-1"))]
        results = {p.call_id: p.result for p in taken.parts() if p.result}
        assert results["shell-1"].text.startswith("Command: ls kettle")
        assert [(c, r.is_error, r.exit_code) for c, r in results.items()] == [
            ("shell-1", False, 3), ("read-1", True, None), ("read-2", False, None),
        ]  # fmt: skip
        said = taken.said()
        assert ("importer", "<state_snapshot>The kettle has no lid.</state_snapshot>") in said
        assert next(text for c, text in said if c == "user_typed").startswith(
            "Mend the kettle, please."
        )
        assert ("system", "lid=none") in said
        assert ("assistant", "The spout is whole.") in said
        thoughts = [p.text for p in taken.parts() if p.kind.value == "reasoning"]
        assert "I think." in thoughts
        assert taken.events(SessionDescribed)[0].title == "The kettle"
        assert [(u.input, u.output, u.cache_read) for u in taken.events(UsageReported)] == [
            (7, 4, 5),
            (8, 4, 12),
        ]
        messages = taken.store.session(taken.done.sessions[0]).context().messages
        answers = [
            b["tool_use_id"] for m in messages for b in m["content"] if b["type"] == "tool_result"
        ]
        assert answers == ["shell-1", "read-1", "read-2"]


def test_lines_that_grow_say_the_same_as_lines_that_come_at_once(tmp_path: Path) -> None:
    values = rows()
    with store_of(OWN, tmp_path / "once") as taken:
        want = [(p.kind, p.channel, p.text, p.call_id) for p in taken.parts()]
    with ef.open(tmp_path / "s.ef") as store:
        for upto in (2, 7, 15, len(values)):
            grown = took(store, written(tmp_path / "g.jsonl", values[:upto]))
        assert [(p.kind, p.channel, p.text, p.call_id) for p in grown.parts()] == want


def test_an_answer_that_a_later_history_repeats_is_one_item(tmp_path: Path) -> None:
    values = rows()
    again = {
        "functionResponse": {
            "id": "read-2",
            "name": "read_file",
            "response": {"output": "lid=none"},
        }
    }
    fresh = {"functionResponse": {"id": "other", "name": "read_file", "response": {"output": "x"}}}
    for n, part in enumerate((again, fresh)):
        values.append(
            {
                "id": f"t{n}",
                "timestamp": "2026-03-02T09:10:00.000Z",
                "type": "user",
                "content": [part],
            }
        )
    with store_of(written(tmp_path / "g.jsonl", values), tmp_path) as taken:
        ids = [p.call_id for p in taken.parts() if p.result]
        assert ids.count("read-2") == 1
        assert ids.count("other") == 1


def test_a_sub_agents_file_is_a_child_of_the_folder_that_it_is_in(tmp_path: Path) -> None:
    values = rows()[:6]
    values[0] |= {"kind": "subagent", "sessionId": "agent-1"}
    file = tmp_path / "chats" / "ab2b9748-0000-4000-8000-000000000002" / "agent-1.jsonl"
    with store_of(written(file, values), tmp_path) as taken:
        opened = taken.events(SessionOpened)[0]
        assert (opened.relation, opened.parent_stream) == (
            "subagent", "session/ab2b9748-0000-4000-8000-000000000002",
        )  # fmt: skip
        assert "user_typed" not in {c for c, _ in taken.said()}


def test_the_recorded_session_is_counted_as_an_independent_count_has_it(
    shared_data: Path, tmp_path: Path
) -> None:
    messages = document(shared_data / SHARED)["messages"]
    with store_of(shared_data / SHARED, tmp_path) as taken:
        calls: list[dict[str, Any]] = [c for m in messages for c in m.get("toolCalls", [])]
        assert [(p.call.call_id, p.call.input) for p in taken.parts() if p.call] == [
            (c["id"], c["args"]) for c in calls
        ]
        told: list[str] = [c["result"][0]["functionResponse"]["response"]["output"] for c in calls]
        assert [p.text for p in taken.parts() if p.result] == told
        shells = [
            p.result.exit_code for p in taken.parts() if p.result and "\nExit Code: " in p.text
        ]
        assert shells == [
            int(t.split("\nExit Code: ")[1].split("\n")[0]) for t in told if "\nExit Code: " in t
        ]
        assert sum(r.role == "assistant" for r in taken.main) == 11
        used = [m["tokens"] for m in messages if m.get("tokens") and m["tokens"]["total"]]
        assert [(u.input, u.output) for u in taken.events(UsageReported)] == [
            (t["input"] - t["cached"], t["output"] + t["thoughts"]) for t in used
        ]
