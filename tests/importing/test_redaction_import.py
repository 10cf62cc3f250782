"""Files that are imported with redaction: what stays out of the store, what the source says, and how it grows."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.errors import InputRefused, OriginalRedacted
from ef.importers.keyfinder import KeyFinder
from ef.importers.redaction import LOOKED, REDACTED, WITHHELD, Redaction
from ef.testing.transcripts import transcript
from tests.importing.test_redaction_store import MARK, SECRET, fails, holds

TURNS = 6


def lines_of(turns: int = TURNS) -> list[bytes]:
    """A transcript with the secret in words that were typed, in a command and in an output."""
    lines = transcript(turns).splitlines(keepends=True)
    planted = {
        0: ('"content":"', f'"content":"use {SECRET}, please; '),
        1: ('"command":"brew', f'"command":"login {SECRET} && brew'),
        2: ('"content":"', f'"content":"logged in with {SECRET}\\n'),
    }
    for n, (words, with_secret) in planted.items():
        text = lines[n].decode()
        assert text.count(words) == 1
        lines[n] = text.replace(words, with_secret).encode()
    return lines


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"".join(lines_of()))
    return path


def kinds(store: ef.Store, source: str) -> list[tuple[str, str]]:
    return [(note["kind"], note["text"]) for note in store.notes(source)]


def test_an_imported_secret_is_in_no_file_and_no_answer(tmp_path: Path, file: Path) -> None:
    folder = tmp_path / "s"
    with ef.open(folder) as store:
        result = store.import_file(file, redact=KeyFinder())
        session = store.session(result.sessions[0])
        said = [result, session.context().messages, session.state().to_json(), store.sessions()]
        assert MARK in str(said) and SECRET not in str(said)
        assert store.verify().verdict == "sound"
        session.working()
    assert holds(folder, SECRET) == []
    with ef.open(folder) as store:
        store.rebuild()
    assert holds(folder, SECRET) == []


def test_of_an_import_without_redaction_the_same_search_finds_it(
    tmp_path: Path, file: Path
) -> None:
    with ef.open(tmp_path / "s") as store:
        result = store.import_file(file)
        assert SECRET in str(store.session(result.sessions[0]).context().messages)
    assert holds(tmp_path / "s", SECRET)


def test_the_redacted_source_says_so_and_its_original_is_refused(
    tmp_path: Path, file: Path
) -> None:
    finder = KeyFinder()
    with ef.open(tmp_path / "s") as store:
        source = store.import_file(file, redact=finder).source
        (note,) = [n for n in store.notes(source) if n["kind"] == REDACTED]
        assert (
            note["text"] == f"3 × github-token replaced (found by {finder.name} {finder.version})"
        )
        assert note["line"] == 1
        stored = store.export_original(source, redacted=True)
        assert stored[note["offset"] :].startswith(MARK.encode())
        assert stored == file.read_bytes().replace(SECRET.encode(), MARK.encode())
        with pytest.raises(OriginalRedacted) as refused:
            store.export_original(source)
        assert note["text"] in str(refused.value) and SECRET not in str(refused.value)
    with ef.open(tmp_path / "twin") as store:
        assert store.export_original(store.import_file(file).source) == file.read_bytes()


def test_a_redaction_that_found_nothing_leaves_a_note_and_the_original(tmp_path: Path) -> None:
    path = tmp_path / "clean.jsonl"
    path.write_bytes(transcript(3))
    with ef.open(tmp_path / "s") as store:
        source = store.import_file(path, redact=KeyFinder()).source
        assert [kind for kind, _ in kinds(store, source)] == [LOOKED]
        assert store.export_original(source) == path.read_bytes()


def test_importing_it_again_writes_nothing_and_grown_it_goes_on(tmp_path: Path, file: Path) -> None:
    lines, finder = lines_of(), KeyFinder()
    with ef.open(tmp_path / "s") as store:
        file.write_bytes(b"".join(lines[:2]))
        first = store.import_file(file, redact=finder)
        position = store.log.tip_position()
        again = store.import_file(file, redact=finder)
        assert (again.relation, again.source) == ("same", first.source)
        assert store.log.tip_position() == position
        file.write_bytes(b"".join(lines))
        grown = store.import_file(file, redact=finder)
        assert (grown.relation, grown.source) == ("grown", first.source)
        texts = [text for kind, text in kinds(store, first.source) if kind == REDACTED]
        assert [text.split(" ")[0] for text in texts] == ["2", "1"]
        with pytest.raises(OriginalRedacted, match=r"2 × github-token .*1 × github-token"):
            store.export_original(first.source)
        assert [len(store.sources()), len(list(store.session_names()))] == [1, 1]
    assert holds(tmp_path / "s", SECRET) == []


@pytest.mark.parametrize("cut", [3, 20, len(SECRET) - 1])
def test_a_file_that_is_cut_inside_of_a_secret_leaves_no_half_of_it(
    tmp_path: Path, file: Path, cut: int
) -> None:
    data = file.read_bytes()
    third = data.index(SECRET.encode(), data.index(b"logged in"))
    with ef.open(tmp_path / "s") as store:
        file.write_bytes(data[: third + cut])
        first = store.import_file(file, redact=KeyFinder())
        assert WITHHELD in [kind for kind, _ in kinds(store, first.source)]
        with pytest.raises(OriginalRedacted, match="cut"):
            store.export_original(first.source)
        if cut > 10:
            assert holds(tmp_path / "s", SECRET[:cut]) == []
        file.write_bytes(data)
        grown = store.import_file(file, redact=KeyFinder())
        assert (grown.relation, grown.source) == ("grown", first.source)
        stored = store.export_original(first.source, redacted=True)
        assert stored == data.replace(SECRET.encode(), MARK.encode())
    assert holds(tmp_path / "s", SECRET[:20]) == []


def test_what_a_compressed_file_holds_is_redacted(tmp_path: Path, file: Path) -> None:
    packed = tmp_path / "session.jsonl.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    with ef.open(tmp_path / "s") as store:
        source = store.import_file(packed, redact=KeyFinder()).source
        assert REDACTED in [kind for kind, _ in kinds(store, source)]
    assert holds(tmp_path / "s", SECRET) == []


def test_a_redactor_that_fails_keeps_the_file_out(tmp_path: Path, file: Path) -> None:
    with ef.open(tmp_path / "s") as store:
        with pytest.raises(InputRefused) as refused:
            store.import_file(file, redact=fails)
        assert "line 1" in str(refused.value) and SECRET not in str(refused.value)
        assert store.sources() == [] and list(store.session_names()) == []
        store.import_file(file, redact=KeyFinder())
    assert holds(tmp_path / "s", SECRET) == []


def test_lines_that_come_in_while_the_file_is_watched_are_redacted(
    tmp_path: Path, file: Path
) -> None:
    lines = lines_of()
    file.write_bytes(b"".join(lines[:1]))
    with ef.open(tmp_path / "s") as store:
        watcher = store.watch(file, redact=KeyFinder())
        came = list(watcher.poll())
        for line in lines[1:]:
            with file.open("ab") as end:
                end.write(line)
            came += watcher.poll()
        for _ in range(400):
            (source,) = store.sources()
            if source.lines == len(lines):
                break
            watcher.rest()
            came += watcher.poll()
        assert all(change.error is None for change in came)
        (source,) = store.sources()
        stored = store.export_original(source.id, redacted=True)
        assert stored == b"".join(lines).replace(SECRET.encode(), MARK.encode())
        assert stored == b"".join(Redaction(KeyFinder()).through(lines))
        counts = [text.split(" ")[0] for kind, text in kinds(store, source.id) if kind == REDACTED]
        assert sum(map(int, counts)) == 3
    assert holds(tmp_path / "s", SECRET) == []


CHILD = """
import os, signal, sys
import ef
from ef.importers.keyfinder import KeyFinder
from ef.log import points

store, file, point, redact = sys.argv[1:]

def at(name):
    if name == point:
        os.kill(os.getpid(), signal.SIGKILL)

with ef.open(store) as opened:
    points.hold(at)
    opened.import_file(file, redact=KeyFinder() if redact == "redact" else None)
"""


def killed(store: Path, file: Path, point: str, redact: str) -> str:
    words = [sys.executable, "-c", CHILD, str(store), str(file), point, redact]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "point", ["import.read", "import.translated", "group.put", "import.appended"]
)
def test_an_import_that_is_killed_leaves_nothing_of_it(
    tmp_path: Path, file: Path, point: str
) -> None:
    assert SECRET not in killed(tmp_path / "s", file, point, "redact")
    assert holds(tmp_path / "s", SECRET) == []
    with ef.open(tmp_path / "s") as store:
        result = store.import_file(file, redact=KeyFinder())
        assert MARK in str(store.session(result.sessions[0]).context().messages)
        assert store.verify().verdict == "sound"
    assert holds(tmp_path / "s", SECRET) == []


def test_of_a_killed_import_without_redaction_the_same_search_finds_it(
    tmp_path: Path, file: Path
) -> None:
    killed(tmp_path / "s", file, "group.durable", "keep")
    assert holds(tmp_path / "s", SECRET)


def run(*words: str, store: Path) -> tuple[int, str, str]:
    program = [sys.executable, "-m", "ef", *words, "--store", str(store)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout, done.stderr


def test_the_command_line_redacts_with_the_built_in_detector(tmp_path: Path, file: Path) -> None:
    code, out, err = run("import", str(file), "--redact", "--json", store=tmp_path / "s")
    assert code == 0, err
    (source,) = json.loads(out)["sources"]
    notes: list[dict[str, Any]] = source["notes"]
    texts = [note["text"] for note in notes if note["kind"] == REDACTED]
    assert len(texts) == 1 and texts[0].startswith("3 × github-token replaced (found by ")
    said = out + err
    code, out, err = run("state", source["sessions"][0], "--json", store=tmp_path / "s")
    assert code == 0, err
    said += out + err
    code, out, err = run("export", source["source"], "--original", store=tmp_path / "s")
    assert (code, out) == (77, "") and "--redacted" in err
    assert SECRET not in said + err
    assert holds(tmp_path / "s", SECRET) == []


def test_what_was_imported_without_its_secrets_does_not_come_in_with_them_by_an_oversight(
    tmp_path: Path, file: Path
) -> None:
    with ef.open(tmp_path / "s") as store:
        store.import_file(file, redact=KeyFinder())
        with pytest.raises(InputRefused, match="without its secrets before"):
            store.import_file(file)
        assert store.import_file(file, redact=KeyFinder()).new_events == {}
        other = tmp_path / "other.jsonl"
        other.write_bytes(transcript(3, session="other"))
        assert store.import_file(other).sessions == ["other"]
        assert store.import_file(other).relation == "same"
    assert holds(tmp_path / "s", SECRET) == []


def test_a_file_in_which_no_secret_was_found_does_not_grow_by_one_by_an_oversight(
    tmp_path: Path,
) -> None:
    path = tmp_path / "clean.jsonl"
    path.write_bytes(transcript(3))
    with ef.open(tmp_path / "s") as store:
        store.import_file(path, redact=KeyFinder())
        assert store.import_file(path).relation == "same"  # nothing of it is kept
        said = json.dumps(
            {"type": "user", "uuid": "more", "message": {"role": "user", "content": SECRET}}
        )
        with path.open("a") as more:
            more.write(said + "\n")
        with pytest.raises(InputRefused, match="without its secrets before"):
            store.import_file(path)
        assert store.import_file(path, redact=KeyFinder()).relation == "grown"
    assert holds(tmp_path / "s", SECRET) == []
