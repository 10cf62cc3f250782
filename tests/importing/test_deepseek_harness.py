"""DeepSeek Harness: who speaks in a message, each text once, releases' shapes, compactions, pruning, sub-agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.errors import InputRefused
from ef.events import ItemReplaced, RouteChanged, SessionDescribed, SessionOpened, UsageReported
from tests.importing.vendors import FIXTURES, SEEDS, Taken, store_of, took, written

SEED, LATER = (
    SEEDS / "deepseek-harness.jsonl",
    FIXTURES / "trajectories" / "deepseek-harness-later.jsonl",
)
SHARED = "deepseek-harness"


def rows(path: Path = SEED) -> list[dict[str, Any]]:
    return [json.loads(row) for row in path.read_text("utf-8").splitlines()]


def message(text: str, source: dict[str, Any], **more: Any) -> dict[str, Any]:
    data = {
        "role": "user",
        "content": [{"type": "text", "text": text}],
        "source": source,
        "id": "x",
    }
    return {"type": "user/message", "data": data, "surfaceOp": "append", **more}


def channels(tmp_path: Path, *values: dict[str, Any]) -> list[str]:
    """The channels of the texts of messages behind a session's header."""
    with store_of(written(tmp_path / "s.jsonl", [rows()[0], *values]), tmp_path) as taken:
        return [channel for channel, _ in taken.said()]


@pytest.mark.parametrize(
    ("source", "channel"),
    [
        ({"kind": "user"}, "user_typed"),
        ({"kind": "user", "rpcId": "1"}, "user_typed"),
        ({"kind": "plugin", "plugin": "user"}, "system"),
        ({"kind": "agent-instructions"}, "system"),
        ({"kind": "goal"}, "system"),
        ({"kind": "kettle"}, "system"),
        ({}, "system"),
        ({"kind": "coordinator"}, "assistant"),
        ({"kind": "agent-message", "senderSessionId": "y"}, "subagent"),
        ({"kind": "subagent-settled"}, "subagent"),
        ({"kind": "tool"}, "tool"),
        ({"kind": "compact-checkpoint"}, "importer"),
        ({"kind": "plugin", "plugin": "compact", "compactionId": "k"}, "importer"),
    ],
)
def test_who_speaks_is_what_the_source_says_whatever_the_text_is(
    source: dict[str, Any], channel: str, tmp_path: Path
) -> None:
    said = channels(tmp_path, message("<compacted-summary> I am the user.", source))
    assert said == [channel]


def test_a_message_in_the_place_of_others_is_a_summary_whatever_its_source_says(
    tmp_path: Path,
) -> None:
    forged = message(
        "Do as I say.", {"kind": "user"}, surfaceOp={"op": "replace", "start": 0, "end": 1}
    )
    assert channels(tmp_path, message("Mend it.", {"kind": "user"}), forged) == [
        "user_typed",
        "importer",
    ]


def test_each_text_and_each_call_stands_once(tmp_path: Path) -> None:
    values = rows()
    chunk = {"turn": 1, "step": 1, "chunk": {"type": "text-delta", "index": 0, "text": "I look at"}}
    values.insert(4, {"type": "assistant/chunk", "data": chunk})
    values.insert(
        5,
        {
            "type": "text-chunks",
            "data": {"turn": 1, "step": 1, "dt": [1, 2, 3], "texts": ["a", "b", "c"]},
        },
    )
    with store_of(written(tmp_path / "s.jsonl", values), tmp_path) as taken:
        assert [t for c, t in taken.said() if c == "assistant"] == [
            "I look at the kettle first.", "The kettle is mended.",
        ]  # fmt: skip
        assert [(p.call.action, p.call_id) for p in taken.parts() if p.call] == [
            ("shell", "call_1"), ("read", "call_2"),
        ]  # fmt: skip


@pytest.mark.parametrize("path", [SEED, LATER])
def test_results_usage_and_routes_of_both_releases(path: Path, tmp_path: Path) -> None:
    with store_of(path, tmp_path) as taken:
        calls = [p.call_id for p in taken.parts() if p.call]
        assert [p.call_id for p in taken.parts() if p.result] == calls
        used = taken.events(UsageReported)[0]
        assert (used.input, used.output, used.cache_read) == (7, 3, 5)
        last = taken.events(RouteChanged)[-1]
        window = 128_000 if path == LATER else None
        assert (last.provider, last.model, last.window) == (
            "deepseek-official",
            "deepseek-made-up",
            window,
        )


def test_the_exit_code_stands_at_the_very_end_and_makes_no_error(tmp_path: Path) -> None:
    with store_of(LATER, tmp_path) as taken:
        first = next(p.result for p in taken.parts() if p.result)
        assert (first.exit_code, first.is_error) == (3, False)
    quoted = rows(LATER)
    quoted[11]["data"]["message"]["content"][0]["text"] = "[exit code: 3]\ndone"
    folder = tmp_path / "quoted"
    with store_of(written(folder / "s.jsonl", quoted), folder) as taken:
        assert next(p.result.exit_code for p in taken.parts() if p.result) is None


def test_a_pruned_result_is_told_once_and_its_whole_text_stays(tmp_path: Path) -> None:
    def pruned(taken: Taken) -> list[tuple[str, ...]]:
        return [c.dropped for c in taken.compactions() if c.form == "prune"]

    with store_of(LATER, tmp_path) as taken:
        assert pruned(taken) == [("c1",)]
        assert next(p.text for p in taken.parts() if p.result) == "drip\n" * 40 + "[exit code: 3]"
    unsaid = [row for row in rows(LATER) if row["type"] != "compaction/prune"]
    folder = tmp_path / "unsaid"
    with store_of(written(folder / "s.jsonl", unsaid), folder) as taken:
        assert pruned(taken) == [("c1",)]


def test_a_compaction_is_told_where_it_is_with_what_it_drops(tmp_path: Path) -> None:
    for path, trigger, dropped in (
        (SEED, "auto", ("2", "4", "6", "7")),
        (LATER, "manual", ("2", "3", "9", "15", "13")),
    ):
        folder = tmp_path / path.stem
        folder.mkdir()
        with store_of(path, folder) as taken:
            found = [c for c in taken.compactions() if c.form == "compact"]
            assert [(c.trigger, c.dropped) for c in found] == [(trigger, dropped)]
            summary = [t for c, t in taken.said() if c == "importer"]
            assert "The kettle was looked at." in summary
            assert [u.message_id for u in taken.events(UsageReported)][1].startswith("compaction:")


def test_the_earlier_names_of_compactions_say_the_same(tmp_path: Path) -> None:
    values = rows()
    for value in values:
        value["type"] = value["type"].replace("compaction/", "compact/")
    with store_of(written(tmp_path / "s.jsonl", values), tmp_path) as taken:
        assert [c.form for c in taken.compactions()] == ["compact"]
        assert taken.done.notes == []


def test_a_replacement_that_nothing_announced_is_a_compaction_too(tmp_path: Path) -> None:
    values = [row for row in rows() if not row["type"].startswith("compaction/")]
    with store_of(written(tmp_path / "s.jsonl", values), tmp_path) as taken:
        assert [(c.form, c.dropped) for c in taken.compactions()] == [("compact", ("9",))]


def test_all_stay_in_the_order_of_the_log(tmp_path: Path) -> None:
    """On the harness's surface the summary stands before the answer that follows; nothing that it hides is gone."""
    with store_of(LATER, tmp_path) as taken:
        roles = [(r.role, r.parts[0].channel.value) for r in taken.main]
        assert roles == [
            ("system", "system"), ("user", "user_typed"), ("user", "system"), ("assistant", "assistant"),
            ("user", "tool"), ("user", "tool"), ("user", "importer"), ("system", "system"),
            ("assistant", "assistant"),
        ]  # fmt: skip


def test_a_system_text_that_changes_replaces_the_one_before(tmp_path: Path) -> None:
    header: dict[str, Any] = {
        "type": "request/header",
        "data": {"header": {"config": {}, "system": "Be kind."}},
    }
    other = json.loads(json.dumps(header))
    other["data"]["header"]["system"] = "Be brief."
    hidden = json.loads(json.dumps(header))
    hidden["data"]["header"]["system"] = "{{system}}"
    values: list[Any] = [rows()[0], header, header, rows()[2], hidden, other]
    for path in (written(tmp_path / "a" / "s.jsonl", values), LATER):
        folder = tmp_path / path.stem
        folder.mkdir()
        with store_of(path, folder) as taken:
            assert len(taken.events(ItemReplaced)) == 1
            surface = taken.store.session(taken.done.sessions[0]).working().surface
            assert sum(node.facts.role == "system" for node in surface.nodes.values()) == 1
            assert taken.done.notes == []


def test_an_image_of_a_result_is_an_image_once(tmp_path: Path) -> None:
    with store_of(LATER, tmp_path) as taken:
        media = [p.media for p in taken.parts() if p.media]
        assert [(m.mime, m.name, m.data) for m in media] == [("image/png", "kettle.png", None)]


def test_a_sub_agents_file_names_its_parent_and_the_call_that_asked(tmp_path: Path) -> None:
    parent, prompt = rows()[0]["id"], "Look at the spout."
    asks = {
        "type": "tool-call",
        "id": "call_9",
        "name": "subagent",
        "arguments": json.dumps({"prompt": prompt}),
    }
    more = {"turn": 2, "step": 1, "message": {"role": "assistant", "content": [asks], "id": "h9"}}
    later = {
        "turn": 2,
        "step": 2,
        "message": {"role": "assistant", "content": [{"type": "text", "text": "on"}], "id": "h10"},
    }
    header = {
        **rows()[0], "id": "child-1", "parentSession": parent, "origin": "subagent", "delegationDepth": 1,
    }  # fmt: skip
    relay = {"kind": "coordinator", "form": "relay", "senderSessionId": parent}
    sent = {"kind": "agent-message", "form": "relay", "senderSessionId": parent}
    answer = {
        "turn": 1,
        "step": 1,
        "message": {
            "role": "assistant",
            "content": [{"type": "text", "text": "None."}],
            "id": "c1",
        },
    }
    child: list[Any] = [
        header,
        {"type": "request/context", "data": {}},
        message(prompt, {"kind": "user"}),
        {"type": "assistant/message", "data": answer},
        message("And the lid?", relay),
        message("And the knob?", sent),
    ]
    with ef.open(tmp_path / "s.ef") as store:
        main = [
            *rows(),
            {"type": "assistant/message", "data": more},
            {"type": "assistant/message", "data": later},
        ]
        took(store, written(tmp_path / "p" / "session.jsonl", main))
        taken = took(store, written(tmp_path / "c" / "session.jsonl", child))
        opened = taken.events(SessionOpened)[0]
        assert (opened.relation, opened.parent_stream) == ("subagent", f"session/{parent}")
        asked = store.log.get(f"session/{parent}", opened.parent_seq or 0)
        assert asked.header.item is not None
        assert [part.call_id for part in asked.header.item.parts] == ["call_9"]
        assert taken.said() == [
            ("assistant", prompt),
            ("subagent", "None."),
            ("assistant", "And the lid?"),
            ("assistant", "And the knob?"),
        ]


def test_a_session_that_goes_on_from_another_is_a_fork_and_bills_no_message_again(
    tmp_path: Path,
) -> None:
    values = rows()
    values[0] |= {"id": "fork-1", "parentSession": "elsewhere-1"}
    with store_of(written(tmp_path / "s.jsonl", values), tmp_path) as taken:
        opened = taken.events(SessionOpened)[0]
        assert (opened.relation, opened.parent_stream) == ("fork", "session/elsewhere-1")
        assert ("user_typed", "Mend the kettle, please.") in taken.said()
        assert len(taken.events(UsageReported)) == 3
    values[0]["seedLength"] = 5
    folder = tmp_path / "seeded"
    with store_of(written(folder / "s.jsonl", values), folder) as taken:
        assert [u.message_id for u in taken.events(UsageReported)] == ["compaction:cmp-1", "h6"]


def test_placeholders_of_snapshots_name_no_session(tmp_path: Path) -> None:
    values = rows()
    values[0] |= {"id": "{{sessionId}}", "parentSession": "{{parent}}", "origin": "subagent"}
    with store_of(written(tmp_path / "s.jsonl", values), tmp_path) as taken:
        assert taken.done.sessions[0].startswith("s.")
        opened = taken.events(SessionOpened)[0]
        assert (opened.relation, opened.parent_stream) == ("subagent", None)


def test_a_file_that_grows_adds_and_a_torn_line_waits(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    whole = LATER.read_bytes()
    with ef.open(tmp_path / "s.ef") as store:
        path.write_bytes(whole[:4000])
        first = took(store, path)
        assert [n["kind"] for n in first.done.notes] == ["torn-tail"]
        path.write_bytes(whole)
        second = took(store, path)
        assert second.done.relation == "grown"
        assert second.main[: len(first.main)] == first.main
        assert len(second.main) == 9


def test_an_event_of_an_unknown_kind_is_remarked_unless_it_may_be_ignored(tmp_path: Path) -> None:
    odd: dict[str, Any] = {"type": "kettle/boiled", "data": {}}
    values: list[Any] = [
        *rows(),
        odd,
        {**odd, "ignorable": True},
        {"type": "tool/call", "data": {}},
    ]
    title = {"type": "session/title", "data": {"title": "The kettle"}}
    with store_of(written(tmp_path / "s.jsonl", [*values, title]), tmp_path) as taken:
        assert [(n["kind"], n["line"]) for n in taken.done.notes] == [
            ("unknown-type", len(rows()) + 1)
        ]
        assert [s.title for s in taken.events(SessionDescribed)] == ["The kettle"]


def test_what_a_process_printed_is_no_session(shared_data: Path, tmp_path: Path) -> None:
    found = sorted((shared_data / SHARED).glob("*stdout.expected.jsonl"))
    assert len(found) == 3
    with ef.open(tmp_path / "s.ef") as store:
        for path in found:
            with pytest.raises(InputRefused):
                store.import_file(path)


def test_recorded_sessions_are_read_as_an_independent_count_has_them(
    shared_data: Path, tmp_path: Path
) -> None:
    for n, path in enumerate(sorted((shared_data / SHARED).glob("*session*.jsonl"))):
        values = rows(path)
        folder = tmp_path / str(n)
        folder.mkdir()
        with store_of(path, folder) as taken:
            made = [v["data"] for v in values if v["type"] == "tool/call"]
            seen = [v["data"] for v in values if v["type"] == "tool/result"]
            assert [p.call_id for p in taken.parts() if p.call] == [d["callId"] for d in made]
            assert [(r.call_id, r.is_error) for p in taken.parts() if (r := p.result)] == [
                (b.get("toolCallId") or b.get("callId"), b["isError"])
                for d in seen
                for b in ([d["message"]["content"][0]] if "message" in d else [d])
            ]
            used = [v["data"]["usage"] for v in values if v["type"] == "assistant/message"]
            assert [(u.input, u.cache_read) for u in taken.events(UsageReported)] == [
                (u["inputTokens"], u.get("cacheReadTokens")) for u in used
            ]
            side = "parentSession" in values[0]
            typed = [c for c, _ in taken.said() if c == "user_typed"]
            assert bool(typed) is not side
            assert taken.events(SessionOpened)[0].relation == ("subagent" if side else "root")
            assert taken.done.notes == []
