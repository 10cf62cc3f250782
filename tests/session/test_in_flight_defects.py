"""A group that is prepared again, and ends otherwise for some: a session comes from what was kept alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import lmdb
import pytest

import ef
from ef.errors import CannotWrite, TipConflict
from ef.events import Basis
from ef.importers.names import session_stream
from ef.log import Draft
from ef.session.appending import Appender
from tests.log.faults import Faulty
from tests.session.longer import _item
from tests.session.test_in_flight import SECONDS, meddle, settled

USE = {"type": "tool_use", "id": "zz", "name": "Bash", "input": {"command": "ls"}}
ONE, TWO = session_stream("one"), session_stream("two")


def draft(content: Any, key: str) -> Draft:
    """An assistant's message as a draft of session `one`."""
    made = _item(key, "assistant", content, 0)
    return replace(made, stream=ONE, occurred_at=None, basis=Basis.UNKNOWN)


def said(store: ef.Store) -> list[tuple[str, str]]:
    return [(e.header.kind, e.header.key) for e in store.session("one").events()]


@pytest.mark.parametrize("other", [None, "no call"])
def test_a_call_that_was_refused_in_the_second_try_is_not_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str | None
) -> None:
    """A batch with a precondition on another stream holds in the first try only; a second one may take its key."""
    with ef.open(tmp_path / "store") as store:
        session = store.session("one")
        session.append({"role": "user", "content": "go"}, key="u0")
        tip = {TWO: store.log.tip(TWO)}
        meddle(store, monkeypatch, 1, "Elsewhere.", "two")
        with store.log.committer.alone():
            gone = store.log.append_nowait([draft([USE], "k")], expect=tip)
            taken = [] if other is None else [store.log.append_nowait([draft(other, "k")])]
            futures = [
                session.append_nowait({"role": "user", "content": "and?"}, key="u1"),
                session.append_nowait({"role": "assistant", "content": "said"}, key="a1"),
            ]
        with pytest.raises(TipConflict):
            gone.result(SECONDS)
        settled(futures)
        assert all(future.result(SECONDS)[0].new for future in taken)
        assert [key for _, key in said(store)] == [
            "ef:open",
            "u0",
            *("k" for _ in taken),
            "u1",
            "a1",
        ]


def test_words_that_the_disk_refused_are_forgotten_where_another_handle_takes_their_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ef.open(tmp_path / "store") as store:
        session, other = store.session("one"), store.session("one")
        session.append({"role": "user", "content": "go"}, key="u0")
        faulty = Faulty(store.log, monkeypatch)
        faulty.fail("commit", lmdb.DiskError("full"), before=True)
        with monkeypatch.context() as patch:
            patch.setattr(store.log._env, "_reopen", lambda fault: None)
            with pytest.raises(CannotWrite):
                session.append({"role": "assistant", "content": [USE]}, key="k")
        with store.log.committer.alone():
            futures = [
                other.append_nowait({"role": "assistant", "content": "no call"}, key="k"),
                session.append_nowait({"role": "user", "content": "so?"}, key="u1"),
                session.append_nowait({"role": "assistant", "content": "yes"}, key="a1"),
            ]
        settled(futures)
        assert [key for _, key in said(store)] == ["ef:open", "u0", "k", "u1", "a1"]


def test_one_by_one_a_session_is_read_from_the_log_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    real = Appender._restart
    with ef.open(tmp_path / "store") as store:
        session = store.session("one")
        settled([session.append_nowait({"role": "user", "content": str(n)}) for n in range(20)])
        faulty = Faulty(store.log, monkeypatch)
        with store.log.committer.alone():
            faulty.fail("commit", lmdb.DiskError("no space"), before=True)
            futures = [
                session.append_nowait({"role": "user", "content": str(n)}) for n in range(20)
            ]
            monkeypatch.setattr(Appender, "_restart", lambda self: (seen.append(1), real(self))[1])
        settled(futures)
        assert len(seen) <= 1 and session.seq == 41
