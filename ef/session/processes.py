"""Which processes have a store open, how they are, and who holds its write lock: read from /proc, where there is one.

LMDB's lock file holds a robust mutex of the C library for its writers; on Linux its owner's thread id stands in it as a
number. What is read here is looked at and never trusted: an owner counts only if that process has the lock file open.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
STOPPED = ("T", "t")
_OWNER_AT = 64 + 8
"""The writers' mutex begins with the second cache line of the lock file; its third number is the owner's thread id."""


@dataclass(frozen=True, slots=True)
class User:
    """A process that has the store open. `state` is the kernel's letter (T: stopped); `lost` are files it holds open
    that are no longer in the folder."""

    pid: int
    name: str
    state: str
    lost: tuple[str, ...] = ()

    @property
    def stopped(self) -> bool:
        """Whether the process is stopped, by a signal or a debugger."""
        return self.state in STOPPED

    def __str__(self) -> str:
        return f"process {self.pid} ({self.name})"


def users(folder: Path) -> list[User]:
    """The processes that have the store's files open, this one left out; those of other users may be hidden from us."""
    found: list[User] = []
    names = {os.path.realpath(folder / name): name for name in ("data.mdb", "lock.mdb")}
    for pid in _pids():
        held = [_open_file(link, names) for link in _links(pid)]
        lost = {name for name, gone in (each for each in held if each) if gone}
        if any(held) and pid != os.getpid():
            with contextlib.suppress(OSError, IndexError):
                found.append(User(pid, *_name_and_state(pid), tuple(sorted(lost))))
    return found


def _pids() -> Iterator[int]:
    try:
        names = os.listdir(PROC)
    except OSError:
        return
    yield from (int(name) for name in names if name.isdecimal())


def _links(pid: int) -> Iterator[str]:
    """Where the descriptors of a process lead; nothing for a process that we may not look into."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(PROC / str(pid) / "fd"):
            with contextlib.suppress(OSError):
                yield os.readlink(entry.path)


def _open_file(link: str, names: dict[str, str]) -> tuple[str, bool] | None:
    """Which file of the store a descriptor leads to, and whether another file, or none, is in its place by now."""
    path = link.removesuffix(" (deleted)")
    return (names[path], path != link) if path in names else None


def _name_and_state(pid: int) -> tuple[str, str]:
    head, _, rest = (PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")
    return head.partition("(")[2], rest.split()[0]


def lock_holder(folder: Path, known: list[User]) -> User | None:
    """The process that holds the write lock, if the lock file says so and it is one of those that have it open."""
    try:
        with (folder / "lock.mdb").open("rb") as file:
            file.seek(_OWNER_AT)
            (thread,) = struct.unpack("<i", file.read(4))
    except (OSError, struct.error):
        return None
    return next((user for user in known if _has_thread(user.pid, thread)), None)


def _has_thread(pid: int, thread: int) -> bool:
    return thread > 0 and (PROC / str(pid) / "task" / str(thread)).exists()
