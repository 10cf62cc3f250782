"""The trees of data.mdb, read in plain Python: what liblmdb would die of is an exception here.

Layout: see databytes.py. What is read is the newest transaction as it was when the file was opened; its pages stay as
they are for as long as nobody commits, or a reader of LMDB that began before holds them.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from ..errors import Damaged
from .databytes import (
    BIGDATA,
    BRANCH,
    LEAF,
    LEAF2,
    METAS_BYTES,
    NO_PAGE,
    OVERFLOW,
    Blocks,
    live,
    metas,
)

_PAGE = struct.Struct("<QHHHH")
_NODE = struct.Struct("<HHHH")
_ROOT_AT = 40
"""Where the root stands in the description of a database."""

_FLAGS = slice(4, 6)
"""Where its flags stand there."""

_GREATEST = b"\xff" * 512
"""Greater than any key: LMDB's have 511 bytes at the most."""

Fault = Callable[[Damaged], None]
"""Takes what is wrong with a page; the walk goes on without it."""


class Entry(NamedTuple):
    """An entry of a database, the pages that hold it (its leaf, then overflow pages), and its value's whole size."""

    key: bytes
    value: bytes
    pages: tuple[int, ...]
    size: int


class Leaf(NamedTuple):
    """A leaf page: a block that holds it, where in that it begins, and where in the page its entries say they begin.

    An entry that begins before `lower` does not lie where entries may.
    """

    number: int
    block: bytes
    base: int
    lower: int
    offsets: tuple[int, ...]


class DataFile:
    """The data file of a store, opened for reading. Close it, or use it as a context manager. Raises Damaged."""

    def __init__(self, path: Path) -> None:
        self._where = str(path)
        self.handle = os.open(path, os.O_RDONLY)
        meta = live(metas(os.pread(self.handle, METAS_BYTES, 0)))
        if meta is None:
            os.close(self.handle)
            raise Damaged(where=self._where, what="no meta page of the data file can be read")
        self.meta, self.page_size = meta, meta.page_size
        self._size = os.fstat(self.handle).st_size
        self._at = Blocks(self.handle, self.page_size).at

    def close(self) -> None:
        """Close the file."""
        os.close(self.handle)

    def __enter__(self) -> DataFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _bad(self, page: int, what: str) -> Damaged:
        return Damaged(where=f"{self._where}, page {page}", what=what)

    def roots(
        self,
        fault: Fault | None = None,
        seen: set[int] | None = None,
        strict: Collection[bytes] = (),
    ) -> dict[bytes, int]:
        """The root page of each named database; NO_PAGE for an empty one. Those named in `strict` have no flags, by
        which liblmdb would look for their keys in another order."""
        found: dict[bytes, int] = {}
        for entry in self.entries(self.meta.roots[1], fault=fault, seen=seen):
            if len(entry.value) == _ROOT_AT + 8:
                found[entry.key] = struct.unpack_from("<Q", entry.value, _ROOT_AT)[0]
                if entry.key in strict and any(entry.value[_FLAGS]):
                    what = (
                        f"the database {entry.key.decode()} has flags {entry.value[_FLAGS].hex()}"
                    )
                    (fault or _raise)(self._bad(entry.pages[0], what))
        return found

    def entries(
        self,
        root: int,
        first: bytes = b"",
        *,
        fault: Fault | None = None,
        seen: set[int] | None = None,
        most: int | None = None,
        strict: bool = False,
    ) -> Iterator[Entry]:
        """Entries of a database in key order, from key `first` on.

        A page that cannot be read is raised, or given to `fault` and left out with what is below it. `seen` gathers
        the pages that were met, of several trees if it is shared. Of values on pages of their own at most the first
        `most` bytes are read. `strict`: what would lead liblmdb astray on its way to a key is a fault too, and what
        can be read is given all the same.
        """
        raised: Fault = fault or _raise
        for leaf in self.leaves(root, first, fault=raised, seen=seen, strict=strict):
            for entry in self.entries_at(leaf, leaf.offsets, raised, seen, most, strict):
                if entry.key >= first:
                    yield entry

    def rows(
        self, root: int, sizes: tuple[int, int], *, fault: Fault, seen: set[int]
    ) -> Iterator[list[bytes]]:
        """Key and value of each entry as one, a list for each leaf; the entries should have these two sizes.

        An entry of other sizes is b"", which no entry of theirs is. It is strict; see `entries`.
        """
        head, length = _NODE.pack(sizes[1], 0, 0, sizes[0]), sum(sizes)
        last = self.page_size - 8 - length
        for leaf in self.leaves(root, fault=fault, seen=seen, strict=True):
            number, block, base, lower, offsets = leaf
            found: list[bytes] = []
            for offset in offsets:
                if lower <= offset <= last and block.startswith(head, base + offset):
                    at = base + offset + 8
                    found.append(block[at : at + length])
                else:
                    some = self.entries_at(leaf, (offset,), fault, seen, None, True)
                    found += [b"" for _ in some]
            if found != sorted(found):
                fault(self._bad(number, "its keys are out of order"))
            yield found

    def leaf(self, number: int, fault: Fault) -> Iterator[Entry]:
        """Entries of a page, if it is a leaf at all, whether or not a tree leads to it."""
        try:
            flags, block, base = self._page(number, LEAF, set())
        except Damaged as damage:
            fault(damage)
            return
        if not flags & LEAF2:
            leaf = Leaf(number, block, base, *self._offsets(number, block, base, fault))
            yield from self.entries_at(leaf, leaf.offsets, fault, None, None)

    def entries_at(
        self,
        leaf: Leaf,
        offsets: tuple[int, ...],
        fault: Fault,
        seen: set[int] | None,
        most: int | None,
        strict: bool = False,
    ) -> Iterator[Entry]:
        """The entries of a leaf at some of its offsets. See `entries`."""
        number, block, base, lower, _ = leaf
        own, size = (number,), self.page_size
        unpack = _NODE.unpack_from
        for offset in offsets:
            if not lower <= offset <= size - 8:
                fault(self._bad(number, f"its entry at {offset} does not lie in it"))
                continue
            low, high, flags, key_size = unpack(block, base + offset)
            at = offset + 8 + key_size
            start, length = base + at, low | high << 16
            if strict and flags & ~BIGDATA:
                fault(self._bad(number, f"its entry at {offset} has flags {flags:#x}"))
            if not flags & BIGDATA and at + length <= size:
                value = block[start : start + length]
                yield Entry(block[start - key_size : start], value, own, length)
            elif flags & BIGDATA and at + 8 <= size:
                try:
                    (page,) = struct.unpack_from("<Q", block, start)
                    value, pages = self._overflow(page, length, seen, most)
                except Damaged as damage:
                    fault(damage)
                    continue
                yield Entry(block[start - key_size : start], value, own + pages, length)
            else:
                fault(self._bad(number, f"its entry at {offset} does not lie in it"))

    def last(self, root: int) -> Entry | None:
        """The entry with the greatest key."""
        keys = [b""]
        for number, block, base, _, _ in self.leaves(root, _GREATEST, fault=_raise):
            keys += [key for key, _ in self._keys(number, block, base, _raise)]
        return next(self.entries(root, keys[-1]), None)

    def leaves(
        self,
        root: int,
        first: bytes = b"",
        *,
        fault: Fault,
        seen: set[int] | None = None,
        strict: bool = False,
    ) -> Iterator[Leaf]:
        """Leaves in key order, from the one where `first` would be. See `entries`."""
        seen = set() if seen is None else seen
        stack = [] if root == NO_PAGE else [(root, bool(first), b"", _GREATEST)]
        while stack:
            number, edge, low, high = stack.pop()
            try:
                flags, block, base = self._page(number, BRANCH | LEAF, seen)
            except Damaged as damage:
                fault(damage)
                continue
            if flags & LEAF:
                if not flags & LEAF2:
                    leaf = Leaf(number, block, base, *self._offsets(number, block, base, fault))
                    if strict and not all(low <= key < high for key in self._ends(leaf)):
                        fault(self._bad(number, "the way to it is not that of its keys"))
                    yield leaf
                continue
            below = list(self._keys(number, block, base, fault))
            skip = bisect_right([key for key, _ in below[1:]], first) if edge else 0
            bounds = [low, *(key for key, _ in below[1:]), high]
            children = [
                (page, edge and n == skip, bounds[n], bounds[n + 1])
                for n, (_, page) in enumerate(below)
            ]
            stack += reversed(children[skip:])

    def _ends(self, leaf: Leaf) -> Iterator[bytes]:
        """The first and the last key of a leaf, where they can be read."""
        _, block, base, _, offsets = leaf
        for offset in offsets[:1] + offsets[-1:]:
            if offset <= self.page_size - 8:
                at = base + offset + 8
                yield block[at : at + int.from_bytes(block[at - 2 : at], "little")]

    def _page(self, number: int, kind: int, seen: set[int]) -> tuple[int, bytes, int]:
        """Flags, block and place of a page of one of these kinds (flags)."""
        if number in seen:
            raise self._bad(number, "it is reached twice")
        seen.add(number)
        if number >= 1 << 48:
            raise self._bad(number, "no file has such a page")
        block, base = self._at(number)
        if base + self.page_size > len(block):
            raise self._bad(number, "it lies beyond the end of the file: it is truncated")
        said, _, flags, _, _ = _PAGE.unpack_from(block, base)
        if said != number or not flags & kind:
            raise self._bad(number, f"it says that it is page {said} with flags {flags:#x}")
        return flags, block, base

    def _offsets(
        self, number: int, block: bytes, base: int, fault: Fault
    ) -> tuple[int, tuple[int, ...]]:
        """Where the nodes of a page may begin at the least, and where they say that they do."""
        _, _, _, lower, _ = _PAGE.unpack_from(block, base)
        if not 16 <= lower <= self.page_size:
            fault(self._bad(number, f"its nodes end at {lower}"))
            return lower, ()
        return lower, struct.unpack_from(f"<{(lower - 16) // 2}H", block, base + 16)

    def _keys(
        self, number: int, block: bytes, base: int, fault: Fault
    ) -> Iterator[tuple[bytes, int]]:
        """The nodes of a page that lie in it: the key, and the three numbers of the node's head as one."""
        lower, offsets = self._offsets(number, block, base, fault)
        for offset in offsets:
            if lower <= offset <= self.page_size - 8:
                low, high, flags, key_size = _NODE.unpack_from(block, base + offset)
                start = base + offset + 8
                if offset + 8 + key_size <= self.page_size:
                    yield block[start : start + key_size], low | high << 16 | flags << 32
                    continue
            fault(self._bad(number, f"its entry at {offset} does not lie in it"))

    def _overflow(
        self, first: int, size: int, seen: set[int] | None, most: int | None
    ) -> tuple[bytes, tuple[int, ...]]:
        """A value on pages of its own, or its first bytes, and those pages."""
        _, block, base = self._page(first, OVERFLOW, set() if seen is None else seen)
        if first * self.page_size + 16 + size > self._size:
            raise self._bad(first, "it lies beyond the end of the file: it is truncated")
        wanted = size if most is None else min(size, most)
        value = block[base + 16 : base + 16 + wanted]
        if len(value) < wanted:
            value = os.pread(self.handle, wanted, first * self.page_size + 16)
        return value, tuple(range(first, first + -(-(size + 16) // self.page_size)))


def _raise(damage: Damaged) -> None:
    raise damage


def last_position(path: Path) -> int | None:
    """The position of the newest record, as the data file alone says it; None when that cannot be read."""
    try:
        with DataFile(path) as file:
            found = file.last(file.roots().get(b"log", NO_PAGE))
    except (Damaged, OSError):
        return None
    return int.from_bytes(found.key, "big") if found else None
