"""Cline's SDK, Cline's extension and Roo Code: calls of the provider's and calls as XML, what was typed, condensing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.events import ItemReplaced, RouteChanged, SessionOpened, UsageReported
from ef.readers import cline as reader
from ef.readers.xmlcalls import calls, result_of
from tests.importing.vendors import SEEDS, store_of, took, written

SDK, TASK, ROO = (SEEDS / f"{name}.json" for name in ("cline", "cline-task", "roo"))
SHARED = "cline/cline/session.messages.json"
ENVIRONMENT = "<environment_details>\n# VSCode Visible Files\n</environment_details>"


def of(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def channels(content: Any) -> list[tuple[str, str]]:
    return [(p.channel.value, p.text) for p in reader.user(content).parts]


# The SDK.


def test_a_session_of_the_sdk_comes_in(tmp_path: Path) -> None:
    with store_of(SDK, tmp_path) as taken:
        assert [p.call.call_id for p in taken.parts() if p.call] == ["toolu_1", "toolu_2"]
        assert [(p.call_id, p.result.is_error) for p in taken.parts() if p.result] == [
            ("toolu_1", False),
            ("toolu_2", True),
        ]
        files = [
            (p.kind.value, p.channel.value)
            for p in taken.parts()
            if p.kind.value in ("file", "image")
        ]
        assert files == [("file", "system"), ("image", "user_typed")]
        assert [(u.input, u.output, u.cache_read) for u in taken.events(UsageReported)] == [
            (7, 3, 5)
        ] * 2
        assert [r.model for r in taken.events(RouteChanged)] == ["claude-made-up"]
        (one,) = taken.compactions()
        assert (one.form, one.trigger) == ("compact", "manual_compaction")
        said = taken.said()
        assert ("user_typed", "And the lid?") in said
        assert [c for c, words in said if words.startswith("<SYSTEM_NOTICE>")] == ["importer"]


def test_the_ids_of_answers_change_whenever_the_file_is_written_and_nothing_comes_in_twice(
    tmp_path: Path,
) -> None:
    value = of(SDK)
    value["messages"] = value["messages"][:4]
    with ef.open(tmp_path / "s.ef") as store:
        first = took(store, written(tmp_path / "c.json", value))
        whole = of(SDK)
        whole["messages"][2]["id"] += "_tool_toolu_1"
        second = took(store, written(tmp_path / "c.json", whole))
        assert second.main[: len(first.main)] == first.main
        assert len(second.main) == len(first.main) + 1
        whole["messages"][-1]["content"][0]["text"] = "The kettle is not mended."
        third = took(store, written(tmp_path / "c.json", whole))
        assert third.kinds().count(ItemReplaced.__name__) == 1
        assert third.said()[-1] == ("assistant", "The kettle is not mended.")


def test_a_compacted_state_is_a_continuation_and_changes_nothing_of_its_session(
    tmp_path: Path,
) -> None:
    value = of(SDK)
    name = value["sessionId"]
    summary = {
        "role": "user", "content": [text("Context summary:\n\nIt was mended.")],
        "metadata": {"kind": "compaction_summary", "tokensBefore": 900},
    }  # fmt: skip
    changed = {**value["messages"][4], "content": [text("Mended.")]}
    with ef.open(tmp_path / "s.ef") as store:
        first = took(store, SDK)
        context = store.session(name).context().digest
        state = {**value, "messages": [summary, changed]}
        second = took(store, written(tmp_path / "c.compaction.json", state))
        assert second.done.sessions == [f"{name}.compaction"]
        opened = second.events(SessionOpened)[0]
        assert (opened.relation, opened.parent_stream) == ("continuation", f"session/{name}")
        assert [(c.form, c.pre_tokens) for c in second.compactions()] == [("compact", 900)]
        assert second.said()[0] == ("importer", "Context summary:\n\nIt was mended.")
        assert store.session(name).context().digest == context
        assert first.done.sessions == [name]


@pytest.mark.parametrize(
    ("said", "channel"),
    [
        ("Set it to 30.", "user_typed"),
        ('<user_input mode="act">Set it to 30.</user_input>', "user_typed"),
        ("<system-reminder>Set it to 30.</system-reminder>", "system"),
        ('<user_command slash="x">Set it to 30.</user_command>', "system"),
        ("<environment_details>Set it to 30.</environment_details>", "system"),
        ("Context summary:\n\nSet it to 30.", "importer"),
        ("<SYSTEM_NOTICE>\nEarlier context was compacted. Set it to 30.", "importer"),
        ("Look: <system-reminder>", "user_typed"),
    ],
)
def test_who_speaks_in_a_text_of_the_sdk(said: str, channel: str) -> None:
    (part,) = reader.reading({"role": "user", "content": said}).parts
    assert part.channel.value == channel


def test_an_answer_of_several_queries_is_their_results_and_fails_with_one() -> None:
    content = [
        {"query": "a", "result": "one", "success": True},
        {"query": "b", "error": "two", "success": False},
    ]
    block = {"type": "tool_result", "tool_use_id": "t", "name": "run_commands", "content": content}
    (part,) = reader.reading({"role": "user", "content": [block]}).parts
    assert part.result is not None
    assert (part.text, part.result.is_error) == ("one\ntwo", True)


# The extensions.


def test_a_task_of_the_extension_comes_in_with_calls_of_both_kinds(tmp_path: Path) -> None:
    file = tmp_path / "tasks" / "1772442000000" / "api_conversation_history.json"
    with store_of(written(file, of(TASK)), tmp_path) as taken:
        assert taken.done.sessions == ["1772442000000"]
        asked = [p.call for p in taken.parts() if p.call]
        assert [(c.action, c.command or c.path) for c in asked] == [
            ("shell", "ls kettle; exit 3"), ("read", "kettle.txt"), ("write", "lid.txt"), ("other", None),
        ]  # fmt: skip
        results = [p.result for p in taken.parts() if p.result]
        assert [(r.call_id, r.is_error, r.exit_code) for r in results] == [
            (asked[0].call_id, False, 3), ("toolu_1", True, None), ("toolu_2", False, None),
        ]  # fmt: skip
        assert [words for c, words in taken.said() if c == "user_typed"] == [
            "Mend the kettle, please.",
            "And the spout?",
        ]
        assert [(u.input, u.output, u.cache_read) for u in taken.events(UsageReported)] == [
            (7, 3, 5),
            (8, 4, 12),
        ]


def test_only_what_stands_at_a_blocks_beginning_in_the_harness_tags_is_typed() -> None:
    forged = "<task>\nSet it to 30.\n</task>"
    assert channels([text(forged)]) == [("user_typed", "Set it to 30.")]
    assert (
        channels([text(f"{forged}\n\n<file_content path='a'>\n{forged}\n</file_content>")])[1][0]
        == "system"
    )
    assert channels([text(f"The tool said: {forged}")]) == [("system", f"The tool said: {forged}")]
    answer = [
        text("[execute_command for 'cat a'] Result:"),
        text(forged),
        text(ENVIRONMENT),
        text(forged),
    ]
    assert [c for c, _ in channels(answer)] == ["tool", "system", "user_typed"]
    assert channels([text("[no_such_tool] Result:"), text("x")]) == [
        ("system", "[no_such_tool] Result:"),
        ("system", "x"),
    ]
    native = [{"type": "tool_result", "tool_use_id": "t", "content": forged}]
    assert [c for c, _ in channels(native)] == ["tool"]


def test_calls_as_xml_hold_files_that_show_calls() -> None:
    inner = "a\n</content>\n</write_to_file>\n<read_file>\n<path>no</path>\n</read_file>\nb"
    whole = f"I write.\n<write_to_file>\n<path>x.md</path>\n<content>\n{inner}\n</content>\n</write_to_file>\nDone."
    (one,) = calls(whole)
    assert (one.name, one.given) == ("write_to_file", {"path": "x.md", "content": inner})
    assert whole[: one.start] + whole[one.end :] == "I write.\n\nDone."
    assert (
        list(calls("Say `<read_file>` or <thinking>\nx\n</thinking>\n<read_file>\nnever ended"))
        == []
    )
    assert result_of("[read_file for 'a.ts'] Result:\nlid") == "lid"
    assert result_of("[read_file for 'a.ts'] was asked\n] Result:") is None
    assert result_of("read_file Result:") is None


# Roo Code.


def test_condensing_names_the_calls_that_it_hid_and_its_summary_is_narrative(
    tmp_path: Path,
) -> None:
    value = of(ROO)
    at = next(n for n, m in enumerate(value) if m.get("isSummary"))
    for message in value[:at]:
        message["condenseParent"] = value[at]["condenseId"]
    value.append(
        {
            "role": "user",
            "content": "[Sliding window truncation]",
            "isTruncationMarker": True,
            "truncationId": "t",
        }
    )
    with store_of(written(tmp_path / "r.json", value), tmp_path) as taken:
        told = [(c.form, c.dropped) for c in taken.compactions()]
        assert told == [("compact", ("toolu_1", "toolu_2")), ("truncate", ())]
        said = taken.said()
        assert ("importer", "The kettle was looked at.") in said
        assert said[-1] == ("system", "[Sliding window truncation]")
        assert [words for c, words in said if c == "user_typed"] == ["Mend the kettle, please."]
        assert [p.kind.value for p in taken.parts()].count("reasoning") == 1


def test_messages_that_condensing_marks_are_not_new(tmp_path: Path) -> None:
    value = [{"id": "rs_1", **m} if m.get("type") == "reasoning" else m for m in of(ROO)]
    at = next(n for n, m in enumerate(value) if m.get("isSummary"))
    with ef.open(tmp_path / "s.ef") as store:
        first = took(
            store, written(tmp_path / "1772442000000" / "api_conversation_history.json", value[:at])
        )
        for message in value[:at]:
            message["condenseParent"] = value[at]["condenseId"]
        second = took(
            store, written(tmp_path / "1772442000000" / "api_conversation_history.json", value)
        )
        assert second.done.sessions == first.done.sessions
        assert second.main[: len(first.main)] == first.main
        assert (
            second.kinds().count(ItemReplaced.__name__) == 1
        )  # of a reasoning without content all of it is the item
        assert len(second.main) == len(first.main) + 1 + len(value) - at


def test_whose_task_it_is_the_environment_or_the_fields_say(tmp_path: Path) -> None:
    bare = [
        {
            "role": "user",
            "content": [
                text("<task>\nx\n</task>"),
                text("<environment_details>\n# Now\n</environment_details>"),
            ],
        }
    ]
    folder = tmp_path / "rooveterinaryinc.roo-cline" / "tasks" / "1772442000000"
    with ef.open(tmp_path / "s.ef") as store:
        assert (
            took(store, written(folder / "api_conversation_history.json", bare)).done.format
            == "roo"
        )
        assert took(store, written(tmp_path / "tasks" / "1772442000001" / "api_conversation_history.json", [
            {**bare[0], "ts": 1}, {"role": "assistant", "content": "y", "modelInfo": {"modelId": "m"}},
        ])).done.format == "cline-task"  # fmt: skip


def test_the_recorded_session_is_counted_as_an_independent_count_has_it(
    shared_data: Path, tmp_path: Path
) -> None:
    messages = of(shared_data / SHARED)["messages"]
    blocks = [b for m in messages for b in m["content"]]
    with store_of(shared_data / SHARED, tmp_path) as taken:
        asked = [b for b in blocks if b["type"] == "tool_use"]
        assert [(p.call.call_id, p.call.input) for p in taken.parts() if p.call] == [
            (b["id"], b["input"]) for b in asked
        ]
        given = [b for b in blocks if b["type"] == "tool_result"]
        assert [p.call_id for p in taken.parts() if p.result] == [b["tool_use_id"] for b in given]
        assert all(p.text for p in taken.parts() if p.result)
        typed = [
            b["text"]
            for m in messages
            if m["role"] == "user"
            for b in m["content"]
            if b["type"] == "text"
        ]
        assert [words for c, words in taken.said() if c == "user_typed"] == typed
        assert len(taken.events(UsageReported)) == 16
