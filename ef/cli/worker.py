"""Work in a process of its own, watched: a death by signal in the store's engine must not be a silent one.

The fork comes before anything heavy is imported. The parent passes SIGINT, SIGTERM and SIGHUP on and waits; a second
SIGINT ends the worker at once. A terminal sends its Ctrl-C to both: the worker takes the first one and no other.
"""

from __future__ import annotations

import contextlib
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
    signals = {getattr(signal, name) for name in PASSED_ON}
    # Held back until both sides have their handlers: a signal in between would end the wrong one.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    seen: list[int] = []
    restore: dict[int, Any] = {}
    try:
        child = os.fork()
        if child == 0:
            _child(work, before)
        restore = _pass_on(child, signals, seen)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _, status = os.waitpid(child, 0)
    finally:
        for number, handler in restore.items():
            signal.signal(number, handler)
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


def _pass_on(child: int, signals: set[signal.Signals], seen: list[int]) -> dict[int, Any]:
    """Handlers that send signals on; returns what stood there before. An ignored signal stays ignored."""

    def send(number: int, frame: FrameType | None) -> None:
        again = number == signal.SIGINT and number in seen
        seen.append(number)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL if again else number)

    return {
        number: signal.signal(number, send)
        for number in signals
        if signal.getsignal(number) is not signal.SIG_IGN
    }


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
