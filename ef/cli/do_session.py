"""Commands on one session: context, state, replay, audit, declare."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..errors import InputRefused
from ..reducers.gate import VALUE_DEPTH_MAX
from ..session import Session, open_store
from ..session.views import Context, Difference, State
from . import show_anchors, show_lists, show_state
from .do_store import look_of
from .layout import Look, one_line
from .output import Answer
from .words import count, short

if TYPE_CHECKING:
    from .app import Request

DEPTH_PARSED_MAX = 200
"""No parser of any Python stumbles here yet."""


@contextmanager
def chosen(request: Request, *, readonly: bool = True) -> Generator[Session]:
    """The session that SESSION names. The store is closed again before anything is printed."""
    with session_named(request, request.args.SESSION, readonly=readonly) as session:
        yield session


@contextmanager
def session_named(request: Request, name: str, *, readonly: bool = True) -> Generator[Session]:
    """The session that a name names. See `chosen`."""
    with open_store(request.settings.store, create=False, readonly=readonly) as store:
        yield store.find_session(name)


def context(request: Request) -> Answer:
    """`ef context SESSION`."""
    with chosen(request) as session:
        found = session.context(request.args.at, recorded=request.args.recorded)
    return Answer(found.to_json(), lambda: show_lists.context(look_of(request), found))


def state(request: Request) -> Answer:
    """`ef state SESSION`."""
    with chosen(request) as session:
        found = session.state(request.args.at, recorded=request.args.recorded)
    return Answer(
        found.to_json(), lambda: _state(look_of(request), found, everything=request.args.all)
    )


def _state(look: Look, found: State, *, everything: bool) -> str:
    head = f"{look.head('State')} of {found.session} as of seq {found.at}: {count(len(found.heads), 'key')}"
    body = show_state.sections(look, found, everything=everything)
    lines = [head, look.dim(f"digest {short(found.digest)}"), *body]
    return "\n".join(lines) + "\n"


def replay(request: Request) -> Answer:
    """`ef replay SESSION --to …` or `--diff A B`."""
    return _diff(request) if request.args.diff else _to(request)


def _to(request: Request) -> Answer:
    args = request.args
    with chosen(request) as session:
        then = session.state(args.to, recorded=args.recorded)
        seen = session.context(then.at)
        since = session.diff(then.at)
    data = {
        "session": then.session,
        "at": then.at,
        "context_digest": seen.digest,
        "state_digest": then.digest,
        "context": seen.to_json(),
        "state": then.to_json(),
        "since": since.to_json(),
    }
    return Answer(data, lambda: _replayed(look_of(request), then, seen, since, everything=args.all))


def _replayed(
    look: Look, then: State, seen: Context, since: Difference, *, everything: bool
) -> str:
    lines = [
        f"{look.head('Replay')} of {then.session} to seq {then.at} of {since.b}",
        (
            f"  context: {count(len(seen.nodes), 'node')}, about {count(seen.tokens, 'token')} (estimated), "
            f"digest {short(seen.digest)}"
        ),
        f"  state: {count(len(then.heads), 'key')}, digest {short(then.digest)}",
        *show_state.sections(look, then, everything=everything),
        "",
    ]
    if since.a == since.b:
        lines.append(look.head("Since then") + look.dim("  nothing: this is now"))
    else:
        lines.append(look.head(f"Since then, up to seq {since.b}"))
        lines += _changes(look, since)
    return "\n".join(lines) + "\n"


def _changes(look: Look, diff: Difference) -> list[str]:
    lines = show_anchors.change_lines(look, diff) or ["  no key differs"]
    came = sum(n.tokens or 0 for n in diff.nodes)
    came_text = f"{count(len(diff.nodes), 'node')} came, about {count(came, 'token')} (estimated)"
    return [*lines, "", f"  context: {came_text}"]


def _diff(request: Request) -> Answer:
    a, b = request.args.diff
    with chosen(request) as session:
        found = session.diff(a, b, recorded=request.args.recorded)
    data = {
        **found.to_json(),
        "at": found.b,
        "context_digest": found.digests["context"]["to"],
        "state_digest": found.digests["state"]["to"],
    }
    return Answer(data, lambda: _differing(look_of(request), found))


def _differing(look: Look, diff: Difference) -> str:
    counts = f"{len(diff.appeared)} appeared, {len(diff.changed)} changed, {len(diff.gone)} gone"
    lines = [
        f"{look.head('Replay')} of {diff.session} from seq {diff.a} to seq {diff.b}: {counts}",
        *_changes(look, diff),
    ]
    for name, pair in diff.digests.items():
        lines.append(look.dim(f"  {name} digest: {short(pair['from'])} -> {short(pair['to'])}"))
    return "\n".join(lines) + "\n"


def audit(request: Request) -> Answer:
    """`ef audit SESSION KEY`."""
    args = request.args
    with chosen(request) as session:
        found = session.audit(args.KEY, args.at, recorded=args.recorded)
    return Answer(found.to_json(), lambda: show_anchors.audit(look_of(request), found))


def declare(request: Request) -> Answer:
    """`ef declare SESSION KIND KEY VALUE`."""
    args = request.args
    with chosen(request, readonly=False) as session:
        seq = session.declare(
            args.KIND,
            key=args.KEY,
            value=parsed(args.VALUE),
            quote=args.quote,
            source=args.source,
            because=args.because,
        )
        holds = next(h for h in session.audit(args.KEY, seq).history if h.seq == seq)
    data = {"session": session.id, "seq": seq, "anchor": holds.to_json()}
    text = f"{one_line(args.KEY)} = {show_anchors.value_of(holds)}"
    text += f"  declared at seq {seq} of {session.id}\n"
    return Answer(data, lambda: text)


def _depth(text: str) -> int:
    """How deep the brackets of a text lie in one another, those in its strings left out."""
    depth = most = 0
    for bracket in re.findall(r"[][{}]", re.sub(r'"(?:[^"\\]|\\.)*"', "", text)):
        depth += 1 if bracket in "[{" else -1
        most = max(most, depth)
    return most


def parsed(text: str) -> Any:
    """VALUE: what it is as JSON, or the text itself. Raises InputRefused for JSON that has no one meaning."""
    flaws: list[str] = []
    found: Any = None

    def constant(name: str) -> None:
        flaws.append(f"{name} is no number of JSON")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            times = Counter(name for name, _ in pairs)
            twice = next(name for name in times if times[name] > 1)
            flaws.append(f"a map in it has the key {twice!r} more than once")
        return found

    if _depth(text) > DEPTH_PARSED_MAX:
        flaws.append(f"its nesting is deeper than {VALUE_DEPTH_MAX}")
        text = "[]"
    try:
        found = json.JSONDecoder(parse_constant=constant, object_pairs_hook=once).decode(text)
    except json.JSONDecodeError:
        return text
    except ValueError:
        flaws.append("it holds a number of thousands of digits")
    if flaws and text.strip() not in ("NaN", "Infinity", "-Infinity"):
        remedy = "Mend the JSON; or put it in JSON quotes, to declare it as a text."
        raise InputRefused(where="VALUE", why=flaws[0], remedy=remedy)
    return text if flaws else found
