"""Folders: sessions are found, sub-agents come behind those that began them, the rest is counted; parents are told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.errors import InputRefused
from ef.events import SessionOpened
from ef.log.items import event_of
from ef.session.finding import candidates_of, kept_of
from ef.testing.transcripts import transcript

PROMPT = "Look for the lid."


def line(kind: str, uuid: str, content: Any, **more: Any) -> bytes:
    record = {
        "type": kind,
        "uuid": uuid,
        "parentUuid": None,
        "sessionId": "main-1",
        "isSidechain": False,
        "timestamp": "2026-03-02T09:00:00.000Z",
        "message": {"role": kind, "content": content},
        **more,
    }
    return json.dumps(record).encode() + b"\n"


def task(prompt: str) -> bytes:
    use = {"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": prompt}}
    return line("assistant", "a1", [use])


def agent(name: str, prompt: str) -> bytes:
    more = {"isSidechain": True, "agentId": name}
    asked = line("user", f"{name}-1", prompt, **more)
    said = line("assistant", f"{name}-2", [{"type": "text", "text": "It is here."}], **more)
    return asked + said


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder as Claude Code keeps it, and other things in it."""
    project = tmp_path / "home" / "projects" / "-srv-tea"
    below = project / "main-1" / "subagents"
    below.mkdir(parents=True)
    typed = line("user", "u1", "Where is the lid?")
    (project / "main-1.jsonl").write_bytes(typed + task(PROMPT) + line("user", "u2", "And?"))
    (project / "agent-beside.jsonl").write_bytes(agent("beside", "Something else."))
    (below / "agent-below.jsonl").write_bytes(agent("below", PROMPT))
    (project / "other.jsonl").write_bytes(transcript(3, session="other"))
    (tmp_path / "home" / "settings.json").write_text('{"theme": "dark"}')
    (tmp_path / "home" / "history.jsonl").write_text('{"display": "hello", "project": "/x"}\n')
    (tmp_path / "home" / "notes.txt").write_text("no session")
    deep = tmp_path / "home" / "node_modules" / "x"
    deep.mkdir(parents=True)
    (deep / "s.jsonl").write_bytes(transcript(1))
    return tmp_path / "home"


def opened(store: ef.Store, name: str) -> SessionOpened:
    event = event_of(store.log, store.log.get(f"session/{name}", 1))
    assert isinstance(event, SessionOpened)
    return event


def test_sub_agents_come_behind_and_nothing_of_dependencies_is_tried(home: Path) -> None:
    found = [str(Path(c.path).relative_to(home)) for c in candidates_of(str(home))]
    assert found == [
        "history.jsonl",
        "settings.json",
        "projects/-srv-tea/main-1.jsonl",
        "projects/-srv-tea/other.jsonl",
        "projects/-srv-tea/agent-beside.jsonl",
        "projects/-srv-tea/main-1/subagents/agent-below.jsonl",
    ]


def test_a_sub_agent_in_a_file_of_its_own_goes_out_from_the_call_that_asked_it(
    home: Path, tmp_path: Path
) -> None:
    with ef.open(tmp_path / "s.ef") as store:
        for candidate in candidates_of(str(home)):
            if "agent-" in candidate.path or "main-1.jsonl" in candidate.path:
                store.import_file(candidate.path)
        main = store.log.get("session/main-1", 3)
        assert main.header.item is not None
        assert [p.call_id for p in main.header.item.parts] == ["t1"]
        below = opened(store, "main-1.agent-below")
        assert (below.relation, below.parent_stream) == ("subagent", "session/main-1")
        assert (below.parent_seq, below.parent_digest) == (3, main.digest)
        beside = opened(store, "main-1.agent-beside")
        assert beside.parent_seq == store.session("main-1").seq
        assert store.verify().problems == []


def test_a_sub_agent_whose_session_is_not_there_names_it_all_the_same(
    home: Path, tmp_path: Path
) -> None:
    with ef.open(tmp_path / "s.ef") as store:
        store.import_file(home / "projects" / "-srv-tea" / "agent-beside.jsonl")
        alone = opened(store, "main-1.agent-beside")
        assert (alone.relation, alone.parent_stream) == ("subagent", "session/main-1")
        assert (alone.parent_seq, alone.parent_digest) == (None, None)
        assert store.verify().problems == []
        store.import_file(home / "projects" / "-srv-tea" / "main-1.jsonl")
        assert store.verify().problems == []


def test_a_folder_that_agents_worked_in_means_the_sessions_that_are_kept_of_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home))
    assert kept_of(str(work)) is None
    (none,) = candidates_of(str(work))
    assert none.why is not None
    name = "".join(c if c.isalnum() else "-" for c in str(work))
    (home / "projects" / "-srv-tea").rename(home / "projects" / name)
    assert len(list(candidates_of(str(work)))) == 4
    (work / "own.jsonl").write_bytes(transcript(1))
    assert [Path(c.path).name for c in candidates_of(str(work))] == ["own.jsonl"]


def test_a_folder_with_an_event_a_file_is_one_session_that_grows(tmp_path: Path) -> None:
    seed = Path(__file__).resolve().parents[1] / "fixtures" / "seeds" / "openhands-v1.jsonl"
    lines = seed.read_bytes().splitlines()
    events = tmp_path / "conversations" / "tea" / "events"
    events.mkdir(parents=True)
    (events.parent / "base_state.json").write_text('{"id": "tea"}')
    for n, line in enumerate(lines[:-1]):
        pretty = json.dumps(json.loads(line), indent=2).encode() if n == 1 else line
        (events / f"event-{n:05}-{n}.json").write_bytes(pretty)
    found = [Path(c.path).name for c in candidates_of(str(tmp_path))]
    assert found == ["base_state.json", "events"]
    with ef.open(tmp_path / "s.ef") as store:
        done = store.import_file(events)
        assert (done.format, len(done.sessions), done.records) == (
            "openhands-v1",
            1,
            len(lines) - 1,
        )
        assert [n["kind"] for n in done.notes][:1] == ["joined"]
        assert store.import_file(events).new_events == {}
        (events / f"event-{len(lines):05}-x.json").write_bytes(lines[-1])
        again = store.import_file(events)
        assert (again.source, again.relation, again.sessions) == (
            done.source,
            "grown",
            done.sessions,
        )
        assert store.verify().problems == []
    other = tmp_path / "events"
    other.mkdir()
    with ef.open(tmp_path / "s.ef") as store, pytest.raises(InputRefused, match="regular file"):
        store.import_file(other)


def test_one_session_as_two_formats_tell_it_is_two_sessions(tmp_path: Path) -> None:
    claude, codex = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    claude.write_bytes(transcript(3, session="tea"))
    meta = {"type": "session_meta", "payload": {"id": "tea", "cwd": "/srv"}}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi."}]}
    rows = [meta, {"type": "response_item", "payload": said}]
    codex.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with ef.open(tmp_path / "s.ef") as store:
        assert store.import_file(claude).sessions == ["tea"]
        seq = store.session("tea").seq
        assert store.import_file(codex).sessions == ["tea.codex"]
        assert store.session("tea").seq == seq
        with codex.open("a") as more:
            more.write(json.dumps(rows[1]) + "\n")
        assert store.import_file(codex).sessions == ["tea.codex"]
        again = tmp_path / "c.jsonl"
        again.write_bytes(transcript(4, session="tea"))
        assert store.import_file(again).sessions == ["tea"]
        assert store.verify().problems == []
