"""Growing files are followed: what is added is in the log at the next look, whatever happens to the file."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

import ef
from ef.errors import InputRefused
from ef.session import following
from ef.session.following import Change, Watcher
from ef.testing.transcripts import transcript
from tests.importing.test_growing import answers

DATA = transcript(40, session="grows")
LINES = DATA.splitlines(keepends=True)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "grows.jsonl"
    path.write_bytes(b"".join(LINES[:20]))
    return path


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "SCAN_EVERY", 0.0)


def look(watcher: Watcher) -> list[Change]:
    return list(watcher.poll())


def add(path: Path, data: bytes) -> None:
    with path.open("ab") as more:
        more.write(data)


def once(path: Path, data: bytes) -> object:
    whole = path.with_name("whole.jsonl")
    whole.write_bytes(data)
    with ef.open(path.with_name("whole.ef")) as store:
        store.import_file(whole)
        return answers(store)


def test_what_is_added_line_by_line_means_what_the_whole_means(file: Path) -> None:
    with ef.open(file.with_suffix(".ef")) as store:
        watcher = store.watch(file)
        (first,) = look(watcher)
        assert first.relation == "new"
        assert look(watcher) == []
        for line in LINES[20:]:
            add(file, line)
            (change,) = look(watcher)
            assert (change.error, change.relation, change.sessions) == (None, "grown", ("grows",))
            assert change.new_events
        got = answers(store)
        assert store.export_original(first.source or "") == DATA
        assert store.verify().problems == []
    assert got == once(file, DATA)


def test_only_what_was_added_is_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ef.open(file.with_suffix(".ef")) as store:
        watcher = store.watch(file)
        look(watcher)
        monkeypatch.setattr(following, "open_content", None)  # a whole reading would fail
        for line in LINES[20:]:
            add(file, line)
            (change,) = look(watcher)
            assert change.error is None


def test_a_line_in_pieces_waits_for_its_end(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ef.open(file.with_suffix(".ef")) as store:
        watcher = store.watch(file)
        look(watcher)
        seq = store.session("grows").seq
        for part in (LINES[20][:30], LINES[20][30:60]):
            add(file, part)
            assert look(watcher) == []
        add(file, LINES[20][60:])
        assert len(look(watcher)) == 1
        assert store.session("grows").seq > seq
        assert store.notes(store.sources()[0].id) == []
        # A last line that never gets its end is taken as it is, and once.
        monkeypatch.setattr(following, "SETTLED", 0.0)
        add(file, LINES[21].rstrip(b"\n"))
        look(watcher)
        (change,) = look(watcher) or [None]
        seq = store.session("grows").seq
        monkeypatch.undo()
        monkeypatch.setattr(following, "SCAN_EVERY", 0.0)
        add(file, b"\n" + LINES[22])
        look(watcher)
        got = answers(store)
        assert change is None or change.error is None
    assert got == once(file, b"".join(LINES[:23]))


@pytest.mark.parametrize("how", ["cut", "rewritten", "replaced", "rotated", "longer"])
def test_a_file_that_is_not_the_same_any_more_is_read_anew(how: str, file: Path) -> None:
    other = transcript(9, session="other")
    with ef.open(file.with_suffix(".ef")) as store:
        watcher = store.watch(file)
        look(watcher)
        add(file, LINES[20])
        look(watcher)
        if how == "cut":
            file.write_bytes(b"")
            assert [c.error is None for c in look(watcher)] in ([], [False])
            file.write_bytes(other)
        elif how == "rewritten":
            file.write_bytes(other)
        elif how == "longer":
            with file.open("r+b") as same:
                same.write(transcript(60, session="other"))
        elif how == "replaced":
            new = file.with_name("new.jsonl")
            new.write_bytes(other)
            new.replace(file)
        else:
            file.rename(file.with_name("old.jsonl"))
            look(watcher)
            file.write_bytes(other)
        seen = look(watcher)
        assert [c.error for c in seen] == [None]
        assert seen[0].sessions == ("other",)
        add(file, transcript(61, session="other")[len(file.read_bytes()) :])
        assert [c.error for c in look(watcher)] == [None]
        assert sorted(store.session_names()) == ["grows", "other"]
        assert store.verify().problems == []


def test_a_restart_goes_on_with_what_came_meanwhile(file: Path) -> None:
    with ef.open(file.with_suffix(".ef")) as store:
        look(store.watch(file))
    add(file, b"".join(LINES[20:30]))
    with ef.open(file.with_suffix(".ef")) as store:
        watcher = store.watch(file)
        (change,) = look(watcher)
        assert change.relation == "grown"
        add(file, b"".join(LINES[30:]))
        assert len(look(watcher)) == 1
    with ef.open(file.with_suffix(".ef")) as store:
        assert look(store.watch(file)) == []
        assert answers(store) == once(file, DATA)


def test_another_writer_of_the_same_session_is_no_fault(file: Path) -> None:
    with ef.open(file.with_suffix(".ef")) as store:
        watcher = store.watch(file)
        look(watcher)
        store.session("grows").declare("value", key="config/tea/cups", value=2)
        add(file, LINES[20])
        (change,) = look(watcher)
        assert (change.error, change.new_events > 0) == (None, True)
        assert store.verify().problems == []


def test_files_that_come_later_are_found_and_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "notes.json").write_text('{"no": "session"}')
    with ef.open(tmp_path / "s.ef") as store:
        watcher = store.watch(tmp_path / "in")
        assert look(watcher) == []
        for n in range(3):
            (tmp_path / "in" / f"{n}.jsonl").write_bytes(transcript(2, session=f"s{n}"))
        assert sorted(c.sessions[0] for c in look(watcher)) == ["s0", "s1", "s2"]
        assert watcher.files == 3
        (tmp_path / "in" / "notes.json").write_text('{"still": "none"}')
        assert look(watcher) == []


def test_a_named_file_that_is_no_session_is_said_once_and_read_when_it_becomes_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("hello\n")
    with ef.open(tmp_path / "s.ef") as store:
        watcher = store.watch(path)
        (change,) = look(watcher)
        assert isinstance(change.error, InputRefused)
        assert look(watcher) == []
        path.write_bytes(DATA)
        (change,) = look(watcher)
        assert change.error is None


def test_iteration_gives_changes_as_they_come_and_ends_when_it_is_told(file: Path) -> None:
    with ef.open(file.with_suffix(".ef")) as store:
        watcher = store.watch(file)
        seen: list[Change] = []

        def follow() -> None:
            for change in watcher:
                seen.append(change)
                if len(seen) == 1:
                    add(file, LINES[20])
                else:
                    watcher.stop()

        thread = threading.Thread(target=follow)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
        assert [c.relation for c in seen] == ["new", "grown"]


def test_old_files_are_read_and_followed_from_their_first_change(file: Path) -> None:
    long_ago = file.stat().st_mtime - 10 * following.RECENT
    os.utime(file, (long_ago, long_ago))
    with ef.open(file.with_suffix(".ef")) as store:
        watcher = store.watch(file)
        (change,) = look(watcher)
        assert (change.relation, change.error) == ("new", None)
        for line in LINES[20:24]:
            add(file, line)
            (change,) = look(watcher)
            assert change.relation == "grown"
        assert json.loads(LINES[23])["uuid"] in store.export_original("grows").decode()


def test_bytes_that_are_written_over_in_the_middle_are_seen(file: Path) -> None:
    """Also where the file's length and both its ends stay, and where a line is added in the same moment."""
    with ef.open(file.with_suffix(".ef")) as store:
        watcher = store.watch(file)
        look(watcher)
        data = file.read_bytes()
        word = next(w for w in (b"user", b"text", b"role") if w in LINES[10])
        at = data.index(LINES[10]) + LINES[10].index(word)
        other = data[:at] + b"X" + data[at + 1 :]
        with file.open("r+b") as over:
            over.write(other)
        os.utime(file, ns=(1, os.stat(file).st_mtime_ns + 10**9))
        (change,) = look(watcher)
        assert change.relation == "rewritten"
        assert store.export_original(change.source or "") == other
        with file.open("r+b") as over:
            over.write(data + LINES[20])
        (change,) = look(watcher)
        assert store.export_original(change.source or "") == data + LINES[20]
        add(file, LINES[21])
        (change,) = look(watcher)
        assert change.relation == "grown"
        assert store.export_original(change.source or "") == data + LINES[20] + LINES[21]


def test_a_file_that_is_only_touched_gives_nothing(file: Path) -> None:
    with ef.open(file.with_suffix(".ef")) as store:
        watcher = store.watch(file)
        look(watcher)
        os.utime(file, ns=(1, os.stat(file).st_mtime_ns + 10**9))
        assert look(watcher) == []
        add(file, LINES[20])
        assert [c.relation for c in look(watcher)] == ["grown"]


@pytest.mark.parametrize("how", ["unlinked", "a folder", "a dangling link"])
def test_a_file_that_goes_away_while_it_is_looked_at_ends_nothing(
    how: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at its size and its opening."""
    data = file.read_bytes()
    with ef.open(file.with_suffix(".ef")) as store:
        watcher = store.watch(file)
        look(watcher)
        add(file, LINES[20])
        stat, done = os.stat, []

        def gone(path: str, **how_: bool) -> os.stat_result:
            facts = stat(path, **how_)
            if str(path) == str(file) and not done:
                done.append(True)
                file.unlink()
                if how == "a folder":
                    file.mkdir()
                elif how == "a dangling link":
                    file.symlink_to(file.with_name("nothing"))
            return facts

        monkeypatch.setattr(os, "stat", gone)
        said = look(watcher)
        monkeypatch.setattr(os, "stat", stat)
        assert all(c.error is not None or c.relation == "grown" for c in said)
        look(watcher)
        if how == "a folder":
            file.rmdir()
        else:
            file.unlink(missing_ok=True)
        file.write_bytes(data + LINES[20] + LINES[21])
        changes = look(watcher) + look(watcher)
        assert {c.relation for c in changes if c.error is None} == {"grown"}
        assert len(store.session("grows").context().messages) == once_messages(file, LINES[:22])
        assert store.verify().problems == []


@pytest.mark.parametrize("how", ["rotated", "deleted", "replaced"])
def test_what_was_written_last_before_a_rotation_is_read(how: str, file: Path) -> None:
    """All of it between two looks: a line more, the file goes, and another is in its place."""
    other = transcript(9, session="other")
    with ef.open(file.with_suffix(".ef")) as store:
        watcher = store.watch(file)
        look(watcher)
        add(file, LINES[20])
        new = file.with_name("new.tmp")
        new.write_bytes(other)
        if how == "rotated":
            file.rename(file.with_suffix(".1"))
        elif how == "deleted":
            file.unlink()
        new.replace(file)
        changes = look(watcher) + look(watcher)
        assert [(c.error, c.sessions) for c in changes] == [(None, ("grows",)), (None, ("other",))]
        assert len(store.session("grows").context().messages) == once_messages(file, LINES[:21])
        assert store.verify().problems == []


def once_messages(path: Path, lines: list[bytes]) -> int:
    whole = path.with_name("once.jsonl")
    whole.write_bytes(b"".join(lines))
    with ef.open(path.with_name("once.ef")) as store:
        store.import_file(whole)
        return len(store.session("grows").context().messages)
