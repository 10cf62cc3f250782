"""Records that are looked up by the index `seq`, many at once: each is the one that its row names, or damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from ef.errors import Damaged
from ef.log.rows import U64, stream_hash
from tests.log.build import item, opened, raw

A, B = "session/a", "session/b"


def row(stream: str, seq: int) -> bytes:
    return stream_hash(stream) + U64.pack(seq)


def two_streams(path: Path) -> Path:
    """Five records each, turn by turn: positions 1, 3, 5 … are A's, 2, 4, 6 … are B's."""
    with opened(path) as log:
        for n in range(5):
            log.append([item(A, f"k{n}"), item(B, f"k{n}")])
    return path


@pytest.mark.parametrize(
    ("seq", "leads_to", "said"),
    [
        (3, U64.pack(6), "leads elsewhere"),
        (1, U64.pack(2), "leads elsewhere"),
        (3, U64.pack(7), "leads elsewhere"),
        (5, U64.pack(99), "the record is not there"),
        (2, b"short", "stands for a position"),
    ],
    ids=["another stream", "another stream's first", "another seq", "nowhere", "no position"],
)
def test_a_row_that_leads_elsewhere_is_damage_and_the_other_stream_is_read(
    tmp_path: Path, seq: int, leads_to: bytes, said: str
) -> None:
    path = two_streams(tmp_path / "s.ef")
    with raw(path) as store:
        store.put(b"seq", row(A, seq), leads_to)
    with opened(path) as log:
        for read in (log.read, log.stored):
            with pytest.raises(Damaged, match=said):
                list(read(A))
            assert [(r.header.stream, r.header.seq) for r in read(B)] == [
                (B, n + 1) for n in range(5)
            ]
            assert [r.position for r in read(B)] == [2, 4, 6, 8, 10]


def test_rows_that_lead_where_they_should_are_read(tmp_path: Path) -> None:
    path = two_streams(tmp_path / "s.ef")
    with raw(path) as store:
        assert store.rows(b"seq")[row(A, 3)] == U64.pack(5)
    with opened(path) as log:
        for read in (log.read, log.stored):
            assert [(r.position, r.header.seq) for r in read(A)] == [
                (2 * n + 1, n + 1) for n in range(5)
            ]
        assert [log.get(A, n).digest for n in range(1, 6)] == [r.digest for r in log.read(A)]
