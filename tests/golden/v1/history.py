"""The events of the recorded log, as drafts with fixed times, keys and salts. Imported as tests.golden.v1.history."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from pathlib import Path

from blake3 import blake3

from ef import events as ev
from ef.log.base import Assigned, Draft
from ef.log.lmdb_log import LmdbLog

SESSION = "session/golden"
START = 1_700_000_000_000_000


def clock() -> Callable[[], int]:
    return count(START, 1_000_000).__next__


def entropy() -> Callable[[int], bytes]:
    numbers = count()
    return lambda size: blake3(b"golden %d" % next(numbers)).digest(length=size)


def opened(path: Path) -> LmdbLog:
    return LmdbLog.open(path, now=clock(), entropy=entropy(), made_by="ef golden")


def item(
    key: str, message: dict[str, object], parts: list[tuple[str, str, str | None]], **how: object
) -> Draft:
    data = json.dumps(message, ensure_ascii=False).encode()
    facts = ev.ItemFacts(
        str(message["role"]),
        tuple(ev.PartFacts(ev.PartKind(k), ev.Channel(c), call) for k, c, call in parts),
        len(data) // 4,
        "golden/1",
    )
    channel = ev.Channel(parts[0][1])
    draft = Draft(SESSION, key, ev.ItemAppended(data), channel, item=facts, reader=("anthropic", 1))
    return replace(draft, **how)  # type: ignore[arg-type]


def cites(
    key: str, item_key: str, value: object, anchor: ev.AnchorKey, channel: ev.Channel,
    authority: ev.Authority, end: int,
) -> Draft:  # fmt: skip
    def made(assigned: Assigned) -> ev.Event:
        tip = assigned[SESSION, item_key]
        ref = ev.SourceRef(SESSION, tip.seq, 0, 0, end, tip.digest, channel, "text", item_key)
        return ev.AnchorDeclared(
            ev.Anchor("an:" + key, ev.Kind.VALUE, anchor, value, authority, channel, ev.Rule("golden", 1),
                      unit="s", sources=(ref,), because="it says so")
        )  # fmt: skip

    return Draft(SESSION, key, made, ev.Channel.OBSERVER, cause_key=item_key)


def batches() -> list[list[Draft]]:
    """Every kind of thing that can befall a session: calls closed and answered late, a replacement, a contest."""
    timeout = ev.AnchorKey("config", "server/eu", "timeout")
    call = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "make test"}}
    other = {"type": "tool_use", "id": "c2", "name": "Read", "input": {"path": "a.py"}}
    said = {"role": "user", "content": "Set the timeout to 30 s. Grüße! 🜂"}
    asks = {"role": "assistant", "content": [{"type": "text", "text": "Shall do."}, call, other]}
    asks_anew = {"role": "assistant", "content": [{"type": "text", "text": "Doing."}, call, other]}
    done = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok\n" * 100}]}
    late = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c2", "content": "late"}]}
    guess = {"role": "assistant", "content": "The timeout is 45 s, I think."}
    asked = [("text", "assistant", None), ("tool_call", "assistant", "c1"), ("tool_call", "assistant", "c2")]
    claimed = {"basis": ev.Basis.CLAIMED}
    group = ev.Group("msg_1")
    answer = item("done", done, [("tool_result", "tool", "c1")])
    return [
        [
            Draft(
                SESSION, "open", ev.SessionOpened("0" * 32, "root", "anthropic", policy={"tail": 8000}),
                ev.Channel.OPERATOR, basis=ev.Basis.EQUAL,
            ),
            Draft(SESSION, "title", ev.SessionDescribed("A golden session"), ev.Channel.OPERATOR),
            Draft(SESSION, "route", ev.RouteChanged("anthropic", "opus", 200_000, 8_000), ev.Channel.OPERATOR),
            item("said", said, [("text", "user_typed", None)], occurred_at=START - 9, **claimed),
            cites("typed", "said", 30, timeout, ev.Channel.USER_TYPED, ev.Authority.NORMATIVE, 24),
        ],
        [item("asks", asks, asked, group=group), answer],
        [
            Draft(SESSION, "closed", ev.CallClosed("c2", 6, 2, "interrupted"), ev.Channel.OPERATOR),
            item("late", late, [("tool_result", "tool", "c2")], occurred_at=START - 90, **claimed),
        ],
        [
            Draft(
                SESSION, "compacted", ev.ForeignCompaction("claude-code", "compact", "auto", 150_000, ("u1", "u2")),
                ev.Channel.IMPORTER, origin=ev.Origin("src", 12, 3_400, 3_900),
            ),
            Draft(SESSION, "usage", ev.UsageReported("msg_1", 10, 20, None, 3), ev.Channel.IMPORTER),
        ],
        [
            replace(
                item("asks again", asks_anew, asked, group=group),
                event=ev.ItemReplaced(json.dumps(asks_anew).encode()), cause_key="asks",
            ),
            item("guess", guess, [("text", "assistant", None)]),
            cites("guessed", "guess", 45, timeout, ev.Channel.ASSISTANT, ev.Authority.HYPOTHESIS, 19),
            cites("other", "guess", {"a": [1, None]}, ev.AnchorKey("a", "b", "c"), ev.Channel.ASSISTANT,
                  ev.Authority.DECISION, 3),
        ],
        [
            Draft("session/fork", "open", _forked, ev.Channel.OPERATOR),
            Draft("session/fork", "title", ev.SessionDescribed("A fork"), ev.Channel.OPERATOR),
        ],
    ]  # fmt: skip


def _forked(assigned: Assigned) -> ev.Event:
    tip = assigned[SESSION, "done"]
    return ev.SessionOpened("0" * 32, "fork", "anthropic", SESSION, tip.seq, tip.digest)


def append_all(log: LmdbLog) -> None:
    for batch in batches():
        log.append(batch)
