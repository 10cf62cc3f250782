"""Messages in flight, where one line less would not be noticed otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ef
from ef.errors import CannotWrite, OutcomeUnknown
from ef.session import appending
from tests.log.build import in_child
from tests.session.test_in_flight import MESSAGES, SECONDS, settled, submitted, told


@pytest.fixture(scope="module")
def waited(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    with ef.open(tmp_path_factory.mktemp("waited") / "store") as store:
        for n, message in enumerate(MESSAGES):
            store.session("one").append(message, key=f"k{n}")
        return told(store)


def test_a_message_that_another_process_appended_meanwhile_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ef.open(tmp_path / "store") as store:
        session = store.session("one")
        session.append(MESSAGES[0], key="k0")
        real = store.log._env.write
        left = [1]

        def write(work: Any) -> Any:
            if left.pop() if left else 0:
                in_child(lambda: store.session("one").append(MESSAGES[1], key="k1"))
            return real(work)

        monkeypatch.setattr(store.log._env, "write", write)
        with store.log.committer.alone():
            future = session.append_nowait(MESSAGES[1], key="k1")
            after = session.append_nowait(MESSAGES[2], key="k2")
        assert future.result(SECONDS) == 3
        assert after.result(SECONDS) == 4
        assert store.verify().ok


@pytest.mark.parametrize("bad", [3, 12])
def test_a_message_whose_preparation_breaks_at_its_very_end_is_forgotten_wholly(
    tmp_path: Path, waited: list[Any], monkeypatch: pytest.MonkeyPatch, bad: int
) -> None:
    """What it told the observers must not count: here the result of a run that the session never got."""
    real = appending.anchor_drafts

    def made(item: Any, found: Any) -> Any:
        if item.key == "broken":
            raise OutcomeUnknown(path="x", why="a fault at the end")
        return real(item, found)

    monkeypatch.setattr(appending, "anchor_drafts", made)
    use = {"type": "tool_use", "id": "c0", "name": "Read", "input": {"file_path": "x"}}
    with ef.open(tmp_path / "store") as store:
        session = store.session("one")
        with store.log.committer.alone():
            before = submitted(session, upto=bad)
            broken = session.append_nowait(
                {"role": "assistant", "content": [{"type": "text", "text": "B."}, use]},
                key="broken",
            )
            after = submitted(session, first=bad)
        with pytest.raises(OutcomeUnknown):
            broken.result(SECONDS)
        settled(before + after)
        assert told(store) == waited


def test_a_message_that_the_disk_refused_is_forgotten_wholly(
    tmp_path: Path, waited: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ef.open(tmp_path / "store") as store:
        session = store.session("one")
        settled(submitted(session, upto=7))
        use = {"type": "tool_use", "id": "zz", "name": "Bash", "input": {"command": "pytest -q"}}

        def full(work: Any) -> Any:
            raise CannotWrite(path=tmp_path, why="the disk is full", remedy="Free space.")

        with monkeypatch.context() as patch:
            patch.setattr(store.log._env, "write", full)
            with pytest.raises(CannotWrite):
                session.append({"role": "assistant", "content": [use]}, key="k7")
        settled(submitted(session, first=7))
        assert told(store) == waited
