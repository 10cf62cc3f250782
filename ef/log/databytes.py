"""The bytes of data.mdb, read in plain Python and never through liblmdb, which dies on a truncated file.

Layout read here (LMDB 0.9, little-endian, data format 1): two meta pages at 0 and 1; a page starts with a header of
16 bytes (pgno u64, pad u16, flags u16, lower u16, upper u16 or, for overflow pages, their number u32). The live
meta is the one with the larger transaction id. `check` walks both trees of the live meta and every sub-database.
"""

from __future__ import annotations

import os
import struct
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


def too_short(path: Path) -> str | None:
    """Why liblmdb must not be asked to read this file, or None. Reads two pages (more only on suspicion)."""
    with path.open("rb") as file:
        head = file.read(2 * 65536)
        size = os.fstat(file.fileno()).st_size
    if size == 0:
        return "the data file is empty"
    good = [m for m in metas(head) if isinstance(m, Meta)]
    if not good:
        return "no meta page of the data file can be read"
    live = max(good, key=lambda m: m.txnid)
    if size < (live.last_page + 1) * live.page_size:
        problems = check(path)
        if problems:
            return problems[0]
    return None


def check(path: Path) -> list[str]:
    """What is wrong with the structure of the file, in plain words; an empty list for a sound one."""
    data = path.read_bytes()
    problems: list[str] = []
    found = metas(data[: 2 * 65536])
    problems += [f"meta page {n}: {m}" for n, m in enumerate(found) if isinstance(m, str)]
    good = [m for m in found if isinstance(m, Meta)]
    if not good:
        return problems or ["the data file has no meta page"]
    live = max(good, key=lambda m: m.txnid)
    if len(data) % live.page_size:
        problems.append(f"the file's size {len(data)} is not a multiple of {live.page_size}")
    if len(good) == 2 and (abs(good[0].txnid - good[1].txnid) != 1 or good[0].txnid % 2 == 1):
        if not good[0].txnid == good[1].txnid == 0:
            problems.append(
                f"the meta pages' transactions {good[0].txnid} and {good[1].txnid} do not follow each other"
            )
    return problems + _Walk(data, live.page_size).trees(live.roots)


class _Walk:
    """Visits every page that the live trees reach; each must lie in the file and say its own number."""

    def __init__(self, data: bytes, page_size: int) -> None:
        self.data, self.size = data, page_size
        self.pages = len(data) // page_size
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
        self.seen.add(number)
        base = number * self.size
        said, _, flags, lower, _ = _PAGE.unpack_from(self.data, base)
        if said != number or not flags & (BRANCH | LEAF):
            self.problems.append(f"page {number} says that it is page {said} with flags {flags:#x}")
            return []
        if flags & LEAF2:
            return []
        below: list[int] = []
        for n in range((lower - 16) // 2):
            (offset,) = struct.unpack_from("<H", self.data, base + 16 + 2 * n)
            below += self._node(base, offset, leaf=bool(flags & LEAF))
        return below

    def _node(self, base: int, offset: int, *, leaf: bool) -> list[int]:
        if offset > self.size - _NODE.size:
            raise IndexError(f"a node at {offset}")
        low, high, flags, key_size = _NODE.unpack_from(self.data, base + offset)
        at = base + offset + _NODE.size + key_size
        if not leaf:
            return [low | high << 16 | flags << 32]
        if flags & BIGDATA:
            (first,) = struct.unpack_from("<Q", self.data, at)
            self._overflow(first, low | high << 16)
        elif flags & SUBDATA:
            root = _DB.unpack_from(self.data, at)[7]
            return [] if root == NO_PAGE else [root]
        return []

    def _overflow(self, first: int, size: int) -> None:
        count = -(-(size + 16) // self.size)
        if first + count > self.pages:
            self.problems.append(
                f"overflow page {first} lies beyond the end of the file: it is truncated"
            )
            return
        said, _, flags, _, _ = _PAGE.unpack_from(self.data, first * self.size)
        if said != first or not flags & OVERFLOW:
            self.problems.append(f"page {first} is not the overflow page that it should be")
