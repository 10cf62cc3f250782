"""GitHub Copilot CLI: what was typed and what the harness put around it, calls once, sub-agents, compactions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ef
from ef.events import RouteChanged, SessionDescribed, SessionOpened, UsageReported
from tests.importing.vendors import SEEDS, store_of, took, written

SEED = SEEDS / "copilot-cli.jsonl"
SHARED = "copilot-cli/agentv/26__9e1b9e5502__0__full.jsonl"


def rows(path: Path = SEED) -> list[dict[str, Any]]:
    return [json.loads(row) for row in path.read_text("utf-8").splitlines()]


def event(kind: str, data: dict[str, Any], n: int, **more: Any) -> dict[str, Any]:
    name = f"00000000-0000-4000-8000-1{n:011d}"
    return {
        "type": kind,
        "data": data,
        "id": name,
        "timestamp": "2026-03-02T09:10:00.000Z",
        "parentId": None,
        **more,
    }


def test_what_was_typed_is_told_from_what_the_harness_put_around_it(tmp_path: Path) -> None:
    words = "Set the timeout to 30."
    around = f"<current_datetime>now</current_datetime>\n\n{words}\n\n<reminder>{words}</reminder>"
    values = [
        *rows(),
        event("user.message", {"content": words, "transformedContent": around}, 1),
        event(
            "user.message", {"content": words, "source": "skill-x", "transformedContent": words}, 2
        ),
        event("user.message", {"content": words, "isAutopilotContinuation": True}, 3),
        event("user.message", {"content": words, "source": "user"}, 4),
        event("system.notification", {"content": words, "kind": {"type": "x"}}, 5),
    ]
    with store_of(written(tmp_path / "s.jsonl", values), tmp_path) as taken:
        before = "<current_datetime>now</current_datetime>\n\n"
        after = f"\n\n<reminder>{words}</reminder>"
        assert taken.said()[-7:] == [
            ("system", before), ("user_typed", words), ("system", after),
            ("system", words), ("system", words), ("user_typed", words), ("system", words),
        ]  # fmt: skip


def test_a_call_stands_once_and_its_answer_has_the_code_that_the_vendor_says(
    tmp_path: Path,
) -> None:
    with store_of(SEED, tmp_path) as taken:
        calls = [p.call for p in taken.parts() if p.call]
        assert [(c.call_id, c.action) for c in calls] == [("toolu_1", "shell"), ("toolu_2", "read")]
        first = next(p.result for p in taken.parts() if p.result)
        assert (first.call_id, first.is_error, first.exit_code) == ("toolu_1", False, 0)
        used = taken.events(UsageReported)[0]
        assert (used.message_id, used.input, used.output) == ("m1", None, 17)
        assert taken.events(RouteChanged)[0].model == "claude-made-up"
        assert [p.text for p in taken.parts() if p.kind.value == "reasoning"][:1] == [
            "A kettle needs a lid."
        ]


def test_a_sub_agents_events_are_a_session_of_the_call_that_asked(tmp_path: Path) -> None:
    ask = {
        "toolCallId": "toolu_9",
        "name": "task",
        "arguments": {"prompt": "Look at the spout."},
        "type": "function",
    }
    values = [
        *rows(),
        event("assistant.message", {"messageId": "m9", "content": "", "toolRequests": [ask]}, 1),
        event(
            "subagent.started", {"toolCallId": "toolu_9", "agentName": "explore"}, 2, agentId="a1"
        ),
        event("user.message", {"content": "Look at the spout."}, 3, agentId="a1"),
        event(
            "assistant.message",
            {"messageId": "m10", "content": "There is none.", "parentToolCallId": "toolu_9"},
            4,
        ),
        event(
            "tool.execution_complete",
            {"toolCallId": "toolu_9", "success": True, "result": {"content": "none"}},
            5,
        ),
    ]
    with store_of(written(tmp_path / "s.jsonl", values), tmp_path) as taken:
        main, agent = taken.done.sessions
        opened = taken.events(SessionOpened, agent)[0]
        assert (opened.relation, opened.parent_stream) == ("subagent", f"session/{main}")
        asked = taken.store.log.get(f"session/{main}", opened.parent_seq or 0)
        assert asked.header.item is not None
        assert asked.header.item.parts[0].call_id == "toolu_9"
        assert taken.said(agent) == [
            ("assistant", "Look at the spout."),
            ("subagent", "There is none."),
        ]
        assert taken.parts()[-1].channel.value == "subagent"


def test_compactions_truncations_and_rewinding_are_told(tmp_path: Path) -> None:
    values = [
        *rows(),
        event("session.compaction_complete", {"success": False, "error": "x", "summaryContent": ""}, 1),
        event(
            "session.compaction_complete",
            {"success": True, "preCompactionTokens": 900, "trigger": "auto", "summaryContent": "It was mended."}, 2,
        ),
        event("session.truncation", {"performedBy": "BasicTruncator", "preTruncationTokensInMessages": 800}, 3),
        event("session.snapshot_rewind", {"upToEventId": "x", "eventsRemoved": 2}, 4),
        event("session.title_changed", {"title": "The kettle"}, 5),
    ]  # fmt: skip
    with store_of(written(tmp_path / "s.jsonl", values), tmp_path) as taken:
        of_seed = len([r for r in rows() if r["type"] == "session.compaction_complete"])
        told = [(c.form, c.trigger, c.pre_tokens) for c in taken.compactions()][of_seed:]
        assert told == [
            ("compact", "auto", 900),
            ("truncate", "BasicTruncator", 800),
            ("rewind", None, None),
        ]
        assert taken.said()[-1] == ("importer", "It was mended.")
        assert taken.events(SessionDescribed)[-1].title == "The kettle"


def test_a_file_that_grows_adds(tmp_path: Path) -> None:
    values = rows()
    with ef.open(tmp_path / "s.ef") as store:
        first = took(store, written(tmp_path / "s.jsonl", values[:6]))
        second = took(store, written(tmp_path / "s.jsonl", values))
        assert second.done.relation == "grown"
        assert second.main[: len(first.main)] == first.main
        assert len(second.main) > len(first.main)


def test_an_event_of_an_unknown_kind_is_remarked_and_kept(tmp_path: Path) -> None:
    values = [*rows(), event("kettle.boiled", {"content": "hot"}, 1), event("session.idle", {}, 2)]
    with store_of(written(tmp_path / "s.jsonl", values), tmp_path) as taken:
        assert [n["kind"] for n in taken.done.notes] == ["unknown-type"]


def test_the_recorded_session_is_counted_as_an_independent_count_has_it(
    shared_data: Path, tmp_path: Path
) -> None:
    values = rows(shared_data / SHARED)
    with store_of(shared_data / SHARED, tmp_path) as taken:
        asked = [
            t for r in values if r["type"] == "assistant.message" for t in r["data"]["toolRequests"]
        ]
        assert [(p.call.call_id, p.call.input) for p in taken.parts() if p.call] == [
            (t["toolCallId"], t["arguments"]) for t in asked
        ]
        ended = [r["data"] for r in values if r["type"] == "tool.execution_complete"]
        assert [(r.call_id, r.is_error) for p in taken.parts() if (r := p.result)] == [
            (d["toolCallId"], not d["success"]) for d in ended
        ]
        typed = [r["data"]["content"] for r in values if r["type"] == "user.message"]
        assert [text for channel, text in taken.said() if channel == "user_typed"] == typed
        assert len(taken.events(UsageReported)) == 54
