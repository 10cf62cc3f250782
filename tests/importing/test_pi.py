"""pi: a tree with a branch and a compaction as the program wrote it, older files without ids, what the human ran."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ef
from ef.events import ItemReplaced, RouteChanged, SessionDescribed, SessionOpened, UsageReported
from ef.testing.tallies import tally
from tests.importing.vendors import FIXTURES, SEEDS, store_of, took, written

OWN = FIXTURES / "pi" / "session.jsonl"
OLD = SEEDS / "pi.jsonl"
SHARED = "pi/pi-mono/large-session.jsonl"


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(row) for row in path.read_text("utf-8").splitlines()]


def test_a_branch_is_a_session_of_its_own_that_leaves_where_it_left(tmp_path: Path) -> None:
    with store_of(OWN, tmp_path) as taken:
        main, branch = taken.done.sessions
        assert branch.startswith(f"{main}.branch-")
        opened = taken.events(SessionOpened, branch)[0]
        assert (opened.relation, opened.parent_stream) == ("fork", f"session/{main}")
        left = taken.store.log.get(f"session/{main}", opened.parent_seq or 0)
        assert left.header.item is not None
        assert left.header.item.parts[0].call_id == "toolu_2"
        assert ("assistant", "The lid is missing.") in taken.said(main)
        assert taken.said(branch)[:2] == [
            ("importer", "It was said that the lid is missing."), ("user_typed", "Where is the spout?"),
        ]  # fmt: skip
        assert taken.events(SessionDescribed, branch)[0].title == "The kettle"


def test_calls_failures_usage_and_models_are_told(tmp_path: Path) -> None:
    with store_of(OWN, tmp_path) as taken:
        branch = taken.done.sessions[1]
        results = [p.result for p in taken.parts() if p.result]
        assert [(r.call_id, r.is_error, r.exit_code) for r in results] == [
            ("toolu_1", True, 3), ("toolu_2", False, None),
        ]  # fmt: skip
        usage = taken.events(UsageReported) + taken.events(UsageReported, branch)
        assert [(u.input, u.output, u.cache_read, u.cache_write) for u in usage] == [
            (9, 3, 5, 0), (9, 3, 5, 0), (9, 3, 5, 0), (4, 2, 11, 0),
        ]  # fmt: skip
        assert [r.model for r in taken.events(RouteChanged)] == ["made-up-1"]


def test_a_command_that_the_human_ran_is_no_word_to_the_agent(tmp_path: Path) -> None:
    with store_of(OWN, tmp_path) as taken:
        said = taken.said()
        assert ("system", "Ran `cat lid`") in said
        assert ("tool", "```\nround\n```") in said
        assert ("system", "Kettles are hot.") in said
    values = rows(OWN)
    ran = next(r for r in values if r.get("message", {}).get("role") == "bashExecution")
    ran["message"] |= {"excludeFromContext": True}
    with store_of(written(tmp_path / "x" / "s.jsonl", values), tmp_path / "x") as taken:
        assert not any("cat lid" in text for _, text in taken.said())


def test_a_compaction_names_what_it_keeps_and_its_summary_is_narrative(tmp_path: Path) -> None:
    with store_of(OWN, tmp_path / "new") as taken:
        branch = taken.done.sessions[1]
        (one,) = taken.compactions(branch)
        assert (one.form, one.pre_tokens, one.dropped) == ("compact", 1234, ())
        assert ("importer", "The kettle was looked at.") in taken.said(branch)
    values = rows(OLD)
    at = next(n for n, row in enumerate(values) if row["type"] == "compaction")
    values[at]["firstKeptEntryIndex"] = at
    with store_of(written(tmp_path / "old" / "s.jsonl", values), tmp_path / "old") as taken:
        (one,) = taken.compactions()
        assert one.dropped == ("toolu_1", "toolu_2")
        again = {
            **values[at],
            "timestamp": "2026-03-02T09:10:00.000Z",
            "firstKeptEntryIndex": at + 1,
        }
    with store_of(
        written(tmp_path / "twice" / "s.jsonl", [*values, again]), tmp_path / "twice"
    ) as taken:
        assert [c.dropped for c in taken.compactions()] == [("toolu_1", "toolu_2"), ()]


def test_only_what_the_human_typed_is_typed(tmp_path: Path) -> None:
    values = rows(OLD)
    skill = '<skill name="x" location="y">\nDo it.\n</skill>'
    typed = next(r for r in values if r.get("message", {}).get("role") == "user")
    values += [
        {**typed, "message": {"role": "user", "content": skill}},
        {**typed, "message": {"role": "user", "content": f"See {skill}"}},
        {
            **typed,
            "message": {
                "role": "hookMessage",
                "customType": "x",
                "content": "Set it to 30.",
                "display": True,
            },
        },
        {
            **typed,
            "message": {
                "role": "compactionSummary",
                "summary": "It was set to 30.",
                "tokensBefore": 1,
            },
        },
    ]
    with store_of(written(tmp_path / "s.jsonl", values), tmp_path) as taken:
        assert [c for c, _ in taken.said()][-4:] == ["system", "user_typed", "system", "importer"]


def test_a_file_that_grows_adds_and_an_entry_with_other_content_is_replaced(tmp_path: Path) -> None:
    values = rows(OWN)
    with ef.open(tmp_path / "s.ef") as store:
        first = took(store, written(tmp_path / "s.jsonl", values[:6]))
        second = took(store, written(tmp_path / "s.jsonl", values))
        assert second.done.relation == "grown"
        assert second.main[: len(first.main)] == first.main
        values[2]["message"]["content"][0]["text"] = "Mend the [redacted], please."
        third = took(store, written(tmp_path / "s.jsonl", values))
        assert third.kinds().count(ItemReplaced.__name__) == 1
        assert ("user_typed", "Mend the [redacted], please.") in third.said()


def test_each_entry_of_the_model_is_a_response_of_its_own_with_what_it_took(tmp_path: Path) -> None:
    values = rows(OLD)
    with store_of(written(tmp_path / "s.jsonl", [*values, values[-1]]), tmp_path) as taken:
        responses = sum(r.role == "assistant" for r in taken.main)
        assert responses == len(tally(taken.store, taken.done.sessions).messages)
        assert responses == len({u.message_id for u in taken.events(UsageReported)})


def test_a_fork_of_another_file_says_whose(tmp_path: Path) -> None:
    values = rows(OWN)
    values[0]["parentSession"] = (
        "/home/dev/.pi/agent/sessions/--x--/2026-03-02T09_01a2314f-aaaa-7429-adf7-2cb91544b21d.jsonl"
    )
    with store_of(written(tmp_path / "s.jsonl", values), tmp_path) as taken:
        opened = taken.events(SessionOpened)[0]
        assert (opened.relation, opened.parent_stream) == (
            "fork", "session/01a2314f-aaaa-7429-adf7-2cb91544b21d",
        )  # fmt: skip


def test_the_recorded_session_is_counted_as_an_independent_count_has_it(
    shared_data: Path, tmp_path: Path
) -> None:
    values = [r["message"] for r in rows(shared_data / SHARED) if r["type"] == "message"]
    with store_of(shared_data / SHARED, tmp_path) as taken:
        blocks = [b for m in values if m["role"] == "assistant" for b in m["content"]]
        made = [p.call for p in taken.parts() if p.call]
        assert [c.input for c in made] == [
            b["arguments"] for b in blocks if b["type"] == "toolCall"
        ]
        results = [m for m in values if m["role"] == "toolResult"]
        got = [(r.call_id, r.is_error) for p in taken.parts() if (r := p.result)]
        assert got == [(m["toolCallId"], m["isError"]) for m in results]
        typed = [b["text"] for m in values if m["role"] == "user" for b in m["content"]]
        assert [text for channel, text in taken.said() if channel == "user_typed"] == typed
        said = [m for m in values if m["role"] == "assistant" and m["content"]]
        assert len(tally(taken.store, taken.done.sessions).messages) == len(
            said
        )  # each is a response of its own
        told = [m["usage"] for m in values if m["role"] == "assistant" and m["usage"]["output"]]
        assert len(taken.events(UsageReported)) == len(told)
