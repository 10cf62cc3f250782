"""What a process put last it need not read again, as long as the store holds those very bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ef.codec import cbor
from ef.errors import Damaged
from ef.log import rows
from ef.log.ahead import Ahead
from ef.log.base import Prepared
from ef.log.committer import Request
from ef.log.lmdb_log import LmdbLog
from ef.log.rows import LOG, SEQ, STREAM, U64, stream_hash
from tests.log.build import checked, in_child, opened, says, title

Change = Callable[[bytes], bytes]


def changed(log: LmdbLog, db: bytes, key: bytes, change: Change) -> bytes:
    """Change a row behind the log's back; what it was."""
    with log._env.read() as txn:
        was = txn.get(db, key)
    assert was is not None
    log._env.write(lambda txn: txn.put(db, key, change(was)))
    return was


@pytest.mark.parametrize(
    ("db", "key", "change"),
    [
        (LOG, U64.pack(2), lambda frame: frame[:70] + bytes([frame[70] ^ 1]) + frame[71:]),
        (STREAM, stream_hash("s"), lambda row: b"?"),
        (STREAM, stream_hash("s"), lambda row: cbor.encode(["s", 1, bytes(32)])),
        (STREAM, stream_hash("s"), lambda row: cbor.encode(["t", *cbor.decode(row)[1:]])),
        (SEQ, stream_hash("s") + U64.pack(2), lambda at: U64.pack(1)),
        (SEQ, stream_hash("s") + U64.pack(2), lambda at: U64.pack(7)),
    ],
    ids=["newest record", "tip row", "tip row before", "other stream's", "seq row", "seq row lost"],
)
def test_a_row_that_changed_since_it_was_put_is_read_again(
    tmp_path: Path, db: bytes, key: bytes, change: Change
) -> None:
    with opened(tmp_path / "store") as log:
        log.append([title("s", "a")])
        log.append([title("s", "b")])
        was = changed(log, db, key, change)
        with pytest.raises(Damaged):
            log.append([title("s", "c")])
        changed(log, db, key, lambda _: was)
        assert log.append([title("s", "c")])[0].seq == 3
    assert says(checked(tmp_path / "store")) == ""


def test_what_another_process_put_in_between_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with opened(path) as log:
        log.append([title("s", "a")])

        def theirs() -> int:
            with opened(path) as other:
                other.append([title("t", "theirs")])
                return other.append([title("s", "theirs")])[0].seq

        assert in_child(theirs) == 2
        assert log.append([title("s", "b"), title("t", "b")])[0].seq == 3
        assert [r.header.key for r in log.read("s")] == ["a", "theirs", "b"]
    assert says(checked(path)) == ""


def test_the_tips_of_a_bounded_number_of_streams_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "MEMO_STREAMS", 3)
    with opened(tmp_path / "store") as log:
        for seq in range(1, 4):
            for name in "abcdef":
                assert log.append([title(name, str(seq))])[0].seq == seq
                assert len(log._writer._memo.tips) <= 4
    assert says(checked(tmp_path / "store")) == ""


def test_a_key_that_was_looked_up_in_vain_is_found_once_the_group_has_prepared_it(
    tmp_path: Path,
) -> None:
    with opened(tmp_path / "store") as log:
        seen: list[bool] = []

        def look(view: Ahead) -> list[Prepared]:
            seen.append(view.record_of("s", "k") is not None)
            return []

        with log.committer.alone():
            for _ in range(2):
                log.committer.submit(Request[int](log.path, look, lambda first: first, 0))
            log.append_nowait([title("s", "k")])
            last = log.committer.submit(Request[int](log.path, look, lambda first: first, 0))
        last.result(30)
        assert seen == [False, False, True]
