"""OpenCode: exports and the database, as the program wrote them; what was pruned; ids that redaction took away."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import ef
from ef.events import ItemReplaced, RouteChanged, SessionDescribed, SessionOpened, UsageReported
from tests.importing.vendors import FIXTURES, Taken, store_of, took, written

OWN = FIXTURES / "opencode"
EXPORT = OWN / "session.json"
SHARED = "opencode/nimbus/b1__7c51a35a6a__1__full.json"


def export() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(EXPORT.read_text("utf-8"))
    return found


def parts_of(value: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [p for m in value["messages"] for p in m["parts"] if p["type"] == kind]


def calls(taken: Taken) -> list[tuple[str, str, Any, Any]]:
    """(action, call id, whether it failed, exit code) of each call."""
    given = {p.call_id: p.result for p in taken.parts() if p.result is not None}
    return [
        (p.call.action, p.call.call_id, (r := given[p.call.call_id]).is_error, r.exit_code)
        for p in taken.parts()
        if p.call is not None
    ]


def test_an_export_comes_in_with_its_calls_words_and_summary(tmp_path: Path) -> None:
    with store_of(EXPORT, tmp_path) as taken:
        assert [(a, e, c) for a, _, e, c in calls(taken)] == [
            ("read", False, None), ("shell", False, 7), ("write", False, None), ("read", True, None),
            ("agent", False, None),
        ]  # fmt: skip
        assert [p.kind.value for p in taken.parts()].count("image") == 1
        said = taken.said()
        assert [text.strip('"') for channel, text in said if channel == "user_typed"] == [
            "Mend the kettle, please.", "Ask a helper about the spout.", "And this one?",
        ]  # fmt: skip
        assert ("importer", "The kettle has a lid now.") in said
        assert [channel for channel, text in said if text.startswith("Continue if you")] == [
            "system"
        ]
        compaction = taken.compactions()
        assert [(c.form, c.trigger, c.dropped) for c in compaction] == [("compact", "auto", ())]
        usage = taken.events(UsageReported)
        assert [(u.input, u.output, u.cache_read) for u in usage][:2] == [(60, 20, 40)] * 2
        assert len({u.message_id for u in usage}) == 8
        assert [r.model for r in taken.events(RouteChanged)] == ["tiny"]
        assert taken.events(SessionDescribed)[0].title


def test_a_sub_agents_words_are_the_agents_that_asked(tmp_path: Path) -> None:
    with store_of(OWN / "helper.json", tmp_path) as taken:
        assert taken.said()[0] == ("assistant", "Look at the spout.")
        assert {c for c, _ in taken.said()} == {"assistant", "subagent"}
        opened = taken.events(SessionOpened)[0]
        assert (opened.relation, opened.parent_stream) == (
            "subagent", "session/" + json.loads(EXPORT.read_text("utf-8"))["info"]["id"],
        )  # fmt: skip


def test_the_database_says_what_the_exports_say_and_whose_call_a_sub_agent_answers(
    tmp_path: Path,
) -> None:
    with store_of(OWN / "opencode.db", tmp_path / "db") as taken:
        main, helper = taken.done.sessions
        of_db = {name: taken.parts(name) for name in (main, helper)}
        opened = taken.events(SessionOpened, helper)[0]
        asked = taken.store.log.get(f"session/{main}", opened.parent_seq or 0)
        assert [p.call.text for p in of_db[main] if p.call and p.call.action == "agent"] == [
            "Look at the spout."
        ]
        assert asked.header.item is not None
        assert [(p.kind.value, p.call_id) for p in asked.header.item.parts] == [
            ("tool_call", "call_task_2_0")
        ]
    for file, name in ((EXPORT, main), (OWN / "helper.json", helper)):
        with store_of(file, tmp_path / file.stem) as taken:
            assert taken.done.sessions == [name]
            told = [(p.kind, p.channel, p.text, p.call_id) for p in taken.parts()]
            assert told == [(p.kind, p.channel, p.text, p.call_id) for p in of_db[name]]


def test_a_part_that_changes_in_the_database_is_replaced_and_new_ones_are_added(
    tmp_path: Path,
) -> None:
    file = tmp_path / "opencode.db"
    shutil.copy(OWN / "opencode.db", file)
    database = sqlite3.connect(file)
    name, whole = database.execute(
        "SELECT id, data FROM part WHERE data LIKE '%And this one%'"
    ).fetchone()
    database.execute("UPDATE part SET data = ? WHERE id = ?", (whole.replace("And", "or"), name))
    last, answer = database.execute(
        "SELECT id, data FROM part WHERE data LIKE '%That one is round%'"
    ).fetchone()
    database.execute("DELETE FROM part WHERE id = ?", (last,))
    database.commit()
    database.close()
    with ef.open(tmp_path / "s.ef") as store:
        first = took(store, file)
        main = first.done.sessions[0]
        assert any(text == '"or this one?"' for _, text in first.said())
        shutil.copy(OWN / "opencode.db", file)
        second = took(store, file)
        assert (
            second.done.new_events[f"session/{main}"] == 3
        )  # the part, the new one, what its message took
        kinds = second.kinds()
        assert kinds.count(ItemReplaced.__name__) == 1
        assert second.said()[-1][1] == json.loads(answer)["text"]
        shown = json.dumps(store.session(main).context().messages)
        assert "or this one" not in shown
        assert shown.count("And this one?") == 1


def test_an_export_that_grew_adds_what_is_new(tmp_path: Path) -> None:
    value = export()
    parts = len(value["messages"])
    short = {**value, "messages": value["messages"][: parts - 2]}
    with ef.open(tmp_path / "s.ef") as store:
        first = took(store, written(tmp_path / "e.json", short))
        second = took(store, written(tmp_path / "e.json", value))
        assert second.done.relation == "rewritten"
        assert second.main[: len(first.main)] == first.main
        assert len(second.main) == len(first.main) + 5
        assert ItemReplaced.__name__ not in second.kinds()
        third = took(store, written(tmp_path / "e.json", value))
        assert third.done.new_events == {}


def test_cleared_outputs_are_one_event_for_each_pruning_where_the_next_message_begins(
    tmp_path: Path,
) -> None:
    value = export()
    tools = parts_of(value, "tool")
    times = [m["info"]["time"]["created"] for m in value["messages"]]
    for n, at in ((0, times[3] + 1), (1, times[3] + 2), (2, times[-1] + 5)):
        tools[n]["state"]["time"]["compacted"] = at
    with store_of(written(tmp_path / "e.json", value), tmp_path) as taken:
        pruned = [c for c in taken.compactions() if c.form == "prune"]
        assert [c.dropped for c in pruned] == [
            ("call_read_0_0", "call_bash_0_1"),
            ("call_write_1_0",),
        ]
        assert [p.text for p in taken.parts() if p.result and p.call_id == "call_bash_0_1"] == [
            "lid\n"
        ]


def test_pruning_is_said_once_however_often_a_file_grows(tmp_path: Path) -> None:
    value = export()
    parts_of(value, "tool")[0]["state"]["time"]["compacted"] = value["messages"][3]["info"]["time"][
        "created"
    ]
    with ef.open(tmp_path / "s.ef") as store:
        for upto in (3, 5, len(value["messages"])):
            taken = took(
                store, written(tmp_path / "e.json", {**value, "messages": value["messages"][:upto]})
            )
        assert [c.dropped for c in taken.compactions() if c.form == "prune"] == [("call_read_0_0",)]


def test_an_id_that_stands_for_several_things_is_none(tmp_path: Path) -> None:
    text = EXPORT.read_text("utf-8")
    value = json.loads(text)
    for name in {p["callID"] for p in parts_of(value, "tool")}:
        text = text.replace(f'"{name}"', '"REDACTED"')
    for message in value["messages"]:
        for each in (message["info"]["id"], *(p["id"] for p in message["parts"])):
            text = text.replace(f'"{each}"', '"REDACTED"')
    with store_of(EXPORT, tmp_path / "plain") as plain:
        want = [(p.kind, p.channel, p.text) for p in plain.parts()]
    (tmp_path / "e.json").write_text(text, "utf-8")
    with store_of(tmp_path / "e.json", tmp_path / "redacted") as taken:
        assert [(p.kind, p.channel, p.text) for p in taken.parts()] == want
        assert len({c for _, c, _, _ in calls(taken)}) == 5
        assert len({u.message_id for u in taken.events(UsageReported)}) == 8


def test_words_that_the_harness_marks_are_not_typed_and_their_twins_are(tmp_path: Path) -> None:
    value = export()
    typed = value["messages"][0]["parts"][0]
    forged = "Set the timeout to 30, synthetic: false"
    value["messages"][0]["parts"] = [
        {**typed, "id": "a", "text": forged},
        {**typed, "id": "b", "text": forged, "synthetic": True},
        {**typed, "id": "c", "text": forged, "ignored": True},
        {**typed, "id": "d", "type": "subtask", "prompt": forged, "command": "review"},
    ]
    with store_of(written(tmp_path / "e.json", value), tmp_path) as taken:
        assert [c for c, text in taken.said() if text == forged] == ["user_typed", *["system"] * 3]


def test_a_call_that_runs_yet_waits_and_its_end_answers_it(tmp_path: Path) -> None:
    value = export()
    state = parts_of(value, "tool")[-1]["state"]
    running = {
        "status": "running",
        "input": state["input"],
        "time": {"start": state["time"]["start"]},
    }
    early = json.loads(json.dumps({**value, "messages": value["messages"][:6]}))
    parts_of(early, "tool")[-1]["state"] = running
    with ef.open(tmp_path / "s.ef") as store:
        first = took(store, written(tmp_path / "e.json", early))
        asked = [p.call_id for p in first.parts() if p.call][-1]
        assert all(p.call_id != asked for p in first.parts() if p.result)
        took(store, written(tmp_path / "e.json", value))
        messages = store.session(first.done.sessions[0]).context().messages
        answers = [b for m in messages for b in m["content"] if b["type"] == "tool_result"]
        assert [b["tool_use_id"] for b in answers].count(asked) == 1


def test_the_recorded_export_is_counted_as_an_independent_count_has_it(
    shared_data: Path, tmp_path: Path
) -> None:
    with store_of(shared_data / SHARED, tmp_path) as taken:
        found = json.loads((shared_data / SHARED).read_text("utf-8"))
        tools = parts_of(found, "tool")
        assert sum(p.call is not None for p in taken.parts()) == len(tools) == 98
        assert sum(p.result is not None for p in taken.parts()) == 98
        assert [p.call.input for p in taken.parts() if p.call] == [
            t["state"]["input"] for t in tools
        ]
        assert [p.text for p in taken.parts() if p.result] == [t["state"]["output"] for t in tools]
        ran = [t["state"]["metadata"]["exit"] for t in tools if t["tool"] == "bash"]
        assert [
            r.exit_code for p in taken.parts() if (r := p.result) and r.exit_code is not None
        ] == ran
        assert len([text for channel, text in taken.said() if channel == "user_typed"]) == 4
