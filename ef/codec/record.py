"""Bytes of a record: header array, frame, body encoding. Layout and versions: docs/log-format.md.

A frame is self-delimiting, so that a record can be carved out of a damaged file:
    magic "EFr1" | header length u32 | body length u32 | salt 16 | record digest 32 | header | body
The body of a record whose place is not inline has length 0 in the frame; its salt is there all the same.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from blake3 import blake3

from ..errors import Damaged, InputRefused
from ..events import Header
from ..events.quick import quick
from . import cbor
from .digests import DIGEST_BYTES, SALT_BYTES, commitment, record_digest
from .header import FORMAT as FORMAT
from .header import decode_header as decode_header
from .header import encode_header as encode_header
from .limits import BODY_BYTES_MAX

MAGIC = b"EFr1"
FRAME = struct.Struct(f">4sII{SALT_BYTES}s{DIGEST_BYTES}s")
COMPRESS_FROM = 512
"""Bodies below this many bytes are stored as they are."""

LEVEL, LEVEL_KEPT = 1, 3
"""zlib's: of a body that somebody waits for, and of source lines, which are many and written once. Readers take any.

On recorded transcripts 3 takes less time than 1 and saves a tenth more; 6 saves another tenth and takes twice the time.
"""


@quick
@dataclass(frozen=True, slots=True)
class Frame:
    """A stored record: raw header bytes (verified against the digest), salt, stored body bytes (may be empty)."""

    header_bytes: bytes
    header: Header
    salt: bytes
    digest: bytes
    body: bytes


_EMPTY = FRAME.size


class NoFrame(Exception):
    """Bytes that are no sound frame; the message says what is wrong. Who reads them knows where they stand."""


def encode_frame(
    header_bytes: bytes, salt: bytes, body: bytes, *, digest: bytes | None = None
) -> bytes:
    """The frame of a record; `body` is empty when its place is not inline. `digest`: the record's, when it is known."""
    digest = digest or record_digest(header_bytes)
    return FRAME.pack(MAGIC, len(header_bytes), len(body), salt, digest) + header_bytes + body


def decode_frame(data: bytes, *, where: str, strict: bool = False) -> Frame:
    """The record in `data`, its header digest checked and its header decoded; raises Damaged, naming `where`."""
    try:
        return frame_of(data, strict=strict)
    except NoFrame as fault:
        raise Damaged(where=where, what=str(fault)) from None


def frame_of(data: bytes, *, strict: bool = False) -> Frame:
    """The record in `data`, as `decode_frame` gives it; raises NoFrame."""
    if len(data) < _EMPTY:
        raise NoFrame("the frame is cut off")
    magic, header_size, body_size, salt, digest = FRAME.unpack_from(data)
    end = _EMPTY + header_size
    if magic != MAGIC or len(data) != end + body_size:
        raise NoFrame("the frame's magic or lengths are wrong")
    header_bytes = data[_EMPTY:end]
    if blake3(header_bytes).digest() != digest:
        raise NoFrame("the header does not match its digest")
    try:
        header = decode_header(header_bytes, strict=strict)
    except cbor.Malformed as fault:
        raise NoFrame(f"the header cannot be read: {fault}") from None
    return Frame(header_bytes, header, salt, digest, data[end:])


def pack_body(plain: bytes, *, where: str, level: int = LEVEL) -> tuple[str, bytes]:
    """(encoding, stored bytes): compressed when that saves at least an eighth."""
    if len(plain) > BODY_BYTES_MAX:
        raise InputRefused(
            where=where,
            why=f"its body has {len(plain)} bytes, more than {BODY_BYTES_MAX}",
            remedy="Split it, or store a reference to it.",
        )
    if len(plain) >= COMPRESS_FROM:
        packed = zlib.compress(plain, level)
        if len(packed) * 8 <= len(plain) * 7:
            return "zlib", packed
    return "none", plain


def unpack_body(h: Header, salt: bytes, stored: bytes, *, where: str) -> bytes:
    """The plain body, its commitment checked; raises Damaged."""
    if commitment(salt, stored) != h.commitment:
        raise Damaged(where=where, what="the body does not match its commitment")
    if h.encoding == "none":
        plain = stored
    elif h.encoding == "zlib":
        plain = _inflate(stored, h.body_size, where)
    else:
        raise Damaged(where=where, what=f"body encoding {h.encoding!r} is not known")
    if len(plain) != h.body_size:
        raise Damaged(where=where, what=f"the body has {len(plain)} bytes, not {h.body_size}")
    return plain


def _inflate(stored: bytes, size: int, where: str) -> bytes:
    """Never makes more than `size` + 1 bytes: a foreign store may hold a decompression bomb."""
    try:
        inflater = zlib.decompressobj()
        plain = inflater.decompress(stored, size + 1)
    except zlib.error as fault:
        raise Damaged(where=where, what=f"the body does not decompress: {fault}") from None
    if not inflater.eof or inflater.unused_data:
        raise Damaged(where=where, what="the compressed body has a wrong length")
    return plain
