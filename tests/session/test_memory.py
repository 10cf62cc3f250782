"""A store in memory answers as one in a folder does, leaves nothing on any disk, and is gone when it is closed."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.errors import KeyConflict, StoreUnavailable, UsageError
from ef.integrations.eventsourcing import Factory
from ef.log.memory import MemoryLog
from ef.log.projection_store import NoProjections, Track
from tests.log.build import in_child
from tests.session.longer import NAME, lengthen

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "shopcart.jsonl"


def filled(store: ef.Store) -> ef.Session:
    store.import_file(EXAMPLE)
    session = store.session("build")
    session.append({"role": "user", "content": "Keep the public API."}, key="a")
    session.declare(
        "constraint", key="api/cart/x", value="stays", quote="Keep the public API.", source=2
    )
    return session


def answers(store: ef.Store) -> list[Any]:
    """All that a store says but its own id, times and digests of records."""
    found: list[Any] = []
    for name in sorted(store.session_names()):
        session = store.session(name)
        for at in (session.seq, session.seq // 2):
            found += [
                session.context(at).messages,
                sorted(session.state(at).heads),
                session.state(at).digest,
            ]
        found += [session.seq, session.diff(1).b, len(list(session.events()))]
    rows = [{**each.to_json(), "first": 0, "last": 0} for each in store.sessions()]
    found += [sorted(rows, key=str), store.export_original(store.sources()[0].id)]
    return found


def test_it_answers_as_a_store_in_a_folder_does(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "here" / ":memory:").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    with ef.open(":memory:") as store, ef.open(tmp_path / "disk") as other:
        session = filled(store)
        filled(other)
        assert answers(store) == answers(other)
        found = session.audit("api/cart/x")
        assert found.current.sources[0].quote == b"Keep the public API."
        verified = store.verify()
        assert verified.ok and verified.notes == []
        assert (verified.sessions, verified.sources, verified.anchors) == (
            (other.verify().sessions, other.verify().sources, other.verify().anchors)
        )
        assert store.verify(quick=True).events == other.verify(quick=True).events
        assert repr(store) == "<Store :memory:>"
    assert [str(p.relative_to(tmp_path)) for p in (tmp_path / "here").rglob("*")] == [
        "here/:memory:"
    ]


def test_appends_retries_and_followers_are_those_of_any_store() -> None:
    with ef.open(":memory:") as store:
        session = store.session("one")
        message = {"role": "user", "content": "Hello."}
        assert session.append(message, key="a") == session.append(message, key="a") == 2
        with pytest.raises(KeyConflict):
            session.append({"role": "user", "content": "Other."}, key="a")
        futures = [session.append_nowait({"role": "user", "content": str(n)}) for n in range(50)]
        assert [future.result() for future in futures] == list(range(3, 53))
        assert asyncio.run(session.aappend(message)) == 53
        seen: list[int] = []
        records = store.subscribe(after=store.log.tip_position())
        thread = threading.Thread(target=lambda: seen.extend(r.header.seq for r in records))
        thread.start()
        session.append(message)
        while not seen:
            thread.join(0.01)
        records.stop()
        records.stop()
        thread.join()
        assert seen == [54]


def test_a_long_session_is_projected_without_snapshots() -> None:
    with ef.open(":memory:") as store:
        lengthen(store, 2_300)
        session = store.session(NAME)
        assert session.state(1_200).digest == session.working(1_200).state_digest().hex()
        assert session.state("2030-01-01").at == session.seq
        assert store.sessions()[0].events == session.seq
        assert store.verify(progress=lambda at: None).ok


def test_closed_is_gone_and_each_is_a_store_of_its_own() -> None:
    store = ef.open(":memory:")
    session = store.session("one")
    session.append({"role": "user", "content": "Hello."})
    records = store.subscribe(after=0)
    with ef.open(":memory:") as other:
        assert list(other.session_names()) == [] and other.log.store_id != store.log.store_id
    store.close()
    store.close()
    assert list(records) == []
    calls = (session.state, store.sessions, lambda: session.seq, store.verify,
             lambda: session.append({"role": "user", "content": "x"}))  # fmt: skip
    for call in calls:
        with pytest.raises(StoreUnavailable, match="what it held is gone"):
            call()


def test_what_has_no_meaning_in_memory_is_refused(tmp_path: Path) -> None:
    for how in ({"readonly": True}, {"create": False}):
        with pytest.raises(UsageError, match="always a new one"):
            ef.open(":memory:", **how)  # type: ignore[arg-type]
    with ef.open(":memory:") as store:
        with pytest.raises(UsageError, match="no files to copy; open a store in a folder"):
            store.backup(tmp_path / "copy")
        with pytest.raises(UsageError, match="no projections are kept"):
            store.rebuild()
    with pytest.raises(UsageError, match="EF_STORE"):
        Factory({"EF_STORE": ":memory:"})
    with ef.open(tmp_path / ":memory:") as store:
        assert store.backup(tmp_path / "copy").events == 1, "a path that only ends so is a folder"


def test_a_forked_child_has_no_part_in_it() -> None:
    with ef.open(":memory:") as store:
        store.session("one").append({"role": "user", "content": "Hello."})

        def theirs() -> str:
            try:
                store.session("one").append({"role": "user", "content": "x"})
            except StoreUnavailable as fault:
                return str(fault)
            return ""

        assert "forked" in in_child(theirs)
        assert store.session("one").seq == 2


def test_a_record_that_changed_in_memory_is_found(tmp_path: Path) -> None:
    with ef.open(":memory:") as store:
        log = store.log
        assert isinstance(log, MemoryLog)
        filled(store)
        sound = log._frames[3]
        log._frames[3] = sound[:-1] + bytes([sound[-1] ^ 1])
        found = store.verify()
        assert found.verdict == "damaged" and "body" in found.problems[0].what
        log._frames[3] = b"?" + sound[1:]
        found = store.verify()
        assert found.verdict == "damaged" and "seq 3" in found.problems[0].what
        log._frames[3] = sound
        assert store.verify().ok


def test_nothing_is_kept_beside_it(tmp_path: Path) -> None:
    kept = NoProjections(tmp_path, "id")
    track = Track("s", "heads", "f")
    assert not kept.writable() and kept.obstacle() is not None
    assert not kept.keep(track, 1, bytes(32), b"x") and kept.seqs(track) == []
    kept.prune("s", {})
    kept.take_away(track, 1)
    assert list(tmp_path.iterdir()) == [] and os.path.exists(os.devnull)
