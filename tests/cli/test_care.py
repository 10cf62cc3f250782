"""`ef doctor` and `ef backup` as a user meets them; and verify's four exit codes side by side."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.cli.conftest import SESSION, Run


def levels(found: dict[str, list[dict[str, str]]]) -> set[str]:
    return {finding["level"] for finding in found["findings"]}


def test_doctor_says_what_there_is_and_ends_with_0(ef: Run, copied: Path) -> None:
    done = ef("doctor", "--json", store=copied)
    assert done.code == 0 and levels(done.json) <= {"ok", "note"}
    assert all(set(finding) == {"level", "what", "remedy"} for finding in done.json["findings"])
    assert f"the store is {copied} (from --store)" in done.text
    chosen = ef("doctor", store=None, env={"EF_STORE": str(copied)})
    assert chosen.code == 0 and chosen.err == ""
    assert "(from $EF_STORE)" in " ".join(chosen.text.split())
    assert "0 errors, 0 warnings\n" in chosen.text


def test_doctor_of_what_is_no_store_yet_is_a_note_and_of_a_damaged_one_an_error(
    ef: Run, copied: Path, tmp_path: Path
) -> None:
    done = ef("doctor", "--json", store=tmp_path / "none")
    assert (done.code, levels(done.json)) == (0, {"ok", "note"})
    assert not (tmp_path / "none").exists()
    os.truncate(copied / "data.mdb", 5_000)
    done = ef("doctor", "--json", store=copied)
    assert done.code == 69 and "error" in levels(done.json)
    shown = ef("doctor", store=copied)
    assert shown.code == 69 and "-> Run `ef verify`." in shown.text
    assert "warning" not in shown.err


def test_a_backup_is_made_once_and_is_a_store(ef: Run, copied: Path, tmp_path: Path) -> None:
    out = tmp_path / "copy"
    done = ef("backup", "--out", str(out), "--json", store=copied)
    assert done.code == 0
    sound = ef("verify", "--json", store=copied).json
    assert (done.json["events"], done.json["tip"]) == (sound["events"], sound["tip"])
    assert done.json["bytes"] == (out / "data.mdb").stat().st_size
    assert ef("verify", store=out).code == 0
    assert ef("state", SESSION, "--json", store=out).json == ef("state", SESSION, "--json").json
    again = ef("backup", "--out", str(out), "--json", store=copied)
    assert again.code == 73 and again.json["error"]["kind"] == "BackupFailed"
    shown = ef("backup", "--out", str(tmp_path / "two"), store=copied)
    assert shown.code == 0 and shown.text.startswith(f"Backup {tmp_path / 'two'}: ")
    assert ef("backup", store=copied).code == 64


def test_a_store_that_is_not_there_has_no_backup(ef: Run, tmp_path: Path) -> None:
    assert ef("backup", "--out", str(tmp_path / "copy"), store=tmp_path / "none").code == 66
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_store_has_no_backup(ef: Run, copied: Path, tmp_path: Path) -> None:
    os.truncate(copied / "data.mdb", (copied / "data.mdb").stat().st_size // 2 // 4096 * 4096)
    assert ef("backup", "--out", str(tmp_path / "copy"), store=copied).code == 1
    assert [p.name for p in tmp_path.iterdir()] == ["store"]


def test_the_data_file_of_another_store_ends_with_3(ef: Run, copied: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    source = Path(__file__).resolve().parents[2] / "examples" / "shopcart.jsonl"
    assert ef("import", str(source), store=other).code == 0
    shutil.copy(other / "data.mdb", copied / "data.mdb")
    done = ef("verify", "--json", store=copied)
    assert (done.code, done.json["verdict"]) == (3, "rolled-back")
    refused = ef("state", SESSION, "--json", store=copied)
    assert refused.code == 3 and refused.json["error"]["kind"] == "OtherStore"
    (copied / "tip").unlink()
    assert ef("state", SESSION, store=copied).code == 0


def test_a_copy_without_its_branches_is_still_served_where_it_can_be(ef: Run, copied: Path) -> None:
    data = bytearray((copied / "data.mdb").read_bytes())
    data[:4096] = bytes(4096)
    (copied / "data.mdb").write_bytes(data)
    done = ef("verify", "--json", store=copied)
    assert (done.code, done.json["verdict"]) == (1, "damaged")
    assert any("meta page 0" in problem["what"] for problem in done.json["problems"])
    assert ef("sessions", "--json", store=copied).code in (0, 1)
