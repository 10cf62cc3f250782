"""A trajectory that is imported while it is written means the same as one that is imported once, however it grew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ef
from tests.importing.vendors import FIXTURES, SEEDS

OURS = FIXTURES / "trajectories"
LINES = (
    OURS / "openhands-v0-events.jsonl", OURS / "openhands-v0-output.jsonl", OURS / "openhands-v1-events.jsonl",
    OURS / "deepseek-harness-later.jsonl", SEEDS / "openhands-v1.jsonl", SEEDS / "deepseek-harness.jsonl",
)  # fmt: skip
DOCUMENTS = (OURS / "openhands-v0-trajectory.json", SEEDS / "openhands-v0.json")


def parsed(path: Path) -> list[Any]:
    """The events of a document."""
    held: Any = json.loads(path.read_bytes())
    return list(held) if path.name.startswith("openhands-v0.") else list(held["trajectory"])


def answers(store: ef.Store) -> dict[str, Any]:
    """What a store says of each session: digests of context and state, and its length."""
    assert store.verify().problems == []
    return {
        name: (store.session(name).context().digest, store.session(name).state().digest, store.session(name).seq)
        for name in sorted(store.session_names())
    }  # fmt: skip


def events(store: ef.Store) -> dict[tuple[str, int], bytes]:
    return {(r.header.stream, r.header.seq): r.digest for r in store.log.all()}


def grown(home: Path, path: Path, snapshots: list[bytes]) -> dict[str, Any]:
    """Import a file each time that it was written; what was said before stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with ef.open(home) as store:
        said: dict[tuple[str, int], bytes] = {}
        for data in snapshots:
            path.write_bytes(data)
            store.import_file(path)
            now = events(store)
            assert said.items() <= now.items()
            said = now
        assert store.import_file(path).new_events == {}
        return answers(store)


@pytest.mark.parametrize("path", LINES, ids=lambda path: path.name)
def test_lines_mean_the_same_wherever_the_file_was_cut(path: Path, tmp_path: Path) -> None:
    whole = path.read_bytes()
    ends = [n + 1 for n, byte in enumerate(whole) if byte == 10]
    file = tmp_path / "s.jsonl"
    once = grown(tmp_path / "once.ef", file, [whole])
    assert grown(tmp_path / "each.ef", file, [whole[:n] for n in ends]) == once
    torn = [whole[: n - 9] for n in ends]
    assert grown(tmp_path / "torn.ef", file, [*torn[1:], whole]) == once


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_a_document_that_is_written_anew_with_more_events_means_the_same(
    path: Path, tmp_path: Path
) -> None:
    values = parsed(path)
    file = tmp_path / "s.json"
    snapshots = [json.dumps(values[:n]).encode() for n in range(1, len(values) + 1)]
    once = grown(tmp_path / "once.ef", file, snapshots[-1:])
    assert grown(tmp_path / "each.ef", file, snapshots) == once


SHARED = ("openhands/OpenHands", "openhands/software-agent-sdk", "deepseek-harness")


def test_recorded_sessions_mean_the_same_wherever_they_were_cut(
    shared_data: Path, tmp_path: Path
) -> None:
    found = [p for name in SHARED for p in sorted((shared_data / name).glob("*.jsonl"))]
    paths = [path for path in found if not path.name.endswith("stdout.expected.jsonl")]
    assert len(paths) == 14
    for n, path in enumerate(paths):
        whole = path.read_bytes()
        ends = [n + 1 for n, byte in enumerate(whole) if byte == 10]
        third = max(1, len(ends) // 3)
        cuts = [whole[: ends[at] + 40] for at in range(third - 1, len(ends), third)]
        file = tmp_path / str(n) / "s.jsonl"
        once = grown(tmp_path / f"{n}-once.ef", file, [whole])
        assert grown(tmp_path / f"{n}-each.ef", file, [*cuts, whole]) == once, path.name
