"""Each kind of error: its exit code, its one message, its JSON object. Beside each refusal stands what is allowed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ef.errors import InputRefused
from ef.testing.damage import delete_record

from .conftest import ROOT, SESSION, SHOPCART, Ran, Run


def refused(done: Ran, code: int, kind: str, said: str) -> None:
    """One message on stderr, one JSON object on stdout, and the same code in both."""
    assert done.code == code, done
    assert done.err.startswith("ef: ")
    assert done.err.count("\n") == 1
    assert said in done.err
    assert "Traceback" not in done.err
    assert done.json["exit"] == code
    assert done.json["error"]["kind"] == kind
    assert done.json["error"]["message"] in done.err


def test_a_session_that_is_not_there_ends_with_66(ef: Run) -> None:
    for words in (
        ["state", "nope"],
        ["verify", "nope"],
        ["context", "\udcff".encode("utf-8", "surrogateescape")],
    ):
        refused(ef("--json", *words), 66, "NotFound", "is not in the store")
    assert ef("state", SESSION).code == 0


def test_a_beginning_that_names_two_sessions_ends_with_64(ef: Run, copied: Path) -> None:
    other = ROOT / "tests/fixtures/claude_code/bash-input.jsonl"
    assert ef("import", str(other), "--session", "589f58b8-other", store=copied).code == 0
    done = ef("state", SESSION, "--json", store=copied)
    refused(done, 64, "UsageError", "give more of the id")
    assert ef("state", "589f58b8-9", store=copied).code == 0


def test_a_store_that_is_not_there_ends_with_66_and_says_how_to_choose(
    ef: Run, tmp_path: Path, imported: Path
) -> None:
    for command in ("sessions", "verify"):
        done = ef(command, "--json", store=tmp_path / "none")
        refused(done, 66, "NotFound", "--store or $EF_STORE choose another store")
    assert not (tmp_path / "none").exists()
    assert ef("sessions", store=imported).code == 0


def test_a_key_or_an_event_that_is_not_there_ends_with_66(ef: Run) -> None:
    refused(ef("audit", SESSION, "a/b/c", "--json"), 66, "NotFound", "`ef state ")
    refused(ef("state", SESSION, "--at", "999", "--json"), 66, "NotFound", "1 to 345")
    refused(ef("export", "nope", "--original", "--json"), 66, "NotFound", "`ef sources`")
    assert ef("audit", SESSION, "test/pytest/status").code == 0


def test_what_cannot_be_stored_ends_with_65(ef: Run, copied: Path) -> None:
    words = ["declare", SESSION, "value", "a/b/c", "--json"]
    refused(ef(*words, "4.5", store=copied), 65, "InputRefused", "float")
    deep = "[" * 70 + "]" * 70
    refused(ef(*words, deep, store=copied), 65, "InputRefused", "nesting is deeper than 32")
    for value, why in (
        ("[" * 5000, "nesting is deeper than 32"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "nesting is deeper than 32"),
        ('{"b": [{"a": 1, "c": 2, "a": 1}]}', "key 'a' more than once"),
        ("[1, NaN]", "NaN is no number of JSON"),
        ('{"a": -Infinity}', "-Infinity is no number of JSON"),
        ("9" * 5000, "thousands of digits"),
    ):
        refused(ef(*words, value, store=copied), 65, "InputRefused", why)
    cited = ["--quote", "never said", "--source", "5"]
    refused(ef(*words, "4", *cited, store=copied), 65, "InputRefused", "does not hold that quote")
    assert ef(*words, "4", store=copied).code == 0


def test_what_is_not_allowed_ends_with_77(ef: Run, copied: Path) -> None:
    done = ef("declare", SESSION, "evidence", "a/b/c", "x", "--json", store=copied)
    refused(done, 77, "NotAllowed", "runs state evidence")
    assert ef("declare", SESSION, "constraint", "a/b/c", "x", store=copied).code == 0


def test_a_declaration_that_is_none_ends_with_64(ef: Run, copied: Path) -> None:
    for words, said in (
        (["value", "nokey", "1"], "is not namespace/entity/property"),
        (["wish", "a/b/c", "1"], "it is one of objective"),
        (["value", "a/b/c", "1", "--quote", "x"], "both quote and source"),
        (["value", "a/b/c", "1", "--because", b"\xff"], "because"),
    ):
        refused(ef("declare", SESSION, *words, "--json", store=copied), 64, "UsageError", said)
    assert ef("declare", SESSION, "value", "a/b/c", "1", store=copied).code == 0


def test_what_is_no_store_ends_with_69(ef: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").touch()
    for name in ("file", "folder"):
        done = ef("import", str(SHOPCART), "--json", store=tmp_path / name)
        refused(done, 69, "StoreUnavailable", "Give a new path")
    assert ef("import", str(SHOPCART), store=tmp_path / "new").code == 0


def test_a_store_that_cannot_be_made_ends_with_73(ef: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = ef("import", str(SHOPCART), "--json", store=tmp_path / "file" / "store")
    refused(done, 73, "CannotWrite", "cannot write to")
    assert ef("import", str(SHOPCART), store=tmp_path / "folder" / "store").code == 0


def break_record(store: Path) -> None:
    """One letter of a record's header is another one."""
    data = store / "data.mdb"
    found = data.read_bytes()
    at = found.index(b"AnchorDeclared", 8192)
    data.write_bytes(found[:at] + b"X" + found[at + 1 :])


def test_a_damaged_record_ends_with_1_and_sends_to_verify(ef: Run, copied: Path) -> None:
    assert ef("verify", store=copied).code == 0
    break_record(copied)
    refused(ef("state", SESSION, "--json", store=copied), 1, "Damaged", "Run `ef verify`.")
    done = ef("verify", store=copied)
    assert done.code == 1
    assert done.text.startswith("damaged\n")
    assert "\n  - position " in done.text
    found = ef("verify", "--json", store=copied)
    assert (found.code, found.json["verdict"], found.json["ok"]) == (1, "damaged", False)
    assert set(found.json["problems"][0]) >= {"what", "where", "first_bad_seq"}


def test_a_missing_record_is_damage(ef: Run, copied: Path) -> None:
    delete_record(copied, 100)
    assert ef("verify", "--json", store=copied).json["verdict"] == "damaged"
    assert ef("verify", "--quick", store=copied).code == 1


@pytest.mark.parametrize("kept", [0, 100, 5000, 40000])
def test_a_truncated_file_is_damage_and_no_crash(kept: int, ef: Run, copied: Path) -> None:
    os.truncate(copied / "data.mdb", kept)
    refused(ef("sessions", "--json", store=copied), 1, "Damaged", "Run `ef verify`.")
    done = ef("verify", "--json", store=copied)
    assert (done.code, done.json["verdict"]) == (1, "damaged")


def test_a_data_file_that_cannot_be_read_ends_with_2(ef: Run, tmp_path: Path) -> None:
    (tmp_path / "store" / "data.mdb").mkdir(parents=True)
    done = ef("verify", "--json", store=tmp_path / "store")
    assert (done.code, done.json["verdict"]) == (2, "unreadable")


def test_an_older_copy_put_back_ends_with_3(ef: Run, copied: Path, tmp_path: Path) -> None:
    older = tmp_path / "older.mdb"
    shutil.copy(copied / "data.mdb", older)
    ef("declare", SESSION, "value", "a/b/c", "1", store=copied)
    assert ef("verify", store=copied).code == 0
    shutil.copy(older, copied / "data.mdb")
    done = ef("verify", store=copied)
    assert done.code == 3
    assert done.text.startswith("rolled back\n")
    assert ef("verify", "--json", store=copied).json["verdict"] == "rolled-back"


def test_busy_ends_with_75(scripted: Run) -> None:
    script = "from ef.errors import Busy\ndef state(r): raise Busy(path='s', why='others write')"
    refused(scripted(script, "state", "x", "--json"), 75, "Busy", "Try again.")


def test_our_own_fault_ends_with_70_and_no_traceback(scripted: Run) -> None:
    script = "def state(r): return 1 / 0"
    done = scripted(script, "state", "x", "--json")
    refused(done, 70, "EfError", "ZeroDivisionError: division by zero")
    assert "set EF_DEBUG=1 for the traceback" in done.err
    shown = scripted(script, "state", "x", env={"EF_DEBUG": "1"})
    assert shown.code == 70
    assert "Traceback" in shown.err
    assert "set EF_DEBUG" not in shown.err


def test_facts_of_any_kind_become_json(scripted: Run) -> None:
    script = (
        "from pathlib import Path\nfrom ef.errors import InputRefused\n"
        "def state(r): raise InputRefused(where=Path('/x'), why=b'\\xff', remedy=None)"
    )
    found = scripted(script, "state", "x", "--json").json["error"]
    assert found["kind"] == InputRefused.__name__
    assert found["facts"] == {"where": "/x", "why": "ff", "remedy": None}
