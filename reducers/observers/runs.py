"""Test runs: the verdict, counts and failing names of pytest and go test, as the runner's own summary states them.

Keys: test/<entity>/status, …/counts, …/failing, where the entity holds the normalised scope (a narrow run is another
key than the whole suite). How a verdict is read: testruns.py. Refuses: runs whose verdict cannot be seen.
"""

from __future__ import annotations

from typing import Any

from ...events import AnchorKey, Authority, Channel, Kind, Rule
from .contract import ENTITY_BYTES_MAX, Exchange, Observer, Proposal, plain
from .shown import shown
from .testruns import test_runs

FAILING_NAMES_MAX = 50
RULE = Rule("observe/test-runs", 1)


def _observe(home: list[str], seen: Exchange) -> tuple[list[str], list[Proposal]]:
    """`home` holds the folder of the session's first call, once it is known: a run elsewhere is another key."""
    if not home and seen.call.cwd:
        home = [seen.call.cwd]
    if seen.call.action != "shell" or not seen.call.command or seen.channel is not Channel.TOOL:
        return home, []
    found: list[Proposal] = []
    output = shown(seen.result)
    runs = test_runs(
        seen.call.command,
        output.text,
        exit_code=seen.result.exit_code,
        background=seen.call.background,
        cwd=seen.call.cwd,
        home=home[0] if home else None,
    )
    for run in runs:
        decided = (
            run.start < run.end
        )  # else by a status alone: then only the wrapper's line can be cited
        start, end = output.place(run.start, run.end) if decided else output.said
        if start == end:
            continue
        entity = plain(run.entity, ENTITY_BYTES_MAX)
        counts = {"passed": run.passed, "failed": run.failed, "skipped": run.skipped}
        facts: dict[str, Any] = {
            "status": run.verdict,
            "counts": counts,
            "failing": _names(run.failing),
        }
        for name, value in facts.items():
            key = AnchorKey("test", entity, name)
            found.append(
                Proposal(
                    Kind.EVIDENCE,
                    key,
                    value,
                    Authority.EMPIRICAL,
                    seen.part,
                    start,
                    end,
                    RULE,
                    because=run.rule,
                )
            )
    return home, found


def _names(failing: tuple[str, ...] | None) -> list[str] | None:
    """None: the names were not shown. A long list ends with how many more there are."""
    if failing is None:
        return None
    names = [plain(name, 200) for name in failing[:FAILING_NAMES_MAX]]
    more = len(failing) - len(names)
    return [*names, f"… and {more} more"] if more else names


def _dump(home: list[str]) -> Any:
    return [folder.encode("utf-8", "surrogatepass") for folder in home]


def _load(value: Any) -> list[str]:
    return [folder.decode("utf-8", "surrogatepass") for folder in value]


RUNS = Observer(RULE, list, _observe, _dump, _load)
"""The observer of test runs."""
