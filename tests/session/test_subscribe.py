"""Following a store through the API."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.errors import StoreUnavailable


def test_a_store_is_followed_from_a_position_or_from_now_on(tmp_path: Path) -> None:
    with ef.open(tmp_path / "store") as store:
        session, other = store.session("one"), store.session("two")
        session.append({"role": "user", "content": "Before."}, key="before")
        with store.subscribe(after=0) as records:
            assert [next(records).header.key for _ in range(2)] == ["ef:open", "before"]
            position = records.position
        seen: list[str] = []
        with store.subscribe(prefix="session/one") as live:
            thread = threading.Thread(target=lambda: seen.extend(r.header.key for r in live))
            thread.start()
            other.append({"role": "user", "content": "Elsewhere."}, key="elsewhere")
            seq = session.append({"role": "user", "content": "After."}, key="after")
            while not seen:
                thread.join(0.01)
        thread.join()
        assert seen == ["after"] and seq == 3
        with store.subscribe(after=position) as again:
            keys = [next(again).header.key for _ in range(3)]
        assert keys == ["ef:open", "elsewhere", "after"]


def test_closing_the_store_ends_who_waits_for_its_records(tmp_path: Path) -> None:
    for others in (False, True):
        store = ef.open(tmp_path / "store")
        other = ef.open(tmp_path / "store") if others else None
        store.session("one").append({"role": "user", "content": "Hello."})
        records = store.subscribe(after=-1)
        seen: list[str] = []
        waits = threading.Event()

        def follow(records: Any = records, seen: list[str] = seen, waits: Any = waits) -> None:
            for record in records:
                seen.append(record.header.stream)
                waits.set()
            seen.append("ended")

        thread = threading.Thread(target=follow)
        thread.start()
        assert waits.wait(60)
        store.close()
        thread.join(60)
        assert not thread.is_alive() and seen[-1] == "ended"
        assert list(records) == [], "it has ended for good"
        records.stop()
        if other is not None:
            assert other.session("one").seq == 3
            with other.subscribe(after=records.position - 1) as again:
                assert next(again).position == records.position, "where to go on is known"
            other.close()


def test_a_store_that_is_closed_says_so_in_one_sentence(tmp_path: Path) -> None:
    store = ef.open(tmp_path / "store")
    session = store.session("one")
    session.append({"role": "user", "content": "Hello."})
    session.state()
    store.close()
    calls = (
        session.state, session.context, store.sessions, store.verify, store.subscribe,
        lambda: store.backup(tmp_path / "copy"), lambda: session.append({"role": "user", "content": "x"}),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(StoreUnavailable, match=r"/store: it is closed\. Open it again\.$"):
            call()
