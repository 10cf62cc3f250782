"""Outlines of blocks: a moment is answered by the few events that its reducers look at, as a walk would answer it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import ef
from ef.codec import cbor
from ef.codec.kinds import KINDS
from ef.events import AnchorDeclared, ItemReplaced
from ef.log.items import recorded
from ef.log.lmdb_log import LmdbLog
from ef.projections.outline import BLOCK, UNKNOWN, Outline
from ef.projections.working import HELD, SHOWN, Working
from ef.reducers.heads import REDUCER as HEADS
from ef.session import projected as module
from ef.session.projected import Projected
from ef.session.snapshots import Snapshots, outline_track
from tests.session.longer import STREAM, forge, kept, projections

END = 3 * BLOCK


@pytest.fixture
def store(warm: Path, tmp_path: Path) -> Iterator[ef.Store]:
    with ef.open(shutil.copytree(warm, tmp_path / "s.ef"), create=False) as opened:
        yield opened


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every outline is used, however many events it names: a third of this session's are looked at."""
    monkeypatch.setattr(module, "DEARER", 1)
    monkeypatch.setattr(module, "FAR", 1)


@pytest.fixture
def walked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many events each read of the stream was asked for."""
    asked: list[int] = []
    read = LmdbLog.read

    def counted(log: LmdbLog, stream: str, *, after: int = 0, upto: int | None = None):  # type: ignore[no-untyped-def]
        asked.append((log.tip(stream).seq if upto is None else upto) - after)
        return read(log, stream, after=after, upto=upto)

    monkeypatch.setattr(LmdbLog, "read", counted)
    return asked


def same(one: Working, other: Working) -> bool:
    return (one.seq, one.digest, one.refused, one.dump(HEADS), one.canonical()) == (
        (other.seq, other.digest, other.refused, other.dump(HEADS), other.canonical())
    )


def test_any_moment_by_outlines_is_the_moment_by_a_walk(
    store: ef.Store, eager: None, walked: list[int]
) -> None:
    chance, plain = random.Random(5), Working(STREAM, HELD)
    moments = sorted(
        {1, BLOCK - 1, BLOCK, BLOCK + 1, END - 1, END, *chance.sample(range(1, END), 60)}
    )
    before: list[Working] = []
    for moment in moments:
        plain.apply(recorded(store.log, STREAM, after=plain.seq, upto=moment))
        found = Projected(store.log, STREAM).fresh(moment, HELD)
        assert same(found, plain), moment
        before.append(found)
    assert any(working.refused for working in before), "refusals are in it"
    walked.clear()
    for moment in moments:
        assert Projected(store.log, STREAM).fresh(moment, HELD).seq == moment
    assert walked == [], "no event was walked past"


def test_a_moment_long_after_the_newest_snapshot_goes_on_by_outlines(
    store: ef.Store, eager: None, walked: list[int]
) -> None:
    whole = Projected(store.log, STREAM).fresh(END - 5, HELD)
    shutil.rmtree(next(projections(store).path.glob("*/heads-*")))
    walked.clear()
    assert same(Projected(store.log, STREAM).fresh(END - 5, HELD), whole)
    assert walked == []
    assert kept(store)["heads"] == [BLOCK, 2 * BLOCK], "what falls due on the way is kept"
    assert same(Projected(store.log, STREAM).fresh(END - 5, HELD), whole)


def test_without_its_outline_a_block_is_walked_and_the_outline_is_kept(
    store: ef.Store, eager: None, walked: list[int]
) -> None:
    whole = Projected(store.log, STREAM).fresh(END - 5, HELD)
    projections(store).drop()
    walked.clear()
    assert same(Projected(store.log, STREAM).fresh(END - 5, HELD), whole)
    assert walked == [BLOCK, BLOCK, BLOCK - 5]
    assert kept(store)["outline"] == [BLOCK, 2 * BLOCK], "the third block was not walked whole"
    own = Projected(store.log, STREAM)
    own.as_of(END - 5, SHOWN)
    own.as_of(END, SHOWN)
    assert kept(store)["outline"] == [BLOCK, 2 * BLOCK], "a walk from the middle tells of no block"
    for folder in projections(store).path.glob("*/[sd]*"):
        shutil.rmtree(folder)
    Projected(store.log, STREAM).fresh(END, SHOWN)
    assert kept(store)["outline"] == [BLOCK, 2 * BLOCK, END]


def test_few_steps_and_many_wanted_events_are_walked(store: ef.Store, walked: list[int]) -> None:
    walked.clear()
    Projected(store.log, STREAM).fresh(BLOCK + 10, HELD)
    Projected(store.log, STREAM).fresh(END - 5, HELD)
    assert walked == [10, BLOCK - 5]


def test_reducers_that_look_at_all_are_walked(
    store: ef.Store, eager: None, walked: list[int]
) -> None:
    walked.clear()
    assert Working(STREAM, SHOWN).looks_at() is None
    assert Working(STREAM, HELD).looks_at() == {AnchorDeclared, ItemReplaced}
    Projected(store.log, STREAM).fresh(END - 5, SHOWN)
    assert walked


@pytest.mark.parametrize(
    "dump",
    [
        b"",
        b"\x80",
        cbor.encode(bytes(BLOCK - 1)),
        cbor.encode("x" * BLOCK),
        cbor.encode([0] * BLOCK),
    ],
)
def test_an_outline_that_cannot_be_one_is_taken_away(
    store: ef.Store, eager: None, dump: bytes
) -> None:
    whole = Projected(store.log, STREAM).fresh(END - 5, HELD)
    forge(store, outline_track(STREAM), END, dump)
    assert same(Projected(store.log, STREAM).fresh(END - 5, HELD), whole)
    assert kept(store)["outline"] == [BLOCK, 2 * BLOCK]


def test_a_forged_outline_is_named_by_verify_and_made_anew_by_a_rebuild(store: ef.Store) -> None:
    assert store.verify().ok
    forge(store, outline_track(STREAM), 2 * BLOCK, cbor.encode(bytes(BLOCK)))
    found = store.verify()
    assert not found.ok
    assert [(p.seq, "outline" in p.what) for p in found.problems] == [(2 * BLOCK, True)]
    assert [each.differed for each in store.rebuild() if each.name == "outline"] == [(2 * BLOCK,)]
    assert store.verify().ok


def test_an_outline_of_another_history_is_not_used(store: ef.Store) -> None:
    assert Snapshots(store.log, STREAM).outline(END) is not None
    other = store.log.get(STREAM, END - 1).digest
    good = Snapshots(store.log, STREAM).read(outline_track(STREAM), END)
    assert good is not None
    assert projections(store).keep(outline_track(STREAM), END, other, good[1])
    assert Snapshots(store.log, STREAM).outline(END) is None


# ---------------------------------------------------------------------------------------------------- the outline alone


def test_an_outline_names_the_kinds_of_its_block_and_forgets_the_block_before(
    store: ef.Store,
) -> None:
    outline = Outline()
    seen: dict[type, list[int]] = {spec.type: [] for spec in KINDS}
    for each in recorded(store.log, STREAM, upto=END):
        outline.apply(each.header, each.digest)
        seen[type(each.event)].append(each.header.seq)
        assert len(outline.codes) <= BLOCK
    for kind, seqs in seen.items():
        late = [seq for seq in seqs if END - BLOCK + 7 < seq <= END - 3]
        assert outline.seqs({kind}, END - BLOCK + 7, END - 3) == late
    again = Outline.loaded(END, outline.digest, outline.dump())
    assert again == outline
    with pytest.raises(cbor.Malformed):
        Outline.loaded(END + 1, outline.digest, outline.dump())


def test_a_kind_that_is_not_known_is_always_looked_at(store: ef.Store) -> None:
    codes = bytearray(BLOCK)
    codes[41] = UNKNOWN
    outline = Outline(BLOCK, b"", codes)
    assert outline.seqs(set(), 0, BLOCK) == [42]
    assert outline.seqs(set(), 42, BLOCK) == []
