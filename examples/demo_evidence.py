"""What the demo looks up for itself: quotes in the transcript file, and which key and moment are worth showing.

`Transcript` reads the file with nothing but the standard library, so that a quote is checked without the store that gave it.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from ef import Session, Store
from ef.events import AnchorDeclared, ForeignCompaction, Recorded
from ef.importers.names import session_stream
from ef.log.items import reading_of, recorded

CLAIM = re.compile(r"[^\n.]*\btests?\b[^\n.]*\bpass(?:es|ed|ing)?\b[^\n.]*\.?", re.IGNORECASE)
DENIES = re.compile(r"\b(?:no|not|none|never|cannot|fail\w*|\w+n't)\b", re.IGNORECASE)
FORBIDS = re.compile(
    r"[^\n.!?]*\b(?:do not|don't|never|must(?: not)?|no \w+ for)\b[^\n!?]*?(?:[.!?](?=\s|$)|$)",
    re.IGNORECASE | re.MULTILINE,
)


class Transcript:
    """The lines of a JSONL file by byte range."""

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()

    def holds(self, start: int, end: int, quote: bytes) -> bool:
        """Whether the JSON record in bytes [start, end) says the quote, in one string or in its texts joined."""
        try:
            record = json.loads(self.data[start:end])
        except ValueError:
            return False
        found = list(strings(record.get("message", record) if isinstance(record, dict) else record))
        text = quote.decode("utf-8", "surrogatepass")
        return any(text in each for each in [*found, "\n".join(found), "".join(found)])


def events(store: Store, session: str) -> Iterator[Recorded]:
    """The session's events, oldest first; items without their bytes."""
    return recorded(store.log, session_stream(session))


def strings(value: Any) -> Iterator[str]:
    """All strings in a JSON value, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings(each)


@dataclass(frozen=True)
class Chosen:
    """A key to look at, `then` the last seq at which its head was another one than now's (None: never)."""

    key: str
    then: int | None


def choose(store: Store, session: Session) -> Chosen | None:
    """The most telling key of a session: a test suite's status that changed, else any value that changed, else any."""
    said: dict[str, list[tuple[int, Any]]] = defaultdict(list)
    for each in events(store, session.id):
        if isinstance(each.event, AnchorDeclared):
            anchor = each.event.anchor
            said[str(anchor.key)].append((each.header.seq, anchor.value))
    heads = session.state().heads

    def rank(key: str) -> tuple[int, ...]:
        values = [value for _, value in said[key]]
        changes = sum(a != b for a, b in pairwise(values))
        a_status = key.startswith("test/") and key.endswith("/status")
        return a_status and changes > 0, a_status, changes, len(values)

    keys = sorted((k for k in said if k in heads), key=lambda k: (*[-n for n in rank(k)], k))
    return Chosen(keys[0], _last_other(session, keys[0], said[keys[0]])) if keys else None


def _last_other(session: Session, key: str, said: list[tuple[int, Any]]) -> int | None:
    """The last seq at which the value was not today's: the head changed by the event right behind it."""
    now = session.state().heads[key].value
    for seq, _ in reversed(said):
        before = session.state(seq - 1).heads.get(key)
        if before is not None and before.value != now:
            return seq - 1
    return None


@dataclass(frozen=True)
class Compaction:
    """Another tool's compaction: its seq, the item that holds its summary, and what that claims about tests."""

    seq: int
    pre_tokens: int | None
    item: int | None
    claim: str | None

    @property
    def says_green(self) -> bool:
        """Whether the claim is that tests pass; one with a denial in it is not read as that."""
        return self.claim is not None and not DENIES.search(self.claim)


def compactions(store: Store, session: Session) -> list[Compaction]:
    """All compactions that the session's log holds, oldest first."""
    found: list[Compaction] = []
    all_events = list(events(store, session.id))
    for n, each in enumerate(all_events):
        if not isinstance(each.event, ForeignCompaction):
            continue
        near = (e.header for e in all_events[n + 1 : n + 4])
        behind = next((h for h in near if h.item is not None), None)
        item = claim = None
        if behind is not None and behind.item is not None:
            if {part.channel.value for part in behind.item.parts} == {"importer"}:
                item = behind.seq
                said = CLAIM.search("\n".join(texts(store, behind.stream, item)))
                claim = said.group().strip(" -*") if said else None
        found.append(Compaction(each.header.seq, each.event.pre_tokens, item, claim))
    return found


def texts(store: Store, stream: str, seq: int) -> list[str]:
    """The texts of an item's parts."""
    return [part.text for part in reading_of(store.log, store.log.get(stream, seq)).parts]


@dataclass(frozen=True)
class Words:
    """A sentence that the user typed, and the item that holds it."""

    seq: int
    text: str


def users_rule(store: Store, session: Session) -> Words | None:
    """The first sentence that the user typed which forbids or demands something; else the first words typed."""
    first: Words | None = None
    for each in events(store, session.id):
        h = each.header
        if h.item is None or {p.channel.value for p in h.item.parts} != {"user_typed"}:
            continue
        for text in texts(store, h.stream, h.seq):
            found = FORBIDS.search(text)
            if found:
                return Words(h.seq, found.group().strip())
            line = next((row.strip() for row in text.splitlines() if row.strip()), "")
            if first is None and line:
                first = Words(h.seq, line[:200])
    return first


def elsewhere(home: Path) -> tuple[bool, bool]:
    """Whether there are transcripts of Claude Code and of Codex in their usual places. Looks at names only."""
    return (
        _any_jsonl(home / ".claude" / "projects"),
        _any_jsonl(home / ".codex" / "sessions"),
    )


def _any_jsonl(folder: Path) -> bool:
    try:
        return next(folder.rglob("*.jsonl"), None) is not None
    except OSError:
        return False
