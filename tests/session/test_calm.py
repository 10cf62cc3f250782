"""Collections are off during a replay, and as they were behind it."""

from __future__ import annotations

import gc
import threading

import pytest

from ef.session.calm import calm


def test_collections_pause_and_go_on() -> None:
    assert gc.isenabled()
    with calm():
        assert not gc.isenabled()
        with calm():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_they_go_on_behind_a_replay_that_failed() -> None:
    with pytest.raises(ValueError, match="broken"), calm():
        raise ValueError("broken")
    assert gc.isenabled()


def test_who_switched_them_off_finds_them_off() -> None:
    gc.disable()
    try:
        with calm():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_replays_of_several_threads_leave_them_on() -> None:
    begun, ended = threading.Event(), threading.Event()

    def longer() -> None:
        with calm():
            begun.set()
            ended.wait(30)

    other = threading.Thread(target=longer)
    with calm():
        other.start()
        assert begun.wait(30)
    ended.set()
    other.join(30)
    assert gc.isenabled()
