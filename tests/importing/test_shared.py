"""Recorded transcripts: counts as an independent count has them, the bytes as they were, calls and results in pairs."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import ef
from ef.testing.pairing import violations
from ef.testing.tallies import sessions_of, tally

COUNTS = json.loads(
    (Path(__file__).resolve().parents[1] / "golden" / "counts" / "counts.json").read_text("utf-8")
)["files"]
FILES = sorted(COUNTS)
MOMENTS = 40


def test_every_counted_transcript_is_there_and_every_one_there_is_counted(
    shared_data: Path,
) -> None:
    found = {
        str(path.relative_to(shared_data))
        for path in shared_data.glob("claude-code/**/*.jsonl")
        if path.stat().st_size
    }
    assert found == set(FILES)
    assert len(found) == 11


@pytest.mark.parametrize("name", FILES)
def test_a_transcript_comes_out_byte_for_byte_in_bounded_space_and_goes_in_once(
    name: str, shared_data: Path, tmp_path: Path
) -> None:
    data = (shared_data / name).read_bytes()
    with ef.open(tmp_path / "s.ef") as store:
        done = store.import_file(shared_data / name)
        assert store.export_original(done.source) == data
        tip = store.log.store_tip()
        assert store.import_file(shared_data / name).new_events == {}
        assert store.log.store_tip() == tip
        checked = store.verify()
        assert (checked.verdict, checked.problems, checked.notes) == ("sound", [], [])
    size = (tmp_path / "s.ef" / "data.mdb").stat().st_size
    print(f"{name}: {len(data)} bytes of text, {size} of store, {checked.events} events")
    assert size <= 1.6 * len(data) + 128 * 1024


@pytest.mark.parametrize("name", FILES)
def test_counts_are_those_of_an_independent_count(
    name: str, shared_data: Path, tmp_path: Path
) -> None:
    want = COUNTS[name]
    with ef.open(tmp_path / "s.ef") as store:
        done = store.import_file(shared_data / name)
        main = tally(store, sessions_of(store, done.sessions, side=False))
        side = tally(store, sessions_of(store, done.sessions, side=True))
    got = {
        "records": done.records,
        "user_typed_texts": len(main.typed) + len(side.typed),
        "assistant_messages_main": len(main.messages | main.synthetic),
        "assistant_messages_sidechain": len(side.messages | side.synthetic),
        "assistant_messages_synthetic": len(main.synthetic | side.synthetic),
        "tool_calls": main.calls + side.calls,
        "tool_calls_sidechain": side.calls,
        "tool_results": main.results + side.results,
        "tool_results_sidechain": side.results,
        "tool_errors": main.errors + side.errors,
        "compactions": main.compactions,
        "images": main.images + side.images,
    }
    print(name, got)
    assert got == {key: want[key] for key in got}
    assert side.typed == []


@pytest.mark.parametrize("name", FILES)
def test_at_any_moment_calls_and_results_are_pairs(
    name: str, shared_data: Path, tmp_path: Path
) -> None:
    chosen = random.Random(name)
    looked = 0
    with ef.open(tmp_path / "s.ef") as store:
        for session_name in store.import_file(shared_data / name).sessions:
            session = store.session(session_name)
            most = min(MOMENTS, session.seq)
            moments = sorted(chosen.sample(range(1, session.seq + 1), most))
            for at in {*moments, session.seq}:
                looked += 1
                assert violations(session.context(at=at).messages) == [], f"{session_name} at {at}"
    assert looked >= MOMENTS
    print(f"{name}: {looked} moments")
