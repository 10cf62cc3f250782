"""SIGKILL at random moments: nothing acknowledged is lost, an import is whole or absent, a retry adds what lacks."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ef
from ef.testing.killing import Outcome, Writers, judge
from ef.testing.plans import IN_FLIGHT, Append, Burst, Import, Plan

Figure = Callable[[str], None]
SECONDS_MOST = 0.15
APPEND_STORES, APPEND_KILLS = 6, 10
IMPORT_STORES, IMPORT_KILLS = 8, 5
BURST_STORES, BURST_KILLS = 4, 10
STEPS_APPENDED, STEPS_BURST, STEPS_IMPORTED = 120, 300, 4


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    with Writers() as made:
        yield made


def campaign(
    writers: Writers, home: Path, seed: str, kills: int, plan_of: Callable[[int], Plan]
) -> tuple[Outcome, int]:
    """Kill after kill on one store, each with the next part of the plan; the sum, and how many came to their end."""
    chosen = random.Random(seed)
    total, finished = Outcome(), 0
    for n in range(kills):
        one = writers.kill_one(
            home, plan_of(n), chosen.uniform(0, SECONDS_MOST), from_start=chosen.random() < 0.2
        )
        total.add(one)
        finished += one.done
    return total, finished


def table(figure: Figure, what: str, kills: int, total: Outcome, finished: int) -> None:
    figure(
        f"{what}: {kills} kills ({finished} after the last step), {total.acked} acknowledged,"
        f" {len(total.lost)} lost, {total.kept_unacked} kept and not acknowledged,"
        f" {total.duplicates} duplicates, {len(total.faults)} faults"
    )


@pytest.mark.parametrize("store", range(APPEND_STORES))
def test_of_bursts_of_appends_nothing_acknowledged_is_lost(
    store: int, writers: Writers, tmp_path: Path, figure: Figure
) -> None:
    total, finished = campaign(
        writers,
        tmp_path / "s.ef",
        f"append {store}",
        APPEND_KILLS,
        lambda n: Append("burst", n * STEPS_APPENDED, STEPS_APPENDED),
    )
    table(figure, f"appends, store {store}", APPEND_KILLS, total, finished)
    assert (total.lost, total.duplicates, total.faults) == ([], 0, [])
    assert total.kept_unacked <= APPEND_KILLS, "more than the step under way was kept"
    assert total.acked > 0
    assert finished < APPEND_KILLS


@pytest.mark.parametrize("store", range(BURST_STORES))
def test_of_appends_in_flight_nothing_acknowledged_is_lost(
    store: int, writers: Writers, tmp_path: Path, figure: Figure
) -> None:
    total, finished = campaign(
        writers,
        tmp_path / "s.ef",
        f"burst {store}",
        BURST_KILLS,
        lambda n: Burst("burst", n * STEPS_BURST, STEPS_BURST),
    )
    table(figure, f"in flight, store {store}", BURST_KILLS, total, finished)
    assert (total.lost, total.duplicates, total.faults) == ([], 0, [])
    assert total.kept_unacked <= BURST_KILLS * IN_FLIGHT
    assert finished < BURST_KILLS


@pytest.mark.parametrize("store", range(IMPORT_STORES))
def test_of_imports_each_is_there_whole_or_not_at_all(
    store: int, writers: Writers, tmp_path: Path, figure: Figure
) -> None:
    total, finished = campaign(
        writers,
        tmp_path / "s.ef",
        f"import {store}",
        IMPORT_KILLS,
        lambda n: Import("growing", n * STEPS_IMPORTED, STEPS_IMPORTED, turns=6),
    )
    table(figure, f"imports, store {store}", IMPORT_KILLS, total, finished)
    assert (total.lost, total.duplicates, total.faults) == ([], 0, [])
    assert total.kept_unacked <= IMPORT_KILLS


def test_a_writer_that_acknowledges_before_it_commits_is_caught(
    writers: Writers, tmp_path: Path, figure: Figure
) -> None:
    chosen = random.Random("early")
    caught = kills = 0
    while caught < 3 and kills < 20:
        plan = Append("early", kills * STEPS_APPENDED, STEPS_APPENDED, early=True)
        out = writers.kill_one(tmp_path / "s.ef", plan, chosen.uniform(0.02, SECONDS_MOST))
        kills += 1
        caught += bool(out.lost)
    figure(
        f"control: {caught} of {kills} kills of a writer that acknowledges too early were noticed"
    )
    assert caught >= 1


def test_the_oracle_names_what_is_lost_moved_doubled_or_halved(tmp_path: Path) -> None:
    plan = Append("judged", 0, 3)
    with ef.open(tmp_path / "s.ef") as store:
        ledger = dict(enumerate(plan.run(store)))
    assert judge(tmp_path / "s.ef", plan, ledger) == Outcome(acked=3)
    assert len(judge(tmp_path / "s.ef", plan, {**ledger, 2: "9"}).lost) == 1
    with ef.open(tmp_path / "s.ef") as store:
        store.session("judged").append({"role": "user", "content": "no step"}, key="other")
    assert judge(tmp_path / "s.ef", plan, ledger).duplicates == 2  # seen before and after the retry
    with ef.open(tmp_path / "t.ef") as store:
        store.session("judged").append({"role": "user", "content": "last first"}, key="k2")
    with pytest.raises(ef.EfError, match="other content"):
        judge(tmp_path / "t.ef", plan, {})
    with ef.open(tmp_path / "u.ef") as store:
        assert len(list(Append("judged", 2, 1).run(store))) == 1
    assert any("no beginning" in what for what in judge(tmp_path / "u.ef", plan, {}).faults)
    grown = Import("judged", 0, 2, turns=3)
    with ef.open(tmp_path / "v.ef") as store:
        imported = dict(enumerate(grown.run(store)))
    assert judge(tmp_path / "v.ef", grown, imported) == Outcome(acked=2)
    assert len(judge(tmp_path / "w.ef", grown, imported).lost) == 2
