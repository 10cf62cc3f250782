"""What all tests share: the folder of recorded transcripts, and how Hypothesis searches.

The transcripts do not come with the repository. Where their folder is absent the tests that read it are
skipped and the summary says so; with EF_REQUIRE_SHARED=1 a skipped one makes the whole run fail, so that
a green run never hides that the real data was not looked at.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent
SHARED_DATA = Path(os.environ.get("EF_SHARED_DATA") or ROOT.parent / "shared" / "data").resolve()
SHARED_REQUIRED = os.environ.get("EF_REQUIRE_SHARED", "") not in ("", "0")
MARK = "shared_data"
FIGURE = "figure"

# ci: the same examples in each run, no matter how slow the machine. dev: new examples in each run.
# long: new ones, and where a test asks for the name of the profile, many more of them (make test-long).
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("dev", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", deadline=None, print_blob=True)
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev")
)


class SharedTally(NamedTuple):
    """How many tests on the shared data ran, and how many were skipped for whatever reason."""

    ran: int
    skipped: int


def shared_tally(terminal: pytest.TerminalReporter) -> SharedTally:
    """Counts from the reports, so that it also holds when workers ran the tests."""

    def count(*outcomes: str) -> int:
        return len(
            {
                report.nodeid
                for outcome in outcomes
                for report in terminal.stats.get(outcome, [])
                if (MARK, "1") in getattr(report, "user_properties", [])
            }
        )

    return SharedTally(count("passed", "failed", "error", "xfailed", "xpassed"), count("skipped"))


@pytest.fixture
def shared_data() -> Path:
    """The folder of recorded transcripts; without it the test is skipped."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the folder of recorded transcripts is absent (EF_SHARED_DATA)")
    return SHARED_DATA


@pytest.fixture
def figure(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Prints a line of figures in the summary of the run, whether the test passes or not."""

    def tell(line: str) -> None:
        print(line)
        record_property(FIGURE, line)

    return tell


def figures(terminal: pytest.TerminalReporter) -> list[str]:
    """The lines that tests told, in the order of their names."""
    reports = [report for reports in terminal.stats.values() for report in reports]
    told = {
        (report.nodeid, n): value
        for report in reports
        for n, (name, value) in enumerate(getattr(report, "user_properties", []))
        if name == FIGURE
    }
    return [told[name] for name in sorted(told)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test that asks for the folder carries the mark, and one that carries the mark needs the folder."""
    for item in items:
        if MARK in getattr(item, "fixturenames", ()):
            item.add_marker(MARK)
        elif item.get_closest_marker(MARK) and not SHARED_DATA.is_dir():
            item.add_marker(pytest.mark.skip(reason="the folder of recorded transcripts is absent"))
        if item.get_closest_marker(MARK):
            item.user_properties.append((MARK, "1"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = figures(terminalreporter)
    if lines:
        terminalreporter.section("figures")
    for line in lines:
        terminalreporter.write_line(line)
    tally = shared_tally(terminalreporter)
    folder = "present" if SHARED_DATA.is_dir() else "absent"
    terminalreporter.write_line(
        f"shared data: {tally.ran} tests ran, {tally.skipped} skipped (folder: {folder})"
    )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if not SHARED_REQUIRED or exitstatus != pytest.ExitCode.OK:
        return
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None and (shared_tally(terminal).skipped or not SHARED_DATA.is_dir()):
        terminal.write_line("")
        terminal.write_line(
            "EF_REQUIRE_SHARED is set: a test on the shared data was skipped or its folder is absent",
            red=True,
        )
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
