"""SIGKILL while a writer is held at each named point: nothing acknowledged is lost, nothing is there twice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ef.log.points import POINTS
from ef.testing.killing import Outcome, Writers
from ef.testing.plans import Append, Burst, Import, Looked, Plan

KILLS = 20
STEPS = 12
STORES = 4
LATER = {"tip.drafted": 1, "tip.replaced": 1}
"""Points that are reached only now and then: how often at most before the end of a plan."""


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    with Writers() as made:
        yield made


def plan_for(point: str, n: int) -> tuple[Plan, int]:
    """A plan that reaches the point, and how often it does at least."""
    if point.startswith("snapshot."):
        return Looked("looked", n * STEPS, STEPS), 4
    if point.startswith("import."):
        return Import("growing", n * 2, 2, turns=6), 2
    if n % 2 or point.startswith("append."):
        return Burst("burst", n * STEPS, STEPS), LATER.get(point, 2)
    return Append("burst", n * STEPS, STEPS), LATER.get(point, STEPS)


@pytest.mark.parametrize("point", POINTS)
def test_a_writer_that_is_killed_at_a_point_loses_nothing(
    point: str, writers: Writers, tmp_path: Path, figure: Callable[[str], None]
) -> None:
    chosen = random.Random(point)
    total, kills = Outcome(), Counter[str]()
    for n in range(KILLS):
        plan, times = plan_for(point, n // STORES)
        one = writers.kill_at(tmp_path / f"{n % STORES}.ef", plan, point, chosen.randint(1, times))
        kills["held" if one else "never got there"] += 1
        total.add(one or Outcome())
    figure(
        f"{point}: {kills['held']} kills, {total.acked} acknowledged, {len(total.lost)} lost,"
        f" {total.kept_unacked} kept and not acknowledged, {total.duplicates} duplicates,"
        f" {len(total.faults)} faults"
    )
    assert kills == {"held": KILLS}
    assert (total.lost, total.duplicates, total.faults) == ([], 0, [])


@pytest.mark.parametrize("point", ["append.accepted", "group.prepared", "group.begun", "group.put"])
def test_a_writer_that_acknowledges_too_early_is_caught_at_each_point_before_the_commit(
    point: str, writers: Writers, tmp_path: Path
) -> None:
    early = Append("early", 0, STEPS, early=True)
    one = writers.kill_at(tmp_path / "s.ef", early, point, 3)
    assert one is not None and one.acked == 3
    assert [what.split(":")[0] for what in one.lost] == ["step 2"]
