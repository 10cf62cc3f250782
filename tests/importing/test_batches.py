"""Long files come in several batches: the same events as in one, shown when all are in, gone on with after an end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ef
from ef.errors import NotFound
from ef.events import ImportProgressed
from ef.log.points import hold
from ef.session import intake
from ef.testing.transcripts import transcript
from tests.importing.test_growing import answers

DATA = transcript(120, session="long")
SMALL = 16 << 10


class Ended(Exception):
    """The import is ended here."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "BATCH_BYTES", SMALL)
    monkeypatch.setattr("ef.session.content.BLOCK", SMALL)


def ended_after(batches: int) -> Any:
    """What ends an import when so many batches are durable."""
    seen = 0

    def at(name: str) -> None:
        nonlocal seen
        seen += name == "import.appended"
        if name == "import.appended" and seen == batches:
            raise Ended

    return at


def once(path: Path) -> dict[str, Any]:
    with ef.open(path.with_suffix(".once")) as store:
        store.import_file(path)
        return answers(store)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "long.jsonl"
    path.write_bytes(DATA)
    return path


def progressed(store: ef.Store) -> int:
    return sum(r.header.kind == ImportProgressed.__name__ for r in store.log.all())


@pytest.mark.usefixtures("small")
def test_batches_mean_what_one_means(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ef.open(file.with_suffix(".ef")) as store:
        done = store.import_file(file)
        assert progressed(store) >= 5
        got = answers(store)
        assert store.export_original(done.source) == DATA
        tip = store.log.store_tip()
        assert store.import_file(file).new_events == {}
        assert store.log.store_tip() == tip
        assert store.verify().problems == []
    monkeypatch.undo()
    assert got == once(file)


@pytest.mark.usefixtures("small")
def test_lines_also_make_batches(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "BATCH_BYTES", 8 << 20)
    monkeypatch.setattr(intake, "BATCH_LINES", 50)
    with ef.open(file.with_suffix(".ef")) as store:
        store.import_file(file)
        assert progressed(store) == DATA.count(b"\n") // 50
        got = answers(store)
    monkeypatch.undo()
    assert got == once(file)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("batches", [1, 3])
def test_an_import_that_was_ended_is_not_shown_and_is_gone_on_with(
    file: Path, batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ef.open(file.with_suffix(".ef")) as store:
        hold(ended_after(batches))
        try:
            with pytest.raises(Ended):
                store.import_file(file)
        finally:
            hold(None)
        assert list(store.session_names()) == []
        assert store.sessions() == []
        with pytest.raises(NotFound, match="not in the store"):
            store.find_session("long")
        (source,) = store.sources()
        assert not source.complete
        with pytest.raises(NotFound, match="goes on where it was ended"):
            store.export_original(source.id)
        assert store.verify().problems == []
        before = store.log.store_tip()
        done = store.import_file(file)
        assert done.relation == "resumed"
        assert store.log.store_tip() != before
        assert list(store.session_names()) == ["long"]
        assert store.export_original(done.source) == DATA
        assert store.verify().problems == []
        got = answers(store)
    monkeypatch.undo()
    assert got == once(file)


@pytest.mark.usefixtures("small")
def test_a_file_that_grew_after_its_import_was_ended(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_bytes(DATA[: len(DATA) // 2])
    with ef.open(file.with_suffix(".ef")) as store:
        hold(ended_after(2))
        try:
            with pytest.raises(Ended):
                store.import_file(file)
        finally:
            hold(None)
        file.write_bytes(DATA)
        assert store.import_file(file).relation == "resumed"
        assert len(store.sources()) == 1
        got = answers(store)
    monkeypatch.undo()
    assert got == once(file)


@pytest.mark.usefixtures("small")
def test_a_session_that_was_there_is_shown_while_it_grows(file: Path) -> None:
    file.write_bytes(DATA[: DATA.index(b"\n", len(DATA) // 3) + 1])
    with ef.open(file.with_suffix(".ef")) as store:
        store.import_file(file)
        file.write_bytes(DATA)
        hold(ended_after(1))
        try:
            with pytest.raises(Ended):
                store.import_file(file)
        finally:
            hold(None)
        assert list(store.session_names()) == ["long"]
        assert store.verify().problems == []


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("before", [0, 3])
def test_an_import_that_is_ended_again_and_again_comes_to_its_end(
    file: Path, before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From nothing, and from a part of the file that was there before (in thirds); it grows once more on the way."""
    with ef.open(file.with_suffix(".ef")) as store:
        if before:
            file.write_bytes(DATA[: len(DATA) // before])
            store.import_file(file)
        file.write_bytes(DATA[: len(DATA) * 2 // 3])
        ends = 0
        for turn in range(40):
            if turn == 3:
                file.write_bytes(DATA)
            hold(ended_after(1))
            try:
                store.import_file(file)
            except Ended:
                ends += 1
            else:
                break
            finally:
                hold(None)
        assert ends >= 5
        done = store.import_file(file)
        assert store.export_original(done.source) == DATA
        assert store.verify().problems == []
        assert len(store.sources()) == 1
        got = answers(store)
    monkeypatch.undo()
    assert got == once(file)
