"""The bytes of data.mdb, read in plain Python and never through liblmdb, which dies on a truncated file.

Layout read here (LMDB 0.9, little-endian, data format 1): two meta pages at 0 and 1; a page starts with a header of
16 bytes (pgno u64, pad u16, flags u16, lower u16, upper u16 or, for overflow pages, their number u32). The live
meta is the one with the larger transaction id. `check` walks both trees of the live meta and every sub-database. The
file is read in blocks, never mapped and never as a whole.
"""

from __future__ import annotations

import os
import struct
import time
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

META_MAGIC = 0xBEEFC0DE
BRANCH, LEAF, OVERFLOW, META, LEAF2 = 0x01, 0x02, 0x04, 0x08, 0x20
BIGDATA, SUBDATA = 0x01, 0x02
NO_PAGE = 2**64 - 1
_META = struct.Struct("<IIQQ")
_DB = struct.Struct("<IHHQQQQQ")
_PAGE = struct.Struct("<QHHHH")
_NODE = struct.Struct("<HHHH")
META_BYTES = 152
PAGE_SIZES = tuple(1 << n for n in range(9, 17))
METAS_BYTES = 2 * 65536
"""So many bytes hold both meta pages, whatever the page size."""

_BLOCK_BYTES = 1 << 16
_BLOCKS_KEPT = 256
"""Of a file whose pages were freed and used again neighbours are seldom wanted together: large blocks cost more."""

_UNWRITTEN_BYTES_MAX = 1 << 30
"""Pages at the end may be in use by nobody and were then never written; not so many, though."""


@dataclass(frozen=True, slots=True)
class Meta:
    """One meta page: its transaction, the page size, the last page in use and the roots of the two trees."""

    txnid: int
    page_size: int
    last_page: int
    roots: tuple[int, int]


def metas(data: bytes) -> list[Meta | str]:
    """Both metas of a file's first bytes (two pages' worth); a string says what is wrong with one."""
    first = _meta(data[:META_BYTES])
    size = first.page_size if isinstance(first, Meta) else PAGE_SIZES[3]
    return [first, _meta(data[size : size + META_BYTES])]


def _meta(page: bytes) -> Meta | str:
    if len(page) < META_BYTES:
        return "the file ends inside it"
    _, _, flags, _, _ = _PAGE.unpack_from(page)
    magic, version, _, _ = _META.unpack_from(page, 16)
    free, main = _DB.unpack_from(page, 40), _DB.unpack_from(page, 88)
    last_page, txnid = struct.unpack_from("<QQ", page, 136)
    if magic != META_MAGIC or not flags & META or version != 1:
        return "it is not a meta page of LMDB's data format 1"
    if free[0] not in PAGE_SIZES:
        return f"its page size {free[0]} is none"
    return Meta(txnid, free[0], last_page, (free[7], main[7]))


def live(found: list[Meta | str]) -> Meta | None:
    """The meta page that counts; None when neither can be read."""
    good = [m for m in found if isinstance(m, Meta)]
    return max(good, key=lambda m: m.txnid) if good else None


def unsafe(path: Path) -> str | None:
    """Why liblmdb must not be asked to read this file, or None. Reads two pages (more only on suspicion)."""
    with path.open("rb", buffering=0) as file:
        handle = file.fileno()
        size = os.fstat(handle).st_size
        if size == 0:
            return "the data file is empty"
        problems = check_metas(handle)
        meta = live(metas(os.pread(handle, METAS_BYTES, 0)))
    if meta is None:
        return "no meta page of the data file can be read"
    if not problems and size < (meta.last_page + 1) * meta.page_size:
        problems = check(path)
    return problems[0] if problems else None


def transaction(path: Path) -> int:
    """The number of the newest transaction in the file; -1 when no meta page can be read."""
    with path.open("rb") as file:
        meta = live(metas(file.read(METAS_BYTES)))
    return -1 if meta is None else meta.txnid


def check(path: Path) -> list[str]:
    """What is wrong with the structure of the file, in plain words; an empty list for a sound one."""
    with path.open("rb", buffering=0) as file:
        handle = file.fileno()
        problems = check_metas(handle)
        meta = live(metas(os.pread(handle, METAS_BYTES, 0)))
        if meta is None:
            return problems
        walk = _Walk(handle, meta, os.fstat(handle).st_size // meta.page_size)
        return problems + walk.trees(meta.roots)


def check_metas(handle: int) -> list[str]:
    """What is wrong with the meta pages and the size of an open file; they are read again while somebody commits."""
    data = b""
    while True:
        before, data = data, os.pread(handle, METAS_BYTES, 0)
        problems = _check_metas(data, os.fstat(handle).st_size)
        if not problems or before == data:
            return problems
        time.sleep(0.001)


def _check_metas(data: bytes, size: int) -> list[str]:
    found = metas(data)
    problems = [f"meta page {n}: {m}" for n, m in enumerate(found) if isinstance(m, str)]
    meta = live(found)
    if meta is None:
        return problems
    if size % meta.page_size:
        problems.append(f"the file's size {size} is not a multiple of {meta.page_size}")
    if (meta.last_page + 1) * meta.page_size > size + _UNWRITTEN_BYTES_MAX:
        problems.append(f"the meta page speaks of {meta.last_page} pages; the file is truncated")
    one, two = found
    if isinstance(one, Meta) and isinstance(two, Meta) and not one.txnid == two.txnid == 0:
        if abs(one.txnid - two.txnid) != 1 or one.txnid % 2 == 1:
            problems.append(
                f"the meta pages' transactions {one.txnid} and {two.txnid} do not follow each other"
            )
    return problems


class Blocks:
    """A file, read in blocks of which some are kept."""

    def __init__(self, handle: int, page_size: int) -> None:
        self._handle, self._size = handle, page_size
        self._kept: OrderedDict[int, bytes] = OrderedDict()

    def at(self, number: int) -> tuple[bytes, int]:
        """A block that holds the page of this number, and where in it the page begins."""
        which, base = divmod(number * self._size, _BLOCK_BYTES)
        block = self._kept.pop(which, None)
        if block is None:
            block = os.pread(self._handle, _BLOCK_BYTES, which * _BLOCK_BYTES)
            if len(self._kept) >= _BLOCKS_KEPT:
                self._kept.popitem(last=False)
        self._kept[which] = block
        return block, base


class _Walk:
    """Visits every page that the live trees reach; each must lie in the file and say its own number."""

    def __init__(self, handle: int, meta: Meta, pages: int) -> None:
        self.size, self.pages, self._last = meta.page_size, pages, meta.last_page
        self._at = Blocks(handle, meta.page_size).at
        self.seen: set[int] = set()
        self.problems: list[str] = []

    def trees(self, roots: tuple[int, ...]) -> list[str]:
        stack = [root for root in roots if root != NO_PAGE]
        while stack and len(self.problems) < 20:
            try:
                stack += self._page(stack.pop())
            except (struct.error, IndexError) as fault:
                self.problems.append(f"a page is cut off: {fault}")
        return self.problems

    def _page(self, number: int) -> list[int]:
        if number >= self.pages:
            self.problems.append(f"page {number} lies beyond the end of the file: it is truncated")
            return []
        if number in self.seen:
            self.problems.append(f"page {number} is reached twice")
            return []
        if number > self._last:
            self.problems.append(f"page {number} lies behind the last one, {self._last}")
            return []
        self.seen.add(number)
        data, base = self._at(number)
        said, _, flags, lower, _ = _PAGE.unpack_from(data, base)
        if said != number or not flags & (BRANCH | LEAF):
            self.problems.append(f"page {number} says that it is page {said} with flags {flags:#x}")
            return []
        if flags & LEAF2:
            return []
        offsets = struct.unpack_from(f"<{max(lower - 16, 0) // 2}H", data, base + 16)
        return (self._leaf if flags & LEAF else self._branch)(number, data, base, offsets)

    def _branch(self, number: int, data: bytes, base: int, offsets: tuple[int, ...]) -> list[int]:
        below: list[int] = []
        for offset in offsets:
            low, high, flags, key_size = _NODE.unpack_from(data, base + offset)
            if offset + _NODE.size + key_size > self.size:
                raise IndexError(f"page {number} has a node at {offset}")
            below.append(low | high << 16 | flags << 32)
        return below

    def _leaf(self, number: int, data: bytes, base: int, offsets: tuple[int, ...]) -> list[int]:
        below: list[int] = []
        unpack, size = _NODE.unpack_from, self.size
        for offset in offsets:
            low, high, flags, key_size = unpack(data, base + offset)
            at = offset + 8 + key_size
            if not flags and at + (low | high << 16) <= size:
                continue
            if flags & BIGDATA and at + 8 <= size:
                self._overflow(struct.unpack_from("<Q", data, base + at)[0], low | high << 16)
            elif at + (low | high << 16) > size:
                raise IndexError(f"page {number} has a node at {offset}")
            elif flags & SUBDATA:
                root = _DB.unpack_from(data, base + at)[7]
                if root != NO_PAGE:
                    below.append(root)
        return below

    def _overflow(self, first: int, size: int) -> None:
        count = -(-(size + 16) // self.size)
        if first + count > self.pages:
            self.problems.append(
                f"overflow page {first} lies beyond the end of the file: it is truncated"
            )
            return
        data, base = self._at(first)
        said, _, flags, _, _ = _PAGE.unpack_from(data, base)
        if said != first or not flags & OVERFLOW:
            self.problems.append(f"page {first} is not the overflow page that it should be")
