"""What a store stands on: the packages of this installation, and the file system and the room under a folder."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from .. import __version__
from ..log.lmdb_env import engine

PACKAGES = {
    "eventsourcing": ((9, 5, 6), (10,)),
    "lmdb": ((3,), (4,)),
    "cbor2": ((6, 3), (7,)),
    "blake3": ((1,), (2,)),
    "pydantic": ((2,), (3,)),
}
"""The versions that ef is made for: from the first, below the second (as in pyproject.toml)."""

ENGINE = "0.9."
OLDEST_PYTHON = (3, 11)
NETWORK = frozenset(
    "nfs nfs4 cifs smb3 smbfs 9p afs ceph glusterfs fuse.sshfs fuse.s3fs lustre".split()
)
VOLATILE = frozenset(("tmpfs", "ramfs"))
FREE_BYTES_LOW = 256 << 20
MOUNTS = Path("/proc/self/mounts")

Found = tuple[str, str, str]
"""Level, what, remedy: the fields of a finding."""


def installed() -> Iterator[Found]:
    """Python, ef and its packages, and LMDB's engine."""
    python = platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        yield "error", f"Python {python} is too old for ef", "Use Python 3.11 or newer."
    yield "ok", f"ef {__version__} on Python {python}, {platform.system()} {platform.machine()}", ""
    for name, (oldest, newest) in PACKAGES.items():
        yield package(name, _version(name), oldest, newest)
    version, patched = engine()
    if not version.startswith(ENGINE):
        yield "error", f"LMDB's engine is {version}; ef's files are of 0.9", "Reinstall lmdb."
    elif not patched:
        what = f"LMDB's engine {version} is the system's, without the patches of the lmdb package"
        yield (
            "error",
            what,
            "Reinstall lmdb without LMDB_FORCE_SYSTEM: a damaged file could kill readers.",
        )
    else:
        yield "ok", f"LMDB's engine is {version}, with the patches of the lmdb package", ""


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def package(
    name: str, version: str | None, oldest: tuple[int, ...], newest: tuple[int, ...]
) -> Found:
    """What there is to say of one package."""
    wanted = f"'{name}>={_dotted(oldest)},<{_dotted(newest)}'"
    if version is None:
        return "error", f"{name} is not installed", f"pip install {wanted}"
    numbers = tuple(int(n) for n in re.findall(r"\d+", version)[:3])
    if numbers < oldest:
        return "error", f"{name} {version} is too old", f"pip install {wanted}"
    if numbers >= newest:
        what = f"{name} {version} is newer than what this version was made for"
        return "warning", what, f"pip install {wanted}"
    return "ok", f"{name} {version}", ""


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def disk(folder: Path) -> Iterator[Found]:
    """The file system that a folder is on, and how much room it has."""
    kind = file_system(folder)
    if kind in NETWORK:
        what = f"the folder is on a network file system ({kind}): its locks and memory maps keep no promises"
        yield "warning", what, "Move the store to a local disk."
    elif kind in VOLATILE:
        what = f"the folder is on {kind}: what is in it is gone when the machine restarts"
        yield "warning", what, "Move the store to a disk."
    else:
        yield "ok", f"the folder is on a file system of type {kind or 'unknown'}", ""
    room = os.statvfs(folder)
    free = room.f_bavail * room.f_frsize
    if free < FREE_BYTES_LOW:
        yield "warning", f"only {free >> 20:,} MiB are free on its disk", "Free some space."
    else:
        yield "ok", f"{free >> 20:,} MiB are free on its disk", ""


def file_system(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """The type of the file system that a folder is on; None where the mounts cannot be read."""
    try:
        lines = mounts.read_text("utf-8", "surrogateescape").splitlines()
    except OSError:
        return None
    best, kind = -1, None
    place = os.path.realpath(folder)
    for words in (line.split() for line in lines):
        at = words[1].encode("latin-1", "surrogateescape").decode("unicode_escape")
        below = place == at or place.startswith(at.rstrip("/") + "/")
        if below and len(at) >= best:  # of two at one place the later one hides the other
            best, kind = len(at), words[2]
    return kind
