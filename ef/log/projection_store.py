"""The projection store: snapshots of projections, in a folder of their own inside the store.

A cache. Dropping all of it, or any file of it, at any time, changes nothing but time; that it cannot be written fails
nothing. One plain file a snapshot, put in place by a rename and read by plain reads: a memory map of a file that a
power cut or somebody else cut off would end the process, and a cache that flushes is one that makes appends wait.
Each file carries a digest over what it is of (store, stream, projection, form, seq) and all that it holds, the digest
of the log's record at that seq, and the size of what it holds unpacked. So a torn file, one that was moved, one of
another store, and one of a history that was put back or written anew is no snapshot: it is passed over and taken away.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import threading
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blake3 import blake3

from ..codec.cbor import encode
from ..codec.digests import DIGEST_BYTES
from .folder import FILE_MODE, FOLDER_MODE
from .points import reached
from .rows import stream_hash

FOLDER = "projections"
MAGIC = b"ef-snap1"
SNAPSHOT_BYTES_MAX = 256 << 20
FREE_BYTES_MIN = 64 << 20
"""The last room on a disk belongs to the log."""

_CHECKED_AT = len(MAGIC) + DIGEST_BYTES
_SIZE_AT = _CHECKED_AT + DIGEST_BYTES
_HEAD = _SIZE_AT + 8


@dataclass(frozen=True, slots=True)
class Track:
    """The snapshots of one projection of one stream. `form` stands for the versions of all that decides their bytes."""

    stream: str
    name: str
    form: str


class ProjectionStore:
    """The snapshots beside one store. It holds nothing open: it may be used from any thread and any process."""

    def __init__(self, store: Path, store_id: str) -> None:
        self._store, self._id = store, store_id
        self.path = store / FOLDER

    def seqs(self, track: Track) -> list[int]:
        """The seqs that there are files for, in order; whether those hold is seen when they are read."""
        try:
            return sorted(int(name) for name in os.listdir(self._folder(track)) if name.isdecimal())
        except OSError:
            return []

    def size(self, track: Track, seq: int) -> int:
        """How many bytes a snapshot holds, unpacked, by its own word; 0 for none."""
        data = _bytes_of(self._folder(track) / str(seq), _HEAD)
        return int.from_bytes(data[_SIZE_AT:_HEAD], "big") if data else 0

    def read(self, track: Track, seq: int, digest: bytes) -> bytes | None:
        """The bytes that were kept for a seq whose record has this digest; None when there are none that hold.

        A file that does not hold is taken away.
        """
        data = _bytes_of(self._folder(track) / str(seq), SNAPSHOT_BYTES_MAX)
        if data is None:
            return None
        checked = data[_CHECKED_AT:]
        if data.startswith(MAGIC + self._check(track, seq, checked)) and checked.startswith(digest):
            unpacked = _unpacked(data)
            if unpacked is not None:
                return unpacked
        self.take_away(track, seq)
        return None

    def take_away(self, track: Track, seq: int) -> None:
        """Take one snapshot away, if we may."""
        with contextlib.suppress(OSError):
            (self._folder(track) / str(seq)).unlink()

    def writable(self) -> bool:
        """Whether keeping something is worth trying: the store's folder may be written and its disk is not full."""
        if not os.access(self._store, os.W_OK) or self.path.is_symlink():
            return False
        disk = os.statvfs(self._store)
        return disk.f_bavail * disk.f_frsize >= FREE_BYTES_MIN

    def keep(self, track: Track, seq: int, digest: bytes, data: bytes) -> bool:
        """Keep bytes for a seq whose record has this digest; whether they were kept."""
        if len(data) > SNAPSHOT_BYTES_MAX:
            return False
        folder = self._folder(track)
        checked = digest + len(data).to_bytes(8, "big") + zlib.compress(data, 1)
        whole = MAGIC + self._check(track, seq, checked) + checked
        draft = folder / f"{seq}.{os.getpid()}.{threading.get_ident()}.new"
        reached("snapshot.built")
        try:
            for each in (self.path, folder.parent, folder):
                _make(each)
            try:
                handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE)
                with os.fdopen(handle, "wb") as file:
                    os.fchmod(handle, FILE_MODE)
                    file.write(whole)
                reached("snapshot.drafted")
                draft.replace(folder / str(seq))
            except OSError:
                draft.unlink(missing_ok=True)
                raise
        except OSError:
            return False
        reached("snapshot.written")
        return True

    def drop(self) -> None:
        """Drop all of it."""
        shutil.rmtree(self.path, ignore_errors=True)

    def prune(self, stream: str, kept: Mapping[Track, Sequence[int]]) -> None:
        """Take everything of a stream away but these: other seqs, other versions, drafts that nobody finished."""
        if self.path.is_symlink():
            return
        files = {self._folder(track) / str(seq) for track, seqs in kept.items() for seq in seqs}
        folders = {file.parent for file in files}
        with contextlib.suppress(OSError):
            for folder in self._of(stream).iterdir():
                if folder not in folders:
                    shutil.rmtree(folder, ignore_errors=True)
                    continue
                for file in folder.iterdir():
                    if file not in files:
                        file.unlink(missing_ok=True)

    def _of(self, stream: str) -> Path:
        return self.path / stream_hash(stream).hex()

    def _folder(self, track: Track) -> Path:
        return self._of(track.stream) / f"{track.name}-{track.form}"

    def _check(self, track: Track, seq: int, checked: bytes) -> bytes:
        of = encode([self._id, track.stream, track.name, track.form, seq])
        return blake3(of + checked).digest()


def _bytes_of(path: Path, most: int) -> bytes | None:
    """The first bytes of a plain file; None for what is none or cannot be read: nothing else is waited for."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        with os.fdopen(handle, "rb") as file:
            return file.read(most) if stat.S_ISREG(os.fstat(handle).st_mode) else None
    except OSError:
        return None


def _unpacked(data: bytes) -> bytes | None:
    """What a file holds; None when that is not what its head says, which only somebody who forged it can do."""
    size = int.from_bytes(data[_SIZE_AT:_HEAD], "big")
    if size > SNAPSHOT_BYTES_MAX:
        return None
    try:
        found = zlib.decompressobj().decompress(data[_HEAD:], size + 1)
    except zlib.error:
        return None
    return found if len(found) == size else None


def _make(folder: Path) -> None:
    """A folder that only we can look into, whatever the umask is."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(FOLDER_MODE)
        folder.chmod(FOLDER_MODE)
