"""A file that was rewritten at its path is a new source: only what is new in it becomes items; both stay exportable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.events import CallClosed, ItemAppended, ItemReplaced, SourceRewritten
from ef.log import source_stream
from ef.log.items import event_of
from ef.testing.pairing import violations
from ef.testing.tallies import items

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "claude_code"


def lines_of(name: str) -> list[dict[str, Any]]:
    text = (FIXTURES / f"{name}.jsonl").read_text("utf-8")
    return [json.loads(row) for row in text.splitlines() if row]


def written(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(r, separators=(",", ":")) + "\n" for r in records), "utf-8")
    return path


def kinds(store: ef.Store, name: str) -> list[str]:
    return [r.header.kind for r in store.log.read(f"session/{name}")]


def block_of(record: dict[str, Any], kind: str) -> dict[str, Any]:
    found: dict[str, Any] = next(b for b in record["message"]["content"] if b["type"] == kind)
    return found


def index_of(records: list[dict[str, Any]], kind: str) -> int:
    return next(
        n
        for n, r in enumerate(records)
        if isinstance(r.get("message", {}).get("content"), list)
        and any(b["type"] == kind for b in r["message"]["content"])
    )


@pytest.mark.parametrize("kind", ["tool_use", "tool_result", "text"])
def test_one_redacted_line_replaces_its_item_and_keeps_its_pair(kind: str, tmp_path: Path) -> None:
    records = lines_of("parallel-interleaved")
    file = written(tmp_path / "file.jsonl", records)
    before = file.read_bytes()
    with ef.open(tmp_path / "s.ef") as store:
        first = store.import_file(file)
        (name,) = first.sessions
        old = store.session(name).context()
        kept = [(r.header.seq, r.digest) for r in store.log.read(f"session/{name}")]
        block = block_of(records[index_of(records, kind)], kind)
        block.update(
            {
                "tool_use": {"input": {"redacted": True}},
                "tool_result": {"content": "[redacted]"},
            }.get(kind, {"text": "[redacted]"})
        )
        second = store.import_file(written(file, records))
        assert (second.relation, second.sessions) == ("rewritten", [name])
        assert second.source != first.source
        assert store.export_original(first.source) == before
        assert store.export_original(second.source) == file.read_bytes()
        added = list(store.log.read(f"session/{name}", after=len(kept)))
        assert [r.header.kind for r in added] == [ItemReplaced.__name__]
        assert [(r.header.seq, r.digest) for r in store.log.read(f"session/{name}")][
            : len(kept)
        ] == kept
        assert [n["kind"] for n in second.notes] == ["uuid-conflict"]
        rewritten = [
            event_of(store.log, r)
            for r in store.log.read(source_stream(second.source))
            if r.header.kind == SourceRewritten.__name__
        ]
        assert [e.earlier for e in rewritten if isinstance(e, SourceRewritten)] == [first.source]
        now = store.session(name).context()
        assert violations(now.messages) == []
        assert json.dumps(now.messages).count("redacted") == 1
        assert len(now.messages) == len(old.messages)
        assert [len(m["content"]) for m in now.messages] == [
            len(m["content"]) for m in old.messages
        ]
        assert store.session(name).working().surface.orphans == set()
        checked = store.verify()
        assert (checked.problems, checked.notes) == ([], [])


def test_an_unchanged_line_of_a_rewritten_file_is_no_new_item_and_a_new_line_is_one(
    tmp_path: Path,
) -> None:
    records = lines_of("split-message")
    file = written(tmp_path / "file.jsonl", records)
    with ef.open(tmp_path / "s.ef") as store:
        (name,) = store.import_file(file).sessions
        count = len(list(items(store, name)))
        typed = dict(records[0], uuid="11111111-1111-4111-8111-111111111111", parentUuid=None)
        typed["message"] = {"role": "user", "content": "One more."}
        shorter = [*records[2:], typed]
        done = store.import_file(written(file, shorter))
        assert done.relation == "rewritten"
        added = list(items(store, name))[count:]
        assert [r.header.kind for r in added] == [ItemAppended.__name__]
        assert b"One more." in store.log.body(added[0])
        tip = store.log.store_tip()
        assert store.import_file(file).new_events == {}
        assert store.log.store_tip() == tip


def test_a_rewritten_file_can_grow_and_be_rewritten_again(tmp_path: Path) -> None:
    records = lines_of("split-message")
    file = written(tmp_path / "file.jsonl", records)
    with ef.open(tmp_path / "s.ef") as store:
        (name,) = store.import_file(file).sessions
        at = index_of(records, "text")
        for n in range(3):
            block_of(records[at], "text")["text"] = f"[redacted {n}]"
            records.append(
                dict(
                    records[0],
                    uuid=f"{n}1111111-1111-4111-8111-111111111111",
                    message={"role": "user", "content": f"More {n}."},
                )
            )
            done = store.import_file(written(file, records))
            assert [k["kind"] for k in done.notes] == ["uuid-conflict"]
            shown = json.dumps(store.session(name).context().messages)
            assert f"[redacted {n}]" in shown
            assert shown.count("[redacted") == 1
        replaced = [r for r in items(store, name) if r.header.kind == ItemReplaced.__name__]
        assert len(replaced) == 3
        assert len({r.header.cause for r in replaced}) == 1
        checked = store.verify()
        assert (checked.problems, checked.notes) == ([], [])
        assert len(store.sources()) == 4


def test_the_same_uuid_three_times_in_one_file_keeps_one_place(tmp_path: Path) -> None:
    records = lines_of("uuid-conflict")
    third = json.loads(json.dumps(records[-1]))
    block_of(third, "text")["text"] = "Third."
    with ef.open(tmp_path / "s.ef") as store:
        (name,) = store.import_file(written(tmp_path / "f.jsonl", [*records, third])).sessions
        shown = json.dumps(store.session(name).context().messages)
        assert shown.count("Third.") == 1
        assert "REDACTED" not in shown
        assert "K-42-ROSE" not in shown
        checked = store.verify()
        assert (checked.problems, checked.notes) == ([], [])


def test_a_uuid_that_a_record_without_words_had_before_does_not_stop_an_import(
    tmp_path: Path,
) -> None:
    records = lines_of("split-message")
    progress = {
        "type": "progress", "uuid": records[1]["uuid"], "sessionId": records[0]["sessionId"],
        "data": {"type": "hook_progress"}, "timestamp": records[0]["timestamp"],
    }  # fmt: skip
    with ef.open(tmp_path / "s.ef") as store:
        plain = store.import_file(written(tmp_path / "plain.jsonl", records))
        want = store.session(plain.sessions[0]).context().digest
    with ef.open(tmp_path / "t.ef") as store:
        done = store.import_file(
            written(tmp_path / "f.jsonl", [records[0], progress, *records[1:]])
        )
        assert store.session(done.sessions[0]).context().digest == want
        assert [n["kind"] for n in done.notes] == ["uuid-conflict"]


def test_a_replaced_call_that_waits_is_closed_once_when_the_next_response_begins(
    tmp_path: Path,
) -> None:
    records = lines_of("late-result-after-interruption")
    at = index_of(records, "tool_use")
    again = json.loads(json.dumps(records[at]))
    block_of(again, "tool_use")["input"] = {"redacted": True}
    with ef.open(tmp_path / "s.ef") as store:
        plain = store.import_file(written(tmp_path / "p.jsonl", records))
        closed = kinds(store, plain.sessions[0]).count(CallClosed.__name__)
    with ef.open(tmp_path / "t.ef") as store:
        twice = [*records[: at + 1], again, *records[at + 1 :]]
        (name,) = store.import_file(written(tmp_path / "f.jsonl", twice)).sessions
        assert closed == 1
        assert kinds(store, name).count(CallClosed.__name__) == closed
        session = store.session(name)
        for seq in range(session.seq + 1):
            assert violations(session.context(at=seq).messages) == [], seq
        checked = store.verify()
        assert (checked.problems, checked.notes) == ([], [])
