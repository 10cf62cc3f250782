"""Bytes of a record: header array, frame, body encoding. Layout and versions: docs/log-format.md.

A frame is self-delimiting, so that a record can be carved out of a damaged file:
    magic "EFr1" | header length u32 | body length u32 | salt 16 | record digest 32 | header | body
The body of a record whose place is not inline has length 0 in the frame; its salt is there all the same.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Any

from ..errors import Damaged, InputRefused
from ..events import (
    Basis,
    Cause,
    Channel,
    Group,
    Header,
    ItemFacts,
    Origin,
    PartFacts,
    PartKind,
    Place,
)
from ..events.shapes import is_list
from . import cbor
from .digests import DIGEST_BYTES, SALT_BYTES, UUID_BYTES, commitment, record_digest
from .limits import BODY_BYTES_MAX, HEADER_BYTES_MAX, KEY_BYTES_MAX, NAME_BYTES_MAX

FORMAT = 1
MAGIC = b"EFr1"
FRAME = struct.Struct(f">4sII{SALT_BYTES}s{DIGEST_BYTES}s")
COMPRESS_FROM = 512
"""Bodies below this many bytes are stored as they are."""


def encode_header(h: Header) -> bytes:
    """Canonical header bytes, decoded again before they are given out; refuses what is beyond the limits."""
    where = f"{h.kind} in {h.stream[:80]}"
    calls = [part.call_id or "" for part in h.item.parts] if h.item else []
    for what, text, most in (
        ("stream", h.stream, NAME_BYTES_MAX),
        ("key", h.key, KEY_BYTES_MAX),
        ("group", h.group.id if h.group else "", NAME_BYTES_MAX),
        ("reader", h.reader[0] if h.reader else "", NAME_BYTES_MAX),
        *(("call id", call, NAME_BYTES_MAX) for call in calls),
    ):
        if len(text.encode("utf-8", "surrogatepass")) > most:
            raise InputRefused(
                where=where,
                why=f"its {what} is longer than {most} bytes",
                remedy="Use a shorter one.",
            )
    data = cbor.encode(
        [
            FORMAT,
            h.kind,
            h.version,
            h.required,
            h.stream,
            h.seq,
            h.uuid,
            h.key,
            h.recorded_at,
            h.occurred_at,
            h.basis.value,
            h.channel.value,
            [h.origin.source, h.origin.line, h.origin.start, h.origin.end] if h.origin else None,
            [h.cause.stream, h.cause.seq] if h.cause else None,
            [h.group.id, h.group.inferred] if h.group else None,
            _item_value(h.item) if h.item else None,
            h.commitment,
            h.body_size,
            h.place.value,
            list(h.reader) if h.reader else None,
            h.encoding,
            h.prev_stream,
            h.prev_store,
        ],
        where=f"header of {h.kind}",
    )
    if len(data) > HEADER_BYTES_MAX:
        raise InputRefused(
            where=where,
            why=f"its header has {len(data)} bytes, more than {HEADER_BYTES_MAX}",
            remedy="Split the item.",
        )
    try:
        decode_header(data)
    except cbor.Malformed as fault:
        raise InputRefused(
            where=where,
            why=f"its header could not be read again: {fault}",
            remedy="Give each field a value of its type.",
        ) from None
    return data


def _item_value(item: ItemFacts) -> list[Any]:
    parts = [[p.kind.value, p.channel.value, p.call_id] for p in item.parts]
    return [item.role, parts, item.tokens, item.meter]


def decode_header(data: bytes, *, strict: bool = False) -> Header:
    """The header that `data` spells; raises cbor.Malformed when it is not one of this format.

    `strict` (a foreign store, a verify) also demands the canonical form; else bytes whose digest holds suffice.
    """
    v: Any = cbor.decode(data) if strict else cbor.decode_trusted(data)
    if not is_list(v) or len(v) != 23 or v[0] is True or v[0] != FORMAT:
        raise cbor.Malformed("not a header of format 1")
    try:
        fields: list[Any] = [
            *v[1:10],
            Basis(v[10]),
            Channel(v[11]),
            Origin(*_items(v[12], 4)) if v[12] is not None else None,
            Cause(*_items(v[13], 2)) if v[13] is not None else None,
            Group(*_items(v[14], 2)) if v[14] is not None else None,
            _item_facts(*_items(v[15], 4)) if v[15] is not None else None,
            v[16],
            v[17],
            Place(v[18]),
            tuple(_items(v[19], 2)) if v[19] is not None else None,
            *v[20:],
        ]
        header = Header(*fields)
    except (TypeError, ValueError) as fault:
        raise cbor.Malformed(f"a header field has a wrong form: {fault}") from None
    if not _well_typed(header):
        raise cbor.Malformed("a header field has a wrong type")
    return header


def _items(v: Any, count: int | None = None) -> list[Any]:
    if not is_list(v) or count not in (None, len(v)):
        raise TypeError(f"no list of {count or 'parts'}")
    return v


def _item_facts(role: Any, parts: Any, tokens: Any, meter: Any) -> ItemFacts:
    triples = [_items(part, 3) for part in _items(parts)]
    found = tuple(PartFacts(PartKind(k), Channel(c), call) for k, c, call in triples)
    return ItemFacts(role, found, tokens, meter)


def _well_typed(h: Header) -> bool:
    """What the annotations promise, of values that a stranger wrote."""
    texts: list[Any] = [h.kind, h.stream, h.key, h.encoding]
    counts: list[Any] = [h.version, h.seq, h.recorded_at, h.body_size]
    flags: list[Any] = [h.required]
    digests: list[Any] = [h.commitment, h.prev_stream, h.prev_store]
    uuid: Any = h.uuid
    occurred: Any = h.occurred_at
    if h.origin is not None:
        texts.append(h.origin.source)
        counts += [h.origin.line, h.origin.start, h.origin.end]
    if h.cause is not None:
        texts.append(h.cause.stream)
        counts.append(h.cause.seq)
    if h.group is not None:
        texts.append(h.group.id)
        flags.append(h.group.inferred)
    if h.item is not None:
        maybe = [h.item.meter, *(part.call_id for part in h.item.parts)]
        texts += [h.item.role, *(text for text in maybe if text is not None)]
        counts.append(0 if h.item.tokens is None else h.item.tokens)
    if h.reader is not None:
        texts.append(h.reader[0])
        counts.append(h.reader[1])
    return (
        all(type(t) is str for t in texts)
        and all(type(n) is int and n >= 0 for n in counts)
        and all(type(f) is bool for f in flags)
        and all(type(d) is bytes and len(d) == DIGEST_BYTES for d in digests)
        and type(uuid) is bytes
        and len(uuid) == UUID_BYTES
        and (occurred is None or type(occurred) is int)
    )


@dataclass(frozen=True, slots=True)
class Frame:
    """A stored record: raw header bytes (verified against the digest), salt, stored body bytes (may be empty)."""

    header_bytes: bytes
    header: Header
    salt: bytes
    digest: bytes
    body: bytes


def encode_frame(header_bytes: bytes, salt: bytes, body: bytes) -> bytes:
    """The frame of a record; `body` is empty when the record's place is not inline."""
    digest = record_digest(header_bytes)
    return FRAME.pack(MAGIC, len(header_bytes), len(body), salt, digest) + header_bytes + body


def decode_frame(data: bytes, *, where: str, strict: bool = False) -> Frame:
    """The record in `data`, its header digest checked and its header decoded; raises Damaged, naming `where`."""
    if len(data) < FRAME.size:
        raise Damaged(where=where, what="the frame is cut off")
    magic, header_size, body_size, salt, digest = FRAME.unpack_from(data)
    if magic != MAGIC or len(data) != FRAME.size + header_size + body_size:
        raise Damaged(where=where, what="the frame's magic or lengths are wrong")
    header_bytes = data[FRAME.size : FRAME.size + header_size]
    if record_digest(header_bytes) != digest:
        raise Damaged(where=where, what="the header does not match its digest")
    try:
        header = decode_header(header_bytes, strict=strict)
    except cbor.Malformed as fault:
        raise Damaged(where=where, what=f"the header cannot be read: {fault}") from None
    return Frame(header_bytes, header, salt, digest, data[FRAME.size + header_size :])


def pack_body(plain: bytes, *, where: str) -> tuple[str, bytes]:
    """(encoding, stored bytes): compressed when that saves at least an eighth."""
    if len(plain) > BODY_BYTES_MAX:
        raise InputRefused(
            where=where,
            why=f"its body has {len(plain)} bytes, more than {BODY_BYTES_MAX}",
            remedy="Split it, or store a reference to it.",
        )
    if len(plain) >= COMPRESS_FROM:
        packed = zlib.compress(plain, 6)
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
