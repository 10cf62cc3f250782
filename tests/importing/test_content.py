"""What is read: plain files, what compressed files hold, rows of databases; and what is no file to read."""

from __future__ import annotations

import gzip
import json
import os
import sqlite3
from pathlib import Path

import pytest

import ef
from ef.errors import InputRefused, UsageError
from ef.importers.formats import Format, Tells
from ef.importers.translator import Translator
from ef.session import content
from ef.session.content import open_content
from ef.session.databases import rows_of, tables_of
from ef.testing.transcripts import transcript
from tests.importing.test_growing import answers

DATA = transcript(20)
NOTHING = Tells(*([""] * 8))


def rows(path: Path, tables: dict[str, str]) -> list[bytes]:
    form = Format("x", "X", "database", Translator, lambda _: True, NOTHING, tables)
    found = rows_of(open_content(path), form, None)
    try:
        return b"".join(found.blocks()).splitlines(keepends=True)
    finally:
        found.close()


@pytest.fixture
def plain(tmp_path: Path) -> dict[str, object]:
    file = tmp_path / "plain.jsonl"
    file.write_bytes(DATA)
    with ef.open(tmp_path / "plain.ef") as store:
        store.import_file(file)
        return answers(store)


@pytest.mark.parametrize("members", [1, 3])
def test_a_gzip_file_is_read_as_what_it_holds(
    members: int, tmp_path: Path, plain: dict[str, object]
) -> None:
    size = len(DATA) // members + 1
    packed = b"".join(gzip.compress(DATA[at : at + size]) for at in range(0, len(DATA), size))
    file = tmp_path / "s.jsonl.gz"
    file.write_bytes(packed)
    with ef.open(tmp_path / "s.ef") as store:
        done = store.import_file(file)
        assert [n["kind"] for n in done.notes] == ["compressed"]
        assert answers(store) == plain
        assert store.export_original(done.source) == DATA
        assert store.import_file(file).new_events == {}


def test_a_zstd_file_is_read_as_what_it_holds(tmp_path: Path, plain: dict[str, object]) -> None:
    zstd = pytest.importorskip("backports.zstd", reason="the extra zstd is not installed")
    file = tmp_path / "s.jsonl.zst"
    half = len(DATA) // 2
    file.write_bytes(zstd.compress(DATA[:half]) + zstd.compress(DATA[half:]))
    with ef.open(tmp_path / "s.ef") as store:
        done = store.import_file(file)
        assert answers(store) == plain
        assert store.export_original(done.source) == DATA
        file.write_bytes(file.read_bytes() + zstd.compress(transcript(25)[len(DATA) :]))
        grown = store.import_file(file)
        assert (grown.source, grown.relation) == (done.source, "grown")


def test_what_unpacks_to_too_much_is_refused_and_what_unpacks_to_much_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content, "UNPACKED_FREELY", 1 << 20)
    file = tmp_path / "s.jsonl.gz"
    with ef.open(tmp_path / "s.ef") as store:
        file.write_bytes(gzip.compress(DATA + b" " * (1 << 23)))
        with pytest.raises(InputRefused, match="unpacks to more than"):
            store.import_file(file)
        assert store.sources() == []
        file.write_bytes(gzip.compress(DATA + b" " * (1 << 19)))
        assert store.import_file(file).sessions


@pytest.mark.parametrize("cut", [10, 200, -1])
def test_a_packed_file_that_is_cut_gives_what_there_is_or_is_refused(
    cut: int, tmp_path: Path
) -> None:
    file = tmp_path / "s.jsonl.gz"
    file.write_bytes(gzip.compress(DATA)[:cut])
    with ef.open(tmp_path / "s.ef") as store:
        try:
            done = store.import_file(file)
        except InputRefused:
            assert cut == 10
        else:
            assert DATA.startswith(store.export_original(done.source))


def test_what_is_no_gzip_behind_its_first_bytes_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "s.gz"
    file.write_bytes(b"\x1f\x8b\x08" + bytes(100) + os.urandom(100))
    with ef.open(tmp_path / "s.ef") as store, pytest.raises(InputRefused, match=r"unpacked|empty"):
        store.import_file(file)


def test_rows_come_as_lines_with_their_json_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    said = '{"role": "user",  "content":"é"}'
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, data TEXT, blob BLOB, n REAL)")
    base.execute("INSERT INTO messages VALUES (2, ?, ?, 1.5)", (said, b"\xff\x00"))
    base.execute("INSERT INTO messages VALUES (1, 'no json {', X'7B7D', NULL)")
    base.execute("INSERT INTO messages VALUES (3, ?, NULL, NULL)", ('{"a":\n1}',))
    base.commit()
    assert tables_of(path) == {"messages"}
    before = rows(path, {"messages": "id", "absent": "id"})
    assert [json.loads(line)["id"] for line in before] == [1, 2, 3]
    assert said.encode() in before[1]
    assert json.loads(before[1])["blob"] == {"base64": "/wA="}
    assert json.loads(before[0])["data"] == "no json {"
    assert json.loads(before[2])["data"] == '{"a":\n1}'
    base.execute("INSERT INTO messages VALUES (4, '[]', NULL, NULL)")
    base.commit()
    base.close()
    assert rows(path, {"messages": "id"})[:3] == before


def test_rows_that_are_only_in_the_write_ahead_log_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    base = sqlite3.connect(path)
    base.execute("PRAGMA journal_mode = WAL")
    base.execute("CREATE TABLE m (id INTEGER PRIMARY KEY)")
    base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    base.execute("INSERT INTO m VALUES (1)")
    base.commit()
    assert len(rows(path, {"m": "id"})) == 1
    base.close()


@pytest.mark.parametrize("kind", ["garbage", "cut"])
def test_a_broken_database_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, message_data TEXT)")
    base.executemany("INSERT INTO agent_messages(message_data) VALUES (?)", [("{}" * 900,)] * 50)
    base.commit()
    base.close()
    data = path.read_bytes()
    path.write_bytes(data[:5000] if kind == "cut" else data[:100] + os.urandom(len(data) - 100))
    with ef.open(tmp_path / "s.ef") as store:
        with pytest.raises(InputRefused):
            store.import_file(path)
        assert store.sources() == []


@pytest.mark.parametrize("kind", ["absent", "folder", "pipe", "device", "empty", "utf-16"])
def test_what_is_no_file_to_read_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/zero")
    elif kind == "empty":
        path.write_bytes(b" \n\n")
    elif kind == "utf-16":
        path.write_bytes(DATA.decode().encode("utf-16"))
    with ef.open(tmp_path / "s.ef") as store, pytest.raises(InputRefused) as refused:
        store.import_file(path)
    assert str(path) in str(refused.value)


def test_a_link_to_a_session_is_read(tmp_path: Path) -> None:
    (tmp_path / "real.jsonl").write_bytes(DATA)
    (tmp_path / "s.jsonl").symlink_to("real.jsonl")
    with ef.open(tmp_path / "s.ef") as store:
        assert store.import_file(tmp_path / "s.jsonl").sessions


def test_what_is_written_meanwhile_is_for_the_next_import(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_bytes(DATA)
    found = open_content(file)
    try:
        with file.open("ab") as more:
            more.write(transcript(30)[len(DATA) :])
        assert b"".join(found.blocks()) == DATA
        file.write_bytes(DATA[:100])
        with pytest.raises(InputRefused, match="cut while it was read"):
            b"".join(found.blocks())
    finally:
        found.close()


def test_a_format_that_is_said_is_taken_where_there_is_anything_to_read(tmp_path: Path) -> None:
    odd, text = tmp_path / "odd.jsonl", tmp_path / "text.jsonl"
    odd.write_bytes(b'{"role": "user", "content": "Is there a lid?", "ts": 1}\n' * 2)
    text.write_text("a text\nof two lines\n")
    with ef.open(tmp_path / "s.ef") as store:
        with pytest.raises(InputRefused, match="not known"):
            store.import_file(odd)
        assert store.import_file(odd, format="openai-chat").sessions
        for form in ("openai-chat", "langgraph"):
            with pytest.raises(InputRefused, match="holds nothing"):
                store.import_file(text, format=form)
        with pytest.raises(UsageError, match="invalid choice"):
            store.import_file(odd, format="nope")
