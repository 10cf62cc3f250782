"""Rebuild: projections from the log anew, what was kept compared; a full verify compares too, and writes nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.codec import kinds
from ef.errors import RebuildFailed
from ef.events import Channel, UnknownEvent
from ef.log import Draft
from ef.log.items import recorded
from ef.log.projection_store import ProjectionStore
from ef.reducers.heads import REDUCER as HEADS
from ef.session.rebuilding import check_snapshots, rebuild
from ef.testing.damage import delete_record
from tests.session.longer import NAME, STREAM, files, forge, kept, projections, track_of


@pytest.fixture
def store(warm: Path, tmp_path: Path) -> Iterator[ef.Store]:
    with ef.open(shutil.copytree(warm, tmp_path / "s.ef"), create=False) as opened:
        yield opened


def test_a_rebuild_says_when_nothing_can_be_kept(
    store: ef.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store.rebuild()
    monkeypatch.setattr(ProjectionStore, "obstacle", lambda *_: ("it is so", "Do that."))
    with pytest.raises(RebuildFailed, match="it is so"):
        store.rebuild()


def names(found: list[Any]) -> list[str]:
    return [each.name for each in found]


def test_a_rebuild_compares_keeps_and_takes_away_the_rest(store: ef.Store) -> None:
    before = {f: f.read_bytes() for f in files(store)}
    older = files(store)[0].parent.with_name("heads-0000000000000000")
    older.mkdir()
    (older / "1000").write_bytes(b"old")
    done: list[int] = []
    found = store.rebuild(progress=done.append)
    assert names(found) == ["surface", "heads", "described", "clocks", "outline", "observers"]
    assert {each.session for each in found} == {NAME}
    assert {each.events for each in found} == {store.session(NAME).seq}
    assert all(each.seconds > 0 and len(each.digest) == 64 for each in found)
    assert [each.compared for each in found] == [3, 3, 3, 3, 3, 0]
    assert not any(each.differed for each in found)
    assert done == sorted(done)
    assert done[-1] == store.session(NAME).seq
    assert not older.exists()
    after = {f: f.read_bytes() for f in files(store)}
    before = {f: data for f, data in before.items() if "summary" not in str(f)}
    assert {f: data for f, data in after.items() if "observers" not in str(f)} == before
    assert len(after) == len(before) + 3, (
        "what observers know is kept by a rebuild, or by who appends"
    )
    digests = [each.digest for each in found]
    projections(store).drop()
    cold = store.rebuild(NAME[:3])
    assert [each.digest for each in cold] == digests
    assert [each.compared for each in cold] == [0] * 6
    assert {f: f.read_bytes() for f in files(store)} == after


def lie(store: ef.Store, seq: int = 2_000) -> None:
    """A snapshot that is well made and says what an earlier moment said."""
    earlier = store.session(NAME).working(seq - 500)
    forge(store, track_of(STREAM, HEADS), seq, earlier.dump(HEADS))


def test_a_rebuild_says_what_differed_and_puts_it_right(store: ef.Store) -> None:
    told = store.session(NAME).state(2_000).digest
    good = {f: f.read_bytes() for f in files(store)}
    lie(store)
    assert store.session(NAME).state(2_000).digest != told
    found = {each.name: each for each in store.rebuild()}
    assert found["heads"].differed == (2_000,)
    assert not found["surface"].differed
    assert store.session(NAME).state(2_000).digest == told
    left = {f: f.read_bytes() for f in files(store)}
    assert {f: d for f, d in left.items() if "observers" not in str(f)} == {
        f: d for f, d in good.items() if "summary" not in str(f)
    }
    assert [each.differed for each in store.rebuild()] == [()] * 6


def test_a_full_verify_finds_a_snapshot_that_lies_and_not_one_that_is_torn(store: ef.Store) -> None:
    file = next(f for f in files(store) if f.name == "1000")
    file.write_bytes(file.read_bytes()[:-1])
    assert list(check_snapshots(store.log)) == []
    lie(store)
    (problem,) = check_snapshots(store.log, [STREAM])
    assert (problem.stream, problem.seq, problem.verdict) == (STREAM, 2_000, "damaged")
    assert "heads" in problem.what
    assert store.verify(quick=True).ok
    verified = store.verify()
    assert verified.verdict == "damaged"
    assert problem in verified.problems
    store.rebuild()
    assert list(check_snapshots(store.log)) == []


def test_a_check_writes_nothing(store: ef.Store) -> None:
    before = {f: f.read_bytes() for f in files(store)}
    list(check_snapshots(store.log))
    assert {f: f.read_bytes() for f in files(store)} == before


def test_a_session_that_cannot_be_projected_ends_with_its_problem(store: ef.Store) -> None:
    class Later:
        """A kind that this version does not know."""

    session = store.session(NAME)
    last = session.seq
    row = kinds.KindSpec("Later", 9, True, True, Later)
    later = Later()
    later.data = b""  # type: ignore[attr-defined]
    kinds.BY_TYPE[Later] = row
    try:
        store.log.append([Draft(STREAM, "later", later, Channel.OPERATOR)])  # type: ignore[arg-type]
    finally:
        del kinds.BY_TYPE[Later]
    assert isinstance(next(recorded(store.log, STREAM, after=last)).event, UnknownEvent)
    store.session("other").append({"role": "user", "content": "fine"})
    found = rebuild(store.log, [STREAM, "session/other"])
    assert [bool(each.problem) for each in found] == [True] * 6 + [False] * 6
    assert "Later" in (found[0].problem or "")
    assert "problem" in found[0].to_json()
    assert "problem" not in found[-1].to_json()
    assert kept(store)["heads"] == [1_000, 2_000, 3_000]
    assert list(check_snapshots(store.log)) == []
    listed = {info.session: info.problem for info in store.sessions()}
    assert listed["other"] is None
    assert "Later" in (listed[NAME] or "")


def test_a_damaged_log_ends_a_rebuild_at_the_damage(warm: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(warm, tmp_path / "s.ef"))
    delete_record(path, 1_700)
    with ef.open(path, create=False) as store:
        found = store.rebuild()
        assert all("the record is not there" in (each.problem or "") for each in found)
        assert kept(store)["heads"] == [1_000]
        assert list(check_snapshots(store.log)) == []
