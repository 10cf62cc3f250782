"""OpenHands and DeepSeek Harness: whose words are a human's. What an agent asks another, and what a harness says in the
user's name, has not the user's authority, however the record looks; what the user typed keeps it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.events import SessionOpened
from ef.importers.openhands_v0 import OpenHandsV0
from ef.session.finding import candidates_of
from tests.importing.vendors import FIXTURES, SEEDS, Taken, store_of, took, translated, written

OURS = FIXTURES / "trajectories"
SDK, EVENTS = OURS / "openhands-v1-events.jsonl", OURS / "openhands-v0-events.jsonl"
HARNESS = SEEDS / "deepseek-harness.jsonl"
PARENT, CHILD = "0f" * 16, "1e" * 16


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(row) for row in path.read_text("utf-8").splitlines()]


def packed(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def channels(form: str, *values: Any, path: str = "") -> list[str]:
    """The channels of the parts of what values say."""
    meanings, _ = translated(form, packed(*values), path)
    return [p.channel.value for m in meanings if m.reading for p in m.reading.parts]


def relations(form: str, *values: Any) -> list[tuple[str, str | None]]:
    drafts = [m.drafts[0].event for m in translated(form, packed(*values))[0]]
    return [(e.relation, e.parent_stream) for e in drafts if isinstance(e, SessionOpened)]


# OpenHands' agent SDK.


def typed(text: str, **more: Any) -> dict[str, Any]:
    message = {"role": "user", "content": [{"type": "text", "text": text}]}
    return {
        "id": "03d5b5c0-6890-4b43-831a-200000000000", "timestamp": "2026-03-02T09:10:00", "source": "user",
        "llm_message": message, "kind": "MessageEvent", **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("sender", "channel"),
    [(None, "user_typed"), ("", "user_typed"), ("main", "assistant"), (7, "assistant"), ({}, "assistant")],
)  # fmt: skip
def test_a_message_that_names_its_sender_is_another_agents(sender: Any, channel: str) -> None:
    assert channels("openhands-v1", typed("Look at the spout.", sender=sender)) == [channel]


OWN_WORDS = (
    "The goal is NOT yet complete (audit iteration 2).\nOutstanding: the lid",
    "Resuming a goal that was paused or interrupted. Re-check the workspace.",
    "The task appears incomplete (iteration 1, predicted success likelihood: 20.0%).",
    "Your previous response was blocked by the model's content filter. Please continue.",
    "Missing required parameters for function 'terminal': {'command'}",
    "Parameter 'cups' is not allowed for function 'boil'. Allowed parameters: {}",
    "Parameter 'cups' is expected to be an integer.",
    "Function 'boil' not found in available tools: []",
    "<<RESUMED CONVERSATION>>\nUSER: Delete the kettle.",
)


@pytest.mark.parametrize("text", OWN_WORDS)
def test_what_the_sdk_sends_in_the_users_name_is_the_harnesss(text: str) -> None:
    assert channels("openhands-v1", typed(text)) == ["system"]


@pytest.mark.parametrize("text", OWN_WORDS)
def test_a_user_who_quotes_the_sdk_is_the_user_all_the_same(text: str) -> None:
    assert channels("openhands-v1", typed(f"What does this mean? {text}")) == ["user_typed"]


def test_rules_that_come_with_a_result_are_the_harnesss_and_the_result_the_tools(
    tmp_path: Path,
) -> None:
    values = rows(SDK)
    seen = next(v for v in values if v["kind"] == "ObservationEvent")
    seen["extended_content"] = [{"type": "text", "text": "Kettles below /w are of copper."}]
    with store_of(written(tmp_path / "s.jsonl", values), tmp_path) as taken:
        answer = next(r for r in taken.main if any(p.result for p in r.parts))
        assert [(p.kind.value, p.channel.value) for p in answer.parts] == [
            ("tool_result", "tool"), ("image", "tool"), ("text", "system"),
        ]  # fmt: skip
        assert answer.parts[0].text == "lid"


def test_the_text_of_a_reasoning_item_is_read(tmp_path: Path) -> None:
    item = {"id": "rs_1", "summary": ["It drips.", ""], "content": ["Look at the lid."]}
    acted = next(v for v in rows(SDK) if v["kind"] == "ActionEvent")
    for told, expected in ((None, "It drips.\n\nLook at the lid."), ("Short.", "Short.")):
        acted |= {
            "reasoning_content": told,
            "thinking_blocks": [],
            "responses_reasoning_item": item,
        }
        meanings, _ = translated("openhands-v1", packed(acted))
        thoughts = [p for m in meanings if m.reading for p in m.reading.parts if p.kind == "reasoning"]  # fmt: skip
        assert [(p.text, p.block) for p in thoughts] == [(expected, item)]


def later() -> list[dict[str, Any]]:
    """The same events of another conversation: each has an id of its own."""
    return [{**value, "id": "2" + value["id"][1:]} for value in rows(SDK)]


def conversation(folder: Path, values: list[dict[str, Any]]) -> Path:
    """A conversation as the SDK keeps it: each event a file."""
    for n, value in enumerate(values):
        written(folder / "events" / f"event-{n:05d}-{value['id']}.json", value)
    return folder / "events"


def test_a_conversation_below_its_parents_is_that_of_a_sub_agent(tmp_path: Path) -> None:
    main = conversation(tmp_path / PARENT, rows(SDK))
    side = conversation(tmp_path / PARENT / "subagents" / CHILD, later())
    found = [c.path for c in candidates_of(str(tmp_path))]
    assert found == [str(main), str(side)]
    with ef.open(tmp_path / "s.ef") as store:
        whole, agent = took(store, main), took(store, side)
        assert (whole.done.sessions, agent.done.sessions) == ([PARENT], [CHILD])
        assert "user_typed" in {c for c, _ in whole.said()}
        assert {c for c, _ in agent.said()} == {"assistant", "subagent", "system", "importer"}
        opened = agent.events(SessionOpened)[0]
        assert (opened.relation, opened.parent_stream) == ("subagent", f"session/{PARENT}")
        assert whole.events(SessionOpened)[0].relation == "root"


def test_files_of_a_sub_agents_events_say_the_same_as_their_folder(tmp_path: Path) -> None:
    side = conversation(tmp_path / "in" / PARENT / "subagents" / CHILD, later())
    with ef.open(tmp_path / "a.ef") as store:
        whole = took(store, side)
        said, opened = whole.said(), whole.events(SessionOpened)
    with ef.open(tmp_path / "b.ef") as store:
        dones = [store.import_file(side / name) for name in sorted(os.listdir(side))]
        assert all(done.sessions in ([], [CHILD]) for done in dones)
        assert store.verify().problems == []
        one_by_one = Taken(store, dones[-1], {})
        assert [(o.relation, o.parent_stream) for o in one_by_one.events(SessionOpened, CHILD)] == [
            (o.relation, o.parent_stream) for o in opened
        ]
        nodes = store.session(CHILD).working().surface.nodes.values()
        heard = [p.channel.value for n in nodes for p in n.facts.parts if p.kind == "text"]
        assert heard == [channel for channel, _ in said]


# OpenHands' first architecture.


def asked(number: Any, text: str) -> dict[str, Any]:
    return {
        "id": number, "timestamp": "2026-03-02T09:20:00", "source": "user", "action": "message",
        "args": {"content": text},
    }  # fmt: skip


ALONE = f"/home/dev/{PARENT}/events/5.json"


@pytest.mark.parametrize(
    ("number", "text", "path", "channel"),
    [
        (5, "TASK: Look for copper.", ALONE, "assistant"),
        (None, "TASK: Look for copper.", ALONE, "assistant"),
        (1, "TASK: Mend the kettle.", ALONE, "user_typed"),
        (5, "My TASK: Look for copper.", ALONE, "user_typed"),
        (5, "TASK: Look for copper.", "/home/dev/events.jsonl", "user_typed"),
    ],
)
def test_an_event_in_a_file_of_its_own_that_may_be_a_delegates_task_is_an_agents(
    number: Any, text: str, path: str, channel: str
) -> None:
    assert channels("openhands-v0-jsonl", asked(number, text), path=path) == [channel]


def test_a_folder_of_events_is_one_session_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    """Of a folder what a delegate was asked is known, whatever it is; the pages of a cache are copies of the events."""
    sessions = tmp_path / "sessions"
    for value in rows(EVENTS):
        written(sessions / PARENT / "events" / f"{value['id']}.json", value)
    written(sessions / PARENT / "event_cache" / "0-25.json", rows(EVENTS))
    (only,) = candidates_of(str(sessions))
    with ef.open(tmp_path / "s.ef") as store:
        taken = took(store, Path(only.path))
        assert (taken.done.format, taken.done.sessions) == (
            "openhands-v0-jsonl", [PARENT, f"{PARENT}.delegate-1"],
        )  # fmt: skip
        assert [n["kind"] for n in taken.done.notes] == ["joined"]
        assert taken.said(f"{PARENT}.delegate-1")[0] == ("assistant", "Look for copper.")
    lines, _ = translated("openhands-v0-jsonl", EVENTS.read_bytes())
    assert sum(m.reading is not None for m in lines) == sum(map(len, taken.items.values()))


def test_what_one_condensation_dropped_no_later_one_drops_again() -> None:
    """A range is two numbers: else few lines would say of many events, and of each often, that they were dropped."""
    count = 400
    dropped = {"forgotten_events_start_id": 0, "forgotten_events_end_id": count}
    values = [
        {"id": n, "source": "agent", "timestamp": "x", "action": "condensation", "args": dropped}
        for n in range(count)
    ]
    for form, data in (
        ("openhands-v0-jsonl", packed(*values)),
        (OpenHandsV0.NAME, json.dumps(values).encode()),
    ):
        events: list[Any] = [m.drafts[0].event for m in translated(form, data)[0]]
        told = [number for e in events for number in getattr(e, "dropped", ())]
        assert told == [str(n) for n in range(count)]


def test_a_number_that_goes_back_is_in_no_range() -> None:
    """Numbers ascend: what stands out of their order is an event of something else."""
    values: list[dict[str, Any]] = [asked(n, "Mend it.") for n in (0, 1, 2, 7, 3, 7, 8)]
    dropped = {"forgotten_events_start_id": 1, "forgotten_events_end_id": 7}
    cond = {"id": 9, "source": "agent", "timestamp": "x", "action": "condensation", "args": dropped}
    events: list[Any] = [
        m.drafts[0].event for m in translated("openhands-v0-jsonl", packed(*values, cond))[0]
    ]
    assert [e.dropped for e in events if hasattr(e, "dropped")] == [("1", "2", "7")]


@pytest.mark.parametrize("kind", ["recall", "microagent", "workspace_context"])
def test_what_the_harness_looked_up_is_its_own_word(kind: str) -> None:
    seen = {
        "id": 3, "source": "environment", "timestamp": "x", "observation": kind, "cause": 2,
        "content": "Added workspace context", "extras": {"repo_instructions": "Kettles are of copper."},
    }  # fmt: skip
    _, remarks = translated("openhands-v0-jsonl", packed(seen))
    assert channels("openhands-v0-jsonl", seen) == ["system"]
    assert remarks == []


# DeepSeek Harness.


def header(**more: Any) -> dict[str, Any]:
    return {**rows(HARNESS)[0], "id": "child-1", **more}


USER = rows(HARNESS)[2]
DESCRIPTOR = {"type": "subagent/descriptor", "data": {"version": 2, "mode": "one-shot"}}


@pytest.mark.parametrize(
    ("values", "channel", "relation"),
    [
        ([header(delegationDepth=0)], "user_typed", ("root", None)),
        ([header(parentSession="p-1")], "user_typed", ("fork", "session/p-1")),
        ([header(origin="subagent", parentSession="p-1")], "assistant", ("subagent", "session/p-1")),
        ([header(origin="subagent")], "assistant", ("subagent", None)),
        ([header(origin="subagent", parentSession=7)], "assistant", ("subagent", None)),
        ([header(delegationDepth=1)], "assistant", ("subagent", None)),
        ([header(delegationDepth=True)], "user_typed", ("root", None)),
        ([header(parentSession="p-1"), DESCRIPTOR], "assistant", ("subagent", "session/p-1")),
        ([header(origin=None), DESCRIPTOR], "assistant", ("root", None)),
        ([DESCRIPTOR], "assistant", ("subagent", None)),
        ([rows(HARNESS)[1]], "user_typed", ("root", None)),
        ([header(parentSession="p-1", seedLength=1), DESCRIPTOR], "user_typed", ("fork", "session/p-1")),
    ],
)  # fmt: skip
def test_what_a_sub_agent_is_asked_is_an_agents_word_whatever_its_header_lacks(
    values: list[Any], channel: str, relation: tuple[str, str | None]
) -> None:
    assert channels("deepseek-harness", *values, USER) == [channel]
    assert relations("deepseek-harness", *values, USER) == [relation]
