"""Sources beside one another: a damaged one stops nobody else; a session that was named stays the one that grows."""

from __future__ import annotations

from pathlib import Path

import pytest

import ef
from ef.errors import Damaged, InputRefused, NotFound
from ef.log import source_stream
from ef.testing.damage import delete_record
from ef.testing.transcripts import transcript

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "claude_code"
ONE, OTHER = FIXTURES / "split-message.jsonl", FIXTURES / "crlf.jsonl"
THIRD = FIXTURES / "list-content.jsonl"


def test_a_damaged_source_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with ef.open(path) as store:
        first, second = store.import_file(ONE).source, store.import_file(OTHER).source
        position = store.log.get(source_stream(first), 1).position
    delete_record(path, position)
    with ef.open(path) as store:
        assert [s.id for s in store.sources()] == [second]
        assert store.export_original(second) == OTHER.read_bytes()
        assert store.import_file(THIRD).new_events
        with pytest.raises(Damaged, match=f"source/{first}, seq 1"):
            store.export_original(first)
        with pytest.raises(Damaged, match=f"source/{first}, seq 1"):
            store.import_file(ONE)
        found = store.verify()
        assert found.verdict == "damaged"
        assert any(first in problem.where for problem in found.problems)


def test_a_file_that_grew_goes_on_in_the_session_that_it_was_given(tmp_path: Path) -> None:
    data = ONE.read_bytes()
    cut = data.index(b"\n", len(data) // 2) + 1
    file = tmp_path / "session.jsonl"
    file.write_bytes(data[:cut])
    with ef.open(tmp_path / "store") as store:
        assert store.import_file(file, session="mine").sessions == ["mine"]
        file.write_bytes(data)
        grown = store.import_file(file)
        assert (grown.relation, grown.sessions) == ("grown", ["mine"])
        assert list(store.session_names()) == ["mine"]
    with ef.open(tmp_path / "whole") as whole, ef.open(tmp_path / "store") as store:
        whole.import_file(ONE, session="mine")
        one, other = whole.session("mine"), store.session("mine")
        assert one.state().digest == other.state().digest
        assert one.context().digest == other.context().digest


def test_known_bytes_are_not_given_to_another_session(tmp_path: Path) -> None:
    with ef.open(tmp_path / "store") as store:
        store.import_file(ONE, session="mine")
        assert not store.import_file(ONE, session="mine").new_events
        with pytest.raises(InputRefused, match="in the store as session mine"):
            store.import_file(ONE, session="yours")
        assert list(store.session_names()) == ["mine"]


def test_the_lines_that_a_shorter_file_has_come_out_exactly_whichever_came_first(
    tmp_path: Path,
) -> None:
    rows = transcript(8, session="s").splitlines(keepends=True)
    short, long = tmp_path / "short.jsonl", tmp_path / "long.jsonl"
    short.write_bytes(b"".join(rows[:3]))
    long.write_bytes(b"".join(rows))
    for order in ((short, long), (long, short)):
        with ef.open(tmp_path / f"{order[0].stem}.ef") as store:
            results = [store.import_file(path) for path in order]
            for path in order:
                size = path.stat().st_size
                assert store.export_original(results[0].source, length=size) == path.read_bytes()
            for size in (short.stat().st_size - 1, 0, long.stat().st_size + 1):
                with pytest.raises(NotFound, match="import of length"):
                    store.export_original(results[0].source, length=size)
