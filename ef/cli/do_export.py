"""`ef export`: a session in a provider's format, or a source as it was imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import UsageError
from ..render.safejson import dumps
from . import do_store
from .do_session import session_named
from .output import Answer

if TYPE_CHECKING:
    from ..session.views import Export
    from .app import Request


def run(request: Request) -> Answer:
    """`ef export SESSION --format FORMAT`, or `ef export SOURCE --original` or `--redacted`."""
    args = request.args
    asked = [name for name in ("all", "at", "recorded") if getattr(args, name)]
    if args.format is None:
        if asked:
            raise UsageError(detail=f"export: --{asked[0]} needs --format")
        return do_store.export(request)
    if args.original or args.redacted or args.length is not None:
        raise UsageError(
            detail="export: --format writes a session in a provider's form; --original, --redacted and --length are of "
            "a source"
        )
    with session_named(request, args.SOURCE) as session:
        found = session.export(args.format, args.at, recorded=args.recorded, everything=args.all)
    data = found.to_json()
    said = () if request.settings.json else tuple(_account(found))
    return Answer(data, lambda: dumps(data) + "\n", said=said)


def _account(found: Export) -> list[str]:
    """What people should know who look at the file later: nothing is dropped without a word."""
    counts = (("left out", found.left_out), ("as text", found.as_text), ("renamed", found.renamed))
    return [
        f"{what}: " + ", ".join(f"{n} {kind.replace('_', ' ')}" for kind, n in each.items())
        for what, each in counts
        if each
    ]
