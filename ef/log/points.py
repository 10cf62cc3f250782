"""Named points on the way of a write: where a crash test holds the process. Nothing happens there otherwise.

`hold(at)` gives every point that is reached to `at`, which may stop the process, kill it or note the name.
"""

from __future__ import annotations

from collections.abc import Callable

POINTS: dict[str, str] = {
    "append.accepted": "the drafts wait for their turn; nothing is prepared",
    "group.prepared": "the group's records are made and chained; no transaction is open",
    "group.begun": "the write transaction is open; nothing is put",
    "group.put": "all rows are put; nothing is committed",
    "group.durable": "the commit returned; neither the tip file nor any caller knows",
    "group.told": "the tip file was told; no caller knows",
    "append.acknowledged": "the callers' futures are set",
    "tip.drafted": "the new tip file is written beside the old one",
    "tip.replaced": "the new tip file is in place",
    "import.read": "the file's bytes are in memory; nothing is translated",
    "import.translated": "the file is translated; its drafts are made",
    "import.appended": "the import is durable; its result was not given",
    "snapshot.built": "the snapshot's bytes are made; nothing is written",
    "snapshot.drafted": "the snapshot is written beside its place",
    "snapshot.written": "the snapshot is in place",
}

_at: Callable[[str], None] | None = None


def reached(name: str) -> None:
    """Say that a point is reached."""
    if _at is not None:
        _at(name)


def hold(at: Callable[[str], None] | None) -> None:
    """From now on call `at` with the name of each point that this process reaches; None ends that."""
    global _at
    _at = at
