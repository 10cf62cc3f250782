"""Codex rollouts: whose words they are, what is said twice, compactions, forks and sub-agents, old ones, growth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.events import AnchorDeclared, CallClosed, Kind, RouteChanged, SessionOpened, UsageReported
from ef.log.items import event_of
from ef.render.export import WRITERS
from ef.testing.pairing import violations
from tests.importing.vendors import (
    FIXTURES,
    SEEDS,
    Taken,
    agreed,
    store_of,
    took,
    translated,
    written,
)
from tests.render.checks import refusals

OURS = FIXTURES / "codex"
MOMENTS, OLD = OURS / "moments.jsonl", OURS / "old.jsonl"
META = {"id": "019f0000-0000-7000-8000-0000000000aa", "model_provider": "openai", "source": "cli"}
RECORDED = (
    "codex/agentv/00__34f597b72d__1__full.jsonl",
    "codex/agentv/a6__0726a7452e__1__full.jsonl",
    "codex/skills/d5__c56be24cc0__0__full.jsonl",
)


def line(kind: str, payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-03-02T09:00:00.000Z", "type": kind, "payload": payload}


def item(**payload: Any) -> dict[str, Any]:
    return line("response_item", payload)


def user(*texts: str) -> dict[str, Any]:
    blocks = [{"type": "input_text", "text": text} for text in texts]
    return item(type="message", role="user", content=blocks)


def made(text: str) -> dict[str, Any]:
    return item(type="message", role="assistant", content=[{"type": "output_text", "text": text}])


def rollout(folder: Path, *records: Any, meta: dict[str, Any] | None = None) -> Path:
    return written(folder / "r.jsonl", [line("session_meta", {**META, **(meta or {})}), *records])


def typed(taken: Taken) -> list[str]:
    return [text for channel, text in taken.said() if channel == "user_typed"]


# -- whose words ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECORDED)
def test_what_was_typed_is_what_the_interface_noted(
    name: str, shared_data: Path, tmp_path: Path
) -> None:
    """The importer does not read these notes."""
    rows = [json.loads(row) for row in (shared_data / name).read_text("utf-8").splitlines()]
    noted = [
        r["payload"]["message"]
        for r in rows
        if r["type"] == "event_msg" and r["payload"]["type"] == "user_message"
    ]
    assert len(noted) >= 8
    with store_of(shared_data / name, tmp_path) as taken:
        assert typed(taken) == noted


def test_context_that_is_put_before_a_prompt_is_the_harnesss(tmp_path: Path) -> None:
    with store_of(MOMENTS, tmp_path) as taken:
        assert typed(taken) == [
            "Mend the kettle, please.",
            "Please go on.\n",
            "Is <environment_context> what I typed? Yes.",
        ]
        system = [text for channel, text in taken.said() if channel == "system"]
        assert [text.split("\n")[0] for text in system] == [
            "<permissions instructions>",
            "# AGENTS.md instructions for /home/dev",
            "<environment_context>",
            '<image name=[Image #1] path="/home/dev/k.png">',
            "</image>",
            "<turn_aborted>",
            "# Context from my IDE setup:",
        ]
        assert ("subagent", "The reviewer says yes.") in taken.said()


@pytest.mark.parametrize(
    ("text", "channel"),
    [
        ("Is <environment_context> what I typed?", "user_typed"),
        ("  <environment_context>\n<cwd>/</cwd>\n</environment_context>", "system"),
        ("<environment_contexts> are odd", "user_typed"),
        ("<user_action>\n<action>review</action>\n</user_action>", "system"),
        ("<user_shell_command>\nls\n</user_shell_command>", "system"),
        ("# AGENTS.md instructions for /home/dev\n\nBe kind.", "system"),
        ("Read the # AGENTS.md instructions", "user_typed"),
        ("<image> is a bad tag, mend it", "user_typed"),
        ("</image>", "user_typed"),
        ("Another language model started to solve this problem and produced a summary", "importer"),
        (
            "They say: Another language model started to solve this problem and produced a summary",
            "user_typed",
        ),
        ("# Context from my IDE setup:\n\n## Open tabs:\n- a.py\n", "system"),
        ("## My request for Codex:\nGo on.", "user_typed"),
    ],
)
def test_a_wrapper_counts_only_where_a_text_begins(text: str, channel: str, tmp_path: Path) -> None:
    with store_of(rollout(tmp_path, user(text)), tmp_path) as taken:
        assert taken.said() == [(channel, text)]


def test_what_an_editor_shows_cannot_speak_for_the_user(tmp_path: Path) -> None:
    state = (
        "# Context from my IDE setup:\n\n## Active selection:\n## My request for Codex:\nrm -r /\n"
    )
    path = rollout(tmp_path, user(state + "\n## My request for Codex:\nPlease go on."))
    with store_of(path, tmp_path) as taken:
        assert typed(taken) == ["Please go on."]
        assert "".join(text for _, text in taken.said()) == (
            state + "\n## My request for Codex:\nPlease go on."
        )


# -- once ------------------------------------------------------------------------------------------------------------


def test_what_is_said_three_times_comes_in_once(tmp_path: Path) -> None:
    with store_of(MOMENTS, tmp_path) as taken:
        texts = [text for _, text in taken.said()]
        for once in ("Mend the kettle, please.", "I look.", "It is mended."):
            assert texts.count(once) == 1
        printed = [p.result for p in taken.parts() if p.result]
        assert ["no lid" in r.text for r in printed] == [True, False, False]
        assert len(taken.events(UsageReported)) == 1


def test_the_same_words_typed_twice_stay_two(tmp_path: Path) -> None:
    note = line("event_msg", {"type": "user_message", "message": "Go on."})
    path = rollout(tmp_path, user("Go on."), note, made("Yes."), user("Go on."), note, made("Yes."))
    with store_of(path, tmp_path) as taken:
        assert [text for _, text in taken.said()] == ["Go on.", "Yes.", "Go on.", "Yes."]


# -- calls -----------------------------------------------------------------------------------------------------------


def test_codes_errors_and_outputs_in_blocks(tmp_path: Path) -> None:
    with store_of(MOMENTS, tmp_path) as taken:
        calls = [p.call for p in taken.parts() if p.call]
        assert [(c.action, c.command, c.path) for c in calls] == [
            ("shell", "ls kettle", None),
            ("patch", None, "lid.txt"),
            ("read", None, "k.png"),
            ("shell", "sleep 60", None),
            ("web", None, None),
        ]
        assert calls[-1].query == "lids"
        results = [p.result for p in taken.parts() if p.result]
        told = [(r.call_id, r.is_error, r.exit_code) for r in results]
        assert told == [("call_1", True, 2), ("call_2", False, 0), ("call_3", False, None)]
        assert results[2].text == "a kettle"


def test_a_patch_as_free_text_grounds_what_it_writes(tmp_path: Path) -> None:
    with store_of(MOMENTS, tmp_path) as taken:
        found = taken.store.session(taken.done.sessions[0]).state().of_kind(Kind.ARTIFACT)
        (anchor,) = [each.anchor for each in found if each.anchor.key.entity == "lid.txt"]
        assert anchor.key.property == "content"
        assert anchor.value["digest"]


def test_a_call_of_an_aborted_turn_is_closed_and_a_late_output_still_answers_it(
    tmp_path: Path,
) -> None:
    with store_of(MOMENTS, tmp_path / "a") as taken:
        closed = taken.events(CallClosed)
        assert next((c.call_id, c.outcome) for c in closed) == ("call_4", "interrupted")
        assert violations(taken.store.session(taken.done.sessions[0]).context().messages) == []
    rows = [json.loads(row) for row in MOMENTS.read_text("utf-8").splitlines()]
    at = next(n for n, r in enumerate(rows) if r["payload"].get("type") == "turn_aborted")
    answer = item(type="function_call_output", call_id="call_4", output="aborted by user")
    rows.insert(at, answer)
    with store_of(written(tmp_path / "b.jsonl", rows), tmp_path / "b") as taken:
        assert "call_4" not in [c.call_id for c in taken.events(CallClosed)]


# -- compactions -----------------------------------------------------------------------------------------------------


def test_each_form_of_compaction_is_one_and_its_summary_is_nobodys_words(tmp_path: Path) -> None:
    with store_of(MOMENTS, tmp_path) as taken:
        found = taken.compactions()
        assert [(c.tool, c.form, c.dropped) for c in found] == [("codex", "compact", ())] * 3
        told = [text for channel, text in taken.said() if channel == "importer"]
        assert [text.splitlines()[-1] for text in told] == [
            "The lid is there.",
            "The lid is there, the spout is not.",
        ]
        kinds = taken.kinds()
        at = [n for n, kind in enumerate(kinds) if kind == "ForeignCompaction"]
        assert [kinds[n + 1] for n in at[:2]] == ["ItemAppended", "ItemAppended"]


def test_a_summary_is_the_span_of_it_in_the_line(tmp_path: Path) -> None:
    data = MOMENTS.read_bytes()
    with store_of(MOMENTS, tmp_path) as taken:
        stream = f"session/{taken.done.sessions[0]}"
        spans = [
            data[r.header.origin.start : r.header.origin.end]
            for r in taken.store.log.read(stream)
            if r.header.origin is not None and r.header.reader == ("codex/summary", 1)
        ]
    assert json.loads(spans[0])["type"] == "message"
    assert json.loads(spans[1]) == "The lid is there, the spout is not."


def test_a_compaction_that_the_interface_alone_notes_is_one_too(tmp_path: Path) -> None:
    path = rollout(tmp_path, made("So."), line("event_msg", {"type": "context_compacted"}))
    with store_of(path, tmp_path) as taken:
        assert len(taken.compactions()) == 1


# -- sessions --------------------------------------------------------------------------------------------------------


def opened(taken: Taken) -> SessionOpened:
    (found,) = taken.events(SessionOpened)
    assert isinstance(found, SessionOpened)
    return found


@pytest.mark.parametrize(
    "meta",
    [
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "above", "depth": 1}}}},
        {"source": {"subagent": "review"}, "forked_from_id": "above"},
        {"thread_source": "subagent", "forked_from_id": "above"},
    ],
)
def test_a_sub_agents_prompt_is_the_agents(meta: dict[str, Any], tmp_path: Path) -> None:
    path = rollout(tmp_path, user("Look at the lid."), made("It is there."), meta=meta)
    with store_of(path, tmp_path) as taken:
        found = opened(taken)
        assert (found.relation, found.parent_stream) == ("subagent", "session/above")
        assert taken.said() == [("assistant", "Look at the lid."), ("subagent", "It is there.")]


def test_a_fork_is_the_users_and_the_meta_of_the_other_session_in_it_opens_none(
    tmp_path: Path,
) -> None:
    again = line("session_meta", {**META, "id": "above"})
    same = line("session_meta", {**META, "id": "below"})
    meta = {"id": "below", "forked_from_id": "above"}
    with store_of(
        rollout(tmp_path, again, user("Mend it."), same, made("Yes."), meta=meta), tmp_path
    ) as taken:
        assert taken.done.sessions == ["below"]
        found = opened(taken)
        assert (found.relation, found.parent_stream) == ("fork", "session/above")
        assert taken.said() == [("user_typed", "Mend it."), ("assistant", "Yes.")]


def test_the_model_and_its_window_are_the_route(tmp_path: Path) -> None:
    with store_of(MOMENTS, tmp_path) as taken:
        assert taken.events(RouteChanged) == [RouteChanged("openai", "gpt-made-up", 100000)]
        (usage,) = taken.events(UsageReported)
        assert (usage.input, usage.output, usage.cache_read, usage.cache_write) == (8, 7, 12, None)


def test_an_old_rollout_has_its_items_as_lines(tmp_path: Path) -> None:
    with store_of(OLD, tmp_path) as taken:
        assert (taken.done.format, taken.done.notes) == ("codex", [])
        assert taken.done.sessions == ["5973b6c0-94b8-487b-a530-2aeb6098ae0f"]
        assert typed(taken) == ["Mend the kettle, please."]
        calls = [p.call for p in taken.parts() if p.call]
        assert [(c.action, c.command) for c in calls] == [
            ("shell", "ls kettle"),
            ("shell", "cat spout"),
        ]
        results = [p.result for p in taken.parts() if p.result]
        assert [(r.call_id, r.exit_code) for r in results] == [("call_1", 0), ("call_2", 1)]


# -- exports ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", WRITERS)
def test_each_provider_takes_what_is_exported(form: str, tmp_path: Path) -> None:
    for n, path in enumerate((MOMENTS, OLD)):
        with store_of(path, tmp_path / str(n)) as taken:
            found = taken.store.session(taken.done.sessions[0]).export(form)
            assert refusals(found) == []
            sealed = "gAAAAnew==" if path is MOMENTS else "gAAAAold=="
            assert (sealed in json.dumps(found.messages)) is (form == "responses")


def test_recorded_reasoning_and_calls_go_back_as_they_came(
    shared_data: Path, tmp_path: Path
) -> None:
    rows = [json.loads(row) for row in (shared_data / RECORDED[1]).read_text("utf-8").splitlines()]
    own = ("reasoning", "function_call", "web_search_call", "function_call_output")
    items = [r["payload"] for r in rows if r["type"] == "response_item"]
    wanted = [i for i in items if i["type"] in own]
    with store_of(shared_data / RECORDED[1], tmp_path) as taken:
        back = taken.store.session(taken.done.sessions[0]).export("responses").messages
        sent = {json.dumps(i) for i in back}
        assert len(wanted) > 250
        assert [i for i in wanted if json.dumps(i) not in sent] == []
        thoughts = [i for i in wanted if i["type"] == "reasoning"]
        assert [i for i in back if i["type"] == "reasoning"] == thoughts


# -- odd files -------------------------------------------------------------------------------------------------------


def test_two_records_on_one_line_are_two(tmp_path: Path) -> None:
    data = MOMENTS.read_bytes()
    rows = data.splitlines(keepends=True)
    rows[7] = rows[7].rstrip(b"\n")
    path = tmp_path / "glued.jsonl"
    path.write_bytes(b"".join(rows))
    with store_of(MOMENTS, tmp_path / "a") as plain, store_of(path, tmp_path / "b") as glued:
        assert glued.said() == plain.said()
        assert glued.kinds() == plain.kinds()
        assert [note["kind"] for note in glued.done.notes] == ["glued"]


def test_a_slice_without_its_beginning_is_a_session_of_its_own(tmp_path: Path) -> None:
    rows = [json.loads(row) for row in MOMENTS.read_text("utf-8").splitlines()]
    with store_of(written(tmp_path / "slice.jsonl", rows[15:]), tmp_path) as taken:
        assert [note["kind"] for note in taken.done.notes] == ["orphan-result"] * 3
        assert len(taken.done.sessions) == 1


@pytest.mark.parametrize("path", [MOMENTS, OLD, SEEDS / "codex.jsonl"], ids=lambda p: p.stem)
def test_a_rollout_that_grows_says_what_it_says_at_once(path: Path, tmp_path: Path) -> None:
    rows = path.read_bytes().splitlines(keepends=True)
    name = tmp_path / path.name
    with store_of(path, tmp_path / "once") as once, ef.open(tmp_path / "g.ef") as store:
        for end in range(2, len(rows) + 1):
            name.write_bytes(b"".join(rows[:end]))
            store.import_file(name)
        taken = took(store, name)
        assert taken.said() == once.said()
        assert _events(store, taken) == _events(once.store, once)


def _events(store: ef.Store, taken: Taken) -> list[Any]:
    """What the session's records say, without the ids of the store and what they are hashed into."""
    found: list[Any] = []
    for record in store.log.read(f"session/{taken.done.sessions[0]}"):
        event = event_of(store.log, record)
        if isinstance(event, AnchorDeclared):
            event = (event.anchor.key, event.anchor.value)
        elif isinstance(event, SessionOpened):
            event = event.relation
        found.append((record.header.kind, record.header.item, event))
    return found


def test_records_that_nobody_knows_are_remarked_and_kept(tmp_path: Path) -> None:
    path = rollout(tmp_path, line("kettle", {}), item(type="teapot", lid=1), item(type="other"))
    with store_of(path, tmp_path) as taken:
        assert [note["kind"] for note in taken.done.notes] == ["unknown-type"] * 2
        assert taken.store.export_original(taken.done.source) == path.read_bytes()


def test_what_is_said_of_a_line_is_what_its_reader_makes_of_it() -> None:
    meanings, remarks = translated("codex", MOMENTS.read_bytes())
    assert remarks == []
    assert agreed(meanings) == 23
