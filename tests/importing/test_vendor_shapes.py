"""Importers of other vendors' files: each knows its own, says of an item what its reader makes of the bytes, bears all
in any field, and says of a file's beginning what does not depend on the rest.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ef.events.shapes import is_list, is_map
from ef.importers.formats import names
from ef.testing.pairing import violations
from tests.importing.vendors import FIXTURES, agreed, seed, store_of, taken_by, translated

FORMS = (
    "opencode",
    "pi",
    "copilot-cli",
    "gemini-cli",
    "gemini-cli-jsonl",
    "cline",
    "cline-task",
    "roo",
    "goose",
)
OWN = {
    "opencode": FIXTURES / "opencode" / "session.json",
    "pi": FIXTURES / "pi" / "session.jsonl",
    "gemini-cli-jsonl": FIXTURES / "gemini_cli" / "session.jsonl",
}
"""Files that the real program wrote."""
ROWS: list[dict[str, Any]] = [
    {"table": "session", "rowid": 1, "id": "ses_1", "directory": "/home/dev", "title": "Kettle"},
    {"table": "session", "rowid": 2, "id": "ses_2", "parent_id": "ses_1", "title": "The spout"},
    {"table": "message", "rowid": 1, "id": "m1", "session_id": "ses_1", "data": {"role": "user"}},
    {
        "table": "message", "rowid": 2, "id": "m2", "session_id": "ses_1",
        "data": {"role": "assistant", "time": {"created": 2}, "modelID": "a", "tokens": {"input": 1, "output": 2}},
    },
    {"table": "message", "rowid": 3, "id": "m3", "session_id": "ses_2", "data": {"role": "user"}},
    {"table": "part", "rowid": 1, "id": "p1", "message_id": "m1", "data": {"type": "text", "text": "Mend it."}},
    {
        "table": "part", "rowid": 2, "id": "p2", "message_id": "m2",
        "data": {
            "type": "tool", "callID": "c1", "tool": "task",
            "state": {
                "status": "completed", "input": {"prompt": "Look."}, "output": "no", "metadata": {"sessionId": "ses_2"},
            },
        },
    },
    {"table": "part", "rowid": 3, "id": "p3", "message_id": "m3", "data": {"type": "text", "text": "Look."}},
    {"table": "sessions", "rowid": 1, "id": "s1", "name": "Kettle", "session_type": "user"},
    {
        "table": "messages", "rowid": 1, "id": 1, "session_id": "s1", "role": "user", "created_timestamp": 1772442000,
        "content_json": [{"type": "text", "text": "Mend it."}], "metadata_json": {"userVisible": True},
    },
]  # fmt: skip
"""Rows of both databases: each importer passes over the other's."""


def content(form: str) -> Any:
    """A seed as JSON: a document, or the values of its lines."""
    if form.endswith("-db"):
        return copy.deepcopy(ROWS)
    path = seed(form)
    text = path.read_text("utf-8")
    return (
        [json.loads(row) for row in text.splitlines()]
        if path.suffix == ".jsonl"
        else json.loads(text)
    )


def as_lines(form: str) -> bool:
    return form.endswith("-db") or seed(form).suffix == ".jsonl"


def packed(form: str, value: Any) -> bytes:
    if as_lines(form):
        return b"".join(json.dumps(each).encode() + b"\n" for each in value)
    return json.dumps(value).encode()


def places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of each value inside of a value."""
    pairs = value.items() if is_map(value) else enumerate(value) if is_list(value) else ()
    found: list[tuple[Any, Any]] = []
    for key, each in pairs:
        found.append((value, key))
        found += places(each)
    return found


@pytest.mark.parametrize("form", FORMS)
def test_a_session_is_known_as_its_own_format_alone(form: str) -> None:
    files = [seed(form), *([OWN[form]] if form in OWN else [])]
    for path in files:
        assert taken_by(path.read_bytes(), str(path)) == [form]


@pytest.mark.parametrize("form", FORMS)
def test_what_an_importer_says_of_an_item_is_what_its_reader_makes_of_the_bytes(form: str) -> None:
    for path in [seed(form), *([OWN[form]] if form in OWN else [])]:
        meanings, remarks = translated(form, path.read_bytes(), str(path))
        assert agreed(meanings) >= 3
        assert remarks == []


@pytest.mark.parametrize("form", [f for f in FORMS if as_lines(f)])
def test_what_is_said_of_the_first_lines_does_not_depend_on_later_ones(form: str) -> None:
    rows = seed(form).read_bytes().splitlines(keepends=True)
    whole = [m.key for m in translated(form, b"".join(rows))[0]]
    for n in range(len(rows)):
        part = [m.key for m in translated(form, b"".join(rows[:n]))[0]]
        assert whole[: len(part)] == part


@pytest.mark.parametrize("form", FORMS)
def test_at_any_moment_calls_and_results_are_pairs(form: str, tmp_path: Path) -> None:
    files = [seed(form), *([OWN[form]] if form in OWN else [])]
    for n, path in enumerate(files):
        with store_of(path, tmp_path / str(n)) as taken:
            for name in taken.done.sessions:
                session = taken.store.session(name)
                for at in range(1, session.seq + 1):
                    assert violations(session.context(at=at).messages) == [], f"{path} at {at}"


KEYS = st.sampled_from(["type", "id", "text", "role", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8) | st.sampled_from(["text", "user", "assistant", "tool", "error", "<task>\nx\n</task>"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@pytest.mark.parametrize("form", [*FORMS, "opencode-db", "goose-db"])
def test_anything_may_stand_in_any_field(form: str) -> None:
    whole = content(form)
    count = len(places(whole))

    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.tuples(st.integers(0, count - 1), JSON), min_size=1, max_size=3))
    def check(changes: list[tuple[int, Any]]) -> None:
        value = copy.deepcopy(whole)
        there = places(value)
        for n, new in changes:
            container, key = there[n]
            container[key] = new
        meanings, _ = translated(form, packed(form, value))
        agreed(meanings)

    check()


@pytest.mark.parametrize("form", [*FORMS, "opencode-db", "goose-db"])
def test_any_field_may_be_absent(form: str) -> None:
    for n in range(len(places(content(form)))):
        value = content(form)
        container, key = places(value)[n]
        del container[key]
        agreed(translated(form, packed(form, value))[0])


@pytest.mark.parametrize(
    "wrong",
    [b"", b"{}", b"[]", b"[1]", b'{"messages":[]}', b'[{"role":"user","content":"x"}]', b"null\n"],
)
def test_what_says_too_little_is_no_session_of_theirs(wrong: bytes) -> None:
    assert [form for form in taken_by(wrong, "x.json") if form in FORMS] == []


def test_all_of_them_are_in_the_table() -> None:
    assert {*FORMS, "opencode-db", "goose-db"} <= set(names())


@pytest.mark.parametrize("form", FORMS)
def test_a_session_is_recognised_in_the_shared_folder_by_its_own_format(
    form: str, shared_data: Path, figure: Callable[[str], None]
) -> None:
    """No other session of the folder is taken by it."""
    folder = form.removesuffix("-jsonl").removesuffix("-task")
    strange: list[str] = []
    for path in sorted(shared_data.rglob("*")):
        if (
            path.is_file()
            and path.suffix in (".json", ".jsonl")
            and "tool-outputs" not in path.parts
        ):
            ours = form in taken_by(path.read_bytes()[: 1 << 20], str(path))
            if ours and path.relative_to(shared_data).parts[0] != folder:
                strange.append(str(path))
    assert strange == []
