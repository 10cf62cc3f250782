"""The items that references cite: each is read once, and what is kept of them stays bounded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ef import events as ev
from ef.errors import Damaged
from ef.log import Draft, items
from ef.log.items import Cited
from ef.log.lmdb_log import LmdbLog
from ef.readers import anthropic
from tests.log.build import opened

STREAM = "session/a"
TEXTS = [f"number {n} says: " + "word " * 50 for n in range(6)]


class Counted(LmdbLog):
    """A log that knows which records it was asked for."""

    asked: list[int]

    def get(self, stream: str, seq: int) -> items.Record:
        self.asked.append(seq)
        return super().get(stream, seq)


@pytest.fixture
def log(tmp_path: Path) -> Counted:
    with opened(tmp_path / "s.ef") as log:
        log.append(
            [
                Draft(
                    STREAM,
                    f"k{n}",
                    ev.ItemAppended(json.dumps({"role": "user", "content": text}).encode()),
                    ev.Channel.OPERATOR,
                    origin=ev.Origin("src", n + 1, 0, 1),
                    reader=(anthropic.NAME, anthropic.VERSION),
                )
                for n, text in enumerate(TEXTS)
            ]
        )
    with Counted.open(tmp_path / "s.ef", now=lambda: 1) as counted:
        assert isinstance(counted, Counted)
        counted.asked = []
        yield counted


def ref(log: LmdbLog, seq: int, start: int = 0, end: int = 8) -> ev.SourceRef:
    digest = next(iter(log.read(STREAM, after=seq - 1, upto=seq))).digest
    return ev.SourceRef(
        STREAM, seq, 0, start, end, digest, ev.Channel.USER_TYPED, "text", f"k{seq - 1}"
    )


def test_an_item_that_is_cited_often_is_read_once(log: Counted) -> None:
    refs = [ref(log, seq, start) for seq in (1, 2, 1) for start in (0, 3)]
    log.asked.clear()
    cited = Cited(log)
    for each in refs:
        assert cited.quote(each) == TEXTS[each.seq - 1].encode()[each.start : each.end]
        origin = cited.origin(each)
        assert origin is not None
        assert origin.line == each.seq
    assert log.asked == [1, 2]
    assert items.quote_of(log, refs[0]) == b"number 0"


def test_no_more_is_kept_of_them_than_a_bound(
    log: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items, "CITED_BYTES_MAX", 2 * (len(TEXTS[0]) + items.ITEM_BYTES) + 8)
    refs = [ref(log, seq) for seq in (1, 2, 3, 1, 3, 3)]
    log.asked.clear()
    cited = Cited(log)
    assert [cited.quote(each) for each in refs] == [
        f"number {each.seq - 1}".encode() for each in refs
    ]
    assert log.asked == [1, 2, 3, 1]


def test_what_is_kept_is_checked_for_each_reference(log: Counted) -> None:
    cited, good = Cited(log), ref(log, 1)
    assert cited.quote(good) == b"number 0"
    other = ev.SourceRef(good.stream, 1, 0, 0, 8, bytes(32), good.channel, good.kind, good.item_key)
    with pytest.raises(Damaged, match="not the one that the reference cites"):
        cited.quote(other)
    with pytest.raises(Damaged, match="has no bytes"):
        cited.quote(ref(log, 1, 0, 10_000))
