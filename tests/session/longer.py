"""A session of some thousands of events: turns with calls and results, anchors on few keys, replacements, closed calls.

Made by batches of drafts, so that it takes about a second; each kind of event that a reducer looks at is in it often.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ef
from ef import events as ev
from ef.codec.digests import anchor_id
from ef.importers.names import facts_of, session_stream
from ef.log import Draft
from ef.log.base import LateEvent
from ef.log.projection_store import ProjectionStore, Track
from ef.meter import METER, estimate
from ef.readers import anthropic
from ef.session.snapshots import store_of, track_of

NAME = "long"
STREAM = session_stream(NAME)
HOUR = 3_600_000_000
BEGAN = 1_772_442_000_000_000


def _item(key: str, role: str, content: Any, at: int, *, replaces: str | None = None) -> Draft:
    data = json.dumps({"role": role, "content": content}).encode()
    reading = anthropic.read(data)
    return Draft(
        STREAM,
        key,
        ev.ItemReplaced(data) if replaces else ev.ItemAppended(data),
        ev.Channel.OPERATOR,
        occurred_at=at,
        basis=ev.Basis.CLAIMED,
        group=ev.Group(key) if role == "assistant" else None,
        item=facts_of(reading, METER, estimate(reading)),
        reader=(anthropic.NAME, anthropic.VERSION),
        cause_key=replaces,
    )


def _declares(key: str, cited: str, value: int) -> LateEvent:
    parsed = ev.AnchorKey.parse(key)
    assert parsed is not None

    def made(assigned: Any) -> ev.Event:
        tip = assigned[STREAM, cited]
        user = ev.Channel.USER_TYPED
        source = ev.SourceRef(STREAM, tip.seq, 0, 0, 4, tip.digest, user, "text", cited)
        return ev.AnchorDeclared(
            ev.Anchor(
                anchor_id(STREAM, "value", key, [[cited, 0, 0, 4]], ["test", value]),
                ev.Kind.VALUE, parsed, value, ev.Authority.NORMATIVE, user, ev.Rule("test", 1), sources=(source,),
            )
        )  # fmt: skip

    return made


def turn(n: int, keys: int = 12) -> list[Draft]:
    """Eight to ten events. The clock goes on by an hour a turn and often steps back; some events have no time."""
    at = BEGAN + n * HOUR - (n % 7) * HOUR // 2
    use = {"type": "tool_use", "id": f"c{n % 5}", "name": "Bash", "input": {"command": "make"}}
    other = {**use, "id": f"d{n}"}
    said = {"type": "tool_result", "tool_use_id": f"c{n % 5}", "content": f"done {n}"}
    drafts = [
        _item(f"u{n}", "user", f"say {n} again and again", at),
        Draft(STREAM, f"a{n}", _declares(f"t/{n % keys}/v", f"u{n}", n), ev.Channel.OBSERVER),
        _item(f"m{n}", "assistant", [{"type": "text", "text": f"I do {n}"}, use, other], at + 1),
        _item(f"r{n}", "user", [said], at + 2),
        Draft(STREAM, f"t{n}", ev.SessionDescribed(f"title {n}"), ev.Channel.OPERATOR),
        Draft(STREAM, f"p{n}", ev.UsageReported(f"m{n}", n, 1, 2, 3), ev.Channel.OPERATOR),
        # Refused, each time: web words that say they are the user's.
        Draft(STREAM, f"w{n}", _declares(f"t/{n % keys}/v", f"u{n}", -n), ev.Channel.WEB),
        _item(f"x{n}", "user", f"and now {n}", at + 3),
    ]
    if n % 3 == 0:
        drafts.append(_item(f"y{n}", "user", f"say {n} and no more", at + 4, replaces=f"u{n}"))
    if n % 4 == 0:
        drafts.append(_closes(n))
    return drafts


def _closes(n: int) -> Draft:
    key = f"m{n}"

    def made(assigned: Any) -> ev.Event:
        return ev.CallClosed(f"d{n}", assigned[STREAM, key].seq, 2, "interrupted")

    return Draft(STREAM, f"z{n}", made, ev.Channel.OPERATOR)


def lengthen(store: ef.Store, events: int, first: int = 0) -> None:
    """Append turns until the session has at least so many events."""
    if store.session(NAME).seq == 0:
        opened = ev.SessionOpened(store.log.store_id, "root", anthropic.NAME)
        store.log.append([Draft(STREAM, "open", opened, ev.Channel.OPERATOR)])
    n = first
    while store.session(NAME).seq < events:
        store.log.append([draft for k in range(n, n + 20) for draft in turn(k)])
        n += 20


def made(path: Path, events: int) -> Path:
    """A closed store with such a session."""
    with ef.open(path) as store:
        lengthen(store, events)
    return path


def projections(store: ef.Store) -> ProjectionStore:
    return store_of(store.log)


def kept(store: ef.Store) -> dict[str, list[int]]:
    """The seqs that the session's snapshots are of, by projection."""
    root = projections(store).path
    found: dict[str, list[int]] = {}
    for folder in sorted(root.glob("*/*")):
        name = folder.name.rpartition("-")[0]
        found[name] = sorted(int(f.name) for f in folder.iterdir() if f.name.isdecimal())
    return found


def files(store: ef.Store) -> list[Path]:
    return sorted(p for p in projections(store).path.rglob("*") if p.is_file())


def forge(store: ef.Store, track: Track, seq: int, dump: bytes) -> None:
    """A snapshot whose digests hold and whose content is somebody's invention."""
    assert projections(store).keep(track, seq, store.log.get(STREAM, seq).digest, dump)


__all__ = [
    "NAME",
    "STREAM",
    "Track",
    "files",
    "forge",
    "kept",
    "lengthen",
    "made",
    "projections",
    "track_of",
    "turn",
]
