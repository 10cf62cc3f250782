"""Digests and chain of a log, from as few bytes as that takes: what a quick check does with nearly every record.

The common record, sound and where it should be, is seen to be so by comparing its bytes with those that are due. Of
any other nothing is said here: whoever asked looks at all of it.
"""

from __future__ import annotations

import struct

from blake3 import blake3

from ..codec.chain import DIGEST, link_of, seq_bytes
from ..codec.digests import ZERO
from ..codec.limits import HEADER_BYTES_MAX
from ..codec.record import FRAME, MAGIC
from .pages import Entry, Leaf
from .rows import U64

FRAME_HEAD_MAX = FRAME.size + HEADER_BYTES_MAX
_NODE = struct.Struct("<HHHH")
_KEY_SIZE = U64.size
_HEAD = _NODE.size + _KEY_SIZE
_ANY_SIZE = 1 << 40
_HEADER_MIN = 128
_KIND = slice(2, 10)
"""Tells the kinds of headers apart, well enough."""

_PREV_STREAM = slice(-2 * len(DIGEST + ZERO), -len(DIGEST + ZERO))
_NO_STREAM = (b"\xff", "")
"""No header begins so."""

NO_TIP = (0, ZERO)
Tips = dict[str, tuple[int, bytes]]
"""Of each stream the seq and the digest of its last record."""


class Chain:
    """Where both chains stand: the next position, the digest before it, and the streams' tips."""

    def __init__(self) -> None:
        self.next = 0
        self.digest = ZERO
        """Of the record before; empty where that is not known."""

        self.tips: Tips = {}
        self._begins: dict[bytes, tuple[bytes, str]] = {}

    def entry(self, entry: Entry) -> bool:
        """Take the chain on over one row, whose body need not be all there, when it is a common one; else False."""
        size, key = entry.size, entry.key
        node = _NODE.pack(size & 0xFFFF, size >> 16, 0, len(key))
        return self.leaf(Leaf(0, node + key + entry.value, 0, 0, (0,)), 0, _ANY_SIZE) == 1

    def leaf(self, leaf: Leaf, first: int, page_size: int) -> int:
        """Take the chain on over the common records of a leaf from its `first` entry on: how many those are."""
        _, block, base, lower, offsets = leaf
        node, frame, head_size, frame_size = _NODE.unpack_from, FRAME.unpack_from, _HEAD, FRAME.size
        begins, tips, before = self._begins, self.tips, self.digest
        if not before:
            return 0
        last, position, least = page_size - head_size, self.next, frame_size + _HEADER_MIN
        for offset in offsets[first:]:
            if not lower <= offset <= last:
                break
            at = base + offset
            low, high, flags, key_size = node(block, at)
            size = low | high << 16
            start = at + head_size
            if (
                flags
                or key_size != _KEY_SIZE
                or size < least
                or offset + size > last
                or block[at + 8 : start] != position.to_bytes(8, "big")
            ):
                break
            magic, header_size, body_size, _, digest = frame(block, start)
            start += frame_size
            h = block[start : start + header_size]
            if (
                magic != MAGIC
                or size != frame_size + header_size + body_size
                or header_size < _HEADER_MIN
                or blake3(h).digest() != digest
                or not h.endswith(DIGEST + before)
            ):
                break
            begin, stream = begins.get(h[_KIND], _NO_STREAM)
            seq, own = tips.get(stream, NO_TIP)
            if not h.startswith(begin + seq_bytes(seq + 1)):
                link = link_of(h)
                if link is None:
                    break
                stream = str(link.stream, "ascii")
                seq, own = tips.get(stream, NO_TIP)
                if link.seq != seq + 1:
                    break
                begins[h[_KIND]] = h[: link.seq_at], stream
            if h[_PREV_STREAM] != DIGEST + own:
                break
            tips[stream] = (seq + 1, digest)
            before = digest
            position += 1
        done, self.next, self.digest = position - self.next, position, before
        return done
