"""What observers know is kept: a process that goes on with a long session reads its last items and not all of them.

What it then grounds, and what it closes, is what a process that read everything would have grounded and closed.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ef
from ef import events as ev
from ef.codec import cbor, kinds
from ef.importers.names import facts_of, session_stream
from ef.log import Draft
from ef.meter import METER, estimate
from ef.projections import watched as module
from ef.projections.watched import Watched
from ef.readers import anthropic
from ef.session.snapshots import EVERY, Snapshots, watched_track
from ef.testing.damage import delete_record
from tests.session.longer import kept, projections

NAME = "work"
STREAM = session_stream(NAME)
RUN = "pytest -q"
RED = "FAILED a.py::t - x\n1 failed, 2 passed in 0.1s"


def _item(key: str, role: str, block: dict[str, Any], *, replaces: str | None = None) -> Draft:
    data = json.dumps({"role": role, "content": [block]}).encode()
    reading = anthropic.read(data)
    return Draft(
        STREAM, key, ev.ItemReplaced(data) if replaces else ev.ItemAppended(data), ev.Channel.OPERATOR,
        basis=ev.Basis.EQUAL, group=ev.Group(key) if role == "assistant" else None,
        item=facts_of(reading, METER, estimate(reading)), reader=(anthropic.NAME, anthropic.VERSION),
        cause_key=replaces,
    )  # fmt: skip


def use(call_id: str, command: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": command}}


def said(call_id: str, text: str, *, error: bool = False) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": text, "is_error": error}


def message(role: str, block: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": [block]}


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a session that nobody has read yet: calls and results, one call that waits since the beginning, and
    one target that failed then."""
    path = tmp_path_factory.mktemp("watched") / "s.ef"
    with ef.open(path) as store:
        session = store.session(NAME)
        session.append({"role": "user", "content": "Go."})
        session.append(message("assistant", use("fails", "make")))
        session.append(message("user", said("fails", "Error: boom", error=True)))
        session.append(message("assistant", use("waits", RUN)))
        for n in range(0, 2 * EVERY, 100):
            drafts: list[Draft] = []
            for k in range(n, n + 100):
                drafts.append(_item(f"c{k}", "assistant", use(f"c{k}", f"ls {k}")))
                drafts.append(_item(f"r{k}", "user", said(f"c{k}", f"file {k}")))
            if n == EVERY:
                now = said("c1050", "Error: gone", error=True)
                drafts.append(_item("other r1050", "user", now, replaces="r1050"))
            store.log.append(drafts)
    return path


@pytest.fixture
def path(worked: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(worked, tmp_path / "s.ef"))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seqs of the items whose bytes observers were given."""
    seqs: list[int] = []
    apply = module.read_as

    def counted(header: ev.Header, body: bytes) -> ev.Reading:
        seqs.append(header.seq)
        return apply(header, body)

    monkeypatch.setattr("ef.session.appending.read_as", counted)
    monkeypatch.setattr(module, "read_as", counted)
    return seqs


def goes_on(path: Path, by: str = "") -> tuple[list[Any], dict[str, Any]]:
    """A process goes on with the session: the answer to the old call, and the old target again. What that makes."""
    with ef.open(path, create=False) as store:
        session = store.session(NAME)
        before = session.seq
        session.append(message("user", said("waits", RED, error=True)), key="late" + by)
        session.append(message("assistant", use("again", "make")), key="again" + by)
        session.append(message("user", said("again", "built")), key="built" + by)
        session.append(message("assistant", use("seven", "ls 1050")), key="seven" + by)
        session.append(message("user", said("seven", "there")), key="there" + by)
        session.append(message("assistant", use("last", "ls")), key="last" + by)
        session.append({"role": "user", "content": "Stop."}, key="stop" + by)
        session.append({"role": "assistant", "content": "Done."}, key="done" + by)
        made = [
            (r.header.kind, r.header.seq, r.header.key, r.event)
            for r in session.events(after=before)
        ]
        heads = {key: head.value for key, head in session.state().heads.items()}
    return made, heads


def test_a_process_that_goes_on_near_the_end_grounds_what_one_that_read_all_grounds(
    path: Path, tmp_path: Path, read: list[int]
) -> None:
    other = Path(shutil.copytree(path, tmp_path / "other.ef"))
    made, heads = goes_on(path)
    assert heads["call/Bash:make/outcome"] == {"outcome": "ok", "exit": 0}
    assert heads["call/Bash:ls 1050/outcome"] == {"outcome": "ok", "exit": 0}
    assert heads["test/pytest/status"] == "failed"
    assert "CallClosed" in [kind for kind, *_ in made]
    assert len(read) > 4 * EVERY, "nothing was kept: all were read"

    with ef.open(other, create=False) as store:
        assert [each.name for each in store.rebuild()][-1] == "observers"
        assert kept(store)["observers"] == [EVERY, 2 * EVERY, 3 * EVERY, 4 * EVERY]
    read.clear()
    again, same = goes_on(other)
    assert min(read) > 4 * EVERY
    assert len(read) < 20
    assert ([m[:3] for m in again], same) == ([m[:3] for m in made], heads)


def test_who_had_to_read_all_keeps_what_the_next_one_needs(path: Path, read: list[int]) -> None:
    goes_on(path)
    with ef.open(path, create=False) as store:
        assert kept(store)["observers"] == [EVERY, 2 * EVERY, 3 * EVERY, 4 * EVERY]
        found = {each.name: each for each in store.rebuild()}["observers"]
        assert (found.compared, found.differed) == (4, ())
    read.clear()
    goes_on(path, "b")
    assert min(read) > 4 * EVERY


def test_damage_before_what_is_kept_keeps_nobody_from_going_on(path: Path) -> None:
    with ef.open(path, create=False) as store:
        store.rebuild()
        seq = store.session(NAME).seq
    delete_record(path, 500)
    with ef.open(path, create=False) as store:
        assert store.session(NAME).append({"role": "user", "content": "More."}) == seq + 1
        projections(store).drop()
    with ef.open(path, create=False) as store, pytest.raises(ef.EfError, match="is not there"):
        store.session(NAME).append({"role": "user", "content": "More."})


@pytest.mark.parametrize(
    "dump", [b"", b"\x80", b"\x82\x81\x80\x80", b"\x82\x82\x80\x80\x81\x01", b"\x82\x01\x80"]
)
def test_what_is_no_dump_of_observers_is_taken_away(path: Path, read: list[int], dump: bytes) -> None:  # fmt: skip
    with ef.open(path, create=False) as store:
        store.rebuild()
        track, digest = watched_track(STREAM), store.log.get(STREAM, 4 * EVERY).digest
        assert projections(store).keep(track, 4 * EVERY, digest, dump)
        assert Snapshots(store.log, STREAM).watched(4 * EVERY + 1).seq == 3 * EVERY
        assert kept(store)["observers"] == [EVERY, 2 * EVERY, 3 * EVERY]
    read.clear()
    made, heads = goes_on(path)
    assert 3 * EVERY < min(read) <= 4 * EVERY
    assert heads["test/pytest/status"] == "failed" and made


def test_a_rebuild_names_observers_that_lie_and_a_check_does_not_read_every_item(
    path: Path, read: list[int]
) -> None:
    with ef.open(path, create=False) as store:
        store.rebuild()
        digest = store.log.get(STREAM, EVERY).digest
        assert projections(store).keep(watched_track(STREAM), EVERY, digest, Watched().dump())
        read.clear()
        assert store.verify().ok
        assert read == []
        differed = {each.name: each.differed for each in store.rebuild()}
        assert differed.pop("observers") == (EVERY,)
        assert not any(differed.values())
        assert not any(each.differed for each in store.rebuild())


def test_other_rules_and_readers_do_not_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    before = watched_track(STREAM)
    assert watched_track(STREAM) == before
    monkeypatch.setattr(module, "rules", lambda: [["observe/outcomes", 2]])
    assert watched_track(STREAM) != before
    monkeypatch.undo()
    monkeypatch.setitem(module.READERS, ("anthropic", 2), ("anthropic", "read"))
    assert watched_track(STREAM) != before


@pytest.fixture
def strange(path: Path) -> Iterator[ef.Store]:
    """A session with an event of a kind that this version does not know and may not pass over."""

    class Later:
        pass

    later = Later()
    later.data = b""  # type: ignore[attr-defined]
    kinds.BY_TYPE[Later] = kinds.KindSpec("Later", 9, True, True, Later)
    with ef.open(path, create=False) as store:
        try:
            store.log.append([Draft(STREAM, "later", later, ev.Channel.OPERATOR)])  # type: ignore[arg-type]
        finally:
            del kinds.BY_TYPE[Later]
        yield store


def test_a_session_that_cannot_be_projected_takes_appends_all_the_same(strange: ef.Store) -> None:
    session = strange.session(NAME)
    session.append(message("user", said("waits", RED, error=True)))
    with pytest.raises(ef.EfError, match="Later"):
        session.state()
    grounded = [e.event for e in session.events(after=session.seq - 3)]
    values = [e.anchor.value for e in grounded if isinstance(e, ev.AnchorDeclared)]
    assert "failed" in values


def test_a_short_session_keeps_nothing(tmp_path: Path) -> None:
    with ef.open(tmp_path / "s.ef") as store:
        for n in range(5):
            store.session("few").append({"role": "user", "content": str(n)})
    with ef.open(tmp_path / "s.ef") as store:
        store.session("few").append({"role": "user", "content": "more"})
        assert kept(store) == {}
    assert cbor.decode(Watched().dump()) == [[[], []], []]
