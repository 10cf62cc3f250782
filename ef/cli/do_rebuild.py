"""`ef rebuild`: projections from the log anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import session as floor6
from ..session.rebuilding import Rebuilt
from .do_store import look_of
from .layout import GREEN, RED, Column, Look, one_line, table
from .output import Answer
from .progress import Progress
from .words import count, short

if TYPE_CHECKING:
    from .app import Request


def run(request: Request) -> Answer:
    """`ef rebuild [SESSION]`: what was kept is compared with the log, taken away, and made anew."""
    with (
        floor6.open_store(request.settings.store, create=False) as store,
        Progress("rebuild", unit="events") as progress,
    ):
        found = store.rebuild(request.args.SESSION, progress=progress.at)
    data = {"projections": [each.to_json() for each in found]}
    return Answer(data, lambda: shown(look_of(request), found))


def shown(look: Look, found: list[Rebuilt]) -> str:
    """A row a projection, and whether what was kept was what the log says."""
    columns = (
        Column("session", wide=True),
        Column("projection"),
        Column("events", right=True),
        Column("seconds", right=True),
        Column("digest"),
        Column("compared", right=True),
        Column("differed", right=True),
        Column("kept", right=True),
    )
    rows = [
        (
            one_line(each.session),
            each.name,
            f"{each.events:,}",
            f"{each.seconds:.3f}",
            short(each.digest),
            f"{each.compared:,}",
            f"{len(each.differed):,}",
            f"{each.kept:,}",
        )
        for each in found
    ]
    lines = table(look, columns, rows)
    problems = dict.fromkeys((each.session, each.problem) for each in found if each.problem)
    lines += [look.paint(f"{one_line(name)}: {one_line(why)}", RED) for name, why in problems]
    differed = sum(len(each.differed) for each in found)
    compared = sum(each.compared for each in found)
    if differed:
        said = f"{count(differed, 'snapshot')} of {compared:,} differed from the log; those kept now are the log's"
        return "\n".join([*lines, "", look.paint(said, RED)]) + "\n"
    said = (
        f"{count(compared, 'snapshot')} compared, none differed"
        if compared
        else "nothing was kept before"
    )
    return "\n".join([*lines, "", look.paint(said, GREEN)]) + "\n"
