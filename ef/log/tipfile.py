"""The store's tip, kept outside the data file, so that a store that was put back to an older copy is noticed.

One line: `ef-tip 1 POSITION DIGEST STORE`; older versions left the store's id out. At most 250 ms behind the store, and
equal after close. The chain may be ahead of it (a crash), never behind it.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
import time
from pathlib import Path

from .folder import bytes_of, put_file
from .points import reached

BEHIND_SECONDS_MAX = 0.25
_BYTES_MAX = 256
"""Longer than any line of ours."""

_ID = re.compile(r"[0-9a-f]{1,64}")
_LINE = re.compile(r"ef-tip 1 (\d{1,20}) ([0-9a-f]{64})(?: ([0-9a-f]{1,64}))?\n")


class TipFile:
    """Writes the newest tip soon: at once if the last write is a while ago, else from a timer."""

    store_id: str | None = None
    """The store that the tip is of; written down with it when it is known."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "tip"
        self._lock = threading.Lock()
        self._newest: tuple[int, bytes] | None = None
        self._written_at = 0.0
        self._timer: threading.Timer | None = None
        self._kept = False
        self._pid = os.getpid()

    def keep(self) -> None:
        """Leave the file as it is: it names a record that the store does not hold, and it is all that says so."""
        self._kept = True

    def _own(self) -> threading.Lock:
        """The lock; a forked child has neither the parent's timer nor a lock that somebody will give back."""
        if self._pid != os.getpid():
            self._pid, self._lock, self._timer = os.getpid(), threading.Lock(), None
        return self._lock

    def moved(self, position: int, digest: bytes) -> None:
        """The store's tip is now this."""
        with self._own():
            if self._newest is None or position > self._newest[0]:
                self._newest = (position, digest)
            due = self._written_at + BEHIND_SECONDS_MAX - time.monotonic()
            if due <= 0:
                self._write()
            elif self._timer is None:
                timer = threading.Timer(due, self.flush)
                timer.daemon = True
                try:
                    timer.start()
                except RuntimeError:  # no more threads: the tip must not stop the store
                    self._write()
                else:
                    self._timer = timer

    def flush(self) -> None:
        """Write now what is not written."""
        with self._own():
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._write()

    def _write(self) -> None:
        newest, self._newest = self._newest, None
        self._written_at = time.monotonic()
        known = self.read()
        if self._kept or newest is None or (known is not None and known[0] >= newest[0]):
            return
        draft = self._path.with_name(f"tip.{os.getpid()}.{threading.get_ident()}")
        # The tip guards the store; that it cannot be written must not stop the store.
        with contextlib.suppress(OSError):
            data = self._line(*newest).encode("ascii")
            put_file(self._path, data, draft=draft, drafted="tip.drafted")
            reached("tip.replaced")

    def note(self) -> str | None:
        """A remark when there is nothing that would show that an older copy of the store was put back."""
        remark = self.remark()
        return remark[0] if remark else None

    def remark(self) -> tuple[str, str] | None:
        """(remark, remedy) when there is nothing that would show that an older copy of the store was put back."""
        if self.read() is not None:
            return None
        why, remedy = "is not there", "The next append writes it; look after who took it away."
        if self._path.is_dir() and not self._path.is_symlink():
            why = "is a folder"
            remedy = "Move that folder away if there is something in it; the next append writes the file."
        elif os.path.lexists(self._path):
            why = "cannot be read"
            remedy = "The next append writes it anew; look after who changed it."
        return f"the file tip {why}: that an older copy was put back would not be noticed", remedy

    def _line(self, position: int, digest: bytes) -> str:
        of = f" {self.store_id}" if self.store_id and _ID.fullmatch(self.store_id) else ""
        return f"ef-tip 1 {position} {digest.hex()}{of}\n"

    def read(self) -> tuple[int, bytes] | None:
        """(position, digest), or None when the file is absent or cannot be read."""
        found = self._read()
        return (int(found[1]), bytes.fromhex(found[2])) if found else None

    def names_another(self, store_id: str) -> str | None:
        """The id of the store that the file speaks of, when that is another one."""
        found = self._read()
        return found[3] if found and found[3] not in (None, store_id) else None

    def _read(self) -> re.Match[str] | None:
        found = bytes_of(self._path, _BYTES_MAX, follow=True)
        return _LINE.fullmatch(found.decode("ascii", "replace")) if found else None
