"""Following a store through the API."""

from __future__ import annotations

import threading
from pathlib import Path

import ef


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
