"""The files of a store while it is open: claimed, so that others see it, and looked at again before each commit."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from ..errors import Damaged, StoreUnavailable
from . import folder

_MAY_ONLY_BE_READ = (errno.EROFS, errno.EACCES, errno.EPERM)


class OpenFiles:
    """The lock file and the data file as they were opened. `readonly`: the lock file was not looked at."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock_file, self._data_file = f"{path}/lock.mdb", f"{path}/data.mdb"
        self._claim = -1
        self._data = self._lock = self._size = 0

    def claim(self, data: int) -> None:
        """Tell others that the store is open; `data` is the data file's inode (0: any). Raises StoreUnavailable."""
        self.let_go()
        try:
            self._claim = folder.claim(self.path)
            inode = os.fstat(self._claim).st_ino
            if data not in (0, inode):
                raise StoreUnavailable(
                    path=self.path,
                    why="its data file was deleted or replaced while it was open",
                    remedy="Close it, run `ef verify`, then open it again.",
                )
        except folder.LockFileLost:
            raise StoreUnavailable(
                path=self.path,
                why="its lock file was deleted while another process has it open",
                remedy="Close every process that uses the store (`ef doctor` names them), then run `ef verify`.",
            ) from None
        except OSError as fault:
            if fault.errno not in _MAY_ONLY_BE_READ:
                raise StoreUnavailable(
                    path=self.path,
                    why=f"its lock file is not there and cannot be made: {fault.strerror}",
                    remedy="Check the folder's rights and its disk.",
                ) from None

    def let_go(self) -> None:
        """It is closed."""
        if self._claim >= 0:
            os.close(self._claim)
            self._claim = -1

    def opened(self, *, readonly: bool) -> None:
        """The engine has opened them. Raises OSError."""
        self._lock = 0 if readonly else os.stat(self.path / "lock.mdb").st_ino

    def grown(self) -> None:
        """Remember the size of the data file, which was claimed; it never shrinks."""
        self._size = max(self._size, os.fstat(self._claim).st_size)

    def are_ours(self, data: int) -> None:
        """The folder holds the two files that were opened, and the data file was not cut: before each commit.

        `data` is the data file's inode. Raises StoreUnavailable, Damaged.
        """
        for what, file, known in (
            ("lock", self._lock_file, self._lock),
            ("data", self._data_file, data),
        ):
            try:
                found = os.stat(file)
            except OSError:
                found = None
            if found is None or found.st_ino != known:
                raise StoreUnavailable(
                    path=self.path,
                    why=f"its {what} file was deleted or replaced while it was open",
                    remedy="Close every process that uses the store, then run `ef verify`.",
                )
        assert found is not None
        if found.st_size < self._size:
            cut = f"it was cut from {self._size} to {found.st_size} bytes while it was open"
            raise Damaged(where=str(self.path / "data.mdb"), what=cut)
        self._size = found.st_size
