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
import threading
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blake3 import blake3

from ..codec.cbor import encode
from ..codec.digests import DIGEST_BYTES
from .folder import FOLDER_MODE, bytes_of, put_file
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
        data = bytes_of(self._folder(track) / str(seq), _HEAD)
        return int.from_bytes(data[_SIZE_AT:_HEAD], "big") if data else 0

    def read(self, track: Track, seq: int, digest: bytes) -> bytes | None:
        """The bytes that were kept for a seq whose record has this digest; None when there are none that hold.

        A file that does not hold is taken away.
        """
        data = bytes_of(self._folder(track) / str(seq), SNAPSHOT_BYTES_MAX)
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
        _take(self._folder(track) / str(seq))

    def writable(self) -> bool:
        """Whether keeping something is worth trying."""
        return self.obstacle() is None

    def obstacle(self) -> tuple[str, str] | None:
        """(why, remedy) where keeping something is not worth trying."""
        if os.path.lexists(self.path) and not _is_folder(self.path):
            return "it is not a folder", "Move it away: the folder is made anew."
        if not os.access(self._store, os.W_OK):
            why = "its folder may only be read"
            return why, "Change its rights, or copy the store to a disk that can be written."
        disk = os.statvfs(self._store)
        free, least = disk.f_bavail * disk.f_frsize, FREE_BYTES_MIN
        if free < least:
            why = f"{free >> 20} MiB are free on its disk, and the last {least >> 20} MiB belong to the log"
            return why, "Free some space."
        return None

    def keep(self, track: Track, seq: int, digest: bytes, data: bytes) -> bool:
        """Keep bytes for a seq whose record has this digest; whether they were kept."""
        with contextlib.suppress(OSError):
            return self.put(track, seq, digest, data)
        return False

    def put(self, track: Track, seq: int, digest: bytes, data: bytes) -> bool:
        """Keep bytes as `keep` does; False when they are too many. Raises OSError, with the path that is in the way."""
        if len(data) > SNAPSHOT_BYTES_MAX:
            return False
        folder = self._folder(track)
        checked = digest + len(data).to_bytes(8, "big") + zlib.compress(data, 1)
        whole = MAGIC + self._check(track, seq, checked) + checked
        draft = folder / f"{seq}.{os.getpid()}.{threading.get_ident()}.new"
        reached("snapshot.built")
        _make(self.path)
        for each in (folder.parent, folder):
            if os.path.lexists(each) and not _is_folder(each):
                each.unlink()
            _make(each)
        put_file(folder / str(seq), whole, draft=draft, drafted="snapshot.drafted")
        reached("snapshot.written")
        return True

    def drop(self) -> None:
        """Drop all of it."""
        shutil.rmtree(self.path, ignore_errors=True)

    def prune(self, stream: str, kept: Mapping[Track, Sequence[int]]) -> None:
        """Take everything of a stream away but these: other seqs, other versions, drafts that nobody finished.

        A folder that somebody put among them stays where it holds something, and no link is followed.
        """
        files = {self._folder(track) / str(seq) for track, seqs in kept.items() for seq in seqs}
        folders = {file.parent for file in files}
        for folder in _inside(self._of(stream)) if _is_folder(self.path) else ():
            for file in _inside(folder):
                if file not in files:
                    _take(file)
            if folder not in folders:
                _take(folder)

    def _of(self, stream: str) -> Path:
        return self.path / stream_hash(stream).hex()

    def _folder(self, track: Track) -> Path:
        return self._of(track.stream) / f"{track.name}-{track.form}"

    def _check(self, track: Track, seq: int, checked: bytes) -> bytes:
        of = encode([self._id, track.stream, track.name, track.form, seq])
        return blake3(of + checked).digest()


class NoProjections(ProjectionStore):
    """Beside a log in memory nothing is kept."""

    def __init__(self, name: Path, store_id: str) -> None:
        super().__init__(name, store_id)
        self.path = Path(os.devnull) / FOLDER

    def obstacle(self) -> tuple[str, str] | None:
        """It lies in memory."""
        return "the store is in memory", "Open a store in a folder."


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


def _is_folder(path: Path) -> bool:
    """Whether it is a folder, and no link to one."""
    return path.is_dir() and not path.is_symlink()


def _inside(folder: Path) -> list[Path]:
    """What a folder holds; nothing where it is none, or a link to one."""
    with contextlib.suppress(OSError):
        if _is_folder(folder):
            return list(folder.iterdir())
    return []


def _take(path: Path) -> None:
    """Take a file, a link or an empty folder away, if we may."""
    with contextlib.suppress(OSError):
        if _is_folder(path):
            path.rmdir()
        else:
            path.unlink()


def _make(folder: Path) -> None:
    """A folder that only we can look into, whatever the umask is."""
    with contextlib.suppress(FileExistsError):
        folder.mkdir(FOLDER_MODE)
        folder.chmod(FOLDER_MODE)
