"""Commands that look after a store: doctor, backup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import session as floor6
from ..session.doctor import Finding
from ..session.doctor import doctor as examine
from . import show_care
from .do_store import look_of
from .output import Answer
from .progress import Progress
from .settings import configuration

if TYPE_CHECKING:
    from .app import Request

UNAVAILABLE = 69


def doctor(request: Request) -> Answer:
    """`ef doctor`: an error among the findings decides the exit code."""
    chosen = getattr(request.args, "store", None) is not None
    found = [Finding("ok", what) for what in configuration(request.settings.store, chosen=chosen)]
    found += examine(request.settings.store)
    bad = any(finding.level == "error" for finding in found)
    return Answer(
        {"findings": [finding.to_json() for finding in found]},
        lambda: show_care.findings(look_of(request), found),
        exit=UNAVAILABLE if bad else 0,
    )


def backup(request: Request) -> Answer:
    """`ef backup --out PATH`."""
    with (
        Progress("backup", unit="records"),
        floor6.open_store(request.settings.store, create=False) as store,
    ):
        done = store.backup(request.args.out)
    return Answer(done.to_json(), lambda: show_care.backed_up(look_of(request), done))
