"""Commands on the whole store: sources, export, sessions, verify."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import session as floor6
from ..errors import UsageError
from . import show_lists
from .layout import Look
from .output import Answer
from .progress import Progress

if TYPE_CHECKING:
    from .app import Request


def look_of(request: Request) -> Look:
    """How this command's text may look."""
    return Look(request.settings.width, request.settings.color)


def sources(request: Request) -> Answer:
    """`ef sources`."""
    with floor6.open_store(request.settings.store, create=False, readonly=True) as store:
        found = [
            {
                "source": s.id,
                "path": s.path,
                "format": s.format,
                "sessions": list(s.sessions),
                "lines": s.lines,
                "bytes": s.length,
                "digest": s.digest.hex(),
                "complete": s.complete,
                "notes": store.notes(s.id),
            }
            for s in store.sources()
        ]
    return Answer({"sources": found}, lambda: show_lists.sources(look_of(request), found))


def export(request: Request) -> Answer:
    """`ef export SOURCE --original` or `--redacted`: all bytes are read and verified before the first is written."""
    args = request.args
    if args.original and args.redacted:
        raise UsageError(detail="export: give --original or --redacted, not both")
    if not (args.original or args.redacted):
        raise UsageError(
            detail="export: say --original for a source's bytes, or --format for a session as a provider takes it"
        )
    with floor6.open_store(request.settings.store, create=False, readonly=True) as store:
        data = store.export_original(args.SOURCE, length=args.length, redacted=args.redacted)
    return Answer({}, str, raw=data)


def sessions(request: Request) -> Answer:
    """`ef sessions`."""
    with floor6.open_store(request.settings.store, create=False, readonly=True) as store:
        found = store.sessions(request.args.at, recorded=request.args.recorded)
    return Answer(
        {"sessions": [s.to_json() for s in found]},
        lambda: show_lists.sessions(look_of(request), found, everything=request.args.all),
    )


def verify(request: Request) -> Answer:
    """`ef verify [SESSION] [--quick]`: the verdict is the answer, also a bad one."""
    from ..session.verify import VERDICT_EXIT

    args = request.args
    with Progress("verify", unit="records") as progress:
        found = floor6.verify_path(
            request.settings.store, quick=args.quick, session=args.SESSION, progress=progress.at
        )
    return Answer(
        found.to_json(),
        lambda: show_lists.verdict(look_of(request), found, quick=args.quick),
        exit=VERDICT_EXIT[found.verdict],
    )
