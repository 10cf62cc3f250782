"""`ef watch PATH…`: a line per change, for as long as it runs; and `ef formats`."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from ..importers.formats import UNSUPPORTED, format_of, names
from ..render.safejson import dumps
from ..session import open_store
from ..session.importing import said_format
from .layout import one_line
from .output import Answer, fault_json, say, write, write_text
from .words import count

if TYPE_CHECKING:
    from ..session.following import Change
    from .app import Request


def run(request: Request) -> Answer:
    """`ef watch`. Ends with the first signal, or after `--for` seconds."""
    args = request.args
    if args.format is not None:
        said_format(args.format)
    paths = [os.path.expanduser(path) for path in args.PATH]
    until = time.monotonic() + args.seconds if args.seconds is not None else float("inf")
    with open_store(request.settings.store) as store:
        watcher = store.watch(*paths, format=args.format, redact=args.redact)
        told = False
        while True:
            for change in watcher.poll():
                _tell(change, as_json=request.settings.json)
            if not told:
                for path in paths:
                    if not os.path.exists(path):
                        say(f"{path}: there is no such file yet; waiting for it")
                say(f"following {count(watcher.files, 'file')}; Ctrl-C ends it")
                told = True
            if time.monotonic() >= until:
                return Answer({}, str, raw=b"")
            watcher.rest()


def _tell(change: Change, *, as_json: bool) -> None:
    if as_json:
        write((dumps(_row(change)) + "\n").encode("ascii"))
    elif change.error is not None:
        say(str(change.error))
    else:
        sessions = ", ".join(change.sessions)
        new = count(change.new_events, "new event")
        write_text(f"{one_line(change.path)}: {new} ({change.relation}), {one_line(sessions)}\n")


def _row(change: Change) -> dict[str, Any]:
    row: dict[str, Any] = {
        "path": change.path,
        "source": change.source,
        "format": change.format,
        "relation": change.relation,
        "sessions": list(change.sessions),
        "new_events": change.new_events,
    }
    if change.error is not None:
        row["error"] = fault_json(change.error)
    return row


def formats(request: Request) -> Answer:
    """`ef formats`: what is read, and what each can tell."""
    found = [form for form in map(format_of, names()) if form is not None]
    rows = [
        {
            "format": f.name,
            "title": f.title,
            "form": f.form,
            "supported": f.name not in UNSUPPORTED,
            "tells": f.tells._asdict(),
        }
        for f in found
    ]
    width = max(len(form.name) for form in found)
    text = "".join(
        f"{form.name:<{width}}  {form.title} ({form.form})"
        f"{', not supported: tried on no file of it' if form.name in UNSUPPORTED else ''}\n"
        for form in found
    )
    return Answer({"formats": rows}, lambda: text)
