"""Records that lie on the pages of a data file, found without its trees: for a file whose branch pages are lost.

Every leaf page of the file is looked at, also those that nothing leads to any more. A record never changes, so an old
copy of a page holds the same records; two different ones at a position are told apart by what the next one names as the
one before it. What the tip file does not know of was perhaps never committed, and is left out.
"""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

from ..codec.record import MAGIC, decode_frame
from ..errors import Damaged
from .pages import DataFile
from .rows import KEY, LOG, SEQ, U64, stream_hash


class _Found(NamedTuple):
    """A record on a page, and what binds it to others."""

    digest: bytes
    prev: bytes
    page: int
    by_seq: bytes
    by_key: bytes


class Gathered:
    """The rows of `log`, `seq` and `key` for the records that were found. `tip` is what the tip file says."""

    def __init__(self, file: DataFile, tip: tuple[int, bytes] | None) -> None:
        self._file = file
        self._rows: dict[tuple[bytes, bytes], bytes] = {}
        self._pages: dict[int, int] = {}
        for position, found in _chosen(_candidates(file), tip).items():
            at = U64.pack(position)
            self._pages[position] = found.page
            self._rows[SEQ, found.by_seq] = self._rows[KEY, found.by_key] = at

    def get(self, db: bytes, key: bytes) -> bytes | None:
        """The value of a key; None when no record was found that would give it."""
        if db != LOG:
            return self._rows.get((db, key))
        page = self._pages.get(U64.unpack(key)[0])
        if page is None:
            return None
        return next(e.value for e in self._file.leaf(page, _pass) if e.key == key)

    def last(self) -> tuple[bytes, bytes] | None:
        """The newest record."""
        if not self._pages:
            return None
        key = U64.pack(max(self._pages))
        return key, self.get(LOG, key) or b""


def _candidates(file: DataFile) -> dict[int, dict[bytes, _Found]]:
    """By position and digest, every record on any leaf page."""
    found: dict[int, dict[bytes, _Found]] = {}
    for page in range(os.fstat(file.handle).st_size // file.page_size):
        for entry in file.leaf(page, _pass):
            if len(entry.key) == U64.size and entry.value.startswith(MAGIC):
                with contextlib.suppress(Damaged):
                    frame = decode_frame(entry.value, where="")
                    h = frame.header
                    by_seq = stream_hash(h.stream) + U64.pack(h.seq)
                    one = _Found(frame.digest, h.prev_store, page, by_seq, h.uuid)
                    found.setdefault(U64.unpack(entry.key)[0], {})[frame.digest] = one
    return found


def _chosen(
    found: dict[int, dict[bytes, _Found]], tip: tuple[int, bytes] | None
) -> dict[int, _Found]:
    """One record for each position where there is no doubt which."""
    chosen: dict[int, _Found] = {}
    if not found:
        return chosen
    end, digest = tip or (max(found), None)
    named = {digest} if digest else set[bytes]()
    for position in sorted((p for p in found if p <= end), reverse=True):
        after = chosen.get(position + 1)
        if after is not None:
            named = {after.prev}
        elif position != end:
            named = {one.prev for one in found.get(position + 1, {}).values()}
        options = [one for one in found[position].values() if not named or one.digest in named]
        if len(options) == 1 and (tip is not None or position != end):
            chosen[position] = options[0]
    return chosen


def _pass(damage: Damaged) -> None:
    """What cannot be read is not found."""
