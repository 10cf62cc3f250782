"""`ef import`: files, folders, what is refused and what comes in all the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .conftest import ROOT, SESSION, SHOPCART, Run

FIXTURES = ROOT / "tests" / "fixtures" / "claude_code"
EDGES = "session format source messages events new_events notes".split()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "new store"


def test_a_file_comes_in_and_is_told_by_session(ef: Run, store: Path) -> None:
    done = ef("import", str(SHOPCART), store=store)
    assert done.code == 0
    assert not done.err
    assert "186 messages, 345 events (345 new)" in done.text
    assert f"Next: ef state {SESSION}" in done.text


def test_json_has_the_contracts_fields(ef: Run, store: Path) -> None:
    found = ef("import", str(SHOPCART), "--json", store=store).json
    root, agent = found["sessions"]
    assert all(name in row for row in (root, agent) for name in EDGES)
    assert (root["messages"], root["events"], root["new_events"]) == (186, 345, 345)
    assert root["session"] in agent["session"]
    assert found["refused"] == []
    assert found["sources"][0]["sessions"] == [root["session"], agent["session"]]


def test_importing_again_adds_nothing(ef: Run, store: Path) -> None:
    ef("import", str(SHOPCART), store=store)
    again = ef("import", str(SHOPCART), "--json", store=store).json
    assert [row["new_events"] for row in again["sessions"]] == [0, 0]
    assert "known already: nothing new" in ef("import", str(SHOPCART), store=store).text


def test_notes_are_counted_by_kind_with_their_lines(ef: Run, store: Path) -> None:
    path = FIXTURES / "array-line.jsonl"
    found = ef("import", str(path), "--json", store=store).json
    (note, *_) = found["sessions"][0]["notes"]
    assert set(note) == {"line", "offset", "kind", "text"}
    said = ef("import", str(path), store=store).text
    assert f"note: 1 × {note['kind']} (line {note['line']})" in said


def test_a_folder_brings_in_what_is_recognised_and_counts_the_rest(
    ef: Run, store: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "sessions"
    (folder / "below").mkdir(parents=True)
    shutil.copy(SHOPCART, folder / "below" / "shop.jsonl")
    (folder / "other.jsonl").write_text("no session\n")
    (folder / "empty.jsonl").touch()
    (folder / "notes.txt").write_text("not tried\n")
    done = ef("import", str(folder), store=store)
    assert done.code == 0
    assert not done.err
    assert "2 files passed over:" in done.text
    assert "1 × its format is not known" in done.text
    found = ef("import", str(folder), "--json", store=store)
    assert found.code == 0
    assert len(found.json["sources"]) == 1
    refused = {Path(r["source"]).name: r["reason"] for r in found.json["refused"]}
    assert refused == {"empty.jsonl": "it is empty", "other.jsonl": "its format is not known"}


def test_a_named_file_that_is_refused_ends_with_65_and_the_others_come_in(
    ef: Run, store: Path, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(b"no session\n")
    done = ef("import", str(bad), str(tmp_path / "none.jsonl"), str(SHOPCART), store=store)
    assert done.code == 65
    assert f"{bad}: its format is not known" in done.err
    assert "none.jsonl: there is no such file" in done.err
    assert "186 messages" in done.text
    found = ef("import", str(bad), str(SHOPCART), "--json", store=store)
    assert found.code == 65
    assert len(found.json["sessions"]) == 2
    assert found.json["refused"][0]["source"] == str(bad)
    assert (found.json["exit"], found.json["error"]["kind"]) == (65, "InputRefused")
    assert ef("import", str(SHOPCART), store=store).code == 0


def test_a_folder_without_any_session_ends_with_65(ef: Run, store: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    assert ef("import", str(folder), store=store).code == 65
    (folder / "other.jsonl").write_text("no session\n")
    done = ef("import", str(folder), "--json", store=store)
    assert done.code == 65
    assert "none of 1 files is a session" in done.json["error"]["message"]
    shutil.copy(SHOPCART, folder)
    assert ef("import", str(folder), store=store).code == 0


def test_a_file_name_of_any_bytes_is_shown_and_stays_json(
    ef: Run, store: Path, tmp_path: Path
) -> None:
    path = bytes(tmp_path) + b"/a\x1b[31m\xff.jsonl"
    try:
        shutil.copy(SHOPCART, path)
    except OSError:
        pytest.skip("this file system wants names in UTF-8")
    done = ef("import", path, store=store)
    assert done.code == 0
    assert "a\\x1b[31m\\udcff.jsonl" in done.text
    assert ef("import", path, "--json", store=store).json["sessions"]
    assert ef("sources", "--json", store=store).json["sources"]


def test_the_session_can_be_given_an_id(ef: Run, store: Path) -> None:
    done = ef("import", str(SHOPCART), "--session", "shop", "--json", store=store)
    assert done.json["sessions"][0]["session"] == "shop"
    assert ef("state", "shop", store=store).code == 0


def test_an_id_that_cannot_be_is_refused(ef: Run, store: Path) -> None:
    done = ef("import", str(SHOPCART), "--session", "no way", store=store)
    assert done.code == 64
    assert "session id 'no way'" in done.err


def test_an_id_for_what_is_known_under_another_changes_nothing_and_says_so(
    ef: Run, store: Path
) -> None:
    ef("import", str(SHOPCART), store=store)
    done = ef("import", str(SHOPCART), "--session", "shop", store=store)
    assert done.code == 65
    assert "its bytes are in the store as session 589f58b8" in done.err
    again = ef("import", str(SHOPCART), store=store)
    assert (again.code, "nothing new" in again.text or "0 new" in again.text) == (0, True)


def test_real_folders_come_in_whole(ef: Run, store: Path, shared_data: Path) -> None:
    done = ef("import", str(shared_data / "claude-code"), "--json", store=store)
    assert done.code == 0
    assert done.json["refused"] == []
    assert len({row["session"] for row in done.json["sessions"]}) >= 11
    verdict = ef("verify", "--json", store=store)
    assert (verdict.code, verdict.json["verdict"]) == (0, "sound")
