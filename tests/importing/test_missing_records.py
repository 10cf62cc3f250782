"""Whatever record of a source is deleted, the export refuses and names what is missing, and verify says damaged."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import ef
from ef.errors import Damaged
from ef.log import source_stream
from ef.testing.damage import copy_of, delete_record

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "claude_code"
SAMPLE = 12
SHARED = (
    "claude-code/claude-code-viewer/5c0375b4-57a5-4f26-b12d-d022ee4e51b7.jsonl",
    "claude-code/claude-code-log/-Users-dev-workspace-site-me-next/f852ad25-1024-47da-964e-5eaae5bd6e6a.jsonl",
    "claude-code/entireio-cli/bd__7375936c5c__0__full.jsonl",
    "claude-code/entireio-cli/cd__95adddad32__0__full.jsonl",
)


@dataclass(frozen=True)
class Row:
    """One record of a source, as its header says."""

    seq: int
    position: int
    kind: str
    span: tuple[int, int] | None


def rows(store: ef.Store, source: str) -> list[Row]:
    return [
        Row(
            r.header.seq,
            r.position,
            r.header.kind,
            (r.header.origin.start, r.header.origin.end) if r.header.origin else None,
        )
        for r in store.log.read(source_stream(source))
    ]


def sampled(found: list[Row]) -> list[Row]:
    """All, or the first, the last and some between."""
    if len(found) <= SAMPLE:
        return found
    step = (len(found) - 1) / (SAMPLE - 1)
    return [found[round(n * step)] for n in range(SAMPLE)]


def lines_touched(data: bytes, span: tuple[int, int]) -> tuple[int, int]:
    """From the original's bytes alone: the first and the last line of which the span holds something."""
    start, end = span
    return 1 + data.count(b"\n", 0, start), 1 + data.count(b"\n", 0, end - 1)


def named(message: str) -> set[tuple[int, int]]:
    """The line ranges that a message names."""
    found = re.findall(r"line (\d+) is missing|lines (\d+) to (\d+) are missing", message)
    return {(int(one or first), int(one or last)) for one, first, last in found}


def refusals(home: Path, data: bytes, source: str, chosen: list[Row]) -> Iterator[str]:
    """Delete each chosen record in a copy of its own and check what is said; what is wrong with it."""
    for row in chosen:
        copy = copy_of(home, home.with_name(f"without-{row.seq}"))
        delete_record(copy, row.position)
        with ef.open(copy) as store:
            try:
                store.export_original(source)
            except Damaged as fault:
                said = str(fault)
            else:
                yield f"seq {row.seq}: the export did not refuse"
                continue
            want = (
                {lines_touched(data, row.span)} if row.kind == "SourceLines" and row.span else set()
            )
            if named(said) != want:
                yield f"seq {row.seq} ({row.kind}): lines {sorted(want)} are missing, it says: {said}"
            if not re.search(rf"(event|seq) {row.seq}\b", said):
                yield f"seq {row.seq} ({row.kind}): the event is not named: {said}"
            if store.verify().verdict != "damaged":
                yield f"seq {row.seq}: verify says {store.verify().verdict}"
        shutil.rmtree(copy)


def check(tmp_path: Path, imports: list[bytes], least: int) -> None:
    """Import snapshots of one file, delete each record in turn; the undamaged twin exports."""
    home, file = tmp_path / "s.ef", tmp_path / "file.jsonl"
    with ef.open(home) as store:
        for data in imports:
            file.write_bytes(data)
            source = store.import_file(file).source
        found = rows(store, source)
        assert store.export_original(source) == imports[-1]
        assert store.verify().ok
    chosen = sampled(found)
    assert len(chosen) >= least
    assert list(refusals(home, imports[-1], source, chosen)) == []
    print(f"{len(chosen)} of {len(found)} records deleted, each refusal named what was missing")
    with ef.open(home) as store:
        assert store.export_original(source) == imports[-1]


@pytest.mark.parametrize("name", SHARED)
def test_without_any_record_of_a_transcript_the_export_names_the_missing_lines(
    name: str, shared_data: Path, tmp_path: Path
) -> None:
    check(tmp_path, [(shared_data / name).read_bytes()], 4)


@pytest.mark.parametrize("name", ["parallel-interleaved", "torn-tail", "comment-lines", "crlf"])
def test_without_any_record_of_a_small_source_the_export_names_the_missing_lines(
    name: str, tmp_path: Path
) -> None:
    check(tmp_path, [(FIXTURES / f"{name}.jsonl").read_bytes()], 3)


def test_of_a_source_that_grew_inside_lines_the_missing_lines_are_named_exactly(
    tmp_path: Path,
) -> None:
    data = (FIXTURES / "split-message.jsonl").read_bytes()
    ends = [n for n, byte in enumerate(data) if byte == 10]
    cuts = [ends[0] + 1, ends[1] + 40, ends[2], ends[3] + 1, ends[3] + 300, len(data)]
    check(tmp_path, [data[:cut] for cut in cuts], SAMPLE)


def test_of_a_line_in_several_pieces_the_missing_line_is_named(tmp_path: Path) -> None:
    first = (FIXTURES / "crlf.jsonl").read_bytes()
    row = first.split(b"\n")[0]
    long = row.replace(b'"type":"user"', b'"pad":"' + b"x" * 2_500_000 + b'","type":"user"', 1)
    assert len(long) > 2_500_000
    check(tmp_path, [first + long + b"\n" + first], 5)
