"""Any past moment is the same whether it is asked of a long log or of a store that never received more than that."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import ef
from ef.importers.names import session_stream
from ef.log import source_stream
from ef.testing.copies import Replica

FILES = sorted(
    json.loads(
        (Path(__file__).resolve().parents[1] / "golden" / "counts" / "counts.json").read_text()
    )["files"]
)
FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "claude_code"
SMALL = (
    "sidechains-interleaved", "late-result-after-interruption", "uuid-conflict", "tool-id-reused", "lone-surrogate",
    "result-errors", "compaction-twice", "glued-three-in-the-middle", "number-1e400", "timestamps-odd",
)  # fmt: skip
MOMENTS = 50


def compare(home: Path, file: Path, path: Path, seed: str, most: int) -> tuple[int, list[str]]:
    """Import a file; bring a second store to moment after moment of each session; (moments, differences)."""
    chosen = random.Random(seed)
    looked, found = 0, []
    with ef.open(home) as store:
        done = store.import_file(file)
        with Replica(store.log, path) as replica:
            replica.receive(source_stream(done.source))
            for name in done.sessions:
                stream = session_stream(name)
                a, b = store.session(name), replica.store.session(name)
                moments = sorted(chosen.sample(range(1, a.seq + 1), min(most, a.seq)))
                for p in sorted({*moments, a.seq}):
                    replica.receive(stream, p)
                    assert b.seq == p
                    looked += 1
                    past, last = a.context(at=p), b.context()
                    pairs = {
                        "context": (past.digest, last.digest),
                        "messages": (past.messages, last.messages),
                        "state": (a.state(at=p).digest, b.state().digest),
                        "projection": (a.working(p).canonical(), b.working().canonical()),
                    }
                    found += [f"{name} at {p}: {what}" for what, (x, y) in pairs.items() if x != y]
                assert store.log.tip(stream).digest != replica.log.tip(stream).digest
            checked = replica.store.verify()
            assert (checked.verdict, checked.problems) == ("sound", [])
    return looked, found


@pytest.mark.parametrize("name", FILES)
def test_any_moment_of_a_transcript_is_what_a_store_holds_that_ends_there(
    name: str, shared_data: Path, tmp_path: Path
) -> None:
    looked, found = compare(tmp_path / "a.ef", shared_data / name, tmp_path / "b.ef", name, MOMENTS)
    print(f"{name}: {looked} moments")
    assert looked >= 42
    assert found == []


@pytest.mark.parametrize("name", SMALL)
def test_every_moment_of_a_fixture_is_what_a_store_holds_that_ends_there(
    name: str, tmp_path: Path
) -> None:
    file = FIXTURES / f"{name}.jsonl"
    looked, found = compare(tmp_path / "a.ef", file, tmp_path / "b.ef", name, 1000)
    assert looked >= 5
    assert found == []


def test_a_store_that_received_one_event_more_is_told_apart(tmp_path: Path) -> None:
    with ef.open(tmp_path / "a.ef") as store:
        done = store.import_file(FIXTURES / "result-errors.jsonl")
        (name,) = done.sessions
        a = store.session(name)
        with Replica(store.log, tmp_path / "b.ef") as replica:
            replica.receive(source_stream(done.source))
            told = 0
            for p in range(1, a.seq):
                replica.receive(session_stream(name), p + 1)
                told += (
                    a.working(p).canonical() != replica.store.session(name).working().canonical()
                )
            assert told == a.seq - 1
