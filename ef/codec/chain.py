"""What the chain needs of a header, read straight from its bytes: a partial decode for who looks at a million of them.

Only the common forms are read here; where a header has another one the answer is None, and all of it must be decoded.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

HEAD = b"\x97\x01"
"""An array of 23 values, the first of which is the format, 1."""

DIGEST = b"\x58\x20"
"""Before 32 bytes."""

_TEXT, _UUID = 0x60, 0x50
_SEQ_OF_2, _SEQ_OF_4, _SEQ_OF_8 = (struct.Struct(form).pack for form in (">BHB", ">BIB", ">BQB"))


class Link(NamedTuple):
    """Kind and stream in ASCII, seq, and the digests of the records before this one in its stream and its store.

    `seq_at`: where in the header the seq begins.
    """

    kind: bytes
    stream: bytes
    seq: int
    prev_stream: bytes
    prev_store: bytes
    seq_at: int


def link_of(h: bytes) -> Link | None:
    """The link of a header whose digest holds; None when its first or last fields have forms that are not common."""
    if len(h) < 128 or h[:2] != HEAD or h[-68:-66] != DIGEST or h[-34:-32] != DIGEST:
        return None
    at = h[2] - _TEXT + 3
    if not 3 < at < 27 or h[at] > 23 or h[at + 1] & 0xFE != 0xF4:
        return None
    kind, size = h[3:at], h[at + 2] - _TEXT
    at += 3
    if size == 24:
        size = h[at]
        at += 1
    elif not 0 < size < 24:
        return None
    stream = h[at : at + size]
    at += size
    if not stream.isascii():
        return None
    seq_at = at
    seq = h[at] if at + 9 < len(h) else 32
    if 23 < seq < 28:
        more = at + 1 + (1 << (seq - 24))
        seq = int.from_bytes(h[at + 1 : more], "big")
        at = more
    elif seq < 24:
        at += 1
    else:
        return None
    if h[at] != _UUID:
        return None
    return Link(kind, stream, seq, h[-66:-34], h[-32:], seq_at)


def seq_bytes(seq: int) -> bytes:
    """A seq in its shortest form, and the head of the uuid that stands behind it in a header."""
    if seq < 24:
        return bytes((seq, _UUID))
    if seq < 1 << 8:
        return bytes((0x18, seq, _UUID))
    if seq < 1 << 16:
        return _SEQ_OF_2(0x19, seq, _UUID)
    if seq < 1 << 32:
        return _SEQ_OF_4(0x1A, seq, _UUID)
    return _SEQ_OF_8(0x1B, seq, _UUID)
