"""A transcript that is imported while it grows means the same as one that is imported once, wherever it was cut."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.importers.formats import Head, recognised
from ef.testing.pairing import violations

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "claude_code"
SERIES = "claude-code/append-only-series/b8_e9234b1b70_2"
SHARED = (
    "claude-code/claude-code-viewer/1af7fc5e-8455-4414-9ccd-011d40f70b2a.jsonl",
    "claude-code/claude-code-viewer/5c0375b4-57a5-4f26-b12d-d022ee4e51b7.jsonl",
    "claude-code/claude-code-log/-Users-dev-workspace-site-me-next/f852ad25-1024-47da-964e-5eaae5bd6e6a.jsonl",
    "claude-code/entireio-cli/bd__7375936c5c__0__full.jsonl",
    "claude-code/entireio-cli/ee__cf21d297fe__0__full.jsonl",
    "claude-code/episodic-memory/large-conversation.jsonl",
)
CUT_FIXTURES = (
    "split-message", "parallel-interleaved", "parallel-results-swapped", "glued-three-in-the-middle", "glued-summary",
    "sidechains-interleaved", "late-result-after-interruption", "tool-id-reused", "uuid-conflict", "torn-multibyte",
    "unicode-not-normalised", "missing-uuid", "typed-between-blocks", "interrupted-for-tool-use", "crlf",
    "exact-duplicate-line", "compaction-twice", "utf8-bom", "invalid-utf8", "depth-70-input", "two-session-ids",
    "branch-from-one-parent", "parent-later", "cut-line-in-the-middle", "comment-lines", "scalar-lines",
)  # fmt: skip


def answers(store: ef.Store) -> dict[str, Any]:
    """What a store answers of each session: digests of context and state, and its length."""
    return {
        name: (
            store.session(name).context().digest,
            store.session(name).state().digest,
            store.session(name).seq,
        )
        for name in sorted(store.session_names())
    }


def events(store: ef.Store) -> dict[tuple[str, int], bytes]:
    return {(r.header.stream, r.header.seq): r.digest for r in store.log.all()}


def grow(home: Path, snapshots: list[bytes]) -> dict[str, Any]:
    """Import snapshots of one file in order. After each: what was there stays, each length exports, pairs hold."""
    file = home.with_suffix(".jsonl")
    kept: dict[tuple[str, int], bytes] = {}
    longest = 0
    with ef.open(home) as store:
        for n, data in enumerate(snapshots):
            file.write_bytes(data)
            tip = store.log.store_tip()
            done = store.import_file(file)
            if len(data) <= longest:
                assert store.log.store_tip() == tip, f"snapshot {n}: an earlier one wrote something"
            now = events(store)
            assert kept.items() <= now.items(), f"snapshot {n}: an old event changed"
            longest, kept = max(longest, len(data)), now
            for earlier in snapshots[: n + 1]:
                if len(earlier) == longest or earlier in _grown(snapshots[: n + 1]):
                    got = store.export_original(done.source, length=len(earlier))
                    assert got == earlier, f"snapshot {n}: length {len(earlier)}"
            for name in store.session_names():
                assert violations(store.session(name).context().messages) == []
        assert store.verify().problems == []
        return answers(store)


def _grown(snapshots: list[bytes]) -> list[bytes]:
    """Those that were the longest when they came: each of them is an import of its own."""
    found: list[bytes] = []
    for data in snapshots:
        if not found or len(data) > len(found[-1]):
            found.append(data)
    return found


def once(home: Path, data: bytes) -> dict[str, Any]:
    file = home.with_suffix(".jsonl")
    file.write_bytes(data)
    with ef.open(home) as store:
        store.import_file(file)
        return answers(store)


def cuts_of(data: bytes, chosen: random.Random) -> dict[str, list[int]]:
    """Places to cut a file at, by what they are inside of."""
    starts = [0] + [n + 1 for n, byte in enumerate(data) if byte == 10]
    found: dict[str, list[int]] = {
        kind: [] for kind in ("message", "batch", "line", "character", "glue", "newline")
    }
    group, waits = None, set[str]()
    for start, end in zip(starts, [*starts[1:], len(data)], strict=True):
        row = data[start:end]
        if not row.strip():
            continue
        found["line"].append(start + chosen.randrange(1, len(row)))
        found["newline"] += [end, end - 1]
        found["character"] += [start + n for n, b in enumerate(row) if b & 0xC0 == 0x80][:2]
        found["glue"] += [start + at + 1 for at in _all(row, b"}{")]
        try:
            record = json.loads(row)
        except ValueError:
            continue
        if not isinstance(record, dict) or not isinstance(record.get("message"), dict):
            continue
        if waits:
            found["batch"].append(start)
        name = record["message"].get("id")
        if name and name == group:
            found["message"].append(start)
        group = name
        for block in record["message"].get("content") or []:
            if isinstance(block, dict) and block.get("type") == "tool_use":
                waits.add(str(block.get("id")))
            elif isinstance(block, dict) and block.get("type") == "tool_result":
                waits.discard(str(block.get("tool_use_id")))
    return {kind: sorted({c for c in cuts if 0 < c < len(data)}) for kind, cuts in found.items()}


def _all(text: bytes, part: bytes) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def importable(data: bytes) -> bool:
    """A first snapshot must hold enough for its format to be seen."""
    return recognised(Head(data[: 1 << 18], whole=len(data) <= 1 << 18)) is not None


def series_of(data: bytes, seed: str, rounds: int) -> Iterator[list[int]]:
    """Lists of 3 to 6 cuts, each with cuts of every kind that the file offers."""
    chosen = random.Random(seed)
    places = cuts_of(data, chosen)
    kinds = [kind for kind, cuts in places.items() if cuts]
    for _ in range(rounds):
        few = chosen.sample(kinds, min(len(kinds), chosen.randint(3, 6)))
        cuts = sorted({chosen.choice(places[kind]) for kind in few})
        cuts = [c for c in cuts if importable(data[:c])]
        if cuts:
            yield cuts


def check(data: bytes, tmp_path: Path, name: str, rounds: int) -> int:
    """Snapshots in order and in random order give what one import gives; how many snapshots were imported."""
    want, imported = once(tmp_path / "once.ef", data), 0
    for n, cuts in enumerate(series_of(data, name, rounds)):
        snapshots = [data[:cut] for cut in cuts] + [data]
        assert grow(tmp_path / f"grown-{n}.ef", snapshots) == want, f"cuts at {cuts}"
        random.Random(n).shuffle(snapshots)
        got = grow(tmp_path / f"shuffled-{n}.ef", [*snapshots, data])
        assert got == want, f"order {[len(s) for s in snapshots]}"
        imported += 2 * len(snapshots)
    return imported


def test_snapshots_of_a_real_session_mean_what_the_last_one_means(
    shared_data: Path, tmp_path: Path
) -> None:
    files = sorted((shared_data / SERIES).glob("*.jsonl"))
    snapshots = [path.read_bytes() for path in files]
    assert [path.name[:2] for path in files] == ["00", "03", "05"]
    assert grow(tmp_path / "grown.ef", snapshots) == once(tmp_path / "once.ef", snapshots[-1])
    backwards = grow(tmp_path / "back.ef", snapshots[::-1])
    assert backwards == once(tmp_path / "again.ef", snapshots[-1])


@pytest.mark.parametrize("name", SHARED)
def test_a_transcript_cut_anywhere_and_grown_means_the_same(
    name: str, shared_data: Path, tmp_path: Path
) -> None:
    data = (shared_data / name).read_bytes()
    imported = check(data, tmp_path, name, rounds=3)
    assert imported >= 12
    print(f"{name}: {imported} snapshots")


@pytest.mark.parametrize("name", CUT_FIXTURES)
def test_a_fixture_cut_anywhere_and_grown_means_the_same(name: str, tmp_path: Path) -> None:
    data = (FIXTURES / f"{name}.jsonl").read_bytes()
    imported = check(data, tmp_path, name, rounds=6)
    assert imported >= 6
    print(f"{name}: {imported} snapshots")


def test_a_file_that_grows_by_a_few_bytes_at_a_time_means_the_same(tmp_path: Path) -> None:
    rows = (FIXTURES / "parallel-interleaved.jsonl").read_bytes().split(b"\n")
    data = b"\n".join(rows[:5]) + b"\n"
    want = once(tmp_path / "once.ef", data)
    cuts = [c for c in range(len(rows[0]) - 40, len(data), 29) if importable(data[:c])]
    file = tmp_path / "file.jsonl"
    with ef.open(tmp_path / "grown.ef") as store:
        for cut in [*cuts, len(data)]:
            file.write_bytes(data[:cut])
            store.import_file(file)
        assert answers(store) == want
        assert store.export_original(store.sources()[0].id) == data
        lengths = [len(store.export_original(store.sources()[0].id, length=c)) for c in cuts]
    assert lengths == cuts
    print(f"{len(cuts)} cuts")


@pytest.mark.parametrize("name", ["parallel-interleaved", "glued-three-in-the-middle"])
def test_the_cuts_are_what_they_are_said_to_be(name: str) -> None:
    data = (FIXTURES / f"{name}.jsonl").read_bytes()
    places = cuts_of(data, random.Random(1))
    assert all(data[c - 1 : c + 1] == b"}{" for c in places["glue"])
    assert any(data[c - 1 : c] == b"\n" for c in places["newline"])
    assert places["batch"] if name.startswith("parallel") else places["glue"]
