"""Doctor: what is unusual about a store, its files, its users and this machine, and what can be done about each.

Nothing is written to the store (readers that died are cleared, which LMDB does whenever it opens one), and nothing is
waited for without a bound: LMDB is asked in a process of its own.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..codec.limits import BODY_BYTES_MAX, HEADER_BYTES_MAX
from ..log import given
from ..log.folder import FILE_MODE, FOLDER_MODE
from ..log.pages import last_position
from ..log.tipfile import TipFile
from .probe import LOCK_SECONDS_MAX, Seen, look
from .processes import User, lock_holder, users
from .snapshots import EVERY
from .surroundings import disk, installed

FREE_SHARE_NOTED = 0.5
"""A data file of which more than this is free pages is worth a word."""

FREE_BYTES_NOTED = 64 << 20
MAP_SHARE_WARNED = 0.8
BEHIND_WARNED = 1_000
"""A reader that is so many transactions behind keeps their pages from being used again."""

_WANTED = {
    "OtherStore": "Put the right data file back, or delete the file tip because this one is wanted.",
    "RolledBack": "Put the newer copy back, or delete the file tip because this one is wanted.",
}
"""What to do about a data file that is not the one that the tip file speaks of."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. `level` is ok, note, warning or error; an error means that the store cannot be used as it is."""

    level: str
    what: str
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        """JSON fields."""
        return {"level": self.level, "what": self.what, "remedy": self.remedy}


def doctor(path: Path | str) -> list[Finding]:
    """Everything there is to say of the store at `path`, also when it is missing, damaged, or held by somebody."""
    folder = given.path("path", path).absolute()
    found = [Finding(*each) for each in installed()]
    found += _configured()
    if not os.path.exists(folder / "data.mdb"):
        return [*found, _nothing(folder)]
    found += _files(folder)
    found += [Finding(*each) for each in disk(folder)]
    known = users(folder)
    found += _users(known)
    seen = look(folder)
    found += _seen(folder, seen, known)
    return found


def _configured() -> Iterator[Finding]:
    """What is built in: users cannot change it."""
    yield Finding("ok", f"a snapshot of projections is due every {EVERY:,} events")
    body, header = BODY_BYTES_MAX >> 20, HEADER_BYTES_MAX >> 10
    yield Finding("ok", f"a body has at most {body} MiB, a header at most {header} KiB")


def _nothing(folder: Path) -> Finding:
    if not os.path.exists(folder):
        return Finding("note", f"there is no store at {folder} yet", "`ef import PATH` makes it.")
    what = f"{folder} is there and holds no data.mdb: it is no store, or its data file is gone"
    return Finding("error", what, "Give the path of a store, or put a backup in its place.")


def _files(folder: Path) -> Iterator[Finding]:
    """Modes and owners of the folder and the files in it."""
    wanted = [(folder, FOLDER_MODE)]
    wanted += [(folder / name, FILE_MODE) for name in ("data.mdb", "lock.mdb", "tip")]
    fine = True
    for each, mode in wanted:
        try:
            facts = each.stat()
        except FileNotFoundError:
            continue
        except OSError as fault:
            yield Finding("error", f"{each}: {fault.strerror}", "Check the rights of the folder.")
            return
        found = stat.S_IMODE(facts.st_mode)
        if found & ~mode:
            fine = False
            what = f"{each} has mode {found:04o}: others can come at what it holds"
            yield Finding("warning", what, f"chmod {mode:04o} {each}")
        if facts.st_uid != os.geteuid():
            fine = False
            what = f"{each} belongs to user {facts.st_uid}, and you are user {os.geteuid()}"
            yield Finding("note", what, "Use the store as its owner, or change the owner.")
    if fine:
        yield Finding("ok", "the folder and its files are yours alone")


def _users(known: Sequence[User]) -> Iterator[Finding]:
    """Other processes that have the store open."""
    if known:
        names = ", ".join(map(str, known[:8])) + (" …" if len(known) > 8 else "")
        yield Finding("note", f"open in {len(known)} other processes: {names}")
    for user in known:
        for name in user.lost:
            what = f"{user} has a {name} open that is no longer in the folder: it was deleted or replaced"
            remedy = "End that process before anybody writes, then run `ef verify`."
            yield Finding("error", what, remedy)


def _seen(folder: Path, seen: Seen, known: Sequence[User]) -> Iterator[Finding]:
    """What the process that opened the store saw; and if it could not, why."""
    stopped = [user for user in known if user.stopped]
    holder = lock_holder(folder, list(known))
    if seen.hung:
        yield Finding("error", "opening the store did not end", "End the processes that use it.")
    elif seen.signal:
        what = (
            f"reading the store ended the process by signal {seen.signal}: its data file is damaged"
        )
        yield Finding("error", what, "Run `ef verify`; put a backup in its place.")
    elif seen.error:
        yield Finding("error", seen.error["message"], "Run `ef verify`.")
    elif not seen.free:
        yield _held(holder)
    else:
        yield Finding("ok", "the store opens, and its write lock is free")
    if seen.readonly:
        yield Finding("note", "the store can only be read here", "Check its rights and its disk.")
    for user in stopped:
        if user != holder or seen.free:
            what = f"{user} has the store open and is stopped"
            yield Finding("warning", what, f"kill -CONT {user.pid}, or end it.")
    if seen.condition:
        yield from _condition(folder, seen.condition)
    yield from _tip(folder, seen)


def _held(holder: User | None) -> Finding:
    """The write lock was not to be had."""
    if holder is None:
        what = f"the write lock was not free for {LOCK_SECONDS_MAX:.0f} seconds; who holds it cannot be told"
        return Finding("error", what, "Look for a process that is stopped or hangs, and end it.")
    if holder.stopped:
        what = f"{holder} is stopped and holds the write lock: nobody can write"
        remedy = f"kill -CONT {holder.pid} lets it go on; kill -KILL {holder.pid} frees the lock, and loses nothing."
        return Finding("error", what, remedy)
    what = f"{holder} has held the write lock for {LOCK_SECONDS_MAX:.0f} seconds (state {holder.state})"
    return Finding("warning", what, "Wait. If it never ends, end the process: nothing is lost.")


def _condition(folder: Path, seen: dict[str, Any]) -> Iterator[Finding]:
    flags = seen["flags"]
    durable = flags["sync"] and flags["metasync"] and not (flags["writemap"] or flags["map_async"])
    level, what = ("ok", "durable") if durable else ("error", "not durable")
    said = ", ".join(f"{n} {'on' if flags[n] else 'off'}" for n in ("sync", "metasync", "writemap"))
    yield Finding(level, f"commits are {what} ({said})", "" if durable else "Report this, please.")
    used, size = seen["pages"] * seen["page_size"], seen["map_size"]
    share = used / size
    level = "warning" if share > MAP_SHARE_WARNED else "ok"
    yield Finding(
        level, f"the memory map of {_mib(size)} is used to {share:.1%}; it grows by itself"
    )
    free = seen["pages"] - seen["used"]
    much = free * seen["page_size"] > FREE_BYTES_NOTED and free > FREE_SHARE_NOTED * seen["pages"]
    what = f"the data file has {seen['pages']:,} pages ({_mib(used)}), {free:,} of them free"
    remedy = "`ef backup` makes a compact copy." if much else ""
    yield Finding("note" if much else "ok", what, remedy)
    yield from _readers(seen)


def _readers(seen: dict[str, Any]) -> Iterator[Finding]:
    readers = seen["readers"]
    yield Finding("ok", f"{len(readers)} other readers at this moment")
    if seen["stale"]:
        yield Finding("note", f"{seen['stale']} readers of processes that had died were cleared")
    for pid, behind in readers:
        if behind > BEHIND_WARNED:
            what = f"a reader of process {pid} is {behind:,} transactions behind: the file grows"
            yield Finding("warning", what, "End that process, or have it close what it reads.")


def _tip(folder: Path, seen: Seen) -> Iterator[Finding]:
    """The tip file beside the data file: what it says, against what the store holds."""
    if seen.tip:
        yield Finding("error", seen.tip["what"], _WANTED[seen.tip["kind"]])
        return
    tip = TipFile(folder)
    remark = tip.remark()
    if remark is not None:
        yield Finding("warning", *remark)
        return
    known = tip.read()
    end = last_position(folder / "data.mdb")
    if known is None or end is None:
        return
    behind = end - known[0]
    if behind > 0:
        yield Finding("ok", f"the tip file is {behind:,} records behind the store")
    elif not behind:
        yield Finding("ok", "the tip file is up to date")


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.0f} MiB"
