"""The command `ef`: words in, exit code out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple

from .. import __version__
from ..errors import Damaged, EfError, StoreUnavailable, UsageError
from .commands import BY_NAME
from .output import (
    Answer,
    emit,
    failed,
    guarded,
    hold_standard_descriptors,
    write_json,
    write_text,
)
from .parser import SHORT, parse, wants_json
from .settings import Settings, default_store, settle
from .worker import supervise

BY_DAMAGE = ("SIGBUS", "SIGSEGV", "SIGABRT", "SIGILL", "SIGFPE")
QUIET = ("SIGINT", "SIGTERM", "SIGHUP", "SIGPIPE")


class Request(NamedTuple):
    """What a command is given: its arguments and its settings."""

    args: argparse.Namespace
    settings: Settings


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: the process's own); its exit code. Never raises for a user's mistake."""
    hold_standard_descriptors()
    words = list(sys.argv[1:] if argv is None else argv)
    as_json = wants_json(words)
    return guarded(lambda: _run(words, as_json), as_json=as_json)


def _run(words: Sequence[str], as_json: bool) -> int:
    try:
        args = parse(words, write_text)
    except SystemExit:  # a help text was asked for, and has been written
        return 0
    if args.version:
        if as_json:
            write_json({"version": __version__})
        else:
            write_text(f"ef {__version__}\n")
        return 0
    if args.command is None:
        if words:
            raise UsageError(detail="give a command. `ef --help` lists them")
        write_text(SHORT.format(store=default_store()))
        return 0
    return _work(Request(args, settle(getattr(args, "store", None), as_json=as_json)))


def _work(request: Request) -> int:
    """Run a command in a worker process, and say it when the worker died."""
    settings = request.settings
    as_json = settings.json

    def work() -> int:
        # Floor 6 is imported here, in the worker, and nowhere before.
        module, _, function = BY_NAME[request.args.command].run.partition(":")
        run: Callable[[Request], Answer] = getattr(import_module(f"ef.cli.{module}"), function)
        return emit(run(request), as_json=as_json, pretty=settings.terminal)

    try:
        ended = supervise(lambda: guarded(work, as_json=as_json))
    except OSError as fault:
        raise StoreUnavailable(
            path=settings.store,
            why=f"no worker process could be started ({fault.strerror})",
            remedy="Try again.",
        ) from None
    if ended.signal is None or ended.signal in QUIET:
        return ended.code
    if ended.signal in BY_DAMAGE:
        what = f"reading it ended the worker process by {ended.signal}"
        return failed(Damaged(where=f"store {settings.store}", what=what), as_json=as_json)
    detail = f"its worker process was ended by {ended.signal}, perhaps for lack of memory"
    return failed(EfError(detail=detail), as_json=as_json)
