"""Each fixture means what a careful reader of its text said that it means: see its *.expect.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.errors import InputRefused
from ef.testing.pairing import violations
from ef.testing.tallies import sessions_of, tally

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "claude_code"
NAMES = sorted(path.stem for path in FOLDER.glob("*.jsonl"))
REFUSED = ("blank-lines-only", "empty")
READ = [name for name in NAMES if name not in REFUSED]


def expected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{name}.expect.json").read_text("utf-8"))
    return found


def fixture(name: str) -> Path:
    return FOLDER / f"{name}.jsonl"


def test_all_fixtures_are_looked_at() -> None:
    assert len(NAMES) == 123
    assert set(NAMES) == {p.name.removesuffix(".expect.json") for p in FOLDER.glob("*.expect.json")}
    assert {name for name in NAMES if expected(name)["refused"]} == set(REFUSED)


@pytest.mark.parametrize("name", READ)
def test_a_fixture_is_read_as_a_careful_reader_would(name: str, tmp_path: Path) -> None:
    want = expected(name)
    with ef.open(tmp_path / "s.ef") as store:
        done = store.import_file(fixture(name))
        main = tally(store, sessions_of(store, done.sessions, side=False))
        side = tally(store, sessions_of(store, done.sessions, side=True))
        assert main.typed == want["typed"]
        assert {
            "assistant_messages": len(main.messages),
            "calls": main.calls,
            "results": main.results,
            "errors": main.errors,
            "images": main.images,
            "compactions": main.compactions,
            "sidechain_records": side.items,
            "notes": sorted({note["kind"] for note in done.notes}),
            "pairs_open": main.open + side.open,
            "orphan_results": main.orphans + side.orphans,
        } == {k: v for k, v in want.items() if k not in ("why", "typed", "refused", "relaxed")}
        assert side.typed == []


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_without_a_record_is_refused_and_nothing_is_kept(name: str, tmp_path: Path) -> None:
    with ef.open(tmp_path / "s.ef") as store:
        before = store.log.store_tip()
        with pytest.raises(InputRefused, match="it is empty"):
            store.import_file(fixture(name))
        assert store.log.store_tip() == before
        assert store.verify().ok


@pytest.mark.parametrize("name", READ)
def test_a_fixture_comes_out_byte_for_byte_and_goes_in_once(name: str, tmp_path: Path) -> None:
    data = fixture(name).read_bytes()
    with ef.open(tmp_path / "s.ef") as store:
        done = store.import_file(fixture(name))
        assert store.export_original(done.source) == data
        tip = store.log.store_tip()
        again = store.import_file(fixture(name))
        assert (again.relation, again.new_events, store.log.store_tip()) == ("same", {}, tip)
        assert [n["kind"] for n in again.notes] == [n["kind"] for n in done.notes]
        checked = store.verify()
        assert (checked.verdict, checked.problems, checked.notes) == ("sound", [], [])
        assert checked.events == tip[0] + 1


@pytest.mark.parametrize("name", READ)
def test_at_every_seq_of_a_fixture_calls_and_results_are_pairs(name: str, tmp_path: Path) -> None:
    with ef.open(tmp_path / "s.ef") as store:
        for session_name in store.import_file(fixture(name)).sessions:
            session = store.session(session_name)
            for at in range(session.seq + 1):
                assert violations(session.context(at=at).messages) == [], f"{session_name} at {at}"
