"""What is said of a session that was replayed along with the check is what is said of it when it is looked at alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ef
from ef import events as ev
from ef.importers.names import session_stream
from ef.log import Draft
from ef.log.base import Assigned
from ef.log.check import Checker
from ef.readers import anthropic
from ef.session import along as along_module
from ef.session import verify as verify_module
from ef.session.along import Along
from ef.session.snapshots import EVERY
from tests.log.build import opened

SESSIONS = along_module.OPEN_MOST + 3
WORD = "timeout"


def anchor(stream: str, cited: str, **other: Any) -> Draft:
    """An anchor that cites the first word of an item of its own batch, or says something else of it."""

    def made(assigned: Assigned) -> ev.Event:
        tip = assigned[stream, cited]
        user = ev.Channel.USER_TYPED
        ref = ev.SourceRef(stream, tip.seq, 0, 0, len(WORD), tip.digest, user, "text", cited)
        key = ev.AnchorKey("config", "server", cited)
        return ev.AnchorDeclared(
            ev.Anchor(
                f"an:{cited}", ev.Kind.VALUE, key, 1, ev.Authority.NORMATIVE, user,
                ev.Rule("test", 1), sources=(replace(ref, **other),),
            )
        )  # fmt: skip

    return Draft(stream, f"a/{cited}", made, ev.Channel.OBSERVER)


def item(stream: str, key: str, text: str) -> Draft:
    data = json.dumps({"role": "user", "content": text}).encode()
    facts = ev.ItemFacts("user", (ev.PartFacts(ev.PartKind.TEXT, ev.Channel.USER_TYPED),))
    reader = (anthropic.NAME, anthropic.VERSION)
    return Draft(
        stream, key, ev.ItemAppended(data), ev.Channel.USER_TYPED, item=facts, reader=reader
    )


def opening(stream: str) -> Draft:
    name = stream.partition("/")[2]
    return Draft(
        stream, "open", ev.SessionOpened(name, "root", anthropic.NAME), ev.Channel.OPERATOR
    )


def closing(stream: str, key: str) -> Draft:
    """A call is closed that was never opened: a reducer refuses it."""
    return Draft(stream, key, ev.CallClosed("nobody", 2, 0, "interrupted"), ev.Channel.OPERATOR)


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """More sessions than are open at once: written one after another, two again at the end; one has snapshots."""
    path = tmp_path / "store"
    with ef.open(path) as store:
        for n in range(SESSIONS):
            stream = session_stream(f"s{n}")
            store.log.append([opening(stream)])
            store.log.append([item(stream, "k", WORD + " 5"), anchor(stream, "k")])
            store.log.append([item(stream, f"m{k}", "x" * 20_000) for k in range(n % 3)])
        for n in (0, 1):
            store.log.append([item(session_stream(f"s{n}"), "late", WORD)])
        stream = session_stream("s5")
        store.log.append([item(stream, f"l{n}", "long") for n in range(EVERY + 7)])
        store.rebuild("s5")
    return path


def nothing_known(*_: object) -> dict[str, Any]:
    return {}


def alone(store: ef.Store, monkeypatch: pytest.MonkeyPatch, **how: Any) -> dict[str, Any]:
    """What verify says when every session is looked at by itself."""
    with monkeypatch.context() as patch:
        patch.setattr(verify_module, "_known", nothing_known)
        return store.verify(**how).to_json()


def test_along_and_alone_say_the_same(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ef.open(many, create=False) as store:
        found = store.verify()
        assert found.ok and found.anchors == found.sessions == SESSIONS
        assert found.to_json() == alone(store, monkeypatch)
        one = store.verify(session="s3")
        assert one.ok and one.anchors == 1
        assert one.to_json() == alone(store, monkeypatch, session="s3")


def test_of_a_session_that_came_again_when_it_was_closed_nothing_is_said(many: Path) -> None:
    with opened(many) as log:
        along = Along(log)
        tips = Checker(log, seen=along.see).run().tips
        streams = [session_stream(f"s{n}") for n in range(SESSIONS)]
        assert [s for s in streams if along.well(s, tips[s].seq)] == streams[2:]
        assert along.well(streams[3], tips[streams[3]].seq + 1) is None
        assert along.well("session/none", 0) is None


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"channel": ev.Channel.OPERATOR}, "its reference does not match the record it cites"),
        ({"item_key": "another"}, "its reference does not match the record it cites"),
        ({"digest": bytes(32)}, "the record is not the one that the reference cites"),
        ({"end": 999}, "part 0 has no bytes 0 to 999"),
        ({"seq": 1_000}, "a source of its anchor cannot be read"),
    ],
    ids=["channel", "key", "digest", "span", "nowhere"],
)
def test_a_reference_that_does_not_hold_is_named(
    many: Path, other: dict[str, Any], what: str
) -> None:
    stream = session_stream("s4")
    with ef.open(many, create=False) as store:
        store.log.append([item(stream, "new", WORD), anchor(stream, "new")])
        assert store.verify().ok
        store.log.append([item(stream, "bad", WORD), anchor(stream, "bad", **other)])
        store.log.append([item(stream, "after", WORD)])
        found = store.verify()
        assert [p.stream for p in found.problems] == [stream] and what in found.problems[0].what


def test_what_reducers_refuse_is_a_remark_and_what_cannot_be_projected_is_one(
    many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ef.open(many, create=False) as store:
        assert not store.verify().notes
        store.log.append([closing(session_stream("s2"), "c")])
        found = store.verify()
        assert found.ok and len(found.notes) == 1 and "refused" in found.notes[0]
        assert found.to_json() == alone(store, monkeypatch)
