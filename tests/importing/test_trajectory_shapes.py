"""Importers of benchmark agents' trajectories and of DeepSeek Harness: each knows its own, says of an item what its
reader makes of the bytes, bears all in any field, and says of a file's beginning what does not depend on the rest.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ef.importers.formats import names
from tests.importing.test_vendor_shapes import JSON, places
from tests.importing.vendors import FIXTURES, SEEDS, agreed, taken_by, translated

OURS = FIXTURES / "trajectories"
FILES = {
    SEEDS / "mini-swe-agent-v1.json": "mini-swe-agent",
    SEEDS / "mini-swe-agent-v2.json": "mini-swe-agent",
    FIXTURES / "mini_swe_agent_v2" / "tools.traj.json": "mini-swe-agent",
    FIXTURES / "mini_swe_agent_v2" / "text.traj.json": "mini-swe-agent",
    FIXTURES / "mini_swe_agent_v2" / "responses.traj.json": "mini-swe-agent",
    SEEDS / "swe-agent.json": "swe-agent",
    OURS / "swe-agent-collapsed.traj": "swe-agent",
    OURS / "swe-agent-history.traj": "swe-agent",
    SEEDS / "openhands-v0.json": "openhands-v0",
    OURS / "openhands-v0-trajectory.json": "openhands-v0",
    OURS / "openhands-v0-events.jsonl": "openhands-v0-jsonl",
    OURS / "openhands-v0-output.jsonl": "openhands-v0-jsonl",
    SEEDS / "openhands-v1.jsonl": "openhands-v1",
    OURS / "openhands-v1-events.jsonl": "openhands-v1",
    SEEDS / "deepseek-harness.jsonl": "deepseek-harness",
    OURS / "deepseek-harness-later.jsonl": "deepseek-harness",
}
ALL = [pytest.param(path, form, id=path.name) for path, form in FILES.items()]
LINES = [pytest.param(p, f, id=p.name) for p, f in FILES.items() if p.suffix == ".jsonl"]
MUTATED = [p for p in ALL if OURS in Path(str(p.values[0])).parents or "seeds" in str(p.values[0])]
EXAMPLES = 30


def content(path: Path) -> Any:
    """A file as JSON: a document, or the values of its lines."""
    text = path.read_text("utf-8")
    return (
        [json.loads(r) for r in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)
    )


def packed(path: Path, value: Any) -> bytes:
    if path.suffix == ".jsonl":
        return b"".join(json.dumps(each).encode() + b"\n" for each in value)
    return json.dumps(value).encode()


@pytest.mark.parametrize(("path", "form"), ALL)
def test_a_session_is_known_as_its_own_format_alone(path: Path, form: str) -> None:
    assert taken_by(path.read_bytes(), str(path)) == [form]


@pytest.mark.parametrize(("path", "form"), ALL)
def test_what_an_importer_says_of_an_item_is_what_its_reader_makes_of_the_bytes(
    path: Path, form: str
) -> None:
    meanings, remarks = translated(form, path.read_bytes(), str(path))
    assert agreed(meanings) >= 3
    assert remarks == []


@pytest.mark.parametrize(("path", "form"), LINES)
def test_what_is_said_of_the_first_lines_does_not_depend_on_later_ones(
    path: Path, form: str
) -> None:
    rows = path.read_bytes().splitlines(keepends=True)
    whole = [m.key for m in translated(form, b"".join(rows))[0]]
    for n in range(len(rows)):
        part = [m.key for m in translated(form, b"".join(rows[:n]))[0]]
        assert whole[: len(part)] == part


@pytest.mark.parametrize(("path", "form"), LINES)
def test_a_line_that_is_torn_says_nothing_until_it_is_whole(path: Path, form: str) -> None:
    rows = path.read_bytes().splitlines(keepends=True)
    before = [m.key for m in translated(form, b"".join(rows[:-1]))[0]]
    meanings, remarks = translated(form, b"".join(rows)[:-20])
    assert [m.key for m in meanings] == before
    assert [r.kind for r in remarks] == ["torn-tail"]


@pytest.mark.parametrize(("path", "form"), MUTATED)
def test_anything_may_stand_in_any_field(path: Path, form: str) -> None:
    whole = content(path)
    count = len(places(whole))

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(st.lists(st.tuples(st.integers(0, count - 1), JSON), min_size=1, max_size=3))
    def check(changes: list[tuple[int, Any]]) -> None:
        value = copy.deepcopy(whole)
        there = places(value)
        for n, new in changes:
            container, key = there[n]
            container[key] = new
        meanings, _ = translated(form, packed(path, value))
        agreed(meanings)

    check()


ODD: list[Any] = [None, True, 7, "", "user", [], [[]], {}, {"type": "text"}, [{}]]


@pytest.mark.parametrize(("path", "form"), MUTATED)
def test_each_field_may_hold_a_value_of_another_type(path: Path, form: str) -> None:
    """One of the odd values in each, another in the next; null is what an absent field is to every importer."""
    whole = content(path)
    for n, (container, key) in enumerate(places(whole)):
        held = container[key]
        container[key] = ODD[n % len(ODD)]
        agreed(translated(form, packed(path, whole))[0])
        container[key] = held


@pytest.mark.parametrize(
    "wrong",
    [
        b"", b"{}", b"[]", b"[1]", b"null\n", b'{"messages":[]}', b'{"history":[]}', b'{"trajectory":[]}',
        b'{"info":{},"messages":[{"role":"user","content":"x"}]}', b'{"type":"session"}\n',
        b'{"jsonrpc":"2.0","id":2,"result":{"sessionId":"{{sessionId}}"}}\n',
        b'{"history":[{"role":"user","content":"x"}],"instance_id":"k"}\n',
        b'{"kind":"kettle","id":"x","timestamp":"","source":"user"}\n',
        b'[{"action":"run","observation":"run"}]',
    ],
)  # fmt: skip
def test_what_says_too_little_is_no_session_of_theirs(wrong: bytes) -> None:
    assert [form for form in taken_by(wrong, "x.json") if form in set(FILES.values())] == []


def test_all_of_them_are_in_the_table() -> None:
    assert set(FILES.values()) <= set(names())


def test_no_other_session_of_the_shared_folder_is_taken(shared_data: Path) -> None:
    folders = ("mini-swe-agent", "swe-agent", "openhands", "deepseek-harness")
    strange: list[str] = []
    for path in sorted(shared_data.rglob("*.json*")):
        if path.relative_to(shared_data).parts[0] in folders:
            continue
        forms = taken_by(path.read_bytes()[: 1 << 20], str(path))
        strange += [f"{path}: {form}" for form in forms if form in set(FILES.values())]
    assert strange == []
