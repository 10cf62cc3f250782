"""`ef import PATH…`: files and folders, each file on its own; what one refuses stops no other."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import CallerError, EfError, InputRefused
from ..importers.names import session_stream
from ..session import Store, open_store
from ..session.finding import Candidate, candidates_of
from ..session.importing import said_format
from . import show_import
from .do_store import look_of
from .output import Answer, fault_json
from .progress import Progress

if TYPE_CHECKING:
    from ..session.importing import ImportResult
    from .app import Request


def run(request: Request) -> Answer:
    """`ef import`."""
    args = request.args
    if args.format is not None:
        said_format(args.format)
    candidates = [c for path in args.PATH for c in candidates_of(os.path.expanduser(path))]
    total = sum(_size(c.path) for c in candidates)
    sources: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    fault: EfError | None = None
    with open_store(request.settings.store) as store, Progress("import", total, "bytes") as bar:
        if args.session is not None:
            store.session(args.session)  # refuses an id that cannot name a session
        done = 0
        for candidate in candidates:
            bar.at(done, os.path.basename(candidate.path))
            so_far = done
            done += _size(candidate.path)
            try:
                sources.append(
                    _import(store, candidate, args, lambda n, at=so_far: bar.at(at + n))  # type: ignore[misc]
                )
            except CallerError as refusal:
                refused.append(_refusal(candidate, refusal))
            except EfError as stop:
                fault = stop
                break
    return _answer(request, sources, refused, fault)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _import(
    store: Store, candidate: Candidate, args: Any, progress: Callable[[int], None]
) -> dict[str, Any]:
    if candidate.why is not None:
        raise InputRefused(where=candidate.path, why=candidate.why, remedy="Give a session file.")
    result = store.import_file(
        candidate.path,
        session=args.session,
        format=args.format,
        redact=args.redact,
        progress=progress,
    )
    return {
        "source": result.source,
        "path": candidate.path,
        "format": result.format,
        "relation": result.relation,
        "records": result.records,
        "new_events": sum(result.new_events.values()),
        "sessions": [_session(store, result, session) for session in result.sessions],
        "notes": result.notes,
    }


def _session(store: Store, result: ImportResult, name: str) -> dict[str, Any]:
    working = store.session(name).working()
    return {
        "session": name,
        "title": working.described.title,
        "format": result.format,
        "source": result.source,
        "messages": working.described.messages,
        "events": working.seq,
        "new_events": result.new_events.get(session_stream(name), 0),
        "notes": result.notes,
    }


def _refusal(candidate: Candidate, fault: CallerError) -> dict[str, Any]:
    reason = fault.facts.get("why") or str(fault)
    return {
        "source": candidate.path,
        "reason": reason,
        "named": candidate.named,
        "error": fault_json(fault),
    }


def _answer(
    request: Request,
    sources: list[dict[str, Any]],
    refused: list[dict[str, Any]],
    fault: EfError | None,
) -> Answer:
    """All that came in and all that did not; the refusal of a named file, or a fault that stopped the rest, decides."""
    named = [r for r in refused if r["named"]]
    said = [r["error"]["message"] for r in named]
    data: dict[str, Any] = {
        "sessions": [row for s in sources for row in s["sessions"]],
        "sources": [{**s, "sessions": [row["session"] for row in s["sessions"]]} for s in sources],
        "refused": [{k: v for k, v in r.items() if k != "error"} for r in refused],
    }
    code = 0
    if fault is not None:
        code, data["error"] = fault.exit_code, fault_json(fault)
        said.append(str(fault))
    elif named:
        code, data["error"] = InputRefused.exit_code, named[0]["error"]
    elif refused and not sources:
        nothing = InputRefused(
            where=", ".join(request.args.PATH),
            why=f"none of {len(refused)} files is a session that this version reads",
            remedy=f"The first: {refused[0]['source']}: {refused[0]['reason']}.",
        )
        code, data["error"] = nothing.exit_code, fault_json(nothing)
        said.append(str(nothing))
    if code:
        data["exit"] = code
    text = show_import.text
    return Answer(data, lambda: text(look_of(request), sources, refused), code, tuple(said))
