"""What each provider format makes of one thing: kept as it came, built anew, named, or left out and counted."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

from ef.events import Channel, Media, Part, PartKind
from ef.render.export import WRITERS, Written, write
from ef.render.limits import CallIds
from ef.render.turns import Links, Shown
from tests.render import blocks
from tests.render.blocks import PNG, call, image, reasoning, result, text
from tests.render.histories import history

FORMS = tuple(WRITERS)


def assistant(seq: int, dialect: str, *parts: Part, group: str | None = "g") -> Shown:
    return Shown(seq, "assistant", group and f"{group}{seq}", parts, dialect)


def user(seq: int, dialect: str, *parts: Part, role: str = "user") -> Shown:
    return Shown(seq, role, None, parts, dialect)


def links(
    *pairs: tuple[tuple[int, int], tuple[int, int]], closed: Any = None, late: Any = None
) -> Links:
    found = dict(pairs)
    return Links(found, {r: c for c, r in found.items()}, closed or {}, late or {})


def asked(dialect: str, made: Part, answer: Part, *before: Part) -> tuple[list[Shown], Links]:
    """A user's words, a response that calls, and the result."""
    n = len(before)
    nodes = [
        user(1, dialect, text(dialect, "user", "do")),
        assistant(2, dialect, *before, made),
        user(3, dialect, answer),
    ]
    return nodes, links(((2, n), (3, 0)))


def flat(written: Written) -> str:
    return json.dumps([written.system, written.messages], ensure_ascii=False)


# -- the own dialect ---------------------------------------------------------------------------------------------


def test_signed_thinking_is_handed_back_byte_for_byte_at_its_place() -> None:
    sealed = {
        "type": "thinking",
        "thinking": " hm\n",
        "signature": "Eo8CCkY+/=é",
        "novel": [1.0, None],
    }
    hidden = {"type": "redacted_thinking", "data": "b64+/=="}
    made = call("anthropic", "toolu_1", "Bash", {"command": "ls"})
    before = [Part(PartKind.REASONING, Channel.ASSISTANT, "hm", block=b) for b in (sealed, hidden)]
    nodes, pairs = asked("anthropic", made, result("anthropic", "toolu_1", "out"), *before)
    content = write("anthropic", nodes, pairs).messages[1]["content"]
    assert json.dumps(content) == json.dumps([sealed, hidden, made.block])


def test_sealed_reasoning_is_handed_back_byte_for_byte_before_its_call() -> None:
    sealed = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA+/=é"}
    noted = {**sealed, "content": None, "noted_by_a_tool": {"turn": 1}}
    part = Part(PartKind.REASONING, Channel.ASSISTANT, block=noted)
    made = call("responses", "call_1", "shell", {"command": ["ls"]})
    answer = result("responses", "call_1", "out")
    nodes, pairs = asked("responses", made, answer, part)
    items = write("responses", nodes, pairs).messages
    assert json.dumps(items[1:]) == json.dumps([sealed, made.block, answer.block])


def test_thought_signatures_stay_on_their_parts() -> None:
    signed = {"functionCall": {"name": "ls", "args": {}}, "thoughtSignature": "c2ln"}
    empty = {"text": "", "thoughtSignature": "ZW1wdHk="}
    made = Part(
        PartKind.TOOL_CALL,
        Channel.ASSISTANT,
        "",
        "inferred",
        signed,
        call=call("", "inferred", "ls", {}).call,
    )
    quiet = Part(PartKind.TEXT, Channel.ASSISTANT, "", block=empty)
    nodes, pairs = asked("gemini", made, result("gemini", "inferred", "out", name="ls"), quiet)
    contents = write("gemini", nodes, pairs).messages
    assert contents[1] == {"role": "model", "parts": [empty, signed]}
    assert contents[2]["parts"] == [
        {"functionResponse": {"name": "ls", "response": {"output": "out"}}}
    ]


def test_reasoning_beside_content_goes_back_to_the_servers_that_put_it_there() -> None:
    nodes = [assistant(1, "openai", reasoning("openai", "so"), text("openai", "assistant", "yes"))]
    message = {"role": "assistant", "content": "yes", "reasoning_content": "so"}
    assert write("openai", nodes, links()).messages == [message]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dialect", blocks.DIALECTS)
def test_reasoning_of_another_dialect_is_left_out_and_counted(form: str, dialect: str) -> None:
    nodes = [
        user(1, dialect, text(dialect, "user", "do")),
        assistant(2, dialect, reasoning(dialect, "c2VhbGVk"), text(dialect, "assistant", "done")),
    ]
    written = write(form, nodes, links())
    kept = form == dialect
    assert ("c2VhbGVk" in flat(written)) is kept
    assert written.left_out == ({} if kept else {"reasoning": 1})


@pytest.mark.parametrize("form", ["anthropic", "responses"])
def test_reasoning_that_nothing_follows_is_left_out(form: str) -> None:
    thinks = [reasoning(form, "c2VhbGVk"), call(form, "call_1", "Bash", {})]
    nodes = [user(1, form, text(form, "user", "do")), assistant(2, form, *thinks)]
    written = write(form, nodes, links())
    assert len(written.messages) == 1
    assert written.left_out == {"reasoning": 1, "pending_call": 1}


@pytest.mark.parametrize("seal", [None, "", 5])
@pytest.mark.parametrize("form", ["anthropic", "responses"])
def test_reasoning_without_a_seal_is_left_out(form: str, seal: Any) -> None:
    nodes = [assistant(1, form, reasoning(form, seal), text(form, "assistant", "done"))]
    assert write(form, nodes, links()).left_out == {"reasoning": 1}


# -- calls and results -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", blocks.DIALECTS)
def test_free_text_that_a_tool_was_given_is_carried(dialect: str) -> None:
    patch = '*** Begin Patch\n"quoted" é\n*** End Patch'
    made, answer = (
        call(dialect, "call_1", "apply_patch", patch),
        result(dialect, "call_1", "ok", free=True),
    )
    nodes, pairs = asked(dialect, made, answer)
    items = write("responses", nodes, pairs).messages
    assert [i["type"] for i in items[1:]] == ["custom_tool_call", "custom_tool_call_output"]
    assert items[1]["input"] == patch
    assert write("anthropic", nodes, pairs).messages[1]["content"][0]["input"] == {"input": patch}
    function = write("openai", nodes, pairs).messages[1]["tool_calls"][0]["function"]
    arguments = function["arguments"]
    assert arguments == patch if dialect == "openai" else json.loads(arguments) == {"input": patch}
    args = write("gemini", nodes, pairs).messages[1]["parts"][0]["functionCall"]["args"]
    assert args == {"input": patch}


@pytest.mark.parametrize("form", FORMS)
def test_an_id_that_is_not_valid_or_not_the_first_is_mapped_for_call_and_result(form: str) -> None:
    nodes, pairs = [user(1, "", text("", "user", "do"))], []
    given = ["ok-1", "ok-1", "x" * 129, "x" * 129, "ä", "ok-1_2"]
    for n, call_id in enumerate(given):
        nodes += [
            assistant(2 * n + 2, "", call("", call_id, "Bash", {})),
            user(2 * n + 3, "", result("", call_id, "o")),
        ]
        pairs.append(((2 * n + 2, 0), (2 * n + 3, 0)))
    written = write(form, nodes, links(*pairs))
    ids = _ids(form, written.messages, calls=True)
    assert ids == _ids(form, written.messages, calls=False)
    assert ids[0] == "ok-1" and len(set(ids)) == len(ids) and max(map(len, ids)) <= 64
    assert written.renamed["call_ids"] == 5
    assert _ids(form, write(form, nodes[:5], links(*pairs[:2])).messages, calls=True) == ids[:2]


def test_an_id_that_is_used_again_and_again_costs_no_more_each_time() -> None:
    ids = CallIds(re.compile("[a-z_0-9]+"), 64)
    found = [ids.of((n, 0), "again") for n in range(50_000)]
    assert len(set(found)) == len(found) and found[1] == "again_2"


def _ids(form: str, messages: list[Any], *, calls: bool) -> list[str]:
    if form == "responses":
        kind = "function_call" if calls else "function_call_output"
        return [m["call_id"] for m in messages if m["type"] == kind]
    if form == "openai":
        made = [c["id"] for m in messages for c in m.get("tool_calls", ())]
        return made if calls else [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    if form == "gemini":
        key = "functionCall" if calls else "functionResponse"
        return [p[key]["id"] for m in messages for p in m["parts"] if key in p]
    key = "id" if calls else "tool_use_id"
    return [b[key] for m in messages for b in m["content"] if key in b]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["functions.exec", "n" * 200, "", "ünï"])
def test_a_name_that_is_not_valid_is_mapped_and_one_that_is_stays(form: str, name: str) -> None:
    for dialect in (form, ""):
        nodes, pairs = asked(
            dialect, call(dialect, "call_1", name, {}), result(dialect, "call_1", "out", name=name)
        )
        assert write(form, nodes, pairs).renamed == {"tool_names": 1}
        nodes, pairs = asked(
            dialect, call(dialect, "call_1", "Bash", {}), result(dialect, "call_1", "out")
        )
        assert write(form, nodes, pairs).renamed == {}


@pytest.mark.parametrize("form", FORMS)
def test_a_closed_call_is_answered_by_a_stand_in_and_a_late_result_is_shown_once_as_text(
    form: str,
) -> None:
    nodes = [
        user(1, "", text("", "user", "do")),
        assistant(2, "", call("", "call_1", "Bash", {})),
        assistant(4, "", text("", "assistant", "went on")),
        user(5, "", result("", "call_1", "the late words")),
        user(6, "", result("", "nobody", "the lost words")),
    ]
    written = write(form, nodes, links(closed={(2, 0): "interrupted"}, late={(5, 0): (2, 0)}))
    said = flat(written)
    assert said.count("closed as interrupted") == 1
    assert said.count("the late words") == 1 and "which was closed before it came" in said
    assert said.count("the lost words") == 1 and "which is not in sight" in said
    assert written.as_text == {"tool_result": 2}
    assert (
        said.index("closed as interrupted") < said.index("went on") < said.index("the late words")
    )


@pytest.mark.parametrize("form", FORMS)
def test_calls_of_one_response_that_share_an_id_are_all_handed_out_each_with_its_result(
    form: str,
) -> None:
    nodes = [
        user(1, "", text("", "user", "do")),
        assistant(2, "", call("", "a", "Bash", {"n": 1}), call("", "a", "Bash", {"n": 2})),
        user(3, "", result("", "a", "of two"), result("", "a", "of one")),
    ]
    written = write(form, nodes, links(((2, 1), (3, 0)), ((2, 0), (3, 1))))
    said = flat(written)
    assert len(_ids(form, written.messages, calls=True)) == 2
    assert said.index("of one") < said.index("of two"), "results stand in the order of the calls"


def test_what_a_provider_ran_by_itself_goes_back_as_it_came_and_elsewhere_as_a_call() -> None:
    ran = {
        "type": "mcp_call",
        "id": "mcp_1",
        "name": "ask",
        "server_label": "s",
        "arguments": "{}",
        "output": "out",
    }
    made = replace(call("responses", "mcp_1", "ask", {}), block=ran)
    nodes, pairs = asked("responses", made, replace(result("responses", "mcp_1", "out"), block=ran))
    assert write("responses", nodes, pairs).messages[1:] == [ran]
    assert len(_ids("openai", write("openai", nodes, pairs).messages, calls=False)) == 1

    code = {"executableCode": {"code": "1 + 1", "language": "PYTHON"}, "thoughtSignature": "c2ln"}
    done = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}
    made = replace(call("gemini", "code_1", "code_execution", {"code": "1 + 1"}), block=code)
    answer = replace(result("gemini", "code_1", "2"), block=done)
    nodes = [user(1, "gemini", text("gemini", "user", "do")), assistant(2, "gemini", made, answer)]
    found = links(((2, 0), (2, 1)))
    assert write("gemini", nodes, found).messages[1:] == [{"role": "model", "parts": [code, done]}]
    shown = write("anthropic", nodes, found).messages
    assert [b["type"] for m in shown for b in m["content"]] == ["text", "tool_use", "tool_result"]


# -- images and files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dialect", blocks.DIALECTS)
def test_an_image_is_carried_between_all_formats(form: str, dialect: str) -> None:
    written = write(
        form, [user(1, dialect, image(dialect, "user", Media("image/png", PNG)))], links()
    )
    assert PNG in flat(written) and written.as_text == {}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("media", "says"),
    [
        (Media("image/tiff", "no base64!", name="scan.tiff"), "image scan.tiff image/tiff"),
        (Media(None, None, "file:///tmp/a.png"), "at file:///tmp/a.png"),
        (Media(), "image"),
        (None, "image"),
    ],
)
def test_an_image_that_cannot_be_carried_is_named(
    form: str, media: Media | None, says: str
) -> None:
    part = Part(PartKind.IMAGE, Channel.USER_TYPED, media=media)
    written = write(form, [user(1, "", part)], links())
    assert f"{says}: it cannot" in flat(written).replace(" of 7 bytes", "")
    assert written.as_text == {"image": 1}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dialect", ["anthropic", "responses", ""])
def test_the_images_of_a_result_are_carried_where_the_format_has_a_place_for_them(
    form: str, dialect: str
) -> None:
    nodes, pairs = asked(
        dialect, call(dialect, "c", "Bash", {}), result(dialect, "c", "see", image=True)
    )
    written = write(form, nodes, pairs)
    assert flat(written).count(PNG) == 1
    if form == "openai":  # a tool's message is text; what it saw follows
        assert [m["role"] for m in written.messages] == ["user", "assistant", "tool", "user"]


def test_an_image_that_is_a_part_of_its_own_beside_a_result_is_not_shown_twice() -> None:
    nodes, pairs = asked("", call("", "c", "Bash", {}), result("", "c", "see", image=True))
    beside = Part(PartKind.IMAGE, Channel.TOOL, media=Media("image/png", PNG))
    nodes[2] = user(3, "", *nodes[2].parts, beside)
    assert flat(write("anthropic", nodes, pairs)).count(PNG) == 1


@pytest.mark.parametrize("form", FORMS)
def test_a_document_is_carried(form: str) -> None:
    part = Part(
        PartKind.FILE, Channel.USER_TYPED, media=Media("application/pdf", "JVBERi0=", name="a.pdf")
    )
    written = write(form, [user(1, "", part)], links())
    assert "JVBERi0=" in flat(written) and written.as_text == {}


# -- roles and texts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["anthropic", "gemini"])
def test_formats_that_begin_with_the_user_do(form: str) -> None:
    nodes = [assistant(1, "", text("", "assistant", "hello"))]
    assert write(form, nodes, links()).messages[0]["role"] == "user"
    nodes = [user(1, "", text("", "user", "hi")), assistant(2, "", text("", "assistant", "hello"))]
    assert "not in sight" not in flat(write(form, nodes, links()))


def test_the_last_text_of_an_assistant_ends_without_white_space() -> None:
    nodes = [
        user(1, "", text("", "user", "say \n")),
        assistant(2, "anthropic", text("anthropic", "assistant", "so \n")),
    ]
    assert [m["content"][-1]["text"] for m in write("anthropic", nodes, links()).messages] == [
        "say \n",
        "so",
    ]


@pytest.mark.parametrize("form", FORMS)
def test_the_systems_words_stand_in_their_own_field_or_first_and_later_ones_at_their_place(
    form: str,
) -> None:
    nodes = [
        user(1, "", text("", "system", "be kind"), role="system"),
        user(2, "", text("", "user", "hi")),
        user(3, "", text("", "system", "be brief"), role="system"),
    ]
    written = write(form, nodes, links())
    said = flat(written)
    assert said.index("be kind") < said.index("hi") < said.index("be brief")
    assert (written.system is not None) == (form in ("anthropic", "gemini"))
    if written.system is None:
        roles = [m["role"] for m in written.messages]
        assert roles[1] == "user" and roles[0] == roles[2] != "user"


@pytest.mark.parametrize("form", FORMS)
def test_texts_that_say_nothing_are_left_out_and_nothing_is_made_of_nothing(form: str) -> None:
    for dialect in (form, ""):
        nodes = [
            user(1, dialect, text(dialect, "user", " \n")),
            assistant(2, dialect, text(dialect, "assistant", "")),
        ]
        written = write(form, nodes, links())
        assert written.messages == [] and written.left_out == {"empty_text": 2}
    assert write(form, [], links()).messages == []


@pytest.mark.parametrize("form", FORMS)
def test_what_no_provider_can_read_is_made_valid_text(form: str) -> None:
    nodes, pairs = asked(
        form,
        call(form, "c", "Bash", {"\ud800": float("inf")}),
        result(form, "c", "\ud83d\ude00 \udfff"),
    )
    said = json.dumps(write(form, nodes, pairs).messages, ensure_ascii=False, allow_nan=False)
    assert "\U0001f600 \ufffd" in said.encode().decode()


# -- all of it ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_every_part_is_handed_over_or_counted(form: str) -> None:
    for seed in range(200):
        found = history(seed)
        written = write(form, found.nodes, found.links)
        kinds = [part.kind for node in found.nodes for part in node.parts]
        said, left = flat(written), written.left_out
        calls = _count(form, written.messages, calls=True)
        assert calls + left.get("pending_call", 0) == kinds.count(PartKind.TOOL_CALL), seed
        closers = said.count("[closed as ")
        shown = _count(form, written.messages, calls=False) - closers
        assert shown + written.as_text.get("tool_result", 0) == kinds.count(PartKind.TOOL_RESULT), (
            seed
        )
        thoughts = (
            said.count('"c2VhbGVk"') + said.count('"MTIzNDU2Nzg="') + said.count('"bGF0ZXI="')
        )
        if form != "openai":  # which joins what one response said in two places
            assert thoughts + left.get("reasoning", 0) == kinds.count(PartKind.REASONING), seed


def _count(form: str, messages: list[Any], *, calls: bool) -> int:
    keys = {
        "anthropic": ("tool_use", "tool_result"),
        "gemini": ("functionCall", "functionResponse"),
    }
    if form == "openai":
        return sum(
            len(m.get("tool_calls") or ()) if calls else m["role"] == "tool" for m in messages
        )
    if form == "responses":
        return sum(m["type"].endswith("_call" if calls else "_call_output") for m in messages)
    if form == "gemini":
        return sum(keys[form][not calls] in p for m in messages for p in m["parts"])
    return sum(b["type"] == keys[form][not calls] for m in messages for b in m["content"])
