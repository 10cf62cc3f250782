"""Work in a process of its own, watched: a death by signal in the store's engine must not be a silent one.

The fork comes before anything heavy is imported. The parent passes SIGINT, SIGTERM and SIGHUP on and waits; a second
SIGINT ends the worker at once. A terminal sends its Ctrl-C to both: the worker takes the first one and no other.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NamedTuple

PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP")


class Ended(NamedTuple):
    """How a worker ended: by an exit code, or by a signal's name."""

    code: int
    signal: str | None = None


def supervise(work: Callable[[], int]) -> Ended:
    """Run `work` in a forked child (in this process where there is no fork) and say how it ended. Raises OSError."""
    if not hasattr(os, "fork"):
        return Ended(work())
    passed_on = {
        number
        for number in (getattr(signal, name) for name in PASSED_ON)
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    # Blocked here for as long as the child lives, and taken one by one: a handler would lose the signal that comes
    # between its last chance to run and the wait for the child.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, passed_on | {signal.SIGCHLD})
    handler = signal.signal(signal.SIGCHLD, _noticed)
    try:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, handler)
            _child(work, before)
        status, seen = _watch(child, passed_on)
    finally:
        signal.signal(signal.SIGCHLD, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if not os.WIFSIGNALED(status):
        return Ended(os.WEXITSTATUS(status))
    number = signal.SIGINT if signal.SIGINT in seen else os.WTERMSIG(status)
    return Ended(128 + number, _name(number))


def _child(work: Callable[[], int], mask: Any) -> None:
    """Never returns: whatever happens, the parent's stack is not run twice."""
    code = 70
    try:
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, _interrupt_once)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        code = work()
    except KeyboardInterrupt:
        code = 130
    finally:
        if sys.stderr is not None:
            sys.stderr.flush()
        os._exit(code)


def _interrupt_once(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _noticed(number: int, frame: FrameType | None) -> None:
    """A child changed: the waiter looks."""


def _watch(child: int, passed_on: set[signal.Signals]) -> tuple[int, set[int]]:
    """Send signals on until the child ended: its wait status, and the signals that came."""
    seen: set[int] = set()
    while True:
        number = signal.sigwait(passed_on | {signal.SIGCHLD})
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status, seen
        if number != signal.SIGCHLD:
            again = number == signal.SIGINT and number in seen
            seen.add(number)
            os.kill(child, signal.SIGKILL if again else number)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
