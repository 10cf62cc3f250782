"""Message lists of the providers' APIs: what their own packages write comes in whole, and goes out as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.events import Group, RouteChanged, UsageReported
from ef.render.export import WRITERS
from tests.importing.vendors import FIXTURES, Taken, store_of, taken_by, translated, written
from tests.render.checks import refusals

FILES = {
    "openai_chat/completion.json": "openai-chat",
    "openai_chat/exchange.json": "openai-chat",
    "openai_chat/messages.jsonl": "openai-chat",
    "openai_responses/response.json": "openai-responses",
    "openai_responses/exchange.json": "openai-responses",
    "openai_responses/items.json": "openai-responses",
    "anthropic_messages/message.json": "anthropic-messages",
    "anthropic_messages/exchange.json": "anthropic-messages",
    "anthropic_messages/messages.json": "anthropic-messages",
    "anthropic_messages/messages.jsonl": "anthropic-messages",
    "gemini_contents/response.json": "gemini-contents",
    "gemini_contents/exchange.json": "gemini-contents",
    "gemini_contents/contents.json": "gemini-contents",
    "gemini_contents/contents.jsonl": "gemini-contents",
}
EXCHANGES = [name for name in FILES if "exchange" in name]
ANSWERS = ("completion.json", "response.json", "message.json")
WHOLE = [name for name in FILES if not name.endswith(ANSWERS)]
USED = {
    "openai-chat": [(9, 7, 12, None), (10, 7, 12, None)],
    "openai-responses": [(9, 7, 12, None), (10, 7, 12, None)],
    "anthropic-messages": [(9, 7, 12, 2), (10, 7, 12, 2)],
    "gemini-contents": [(9, 10, 12, None), (10, 10, 12, None)],
}
"""Tokens of the two responses: input without what was cached, output with thoughts, cache read, cache written."""
MODELS = {
    "openai-chat": ("openai", "gpt-made-up"),
    "openai-responses": ("openai", "gpt-made-up"),
    "anthropic-messages": ("anthropic", "claude-made-up"),
    "gemini-contents": ("google", "gemini-made-up"),
}
SEALED: dict[str, tuple[str, list[str]]] = {
    "openai_chat": ("openai", []),
    "openai_responses": ("responses", ["gAAAAA+b/c==", "gAAAAB"]),
    "anthropic_messages": ("anthropic", ["c2ln+/b==", "c2VhbGVk"]),
    "gemini_contents": ("gemini", ["__4gc2lnbmVk", "-_8gc2VhbGVk", "AGVuZA=="]),
}
"""What a provider signed or encrypted, and the format of exports that hands it back."""


def source(name: str) -> Any:
    text = (FIXTURES / name).read_text("utf-8")
    if name.endswith(".jsonl"):
        return [json.loads(row) for row in text.splitlines()]
    return json.loads(text)


def usages(taken: Taken) -> list[tuple[int | None, ...]]:
    found = taken.events(UsageReported)
    return [(u.input, u.output, u.cache_read, u.cache_write) for u in found]


def heads(taken: Taken) -> list[Group]:
    """The groups of a session's items."""
    records = taken.store.log.read(f"session/{taken.done.sessions[0]}")
    return [record.header.group for record in records if record.header.group is not None]


def pairs(taken: Taken) -> dict[str, str]:
    """What each answered call gave, by what was called."""
    calls = {p.call_id: p.call for p in taken.parts() if p.call}
    results = [p for p in taken.parts() if p.result]
    return {json.dumps(calls[p.call_id].input, sort_keys=True): p.text for p in results}


# -- what comes in ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "form"), FILES.items())
def test_a_file_of_a_package_is_known_as_its_own_format_alone(name: str, form: str) -> None:
    assert taken_by((FIXTURES / name).read_bytes(), name) == [form]


@pytest.mark.parametrize("name", WHOLE)
def test_a_conversation_comes_in_with_its_calls_and_what_they_gave(
    name: str, tmp_path: Path
) -> None:
    with store_of(FIXTURES / name, tmp_path) as taken:
        typed = [text for channel, text in taken.said() if channel == "user_typed"]
        assert set(typed) == {"Is there a lid? 🍵"}
        made = [text for channel, text in taken.said() if channel == "assistant"]
        assert made[:2] == ["I look.", "It has a lid."]
        calls = [p.call for p in taken.parts() if p.call]
        results = [p.result for p in taken.parts() if p.result]
        texts = [r.text.strip() for r in results]
        assert any("lid" in text for text in texts)
        assert any("no such place" in text for text in texts)
        assert {r.call_id for r in results} <= {c.call_id for c in calls}
        assert len([p for p in taken.parts() if p.kind.value == "image"]) == 1
        assert taken.done.notes == []


def test_chat_calls_are_answered_by_their_ids(tmp_path: Path) -> None:
    with store_of(FIXTURES / "openai_chat/messages.jsonl", tmp_path) as taken:
        calls = {p.call_id: p.call for p in taken.parts() if p.call}
        assert [(c.name, c.action) for c in calls.values()] == [
            ("look", "other"),
            ("bash", "shell"),
            ("note", "other"),
        ]
        assert calls["call_2"].command == "ls /moon"
        results = {p.call_id: p.text for p in taken.parts() if p.result}
        assert results == {
            "call_1": "lid", "call_2": "Exit code 2\nno such place", "call_3": "noted",
        }  # fmt: skip
        assert taken.said()[0] == ("system", "Be kind.")
        assert taken.said()[-1] == ("assistant", "I said so.")


def test_items_of_responses_are_what_they_are(tmp_path: Path) -> None:
    with store_of(FIXTURES / "openai_responses/items.json", tmp_path) as taken:
        calls = {p.call_id: p.call for p in taken.parts() if p.call}
        assert {i: (c.action, c.command or c.path or c.query) for i, c in calls.items()} == {
            "call_1": ("other", "kettle"),
            "call_2": ("patch", "lid.txt"),
            "call_3": ("shell", "ls /moon"),
            "ws_1": ("web", "lids"),
            "ci_1": ("other", None),
            "mcp_1": ("other", None),
        }
        results = {p.call_id: (p.text, p.result.is_error) for p in taken.parts() if p.result}
        assert results == {
            "call_1": ("lid", False),
            "call_2": ("done", False),
            "call_3": ("no such place", True),
            "ci_1": ("1\n", False),
            "mcp_1": ("too hot", True),
        }
        thoughts = [p for p in taken.parts() if p.kind.value == "reasoning"]
        assert [p.text for p in thoughts] == ["A kettle needs one.", ""]


def test_what_a_server_ran_by_itself_stands_within_one_response(tmp_path: Path) -> None:
    with store_of(FIXTURES / "openai_responses/items.json", tmp_path) as taken:
        groups = heads(taken)
        assert len(groups) == 10
        assert len({group.id for group in groups}) == 2
        assert all(group.inferred for group in groups)


@pytest.mark.parametrize("name", ["contents.json", "contents.jsonl"])
def test_responses_of_gemini_without_ids_answer_by_name_and_order(
    name: str, tmp_path: Path
) -> None:
    with store_of(FIXTURES / "gemini_contents" / name, tmp_path) as taken:
        found = pairs(taken)
        assert found['{"path": "kettle"}'] == "lid"
        assert found['{"command": "ls"}'] == "lid.txt"
        assert "no such place" in found['{"path": "moon"}']
        failed = [p.result.is_error for p in taken.parts() if p.result]
        assert failed == [False, False, True, False]


@pytest.mark.parametrize("name", EXCHANGES)
def test_usage_and_model_stand_beside_the_response(name: str, tmp_path: Path) -> None:
    form = FILES[name]
    with store_of(FIXTURES / name, tmp_path) as taken:
        assert usages(taken) == USED[form][1:]
        assert taken.events(RouteChanged) == [RouteChanged(*MODELS[form])]
        assert taken.said()[0] == ("system", "Be kind.")
        assert [c for c, _ in taken.said()].count("system") == 1


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(ANSWERS)])
def test_an_answer_alone_is_a_session(name: str, tmp_path: Path) -> None:
    form = FILES[name]
    with store_of(FIXTURES / name, tmp_path) as taken:
        assert usages(taken) == USED[form][:1]
        assert taken.events(RouteChanged) == [RouteChanged(*MODELS[form])]
        assert ("assistant", "I look.") in taken.said()
        assert len([p for p in taken.parts() if p.call]) >= 2
        groups = {group.id for group in heads(taken)}
        assert len(groups) == 1
    known = {"anthropic-messages": "msg_1", "openai-responses": "resp_1"}
    assert form not in known or groups == {known[form]}


def test_answers_of_anthropic_a_line_tell_their_usage(tmp_path: Path) -> None:
    with store_of(FIXTURES / "anthropic_messages/messages.jsonl", tmp_path) as taken:
        assert usages(taken) == USED["anthropic-messages"]
        assert [u.message_id for u in taken.events(UsageReported)] == ["msg_1", "msg_2"]


# -- what goes out ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_each_provider_takes_what_is_exported(name: str, tmp_path: Path) -> None:
    with store_of(FIXTURES / name, tmp_path) as taken:
        for session in taken.done.sessions:
            for form in WRITERS:
                found = taken.store.session(session).export(form)
                assert refusals(found) == []
                assert found.messages


@pytest.mark.parametrize("name", WHOLE)
def test_what_the_provider_signed_goes_back_byte_for_byte(name: str, tmp_path: Path) -> None:
    form, sealed = SEALED[name.partition("/")[0]]
    with store_of(FIXTURES / name, tmp_path) as taken:
        session = taken.store.session(taken.done.sessions[0])
        back = json.dumps(session.export(form).messages)
        assert [back.count(json.dumps(each)) for each in sealed] == [1] * len(sealed)
        for other in set(WRITERS) - {form}:
            there = json.dumps(session.export(other).messages)
            assert [each for each in sealed if each in there] == []


@pytest.mark.parametrize(
    "name",
    ["openai_chat/messages.jsonl", "anthropic_messages/messages.json", "gemini_contents/contents.json"],
)  # fmt: skip
def test_answers_go_back_as_they_came(name: str, tmp_path: Path) -> None:
    form, _ = SEALED[name.partition("/")[0]]
    asks = next(m for m in source(name) if m["role"] in ("assistant", "model"))
    with store_of(FIXTURES / name, tmp_path) as taken:
        assert asks in taken.store.session(taken.done.sessions[0]).export(form).messages


def test_items_go_back_as_they_came(tmp_path: Path) -> None:
    items = source("openai_responses/items.json")
    own = ("reasoning", "function_call", "custom_tool_call", "code_interpreter_call", "mcp_call")
    wanted = [item for item in items if item.get("type") in own]
    assert len(wanted) == 6
    with store_of(FIXTURES / "openai_responses/items.json", tmp_path) as taken:
        back = taken.store.session(taken.done.sessions[0]).export("responses").messages
        assert [item for item in back if item in wanted] == wanted


# -- other ways to keep them -----------------------------------------------------------------------------------------

SAID: list[dict[str, Any]] = [
    {"role": "user", "content": "Mend it."},
    {"role": "assistant", "content": "It is mended."},
]


def test_a_system_text_comes_first_wherever_it_stands(tmp_path: Path) -> None:
    contents = [{"role": "user", "parts": [{"text": "Mend it."}]}]
    for n, name in enumerate(("systemInstruction", "system_instruction")):
        value = {"contents": contents, name: {"parts": [{"text": "Be kind."}]}}
        with store_of(written(tmp_path / f"{n}.json", value), tmp_path / str(n)) as taken:
            assert taken.said() == [("system", "Be kind."), ("user_typed", "Mend it.")]


def test_lines_that_hold_conversations_are_sessions_apart(tmp_path: Path) -> None:
    rows = [
        {"model": "m-1", "messages": SAID},
        {"messages": [{"role": "system", "content": "Be kind."}, *SAID]},
        {"messages": SAID},
    ]
    with store_of(written(tmp_path / "tuning.jsonl", rows), tmp_path) as taken:
        assert taken.done.format == "openai-chat"
        first, second, third = taken.done.sessions
        assert len(taken.items[first]) == len(taken.items[third]) == 2
        assert [c for c, _ in taken.said(second)] == ["system", "user_typed", "assistant"]
        assert len(taken.events(RouteChanged, first)) == 1
        assert taken.events(RouteChanged, third) == []
        assert taken.done.notes == []


def test_a_broken_line_among_conversations_leaves_the_others(tmp_path: Path) -> None:
    path = tmp_path / "tuning.jsonl"
    row = json.dumps({"messages": [{"role": "system", "content": "Be kind."}, *SAID]})
    path.write_text(f'{row}\n{{"messages": [{{"role": "us\n{row}\n')
    with store_of(path, tmp_path) as taken:
        assert [len(items) for items in taken.items.values()] == [3, 3]
        assert {note["line"] for note in taken.done.notes} == {2}


def test_the_first_of_several_answers_counts(tmp_path: Path) -> None:
    value = source("openai_chat/completion.json")
    choice = value["choices"][0]
    other = {**choice, "index": 1, "message": {"role": "assistant", "content": "I do not look."}}
    value["choices"].append(other)
    with store_of(written(tmp_path / "c.json", value), tmp_path / "c") as taken:
        assert [text for _, text in taken.said()] == ["I look."]
        assert [note["kind"] for note in taken.done.notes] == ["alternative"]
    value = source("gemini_contents/response.json")
    value["candidates"].append(value["candidates"][0])
    with store_of(written(tmp_path / "g.json", value), tmp_path / "g") as taken:
        assert [note["kind"] for note in taken.done.notes] == ["alternative"]


def test_an_input_that_is_a_text_is_the_users(tmp_path: Path) -> None:
    response = source("openai_responses/response.json")
    value = {"request": {"input": "Mend it.", "instructions": "Be kind."}, "response": response}
    with store_of(written(tmp_path / "r.json", value), tmp_path) as taken:
        assert taken.said()[:2] == [("system", "Be kind."), ("user_typed", "Mend it.")]


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("openai-responses", {"type": "compaction", "id": "c", "encrypted_content": "gAAA"}),
        ("anthropic-messages", {"role": "assistant", "content": [{"type": "compaction", "content": "It is mended."}]}),
    ],
)  # fmt: skip
def test_a_providers_own_compaction_is_one(
    form: str, message: dict[str, Any], tmp_path: Path
) -> None:
    kind = "input_text" if form == "openai-responses" else "text"
    first = {"role": "user", "content": [{"type": kind, "text": "Mend it."}]}
    with store_of(written(tmp_path / "m.json", [first, message]), tmp_path) as taken:
        assert taken.done.format == form
        assert [(c.tool, c.form) for c in taken.compactions()] == [(form, "compact")]


def test_reasoning_beside_the_content_is_reasoning(tmp_path: Path) -> None:
    thought = {"role": "assistant", "content": "Yes.", "reasoning_content": "A kettle needs one."}
    messages = [{"role": "system", "content": "Be kind."}, SAID[0], thought]
    with store_of(written(tmp_path / "m.json", messages), tmp_path) as taken:
        kinds = [(p.kind.value, p.text) for p in taken.main[-1].parts]
        assert kinds == [("reasoning", "A kettle needs one."), ("text", "Yes.")]
        back = taken.store.session(taken.done.sessions[0]).export("openai").messages[-1]
        assert back["reasoning_content"] == "A kettle needs one."


def test_a_function_call_of_before_tools_is_answered(tmp_path: Path) -> None:
    messages = [
        SAID[0],
        {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
        {"role": "function", "name": "look", "content": "lid"},
    ]  # fmt: skip
    with store_of(written(tmp_path / "m.json", messages), tmp_path) as taken:
        (call,) = [p for p in taken.parts() if p.call]
        (result,) = [p for p in taken.parts() if p.result]
        assert call.call_id == result.call_id
        assert refusals(taken.store.session(taken.done.sessions[0]).export("openai")) == []


@pytest.mark.parametrize(
    "wrong",
    [
        b"{}", b"[]", b"[1]", b'{"messages":[]}', b'{"input":[]}', b'{"contents":[]}',
        b'{"role":"user","content":"x"}', b'{"type":"message"}', b'{"model":"m","input":"x"}', b"null\n",
        b'[{"role":"kettle","content":"x"}]', b'[{"type":"kettle"}]', b'{"messages":"x"}',
    ],
)  # fmt: skip
def test_what_says_too_little_is_no_list_of_messages(wrong: bytes) -> None:
    ours = set(FILES.values())
    assert [form for form in taken_by(wrong, "x.json") if form in ours] == []


def test_a_list_that_grows_says_the_same_of_what_was_there() -> None:
    messages = source("anthropic_messages/messages.json")
    whole = [m.key for m in translated("anthropic-messages", json.dumps(messages).encode())[0]]
    for n in range(1, len(messages)):
        data = json.dumps(messages[:n]).encode()
        part = [m.key for m in translated("anthropic-messages", data)[0]]
        assert whole[: len(part)] == part


def test_files_whose_names_agree_up_to_a_dot_are_sessions_of_their_own(tmp_path: Path) -> None:
    names = ("run.1.json", "run.2.json", "run.json", ".run.json", "run.1.x.json")
    for name in names:
        said = [{"role": "user", "content": f"q {name}"}, {"role": "assistant", "content": "a"}]
        (tmp_path / name).write_text(json.dumps(said))
    with ef.open(tmp_path / "s.ef") as store:
        for name in names:
            store.import_file(tmp_path / name)
        found = {
            store.session(s).context().messages[0]["content"][0]["text"]
            for s in store.session_names()
        }
        assert found == {f"q {name}" for name in names}
        assert len(list(store.session_names())) == len(names)
        # One that is written anew goes on in its session.
        more = [
            {"role": "user", "content": "q run.json"},
            {"role": "assistant", "content": "a"},
            {"role": "user", "content": "more"},
        ]
        (tmp_path / "run.json").write_text(json.dumps(more))
        store.import_file(tmp_path / "run.json")
        assert len(list(store.session_names())) == len(names)


def test_parallel_calls_that_share_an_id_get_their_results_in_order(tmp_path: Path) -> None:
    def call(command: str) -> dict[str, Any]:
        given = json.dumps({"command": command})
        return {
            "id": "call_0",
            "type": "function",
            "function": {"name": "bash", "arguments": given},
        }

    said = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call("pytest a"), call("pytest b")]},
        {"role": "tool", "tool_call_id": "call_0", "content": "2 passed in 0.1s"},
        {"role": "tool", "tool_call_id": "call_0", "content": "1 failed in 0.1s"},
    ]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(said))
    with ef.open(tmp_path / "s.ef") as store:
        result = store.import_file(path)
        session = store.session(result.sessions[0])
        exported = session.export("openai").messages
        calls = exported[1]["tool_calls"]
        told = {m["tool_call_id"]: m["content"] for m in exported if m["role"] == "tool"}
        pairs = [(json.loads(c["function"]["arguments"])["command"], told[c["id"]]) for c in calls]
        assert pairs == [("pytest a", "2 passed in 0.1s"), ("pytest b", "1 failed in 0.1s")]
        state = session.state()
        assert state.heads["test/pytest:a/status"].value == "passed"
        assert state.heads["test/pytest:b/status"].value == "failed"
        assert store.verify().problems == []


def _told(folder: Path, said: list[dict[str, Any]], mark: bytes = b"") -> tuple[Any, list[str]]:
    path = folder / "chat.jsonl"
    path.write_bytes(mark + b"\n".join(json.dumps(each).encode() for each in said) + b"\n")
    with ef.open(folder / "s.ef") as store:
        result = store.import_file(path)
        export = store.session(result.sessions[0]).export("openai")
        return export.messages, [note["kind"] for note in result.notes]


def test_a_result_that_is_a_value_and_no_text_is_its_json(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    for n, value in enumerate(({"out": "RESULT"}, 7, False)):
        folder = tmp_path / str(n)
        folder.mkdir()
        messages, _ = _told(folder, [
            {"role": "user", "content": "go"}, {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": value},
        ])  # fmt: skip
        assert json.loads(messages[-1]["content"]) == value


def test_a_role_that_is_not_known_is_said_and_known_ones_are_not(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ok"}]
    for n, (role, notes) in enumerate(
        (("bot", ["unknown-role"]), ("ASSISTANT", ["unknown-role"]), ("user", []))
    ):
        folder = tmp_path / str(n)
        folder.mkdir()
        assert _told(folder, [*said, {"role": role, "content": "k"}])[1] == notes


def test_a_mark_at_the_beginning_hides_no_format(tmp_path: Path) -> None:
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ok"}]
    messages, notes = _told(tmp_path, said, b"\xef\xbb\xbf")
    assert [m["content"] for m in messages] == ["hi", "ok"]
    assert notes == ["encoding"]


def test_what_the_system_says_among_anthropic_messages_is_the_system_s(tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    back = {"type": "tool_result", "tool_use_id": "t", "content": "done"}
    messages, notes = _told(tmp_path, [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [use]}, {"role": "user", "content": [back]},
    ])  # fmt: skip
    assert (messages[0]["role"], messages[0]["content"]) == ("system", "Be brief.")
    assert notes == []
