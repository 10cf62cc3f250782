"""How a store comes to be: found in its folder, or born with its genesis record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..codec.digests import SALT_BYTES, ZERO
from ..errors import NotFound, StoreUnavailable
from ..events import Channel, StoreOpened
from .base import EMPTY, GENESIS_STREAM, Draft, Tip, prepare
from .folder import is_empty
from .lmdb_env import create
from .rows import put_records

PUT_BACK = "Put its data file back where it was, or a backup of the store."


class _Nothing:
    """The knowledge of a store that does not exist yet."""

    def tip(self, stream: str) -> Tip:
        return EMPTY

    def record_of(self, stream: str, key: str) -> None:
        return None


def is_there(path: Path) -> bool:
    """Whether the folder holds a store; StoreUnavailable when it holds something else or cannot be looked into."""
    try:
        if (path / "data.mdb").exists():
            return True
        if not path.exists():
            return False
        why = "it exists and is not a store"
        if path.is_dir():
            if is_empty(path):
                return False
            why = "the folder holds no data.mdb"
            if (path / "tip").exists():
                raise StoreUnavailable(path=path, why=f"{why}, and was a store", remedy=PUT_BACK)
    except (OSError, ValueError) as fault:
        why = str(fault)
    raise StoreUnavailable(path=path, why=why, remedy="Give a new path, or the folder of a store.")


def missing(path: Path) -> NotFound:
    """The error for a store that is not there and may not be made."""
    remedy = "Import a session first: `ef import PATH`."
    return NotFound(what="store", name=str(path), where="the file system", remedy=remedy)


def give_birth(
    path: Path, *, now: Callable[[], int], entropy: Callable[[int], bytes], made_by: str
) -> None:
    """Make the store: a data file that holds the genesis record and nothing else."""
    store_id = entropy(16).hex()
    genesis = Draft(GENESIS_STREAM, store_id, StoreOpened(store_id, made_by), Channel.OPERATOR)
    _, new = prepare(
        [genesis],
        _Nothing(),
        store_digest=ZERO,
        recorded_at=now(),
        salt=lambda: entropy(SALT_BYTES),
        expect={},
    )
    create(path, lambda txn: put_records(txn, new, 0))
