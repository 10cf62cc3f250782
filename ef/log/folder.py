"""The folder of a store: how one is made without ever showing half a store, and the modes that it has.

A store that has no folder yet is born beside its place and renamed into it. In a folder that exists (the working
folder, a mount point) it is born in a hidden folder inside, and its data file appears as the last step; the folder
itself stays the one that it was. Modes are set, never left to the umask.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Generator
from pathlib import Path

from .points import reached

FOLDER_MODE, FILE_MODE = 0o700, 0o600
BIRTH = ".birth."
"""How the names of hidden folders begin in which a store is born. One that a dead creator left is nothing."""

CLAIM_SECONDS_MAX = 2.0
LOCK_BYTES = 17 * 4096
"""What LMDB needs for the readers that we allow, and a little more."""


def is_empty(folder: Path) -> bool:
    """Whether a store can be born in this folder: it holds nothing, births that came to nothing aside."""
    return all(entry.name.startswith(BIRTH) for entry in folder.iterdir())


@contextlib.contextmanager
def birthplace(target: Path) -> Generator[Path, None, None]:
    """A temporary folder on the file system of `target`; it is gone afterwards, whatever happened."""
    if target.is_dir():
        birth = Path(tempfile.mkdtemp(prefix=BIRTH, dir=target))
    else:
        _make_folders(target.parent)
        name = f".{target.name[:100]}."
        birth = Path(tempfile.mkdtemp(prefix=name, suffix=".new", dir=target.parent))
    try:
        birth.chmod(FOLDER_MODE)
        yield birth
    finally:
        shutil.rmtree(birth, ignore_errors=True)


def settle(birth: Path, target: Path) -> None:
    """Make what was born in `birth` the store at `target`, at one stroke. OSError when there is a store already."""
    for file in birth.iterdir():
        file.chmod(FILE_MODE)
        fsync(file)
    fsync(birth)
    if birth.parent != target:
        birth.rename(target)
        fsync(target.parent)
        return
    with contextlib.suppress(PermissionError):  # another user's folder; verify remarks on its mode
        target.chmod(FOLDER_MODE)
    born, data = birth / "data.mdb", target / "data.mdb"
    try:
        os.link(born, data)
    except FileExistsError:
        raise
    except OSError:  # a disk without links
        born.rename(data)
    fsync(target)
    for old in target.glob(f"{BIRTH}*"):
        shutil.rmtree(old, ignore_errors=True)


def _make_folders(folder: Path) -> None:
    """Make a folder and those above it, such that we can use them whatever the umask is."""
    if not folder.is_dir():
        _make_folders(folder.parent)
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            folder.chmod(stat.S_IMODE(folder.stat().st_mode) | FOLDER_MODE)


def new_file(path: Path) -> None:
    """Make an empty file that only we can read."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    try:
        os.fchmod(handle, FILE_MODE)
    finally:
        os.close(handle)


def bytes_of(path: Path, most: int, *, follow: bool = False) -> bytes | None:
    """The first bytes of a plain file, or (`follow`) of one that is linked to; None for what is none or cannot be read.

    Nothing is waited for: not a pipe, not a device.
    """
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW))
        try:
            if stat.S_ISREG(os.fstat(handle).st_mode):
                with open(handle, "rb", closefd=False) as file:
                    return file.read(most)
        finally:
            os.close(handle)
    return None


def put_file(path: Path, data: bytes, *, draft: Path, drafted: str) -> None:
    """Write a file that only we can read beside its place, then put it there at one stroke.

    `drafted` is the point between. A folder that is in its place goes when it is empty, and only then. Raises OSError;
    the draft is gone then.
    """
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, FILE_MODE)
            file.write(data)
        reached(drafted)
        try:
            draft.replace(path)
        except IsADirectoryError:
            path.rmdir()
            draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


_REMEDIES = {
    errno.ENOSPC: "Free some space, or use another disk.",
    errno.EDQUOT: "Free some of your quota, or use another disk.",
    errno.EFBIG: "Raise the limit on the size of files (`ulimit -f`).",
    errno.EACCES: "Use a folder that you may write to, or change its rights.",
    errno.EPERM: "Use a folder that you may write to, or change its rights.",
    errno.EROFS: "Use a disk that can be written.",
    errno.EEXIST: "Give a new path.",
    errno.ENOTEMPTY: "Give a new path.",
    errno.ENOTDIR: "A part of the path is a file: give a path below a folder.",
    errno.ENAMETOOLONG: "Give a shorter path.",
}


def told(fault: OSError | ValueError) -> tuple[str, str]:
    """(why, remedy) of what the system did not let us do with a path."""
    number = getattr(fault, "errno", None)
    if number in (errno.EEXIST, errno.ENOTEMPTY):
        return "it is there already", _REMEDIES[number]
    why = getattr(fault, "strerror", None) or str(fault)
    return why, _REMEDIES.get(number or 0, "Check the path and its disk.")


def write_lock_file(folder: Path) -> None:
    """Make the lock file, where there is none, without a hole in it.

    LMDB would make it by its size alone and map it; on a full disk the first touch of a hole kills the process.
    """
    lock = folder / "lock.mdb"
    if lock.exists():
        return
    handle, draft = tempfile.mkstemp(prefix="lock.", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, FILE_MODE)
            file.write(bytes(LOCK_BYTES))
        with contextlib.suppress(OSError):  # somebody else was first, or the disk has no links
            os.link(draft, lock)
    finally:
        os.unlink(draft)


class LockFileLost(Exception):
    """There is no lock file, and another process has the store open through one that was deleted."""


def claim(folder: Path) -> int:
    """Make the lock file where there is none, and say on the data file that it is in use; the descriptor that says so.

    Whoever has a store open holds a shared flock on its data file. So a lock file that is missing may be made anew only
    if nobody has the store open: two writers with two lock files would lose each other's commits. Raises LockFileLost,
    OSError. Where the disk knows no such locks nothing is told.
    """
    handle = os.open(folder / "data.mdb", os.O_RDONLY)
    try:
        end = time.monotonic() + CLAIM_SECONDS_MAX
        while not (folder / "lock.mdb").exists():
            if _flock(handle, fcntl.LOCK_EX):
                write_lock_file(folder)
            elif time.monotonic() > end:
                raise LockFileLost
            else:  # somebody who is making it has it in a moment
                time.sleep(0.01)
        while not _flock(handle, fcntl.LOCK_SH) and time.monotonic() < end:
            time.sleep(0.01)
    except BaseException:
        os.close(handle)
        raise
    return handle


def _flock(handle: int, how: int) -> bool:
    """Whether the lock was had, without waiting; where the disk knows no locks it is."""
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def fsync(path: Path) -> None:
    """Make a file's or a folder's entry durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def mode_notes(folder: Path) -> list[str]:
    """Remarks on modes by which others may come at the store."""
    wanted = (folder, "the folder", FOLDER_MODE), (folder / "data.mdb", "the data file", FILE_MODE)
    modes = ((name, stat.S_IMODE(path.stat().st_mode), mode) for path, name, mode in wanted)
    return [
        f"{name} has mode {found:04o}; ef makes it {mode:04o}"
        for name, found, mode in modes
        if found != mode
    ]
