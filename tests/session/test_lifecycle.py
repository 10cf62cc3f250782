"""What looks current is current: narrow runs under the whole suite, items given other content, exports by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.errors import UsageError

FAILED = "FAILED tests/a.py::t - x\n1 failed, 5 passed in 1.0s"
WHOLE, NARROW = "test/pytest/status", "test/pytest:tests/a.py/status"


class Transcript:
    """Lines of a session file, of the test's own making."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def record(self, uuid: str, role: str, content: Any, **more: Any) -> None:
        message: dict[str, Any] = {"role": role, "content": content}
        if role == "assistant":
            message |= {"id": f"msg-{uuid}", "model": "m"}
        record = {"type": role, "uuid": uuid, "sessionId": "s1", "message": message, **more}
        self.lines.append(json.dumps(record))

    def run(self, n: int, command: str, output: str, *, error: bool = False) -> None:
        use = {"type": "tool_use", "id": f"c{n}", "name": "Bash", "input": {"command": command}}
        self.record(f"u{n}", "assistant", [use])
        self.result(n, output, error=error)

    def result(self, n: int, output: str, *, error: bool = False) -> None:
        said = {"type": "tool_result", "tool_use_id": f"c{n}", "content": output}
        if error:
            said |= {"content": f"Exit code 1\n{output}", "is_error": True}
        self.record(f"r{n}", "user", [said])

    def store(self, path: Path) -> ef.Store:
        file = path / "session.jsonl"
        file.write_text("\n".join(self.lines) + "\n", encoding="utf-8")
        store = ef.open(path / "store")
        store.import_file(file)
        return store


def lives(store: ef.Store, at: int | None = None) -> dict[str, str]:
    return {k: h.lifecycle for k, h in store.session("s1").state(at).heads.items()}


def failing(store: ef.Store) -> list[str]:
    return [str(h.anchor.key) for h in store.session("s1").state().failures]


def test_a_green_whole_run_overtakes_a_narrow_failure_for_good(tmp_path: Path) -> None:
    t = Transcript()
    t.run(1, "pytest -q tests/a.py", "FAILED tests/a.py::t - x\n1 failed in 1.0s", error=True)
    t.run(2, "pytest -q", "6 passed in 1.0s")
    t.run(3, "pytest -q", "FAILED tests/b.py::u - x\n1 failed, 5 passed in 1.0s", error=True)
    with t.store(tmp_path) as store:
        assert lives(store)[NARROW] == "stale"
        assert failing(store) == [WHOLE]


def test_a_red_whole_run_overtakes_a_narrow_success_and_not_the_other_way(tmp_path: Path) -> None:
    t = Transcript()
    t.run(1, "pytest -q tests/a.py", "1 passed in 1.0s")
    t.run(2, "pytest -q", FAILED, error=True)
    with t.store(tmp_path) as store:
        assert lives(store)[NARROW] == "stale"
    t.run(3, "pytest -q tests/a.py", "1 passed in 1.0s")
    with t.store(tmp_path) as store:
        assert lives(store)[NARROW] == "active"
        assert failing(store) == [WHOLE]


@pytest.mark.parametrize(
    ("whole", "life"),
    [
        (FAILED, "stale"),
        (
            "ERROR tests/b.py\n!!!!! Interrupted: 1 error during collection !!!!!\n1 error in 0.1s",
            "active",
        ),
    ],
)
def test_a_narrow_failure_stays_until_a_whole_run_went_through_and_named_its_failures(
    tmp_path: Path, whole: str, life: str
) -> None:
    t = Transcript()
    t.run(1, "pytest -q tests/a.py", "FAILED tests/a.py::t - x\n1 failed in 1.0s", error=True)
    t.run(2, "pytest -q", whole, error=True)
    with t.store(tmp_path) as store:
        assert lives(store)[NARROW] == life


def test_a_difference_shows_a_value_that_went_stale(tmp_path: Path) -> None:
    t = Transcript()
    t.run(1, "pytest -q tests/a.py", "1 passed in 1.0s")
    t.run(2, "pytest -q", FAILED, error=True)
    with t.store(tmp_path) as store:
        session = store.session("s1")
        before = session.state().heads[NARROW].seq + 2
        old, new = session.diff(before).changed[NARROW]
        assert (old.lifecycle, new.lifecycle) == ("active", "stale")


def test_a_result_that_was_given_other_content_grounds_what_it_says_now(tmp_path: Path) -> None:
    t = Transcript()
    t.run(1, "pytest -q", "5 passed in 0.1s")
    t.result(1, FAILED, error=True)
    with t.store(tmp_path) as store:
        session = store.session("s1")
        assert session.state().heads[WHOLE].value == "failed"
        assert failing(store) == [WHOLE]
        assert store.verify().ok
        replaced = next(r.header.seq for r in session.events() if r.header.kind == "ItemReplaced")
        assert lives(store, replaced)[WHOLE] == "unsupported"


def test_a_result_whose_new_content_says_nothing_leaves_its_head_unsupported(
    tmp_path: Path,
) -> None:
    t = Transcript()
    t.run(1, "pytest -q", FAILED, error=True)
    t.result(1, "[redacted]")
    with t.store(tmp_path) as store:
        assert lives(store)[WHOLE] == "unsupported"
        assert failing(store) == []
        current = store.session("s1").audit(WHOLE).current
        assert current is not None
        assert current.lifecycle == "unsupported"


def test_a_call_that_was_given_other_content_is_no_test_run_any_more(tmp_path: Path) -> None:
    t = Transcript()
    use = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "pytest -q"}}
    t.record("u1", "assistant", [use])
    t.record("u1", "assistant", [{**use, "input": {"command": "cat old.log"}}])
    t.result(1, "5 passed in 0.1s")
    with t.store(tmp_path) as store:
        assert WHOLE not in lives(store)


@pytest.mark.parametrize("size", [300_000, 3_000_000])
def test_a_long_first_line_does_not_hide_what_the_file_is(tmp_path: Path, size: int) -> None:
    t = Transcript()
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "A" * size},
    }
    t.record("u0", "user", [image, {"type": "text", "text": "What is this?"}])
    t.record("u1", "assistant", [{"type": "text", "text": "A picture."}])
    with t.store(tmp_path) as store:
        assert len(store.session("s1").context().nodes) == 2


@pytest.mark.parametrize(
    ("stamp", "last"),
    [
        ("9999-12-31T23:59:59-12:00", None),
        ("0001-01-01T00:00:00+12:00", None),
        ("2026-03-14T10:00:00+02:00", "2026-03-14T08:00:00.000Z"),
    ],
)
def test_a_time_that_no_calendar_shows_is_unknown(
    tmp_path: Path, stamp: str, last: str | None
) -> None:
    t = Transcript()
    t.record("u0", "user", "Hello.", timestamp=stamp)
    with t.store(tmp_path) as store:
        assert [s.last for s in store.sessions()] == [last]


@pytest.mark.parametrize(
    ("record", "channel"),
    [
        ({"message": {"role": "user", "content": "Fix it."}}, "user_typed"),
        ({"message": {"role": "assistant", "content": "Fix it."}}, "importer"),
        (
            {"message": {"role": "user", "content": "<ide_opened_file>a.py</ide_opened_file>"}},
            "system",
        ),
        ({"message": {"role": "user", "content": "<b>bold</b> words"}}, "user_typed"),
    ],
)
def test_only_a_plain_prompt_is_the_users_word(
    tmp_path: Path, record: dict[str, Any], channel: str
) -> None:
    t = Transcript()
    t.record("u0", "user", "x", **record)
    with t.store(tmp_path) as store:
        assert store.session("s1").context().nodes[0].channels == (channel,)


def test_what_stands_beside_a_result_is_not_the_users_word(tmp_path: Path) -> None:
    t = Transcript()
    t.run(1, "ls", "a.py")
    beside = [
        {"type": "tool_result", "tool_use_id": "c1", "content": "b.py"},
        {"type": "text", "text": "Use port 80."},
    ]
    t.record("x", "user", beside)
    with t.store(tmp_path) as store:
        assert store.session("s1").context().nodes[-1].channels == ("tool", "system")


def test_different_files_and_targets_have_different_keys(tmp_path: Path) -> None:
    t = Transcript()
    for n, path in enumerate(("/r/a  b.txt", "/r/a b.txt", " ")):
        use = {"type": "tool_use", "id": f"f{n}", "name": "Read", "input": {"file_path": path}}
        t.record(f"f{n}", "assistant", [use])
        said = {"type": "tool_result", "tool_use_id": f"f{n}", "content": "1→x"}
        t.record(f"g{n}", "user", [said])
    for n, (query, fails) in enumerate((("drop a", True), ("select 1", False))):
        use = {"type": "tool_use", "id": f"q{n}", "name": "mcp__db__q", "input": {"sql": query}}
        t.record(f"q{n}", "assistant", [use])
        said = {"type": "tool_result", "tool_use_id": f"q{n}", "content": "no", "is_error": fails}
        t.record(f"s{n}", "user", [said])
    with t.store(tmp_path) as store:
        keys = set(store.session("s1").state().heads)
        assert {"file//r/a  b.txt/read", "file//r/a b.txt/read"} <= keys
        assert len([k for k in keys if k.startswith("file/")]) == 2
        assert len(failing(store)) == 1


class TestExportByName:
    """A source by its id, or by the only session that it holds."""

    def two(self, path: Path, *names: str) -> ef.Store:
        store = ef.open(path / "store")
        for n, name in enumerate(names):
            t = Transcript()
            t.record(f"u{n}", "user", f"Hello {n}.")
            file = path / f"{n}.jsonl"
            file.write_text(t.lines[0] + "\n", encoding="utf-8")
            store.import_file(file, session=name)
        return store

    def test_the_exact_name_wins_over_a_longer_one(self, tmp_path: Path) -> None:
        with self.two(tmp_path, "abc", "abcd") as store:
            assert store.export_original("abc") == (tmp_path / "0.jsonl").read_bytes()
            assert store.export_original("abcd") == (tmp_path / "1.jsonl").read_bytes()
            with pytest.raises(UsageError, match="give one of their ids"):
                store.export_original("ab")

    def test_a_name_that_is_a_session_and_begins_another_source_is_refused(
        self, tmp_path: Path
    ) -> None:
        with self.two(tmp_path, "one") as store:
            begins = store.sources()[0].id[:6]
        with self.two(tmp_path / "", "one", begins) as store:
            with pytest.raises(UsageError, match="give one of their ids"):
                store.export_original(begins)
            for source in store.sources():
                assert store.export_original(source.id)


def test_an_audit_says_which_line_of_which_source_was_quoted(tmp_path: Path) -> None:
    t = Transcript()
    t.run(1, "pytest -q", "5 passed in 0.1s")
    with t.store(tmp_path) as store:
        found = store.session("s1").audit(WHOLE).to_json()["sources"][0]
        assert (found["source"], found["line"]) == (store.sources()[0].id, 2)


def test_calls_of_two_responses_in_a_row_keep_their_real_results(tmp_path: Path) -> None:
    t = Transcript()
    for n, command in ((1, "git push"), (2, "git status")):
        use = {"type": "tool_use", "id": f"c{n}", "name": "Bash", "input": {"command": command}}
        t.record(f"u{n}", "assistant", [use])
    t.result(2, "clean")
    t.result(1, "pushed")
    t.record("end", "assistant", [{"type": "text", "text": "Done."}])
    with t.store(tmp_path) as store:
        session = store.session("s1")
        assert not [r for r in session.events() if r.header.kind == "CallClosed"]
        said = [block["content"] for block in session.context().messages[1]["content"]]
        assert said == ["pushed", "clean"]


def test_a_call_that_the_users_word_interrupted_is_closed_by_the_next_response(
    tmp_path: Path,
) -> None:
    t = Transcript()
    use = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "git push"}}
    t.record("u1", "assistant", [use])
    t.record("u2", "user", "Never mind.")
    t.record("end", "assistant", [{"type": "text", "text": "Stopped."}])
    with t.store(tmp_path) as store:
        closed = [r for r in store.session("s1").events() if r.header.kind == "CallClosed"]
        assert len(closed) == 1


@pytest.mark.parametrize(
    ("stamp", "known"), [("9999-12-31T23:59:59-12:00", False), ("2026-03-14T10:00:00Z", True)]
)
def test_an_absurd_time_is_not_recorded_as_one(tmp_path: Path, stamp: str, known: bool) -> None:
    t = Transcript()
    t.record("u0", "user", "Hello.", timestamp=stamp)
    with t.store(tmp_path) as store:
        item = next(r for r in store.session("s1").events() if r.header.kind == "ItemAppended")
        assert (item.header.occurred_at is not None) is known
        assert item.header.basis == ("claimed" if known else "unknown")
