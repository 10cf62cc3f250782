"""goose: sessions of lines, and the database, whose messages are written anew when a conversation is replaced."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import ef
from ef.events import SessionDescribed, SessionOpened
from tests.importing.vendors import SEEDS, store_of, took, written

SEED = SEEDS / "goose.jsonl"
SCHEMA = """
    CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY, name TEXT NOT NULL DEFAULT '', description TEXT NOT NULL DEFAULT '',
        user_set_name BOOLEAN DEFAULT FALSE, session_type TEXT NOT NULL DEFAULT 'user', working_dir TEXT NOT NULL,
        created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP, updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
        extension_data TEXT DEFAULT '{}'
    );
    CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL REFERENCES sessions(id), role TEXT NOT NULL,
        content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL,
        timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, tokens INTEGER, metadata_json TEXT, message_id TEXT
    );
"""
"""The tables as crates/goose/src/session/session_manager.rs makes them (schema 7, in part)."""
INTO = "INSERT INTO messages (session_id, role, content_json, created_timestamp"
SEEN = {"userVisible": True, "agentVisible": True}
AGENT, HUMAN, NOBODY = (
    {"userVisible": u, "agentVisible": a} for u, a in ((False, True), (True, False), (False, False))
)


def rows() -> list[dict[str, Any]]:
    return [json.loads(row) for row in SEED.read_text("utf-8").splitlines()]


def message(role: str, said: str, seen: dict[str, bool]) -> dict[str, Any]:
    return {
        "role": role,
        "created": 1772442100,
        "content": [{"type": "text", "text": said}],
        "metadata": seen,
    }


def compacted() -> list[dict[str, Any]]:
    """The seed's conversation as goose leaves it after a compaction."""
    values = rows()
    for value in values[1:]:
        value["metadata"] = HUMAN
    values[4]["metadata"] = NOBODY
    notice = {
        **message("assistant", "", HUMAN),
        "content": [
            {"type": "systemNotification", "notificationType": "inlineMessage", "msg": "x"}
        ],
    }
    return [
        *values, notice, message("user", "The kettle was looked at.", AGENT),
        message("assistant", "Your context was compacted. Go on.", AGENT), message("user", "And the lid?", SEEN),
    ]  # fmt: skip


def database(path: Path, values: list[dict[str, Any]]) -> Path:
    """The same conversation in a database, and a sub-agent's beside it."""
    path.unlink(missing_ok=True)
    made = sqlite3.connect(path)
    made.executescript(SCHEMA)
    made.execute(
        "INSERT INTO sessions (id, name, working_dir) VALUES ('20260302_1', 'The kettle', '/home/dev')"
    )
    made.execute(
        "INSERT INTO sessions (id, session_type, working_dir) VALUES ('20260302_2', 'sub_agent', '/home/dev')"
    )
    for value in values:
        cells = (
            "20260302_1",
            value["role"],
            json.dumps(value["content"]),
            value["created"],
            json.dumps(value["metadata"]),
        )
        made.execute(
            f"{INTO}, metadata_json) VALUES (?, ?, ?, ?, ?)",
            cells,
        )
    typed = json.dumps([{"type": "text", "text": "Look at the spout."}], indent=1)
    made.execute(
        f"{INTO}) VALUES ('20260302_2', 'user', ?, 1)",
        (typed,),
    )
    made.commit()
    made.close()
    return path


def test_a_session_of_lines_comes_in(tmp_path: Path) -> None:
    file = tmp_path / "20260302_090000.jsonl"
    file.write_bytes(SEED.read_bytes())
    with store_of(file, tmp_path) as taken:
        assert taken.done.sessions == ["20260302_090000"]
        assert [(p.call.action, p.call.call_id) for p in taken.parts() if p.call] == [
            ("shell", "toolu_1"),
            ("read", "toolu_2"),
        ]
        results = [p.result for p in taken.parts() if p.result]
        assert [(r.call_id, r.text, r.is_error) for r in results] == [
            ("toolu_1", "lid\nspout", False),
            ("toolu_2", "no such file", True),
        ]
        assert [p.kind.value for p in taken.parts()].count("image") == 1
        assert [p.text for p in taken.parts() if p.kind.value == "reasoning"] == [
            "A kettle needs a lid."
        ]
        assert [said for c, said in taken.said() if c == "user_typed"] == [
            "Mend the kettle, please.",
            "And the lid?",
        ]
        assert taken.events(SessionDescribed)[0].title == "The kettle"


def test_what_only_the_agent_sees_was_not_typed_and_what_it_sees_no_more_was_dropped(
    tmp_path: Path,
) -> None:
    with store_of(written(tmp_path / "s.jsonl", compacted()), tmp_path) as taken:
        (one,) = taken.compactions()
        assert (one.form, one.dropped) == ("compact", ("toolu_1", "toolu_2"))
        assert taken.said()[-3:] == [
            ("importer", "The kettle was looked at."), ("system", "Your context was compacted. Go on."),
            ("user_typed", "And the lid?"),
        ]  # fmt: skip
        assert [said for _, said in taken.said()].count("And the lid?") == 1


def test_a_conversation_that_is_replaced_adds_the_compaction_alone(tmp_path: Path) -> None:
    with ef.open(tmp_path / "s.ef") as store:
        first = took(store, database(tmp_path / "sessions.db", rows()[1:]))
        main, agent = first.done.sessions
        assert main == "20260302_1"
        second = took(
            store, database(tmp_path / "sessions.db", [v for v in compacted() if "role" in v])
        )
        assert second.items[main][: len(first.items[main])] == first.items[main]
        assert len(second.items[main]) == len(first.items[main]) + 2
        assert [c.dropped for c in second.compactions(main)] == [("toolu_1", "toolu_2")]
        opened = second.events(SessionOpened, agent)[0]
        assert opened.relation == "subagent"
        assert second.said(agent) == [("assistant", "Look at the spout.")]


def test_the_database_says_what_the_lines_say(tmp_path: Path) -> None:
    with store_of(SEED, tmp_path / "a") as taken:
        want = [(p.kind, p.channel, p.text, p.call_id) for p in taken.parts()]
    with store_of(database(tmp_path / "sessions.db", rows()[1:]), tmp_path / "b") as taken:
        assert [(p.kind, p.channel, p.text, p.call_id) for p in taken.parts()] == want
        assert taken.events(SessionDescribed)[0].title == "The kettle"


def test_an_answer_that_comes_for_the_human_too_is_read_once(tmp_path: Path) -> None:
    both = [
        {"type": "text", "text": "for the model", "annotations": {"audience": ["assistant"]}},
        {"type": "text", "text": "for the human", "annotations": {"audience": ["user"]}},
        {"type": "resource", "resource": {"uri": "file:///a", "text": "a resource"}},
        {"type": "image", "mimeType": "image/png", "data": "aGk="},
    ]
    value = {"status": "success", "value": {"content": both, "isError": True}}
    told = {
        **message("user", "", SEEN),
        "content": [{"type": "toolResponse", "id": "toolu_1", "toolResult": value}],
    }
    with store_of(written(tmp_path / "s.jsonl", [*rows()[:3], told]), tmp_path) as taken:
        (answer, image) = taken.parts()[-2:]
        assert answer.result is not None
        assert (answer.text, answer.result.is_error) == ("for the model\na resource", True)
        assert (image.kind.value, image.channel.value) == ("image", "tool")


def test_a_file_that_grows_adds(tmp_path: Path) -> None:
    with ef.open(tmp_path / "s.ef") as store:
        first = took(store, written(tmp_path / "s.jsonl", rows()[:3]))
        second = took(store, written(tmp_path / "s.jsonl", rows()))
        assert second.done.relation == "grown"
        assert second.main[: len(first.main)] == first.main
