"""Backup: a consistent, compact copy of a store, verified in full before it appears, while others go on writing.

The copy is born in a hidden folder beside its place, and one rename puts it there. So a copy that stands at its place
is whole, and one that could not be made leaves nothing. It is the same store (its id, its chain), as of one moment.
Snapshots of projections are left out: they are made anew from the log.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import BackupFailed, Damaged
from ..log.folder import birthplace, settle, told
from ..log.lmdb_log import LmdbLog
from .verify import Verified

Verify = Callable[[Path], Verified]


@dataclass(frozen=True, slots=True)
class BackedUp:
    """A finished backup: where it is, the events in it, its tip (position, digest), and the bytes of its data file."""

    path: Path
    events: int
    position: int
    digest: bytes
    bytes: int

    def to_json(self) -> dict[str, Any]:
        """JSON fields."""
        return {
            "path": str(self.path),
            "events": self.events,
            "tip": {"position": self.position, "seq": self.position, "digest": self.digest.hex()},
            "bytes": self.bytes,
        }


def back_up(log: LmdbLog, target: Path | str, *, verify: Verify) -> BackedUp:
    """Copy the store to a new folder `target`. Raises BackupFailed (it exists, no room, no rights), Damaged."""
    target = Path(target).absolute()
    if os.path.lexists(target):
        raise BackupFailed(path=target, why="it is there already", remedy="Give a new path.")
    try:
        if Path(os.path.realpath(log.path)) in Path(os.path.realpath(target)).parents:
            why = "it lies in the store itself"
            raise BackupFailed(path=target, why=why, remedy="Give a path outside the store.")
        with birthplace(target) as birth:
            data = birth / "data.mdb"
            log.copy_to(birth)
            position, digest = _tip(log, birth)
            found = verify(birth)
            if not found.ok or (found.position, found.digest) != (position, digest):
                worst = found.problems[0]
                what = (
                    f"the copy is {found.verdict}: {worst.where}: {worst.what}; no backup was made"
                )
                raise Damaged(where=f"store {log.path}", what=what)
            size = data.stat().st_size
            settle(birth, target)
    except (OSError, ValueError) as fault:
        why, remedy = told(fault)
        raise BackupFailed(path=target, why=why, remedy=remedy) from None
    return BackedUp(target, found.events, position, digest, size)


def _tip(log: LmdbLog, birth: Path) -> tuple[int, bytes]:
    """Write the copy's tip file: the newest record that it holds, which must be one of ours."""
    with LmdbLog.open(birth, now=log.now, create_missing=False) as copy:
        position, digest = copy.store_tip()
        if log.at(position).digest != digest:
            what = f"position {position} of the copy is not that of the store; no backup was made"
            raise Damaged(where=f"store {log.path}", what=what)
        copy.tipfile.moved(position, digest)
    return position, digest
