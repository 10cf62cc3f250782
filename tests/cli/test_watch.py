"""`ef watch` as a process: what is added comes out as a line, and is in the store for others to ask."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ef.testing.transcripts import transcript
from tests.cli.conftest import ROOT, Run, environment

DATA = transcript(8, session="grows")
LINES = DATA.splitlines(keepends=True)


@contextmanager
def watching(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    done = subprocess.Popen(
        [sys.executable, "-m", "ef", *words, "--for", "60"],
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield done
    finally:
        done.kill()
        done.communicate()


def told(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    found = json.loads(process.stdout.readline())
    assert isinstance(found, dict)
    return found


def test_each_change_is_a_line_and_others_see_it(tmp_path: Path, ef: Run) -> None:
    file, store = tmp_path / "s.jsonl", str(tmp_path / "s.ef")
    file.write_bytes(b"".join(LINES[:8]))
    with watching("--store", store, "watch", str(tmp_path), "--json") as process:
        first = told(process)
        assert (first["relation"], first["sessions"]) == ("new", ["grows"])
        for line in LINES[8:10]:
            before = ef("--store", store, "--json", "sessions").json["sessions"][0]["messages"]
            with file.open("ab") as more:
                more.write(line)
            change = told(process)
            assert (change["relation"], change["path"]) == ("grown", str(file))
            assert change["new_events"] >= 1
            after = ef("--store", store, "--json", "sessions").json["sessions"][0]["messages"]
            assert after == before + 1
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path: Path, ef: Run) -> None:
    file, store = tmp_path / "later.jsonl", str(tmp_path / "s.ef")
    with watching("--store", store, "watch", str(file), "--json") as process:
        assert process.stderr is not None
        assert b"no such file yet" in process.stderr.readline()
        part = tmp_path / "part"
        part.write_bytes(DATA)
        os.replace(part, file)
        assert told(process)["sessions"] == ["grows"]


def test_without_json_a_change_is_said_in_words_and_the_end_is_quiet(
    tmp_path: Path, ef: Run
) -> None:
    file = tmp_path / "s.jsonl"
    file.write_bytes(DATA)
    done = ef("--store", str(tmp_path / "s.ef"), "watch", str(file), "--for", "0.1")
    assert done.code == 0
    assert "(new), grows" in done.text
    assert "following 1 file; Ctrl-C ends it" in done.err


@pytest.mark.parametrize("words", [["--format", "nope"], ["--for", "soon"]])
def test_wrong_use_is_refused(words: list[str], tmp_path: Path, ef: Run) -> None:
    done = ef("--store", str(tmp_path / "s.ef"), "watch", str(tmp_path), *words)
    assert done.code == 64


def test_formats_are_listed_with_what_they_tell(ef: Run) -> None:
    rows = ef("--json", "formats").json["formats"]
    assert "claude-code" in [row["format"] for row in rows]
    for row in rows:
        assert all(row["tells"].values()), row
    assert "Claude Code" in ef("formats").text


def test_an_import_that_was_ended_is_named(tmp_path: Path, ef: Run) -> None:
    file, store = tmp_path / "long.jsonl", str(tmp_path / "s.ef")
    file.write_bytes(transcript(60, session="long"))
    ended = (
        "from ef.session import intake; from ef.log.points import hold; import ef\n"
        "intake.BATCH_LINES = 50\n"
        "def stop(name):\n"
        "    if name == 'import.appended': raise SystemExit\n"
        "hold(stop)\n"
        f"ef.open({store!r}).import_file({str(file)!r})\n"
    )
    subprocess.run([sys.executable, "-c", ended], cwd=ROOT, env=environment(), check=False)
    assert ef("--store", store, "--json", "sessions").json["sessions"] == []
    (source,) = ef("--store", store, "--json", "sources").json["sources"]
    assert source["complete"] is False
    assert "was ended before it was complete" in ef("--store", store, "sources").text
    assert "gone on with where it was ended" in ef("--store", store, "import", str(file)).text
    assert "was ended" not in ef("--store", store, "sources").text
