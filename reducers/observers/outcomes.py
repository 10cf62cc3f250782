"""Tool errors: the outcome of a call that failed, until the same target succeeds.

Key: call/<tool>:<target>/outcome, value {"outcome": error | rejected | ok, "exit": code or null}. An exit code that is
not 0 is an error. The quote is the first line of what was printed, or two where the first says only the exit code;
where nothing was printed, the line of the vendor's wrapper that says the code. A success is said only where an error
stood, so the state does not fill with successes. A shell command that is a test run with a verdict is left to the
observer of runs.
Refuses: errors with an empty text (there is nothing to quote).
"""

from __future__ import annotations

from typing import Any

from ...events import AnchorKey, Authority, Channel, Kind, Rule
from ..saved import texts
from .contract import ENTITY_BYTES_MAX, Exchange, Observer, Proposal, first_line, plain
from .shown import shown
from .testruns import test_runs

RULE = Rule("observe/outcomes", 1)
_REJECTED = (
    "The user denied this operation",
    "The user rejected permission to use this specific tool call",
    "[Operation Cancelled] Reason: User did not allow tool call",
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action",
)
_EMPIRICAL = (Channel.TOOL, Channel.CI, Channel.FILESYSTEM)


def _target(seen: Exchange) -> str:
    """What was called and on what; a call with neither command nor path is told apart by all that it was given."""
    call = seen.call
    on = call.command or call.path
    return plain(
        f"{call.name or 'unnamed'}:{on}" if on else f"{call.name or 'unnamed'}#{call.given}",
        ENTITY_BYTES_MAX,
    )


def _observe(failing: set[str], seen: Exchange) -> tuple[set[str], list[Proposal]]:
    if not (seen.failed or failing) or seen.channel not in _EMPIRICAL:
        return failing, []
    target = _target(seen)
    if not seen.failed and (target not in failing or seen.call.background):
        return failing, []
    output = shown(seen.result)
    span = first_line(output.text, lines=2 if output.text.startswith("Exit code ") else 1)
    start, end = output.place(*span) if span[0] < span[1] else output.said
    if start == end:
        return failing, []
    if not seen.failed:
        failing.discard(target)
        outcome = "ok"
    elif output.text.startswith(_REJECTED):
        outcome = "rejected"
    elif seen.call.command and test_runs(
        seen.call.command,
        output.text,
        exit_code=seen.result.exit_code,
        background=seen.call.background,
    ):
        return failing, []
    else:
        failing.add(target)
        outcome = "error"
    value = {"outcome": outcome, "exit": seen.result.exit_code}
    key = AnchorKey("call", target, "outcome")
    return failing, [
        Proposal(Kind.EVIDENCE, key, value, Authority.EMPIRICAL, seen.part, start, end, RULE)
    ]


def _load(value: Any) -> set[str]:
    return set(texts(value))


OUTCOMES = Observer(RULE, set, _observe, sorted, _load)
"""The observer of tool errors."""
