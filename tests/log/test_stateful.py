"""A log against a plain model: random histories of appends, conflicts, retries, crashes, reopens, forks and rivals.

After each step the streams are dense, chained and as the model says; at the end everything is read again and verified.
The controls at the end break a log on purpose: the machine must find each.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from ef.log.base import Appended, Draft, Log, Tip
from ef.log.lmdb_log import LmdbLog
from tests.log.build import clock
from tests.log.contract import Lmdb
from tests.log.machines import LmdbMachine, LogMachine, SqliteMachine
from tests.log.others import no_rival_is_left


@pytest.fixture(autouse=True, scope="module")
def rivals_end() -> Iterator[None]:
    yield
    no_rival_is_left()


# -- runs -------------------------------------------------------------------------------------------------------

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"


def run(machine: type[LogMachine], runs: int, steps: int, **how: Any) -> None:
    if LONG:
        runs, steps = runs * 15, steps * 2
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine,
        settings=settings(
            max_examples=runs, stateful_step_count=steps, deadline=None, print_blob=True,
            suppress_health_check=QUIET, **how,
        ),
    )  # fmt: skip


def test_the_log_on_lmdb_is_what_the_model_says() -> None:
    run(LmdbMachine, 200, 50)


def test_the_log_over_the_librarys_recorder_is_what_the_model_says() -> None:
    run(SqliteMachine, 15, 30)


def test_the_log_in_memory_is_what_the_model_says() -> None:
    run(LogMachine, 30, 50)


# -- controls: each of these is broken, and must be found --------------------------------------------------------


class Broken(Lmdb):
    """A log on LMDB whose append does not do what it says."""

    @staticmethod
    def append(log: LmdbLog, drafts: Sequence[Draft], expect: Any) -> list[Appended]:
        raise NotImplementedError

    def _open(self) -> tuple[Log, Callable[[], None]]:
        append = self.append

        class BrokenLog(LmdbLog):
            def append(
                self, drafts: Sequence[Draft], *, expect: Mapping[str, Tip] | None = None
            ) -> list[Appended]:
                return append(self, drafts, expect)

        log = BrokenLog.open(self.folder / "store", now=clock())
        return log, log.close


class Early(Broken):
    """Acknowledges before the commit."""

    @staticmethod
    def append(log: LmdbLog, drafts: Sequence[Draft], expect: Any) -> list[Appended]:
        tips = {draft.stream: log.tip(draft.stream).seq for draft in drafts}
        log.append_nowait(drafts, expect=expect)
        said = []
        for draft in drafts:
            tips[draft.stream] += 1
            said.append(Appended(tips[draft.stream], b"", True))
        return said


class Forgetful(Broken):
    """Does not look whether a key is known."""

    @staticmethod
    def append(log: LmdbLog, drafts: Sequence[Draft], expect: Any) -> list[Appended]:
        new = [
            replace(d, key=f"{d.key}+{log.tip(d.stream).seq}") if log.find(d.stream, d.key) else d
            for d in drafts
        ]
        return LmdbLog.append(log, new, expect=expect)


class Careless(Broken):
    """Does not look at the tips that were expected."""

    @staticmethod
    def append(log: LmdbLog, drafts: Sequence[Draft], expect: Any) -> list[Appended]:
        return LmdbLog.append(log, drafts)


class Halves(Broken):
    """Appends one by one what belongs together."""

    @staticmethod
    def append(log: LmdbLog, drafts: Sequence[Draft], expect: Any) -> list[Appended]:
        first = LmdbLog.append(log, drafts[:1], expect=expect)
        return first + [a for draft in drafts[1:] for a in LmdbLog.append(log, [draft])]


@pytest.mark.parametrize("broken", [Early, Forgetful, Careless, Halves])
def test_a_log_that_is_broken_on_purpose_is_found(broken: type[Broken]) -> None:
    class BrokenMachine(LmdbMachine):
        kind_class = broken

    with pytest.raises((AssertionError, Flaky)):
        run(BrokenMachine, 30, 20, phases=[Phase.generate], database=None, derandomize=True)


def test_a_crash_finds_an_acknowledgement_that_came_too_early() -> None:
    """The first control again, where nothing but the rules that kill appends through it."""

    class Crashes(LmdbMachine):
        kind_class = Early
        append = retry = retry_with_other_content = append_on_this_tip = append_on_another_tip = (
            None
        )
        append_without_waiting = append_through_another_handle = append_in_a_forked_child_too = None

    with pytest.raises((AssertionError, Flaky)):
        run(Crashes, 30, 5, phases=[Phase.generate], database=None, derandomize=True)
