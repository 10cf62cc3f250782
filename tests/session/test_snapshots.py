"""Snapshots are a cache: with them, without them, with torn, foreign or forged ones, the answers are the log's.

Moments, lists of sessions and times are answered without a walk through the whole history once snapshots are there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.errors import CannotWrite
from ef.events import Header
from ef.log.items import recorded
from ef.log.projection_store import Track
from ef.projections.clocks import Clocks
from ef.projections.working import Working
from ef.reducers import ALL, Reducer
from ef.reducers.heads import REDUCER as HEADS
from ef.session import moments, snapshots, summaries
from ef.session.moments import resolve
from ef.session.projected import Projected
from ef.session.snapshots import BYTES_PER_EVENT, EVERY, Keeper, Snapshots
from ef.testing.damage import delete_record
from tests.session.longer import NAME, STREAM, files, forge, kept, lengthen, projections, track_of

POINTS = (0, 1, 999, 1_000, 1_001, 1_500, 2_000, 2_999, 3_300)


@pytest.fixture
def store(warm: Path, tmp_path: Path) -> Iterator[ef.Store]:
    with ef.open(shutil.copytree(warm, tmp_path / "s.ef"), create=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def replayed(plain: Path) -> dict[int, tuple[bytes, bytes, list[Any]]]:
    """(canonical bytes, state digest, refusals) at each point, by a replay that knows nothing of snapshots."""
    found: dict[int, tuple[bytes, bytes, list[Any]]] = {}
    with ef.open(plain, create=False) as store:
        working, at = Working(STREAM), 0
        for point in POINTS:
            working.apply(recorded(store.log, STREAM, after=at, upto=point))
            found[point] = working.canonical(), working.state_digest(), list(working.refused)
            at = point
    return found


def agrees(
    store: ef.Store,
    replayed: dict[int, tuple[bytes, bytes, list[Any]]],
    points: tuple[int, ...] = (999, 2_000, *reversed(POINTS)),
) -> None:
    """What the session says of each point, asked in an order that jumps, is what the replay says."""
    session = store.session(NAME)
    for point in points:
        canonical, digest, refused = replayed[point]
        working = session.working(point)
        assert working.canonical() == canonical, point
        assert working.refused == refused, point
        state = session.state(point)
        assert (state.at, state.digest) == (point, digest.hex())
        assert {h.sources[0].quote for h in state.heads.values()} <= {b"say ", None}


# ------------------------------------------------------------------------------------------------------ the answers


def test_with_and_without_snapshots_every_moment_says_the_same(
    store: ef.Store, replayed: dict[int, Any]
) -> None:
    assert kept(store)["heads"] == [1_000, 2_000, 3_000]
    agrees(store, replayed)
    projections(store).drop()
    agrees(store, replayed, (3_300,))
    assert kept(store)["heads"] == [1_000, 2_000, 3_000], "the first long replay kept them again"
    agrees(store, replayed)


def test_they_may_be_deleted_between_any_two_questions(
    store: ef.Store, replayed: dict[int, Any]
) -> None:
    session = store.session(NAME)
    for point in (2_999, 1_500, 3_300, 2_000):
        assert session.working(point).canonical() == replayed[point][0]
        shutil.rmtree(projections(store).path)
        assert session.state(point).digest == replayed[point][1].hex()
        shutil.rmtree(projections(store).path, ignore_errors=True)


def test_a_context_is_the_same_from_a_snapshot(store: ef.Store) -> None:
    from_snapshot = [store.session(NAME).context(p).to_json() for p in (999, 1_001, 3_001)]
    projections(store).drop()
    assert [store.session(NAME).context(p).to_json() for p in (999, 1_001, 3_001)] == from_snapshot


def test_an_audit_knows_what_was_refused_before_a_snapshot(store: ef.Store) -> None:
    found = store.session(NAME).audit("t/3/v", 3_300).to_json()
    projections(store).drop()
    assert store.session(NAME).audit("t/3/v", 3_300).to_json() == found
    assert [h["value"] for h in found["history"]] == sorted(h["value"] for h in found["history"])
    assert all(h["value"] >= 0 for h in found["history"])


def test_references_without_quotes_cite_the_same(store: ef.Store) -> None:
    session = store.session(NAME)
    whole, short = session.state(2_500), session.state(2_500, quotes=False)
    assert (short.digest, short.at) == (whole.digest, whole.at)
    for key, head in whole.heads.items():
        assert [s.ref for s in short.heads[key].sources] == [s.ref for s in head.sources]
        assert [s.quote for s in short.heads[key].sources] == [None]


# ------------------------------------------------------------------------------------------------ what is looked at


def newest(store: ef.Store, upto: int, reducer: Reducer = HEADS) -> int:
    return Snapshots(store.log, STREAM).newest(reducer, upto).seq


def test_a_moment_begins_at_the_newest_snapshot_before_it(store: ef.Store) -> None:
    for reducer in ALL:
        assert [newest(store, p, reducer) for p in POINTS] == [p - p % EVERY for p in POINTS]


def test_what_lies_before_the_snapshot_is_not_read_again(warm: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(warm, tmp_path / "s.ef"))
    with ef.open(path, create=False) as store:
        whole = store.session(NAME).state(2_500, quotes=False)
        listed = store.sessions()
    for position in (3, 1_500, 1_950):
        delete_record(path, position)
    with ef.open(path, create=False) as store:
        session = store.session(NAME)
        assert session.state(2_500, quotes=False) == whole
        assert session.state(at="2026-03-14T00:00:00Z", quotes=False).at > 2_000
        assert store.sessions() == listed
        with pytest.raises(ef.EfError, match="the record is not there"):
            session.state(1_999)
        projections(store).drop()
        with pytest.raises(ef.EfError, match="the record is not there"):
            store.session(NAME).state(2_500, quotes=False)


def test_appending_writes_none_and_reading_on_keeps_the_next(store: ef.Store) -> None:
    session = store.session(NAME)
    session.state()
    session.append({"role": "user", "content": "begin"})
    before = kept(store)
    for n in range(710):
        session.append({"role": "user", "content": f"go on {n}"})
    assert session.seq > 4_000
    assert kept(store) == before
    lengthen(store, 4_200, first=1_000)
    session.state()
    assert kept(store)["heads"] == [1_000, 2_000, 3_000, 4_000]
    assert kept(store)["surface"] == [1_000, 2_000, 3_000]


def test_a_session_that_fell_behind_goes_on_from_a_newer_snapshot(store: ef.Store) -> None:
    projected = Projected(store.log, STREAM)
    own = projected.as_of(500, (HEADS,))
    assert projected.as_of(1_400, (HEADS,)) is own, "less than a thousand events are replayed"
    assert projected.as_of(3_200, (HEADS,)) is not own
    projections(store).drop()
    slow = Projected(store.log, STREAM)
    own = slow.as_of(500, (HEADS,))
    assert slow.as_of(3_200, (HEADS,)) is own, "there is no snapshot that would be nearer"
    assert own.state_digest() == projected.as_of(3_200, (HEADS,)).state_digest()


def test_parts_that_were_kept_at_different_seqs_make_one_projection(
    store: ef.Store, replayed: dict[int, Any]
) -> None:
    folder = projections(store)
    by_name = {r.name: track_of(STREAM, r) for r in ALL}
    folder.take_away(by_name["surface"], 3_000)
    folder.take_away(by_name["surface"], 2_000)
    folder.take_away(by_name["heads"], 3_000)
    assert [newest(store, 3_300, r) for r in ALL] == [1_000, 2_000, 3_000]
    assert store.session(NAME).working(3_300).canonical() == replayed[3_300][0]
    assert store.session(NAME).working(3_300).refused == replayed[3_300][2]
    assert [newest(store, 3_300, r) for r in ALL] == [3_000] * 3


def test_large_states_are_kept_more_rarely(store: ef.Store) -> None:
    """What a snapshot takes is paid for by the events since: the log's growth bounds the cache's."""
    folder, track = projections(store), Track(STREAM, "big", "f")
    keeper = Keeper(folder)
    size = 2_500 * BYTES_PER_EVENT
    assert keeper.due(track, EVERY)
    keeper.put(track, EVERY, bytes(32), lambda: b"x" * size)
    assert not keeper.due(track, EVERY)
    assert next(n for n in range(1, 9) if keeper.due(track, n * EVERY)) == 4
    keeper.put(track, 4 * EVERY, bytes(32), lambda: b"x")
    assert [keeper.due(track, seq * EVERY) for seq in (3, 4, 5)] == [False, False, True]
    assert Keeper(folder).due(track, 5 * EVERY)
    assert not Keeper(folder).due(track, 4 * EVERY)
    assert Keeper(folder, fresh=True).due(track, 4 * EVERY)


# ----------------------------------------------------------------------------------------- those that do not hold


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "emptied": lambda _: b"",
    "cut": lambda data: data[: len(data) // 2],
    "a bit": lambda data: data[:-3] + bytes([data[-3] ^ 4]) + data[-2:],
    "zeroed": lambda data: bytes(len(data)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_snapshots_change_no_answer_and_are_made_anew(
    store: ef.Store, replayed: dict[int, Any], damage: str
) -> None:
    listed, good = store.sessions(), {f: f.read_bytes() for f in files(store)}
    for file in files(store):
        file.write_bytes(DAMAGE[damage](file.read_bytes()))
    assert store.sessions() == listed
    for point in (3_300, 1_500):
        working = store.session(NAME).working(point)
        assert working.canonical() == replayed[point][0]
    store.session(NAME).state(at="2030-01-01T00:00:00Z")
    assert {f: f.read_bytes() for f in files(store)} == good


def test_snapshots_of_a_history_that_was_put_back_are_not_used(
    plain: Path, store: ef.Store, tmp_path: Path
) -> None:
    """Two copies of one store go different ways; the snapshots of one lie beside the other."""
    one = Path(shutil.copytree(plain, tmp_path / "one.ef"))
    (one / "tip").unlink()
    lengthen(store, 5_000, first=5_000)
    store.session(NAME).working()
    with ef.open(one, create=False) as other:
        lengthen(other, 5_000, first=9_000)
        assert other.log.store_id == store.log.store_id
        shutil.copytree(projections(store).path, projections(other).path)
        expected = Working(STREAM).apply(recorded(other.log, STREAM, upto=4_900))
        assert newest(store, 4_900) == 4_000
        assert newest(other, 4_900) == 3_000
        working = other.session(NAME).working(4_900)
        assert working.canonical() == expected.canonical()
        assert working.canonical() != store.session(NAME).working(4_900).canonical()
        assert newest(other, 4_900) == 4_000, "its own, by now"


def test_snapshots_beside_another_store_are_not_used(store: ef.Store, tmp_path: Path) -> None:
    with ef.open(tmp_path / "other.ef") as other:
        lengthen(other, 2_100)
        shutil.copytree(projections(store).path, projections(other).path)
        assert newest(other, 2_000) == 0


def test_other_versions_do_not_meet(store: ef.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    forms = {r.name: snapshots.form_of(r.name, r.version, r.shape) for r in ALL}
    assert len(set(forms.values())) == len(ALL)
    for reducer in ALL:
        assert (
            snapshots.form_of(reducer.name, reducer.version + 1, reducer.shape)
            != forms[reducer.name]
        )
        assert (
            snapshots.form_of(reducer.name, reducer.version, reducer.shape + 1)
            != forms[reducer.name]
        )
    monkeypatch.setattr(snapshots, "FORMAT", 99)
    snapshots.form_of.cache_clear()
    try:
        assert newest(store, 3_300) == 0
    finally:
        monkeypatch.undo()
        snapshots.form_of.cache_clear()
    assert newest(store, 3_300) == 3_000


@pytest.mark.parametrize("dump", [b"", b"\x80", b"\x82\x81\x01\x80", b"\xff" * 9])
def test_a_snapshot_that_cannot_be_read_is_made_anew(
    store: ef.Store, replayed: dict[int, Any], dump: bytes
) -> None:
    for reducer in ALL:
        forge(store, track_of(STREAM, reducer), 3_000, dump)
    forge(store, moments.clocks_track(STREAM), 2_000, dump)
    forge(store, summaries.track_of(STREAM), store.session(NAME).seq, dump)
    listed = store.sessions()
    assert store.session(NAME).working(3_300).canonical() == replayed[3_300][0]
    assert newest(store, 3_300) == 3_000
    at = store.session(NAME).state(at="2026-03-14T00:00:00Z", quotes=False).at
    projections(store).drop()
    assert store.session(NAME).state(at="2026-03-14T00:00:00Z", quotes=False).at == at
    assert store.sessions() == listed
    assert listed[0].title == "title 399"


# -------------------------------------------------------------------------------------------- other places, processes


def test_where_nothing_can_be_written_every_answer_is_there(
    plain: Path, tmp_path: Path, replayed: dict[int, Any]
) -> None:
    path = Path(shutil.copytree(plain, tmp_path / "s.ef"))
    (path / "projections").write_text("in the way")
    with ef.open(path, create=False) as store:
        agrees(store, replayed, (1_500, 3_300, 999))
        assert store.sessions()[0].messages == 1_600
        assert (path / "projections").read_text() == "in the way"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_store_that_may_only_be_read_is_answered_from_its_snapshots(
    warm: Path, tmp_path: Path, replayed: dict[int, Any]
) -> None:
    path = Path(shutil.copytree(warm, tmp_path / "s.ef"))
    inside = [path, *path.rglob("*")]
    for each in inside:
        each.chmod(0o500 if each.is_dir() else 0o400)
    try:
        with ef.open(path, create=False) as store:
            agrees(store, replayed)
            with pytest.raises(CannotWrite):
                store.rebuild()
    finally:
        for each in inside:
            each.chmod(0o700)


def test_another_process_reads_them_and_keeps_the_same_bytes(plain: Path, tmp_path: Path) -> None:
    path = Path(shutil.copytree(plain, tmp_path / "s.ef"))
    code = (
        "import sys, ef\n"
        "with ef.open(sys.argv[1], create=False) as store:\n"
        f"    session = store.session({NAME!r})\n"
        "    session.working(2500)\n"
        "    print(session.state(2500).digest)\n"
    )
    said: list[str] = []
    kept_bytes: list[dict[str, bytes]] = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=120, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": "Asia/Tokyo"},
        )  # fmt: skip
        said.append(done.stdout)
        with ef.open(path, create=False) as store:
            assert newest(store, 2_500) == 2_000
            kept_bytes.append({str(f): f.read_bytes() for f in files(store)})
            said.append(store.session(NAME).state(2_500).digest + "\n")
            projections(store).drop()
    assert len(set(said)) == 1
    assert kept_bytes[0] == kept_bytes[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_goes_on_by_itself(store: ef.Store) -> None:
    session = store.session(NAME)
    digest = session.state(2_500).digest
    child = os.fork()
    if child == 0:
        same = session.state(2_500).digest == digest and session.state(1_500).at == 1_500
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert session.state(2_500).digest == digest


# ---------------------------------------------------------------------------------------------------------- times


def by_scan(headers: list[Header], moment: int, *, by_record: bool) -> int:
    seq = 0
    for header in headers:
        clock = header.recorded_at if by_record else header.occurred_at
        if clock is not None and clock > moment:
            return seq
        seq = header.seq
    return seq


def test_a_time_means_the_same_seq_as_a_walk_through_all_of_it(store: ef.Store) -> None:
    headers = [record.header for record in store.log.read(STREAM)]
    claimed = sorted(h.occurred_at for h in headers if h.occurred_at is not None)
    recorded_at = [h.recorded_at for h in headers]
    projections(store).drop()
    for by_record, clocks in ((False, claimed), (True, recorded_at)):
        some = {clocks[0] - 1, clocks[0], clocks[-1], clocks[-1] + 1, *clocks[:: len(clocks) // 4]}
        for moment in some:
            text = f"{moments.iso(moment - moment % 1_000)}"
            whole = moment - moment % 1_000
            wanted = by_scan(headers, whole, by_record=by_record)
            for _ in range(2):
                assert resolve(store.log, STREAM, text, recorded=by_record) == wanted
    assert kept(store)["clocks"] == [1_000, 2_000, 3_000]


def test_clocks_never_step_back_and_know_of_none() -> None:
    clocks = Clocks()
    assert clocks.before(-(2**60), recorded=False)
    assert clocks.before(-(2**60), recorded=True)
    again = Clocks.loaded(clocks.seq, clocks.digest, clocks.dump())
    assert again == clocks


# --------------------------------------------------------------------------------------------------- the list


def test_the_list_keeps_one_row_a_session_and_follows_it(store: ef.Store) -> None:
    first = store.sessions()
    assert kept(store)["summary"] == [store.session(NAME).seq]
    store.session(NAME).append({"role": "user", "content": "one more"})
    store.session("other").append({"role": "user", "content": "first words of another"})
    second = store.sessions()
    assert {info.session: info.title for info in second} == {
        NAME: "title 399",
        "other": "first words of another",
    }
    long = next(info for info in second if info.session == NAME)
    assert projections(store).seqs(summaries.track_of(STREAM)) == [long.events]
    assert (long.events, long.messages) == (first[0].events + 1, first[0].messages + 1)
    assert store.sessions() == second
    projections(store).drop()
    assert store.sessions() == second


def test_the_list_of_a_moment_comes_from_the_snapshots_before_it(store: ef.Store) -> None:
    at = "2026-03-14T00:00:00Z"
    found = store.sessions(at)
    assert found[0].events == store.session(NAME).state(at, quotes=False).at
    projections(store).drop()
    assert store.sessions(at) == found
