"""GenAI spans: each message once however often a history says it, whichever way attributes and files are written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.errors import InputRefused
from ef.events import RouteChanged, UsageReported
from ef.events.shapes import is_list, is_map
from ef.render.export import WRITERS
from tests.importing.vendors import FIXTURES, Taken, store_of, taken_by, written
from tests.render.checks import refusals

OTLP, CONSOLE = FIXTURES / "otel_genai/otlp.jsonl", FIXTURES / "otel_genai/spans.json"
SAID = [
    ("system", "Be kind."),
    ("user_typed", "Is there a lid? 🍵"),
    ("assistant", "I look."),
    ("assistant", "It has a lid."),
    ("user_typed", "Once more, please."),
    ("assistant", "It has a lid."),
]


def text(role: str, *texts: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": t} for t in texts]}


def span(given: list[Any], made: list[Any], *, name: str = "c", **more: Any) -> dict[str, Any]:
    """A span as the console's exporter writes it, its messages as structures."""
    told = {
        "gen_ai.operation.name": "chat",
        "gen_ai.conversation.id": name,
        "gen_ai.input.messages": given,
        "gen_ai.output.messages": made,
        **more,
    }
    return {"name": "chat m", "context": {"trace_id": "0x1"}, "attributes": told}


def otlp(span: dict[str, Any]) -> dict[str, Any]:
    """The span as OTLP has it."""
    told = [{"key": k, "value": _value(v)} for k, v in span["attributes"].items()]
    bare = {"traceId": "00", "name": span["name"], "attributes": told}
    return {"resourceSpans": [{"scopeSpans": [{"spans": [bare]}]}]}


def _value(value: Any) -> dict[str, Any]:
    if is_map(value):
        pairs = [{"key": k, "value": _value(v)} for k, v in value.items()]
        return {"kvlistValue": {"values": pairs}}
    if is_list(value):
        return {"arrayValue": {"values": [_value(v) for v in value]}}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}


def typed(taken: Taken) -> list[str]:
    return [text for channel, text in taken.said() if channel == "user_typed"]


@pytest.mark.parametrize("path", [OTLP, CONSOLE], ids=lambda p: p.name)
def test_what_the_packages_wrote_comes_in_once(path: Path, tmp_path: Path) -> None:
    with store_of(path, tmp_path) as taken:
        assert taken.said() == SAID
        assert [p.call_id for p in taken.parts() if p.call] == ["call_1", "call_2"]
        results = [p.result for p in taken.parts() if p.result]
        assert [(r.call_id, r.is_error) for r in results] == [("call_1", False), ("call_2", True)]
        assert [u.message_id for u in taken.events(UsageReported)] == ["resp_0", "resp_1", "resp_2"]
        assert [(u.input, u.output) for u in taken.events(UsageReported)] == [
            (12, 3), (13, 3), (14, 3),
        ]  # fmt: skip
        assert taken.events(RouteChanged) == [RouteChanged("made-up", "made-up-1")]
        thoughts = [p.text for p in taken.parts() if p.kind.value == "reasoning"]
        assert thoughts == ["A kettle needs one."]


@pytest.mark.parametrize("path", [OTLP, CONSOLE], ids=lambda p: p.name)
def test_each_provider_takes_what_is_exported(path: Path, tmp_path: Path) -> None:
    with store_of(path, tmp_path) as taken:
        for form in WRITERS:
            assert refusals(taken.store.session(taken.done.sessions[0]).export(form)) == []


def histories() -> list[dict[str, Any]]:
    """Two spans of a conversation in which the user says the same words twice."""
    first, yes, again = text("user", "Go on."), text("assistant", "Yes."), text("user", "Go on.")
    return [span([first], [yes]), span([first, yes, again], [text("assistant", "Yes.")])]


def ways(spans: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """A file of spans in each way that they are kept."""
    packed = [
        {**s, "attributes": {k: v if isinstance(v, str) else json.dumps(v) for k, v in s["attributes"].items()}}
        for s in spans
    ]  # fmt: skip
    whole: dict[str, Any] = {"resourceSpans": [otlp(s)["resourceSpans"][0] for s in spans]}
    yield "structures", "".join(json.dumps(s) + "\n" for s in spans)
    yield "texts", "".join(json.dumps(s) + "\n" for s in packed)
    yield "otlp lines", "".join(json.dumps(otlp(s)) + "\n" for s in spans)
    yield "otlp, values in values", json.dumps(whole)
    yield "one document", json.dumps(whole, indent=2)
    yield "one after another", "".join(json.dumps(s, indent=4) + "\n" for s in packed)
    yield "a list", json.dumps(packed)
    yield "a list, a span a line", "[\n" + ",\n".join(map(json.dumps, packed)) + "\n]\n"
    yield "a list, set out", json.dumps(packed, indent=2)
    yield "without a line feed", json.dumps(spans[1])


@pytest.mark.parametrize(("way", "content"), list(ways(histories())), ids=lambda v: v[:24])
def test_a_history_is_known_whichever_way_it_is_written(
    way: str, content: str, tmp_path: Path
) -> None:
    path = tmp_path / "spans.json"
    path.write_text(content)
    assert taken_by(path.read_bytes(), str(path)) == ["otel-genai"]
    with store_of(path, tmp_path) as taken:
        assert taken.said() == [("user_typed", "Go on."), ("assistant", "Yes.")] * 2
        assert taken.done.sessions == ["c"]
        assert taken.done.notes == []


def test_messages_that_only_look_alike_stay_apart(tmp_path: Path) -> None:
    def shown(data: str) -> dict[str, Any]:
        blob = {"type": "blob", "mime_type": "image/png", "modality": "image", "content": data}
        return {"role": "user", "parts": [blob]}

    odd = [{"role": "user", "parts": [{"type": "kettle", "lid": n}]} for n in (1, 2)]
    spans = [span([each], []) for each in (shown("aaaa"), shown("bbbb"), *odd, shown("aaaa"))]
    with store_of(written(tmp_path / "s.jsonl", spans), tmp_path) as taken:
        assert [p.kind.value for p in taken.parts()] == ["image", "image", "opaque", "opaque"]


def test_conversations_are_sessions_and_their_histories_are_apart(tmp_path: Path) -> None:
    spans = [span([text("user", "Go on.")], [text("assistant", "Yes.")], name=n) for n in "ab"]
    with store_of(written(tmp_path / "s.jsonl", spans), tmp_path) as taken:
        assert taken.done.sessions == ["a", "b"]
        assert taken.said("a") == taken.said("b") == [("user_typed", "Go on."), ("assistant", "Yes.")]  # fmt: skip


def test_a_span_of_the_whole_run_says_nothing_again(tmp_path: Path) -> None:
    first, yes = text("user", "Go on."), text("assistant", "Yes.")
    run = span([first], [yes], **{"gen_ai.operation.name": "invoke_agent"})
    with store_of(written(tmp_path / "s.jsonl", [span([first], [yes]), run]), tmp_path) as taken:
        assert len(taken.main) == 2


def test_a_system_text_that_changes_is_told_when_it_does(tmp_path: Path) -> None:
    kind, brief = "gen_ai.system_instructions", [{"type": "text", "content": "Be brief."}]
    told: list[Any] = [json.dumps([{"type": "text", "content": "Be kind."}])] * 2 + [brief]
    spans = [span([], [text("assistant", f"{n}")], **{kind: t}) for n, t in enumerate(told)]
    with store_of(written(tmp_path / "s.jsonl", spans), tmp_path) as taken:
        system = [text for channel, text in taken.said() if channel == "system"]
        assert system == ["Be kind.", "Be brief."]


def test_no_tool_can_speak_for_the_user(tmp_path: Path) -> None:
    answer = {"type": "tool_call_response", "id": "x", "response": '[{"role":"user","parts":[]}]'}
    given = [{"role": "tool", "parts": [answer, {"type": "text", "content": "I am the user."}]}]
    with store_of(written(tmp_path / "s.jsonl", [span(given, [])] * 2), tmp_path) as taken:
        assert typed(taken) == []


def test_spans_of_something_else_are_refused(tmp_path: Path) -> None:
    other = {"name": "GET /", "attributes": {"http.method": "GET", "gen_ai.system": "made-up"}}
    path = written(tmp_path / "s.jsonl", [other, other])
    with ef.open(tmp_path / "s.ef") as store, pytest.raises(InputRefused, match="not known"):
        store.import_file(path)
