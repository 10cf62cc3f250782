"""Digests: blake3 over stored bytes, never over a re-encoding.

record digest = blake3(header bytes).  body commitment = blake3(salt || stored body bytes).
uuid of an event = first 16 bytes of blake3 over stream and idempotency key, with the version bits of a UUIDv8.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from blake3 import blake3

from .cbor import encode

SALT_BYTES = 16
UUID_BYTES = 16
DIGEST_BYTES = 32
ZERO = bytes(DIGEST_BYTES)
"""The previous digest of a first record that continues nothing."""


def record_digest(header: bytes) -> bytes:
    """The digest of a record: blake3 of its header bytes as stored (32 bytes)."""
    return blake3(header).digest()


def commitment(salt: bytes, body: bytes) -> bytes:
    """The commitment to a body: blake3(salt || stored body bytes) (32 bytes)."""
    if len(body) < 1 << 16:
        return blake3(salt + body).digest()
    return blake3(salt).update(body).digest()  # without a copy of it


def value_digest(value: Any) -> bytes:
    """blake3 of the canonical bytes of a value: state digests, context digests."""
    return blake3(encode(value)).digest()


_TEXT_HEADS = [bytes([0x60 + n]) if n < 24 else bytes([0x78, n]) for n in range(256)]
"""What stands before a text of n bytes in canonical CBOR."""


def event_uuid(stream: str, key: str) -> bytes:
    """16 bytes that name an event, made from its stream and its idempotency key (UUIDv8 layout, RFC 9562)."""
    if len(stream) < 256 > len(key) and stream.isascii() and key.isascii():
        # What `encode` gives, for the names that nearly all events have.
        data = b"\x82%b%b%b%b" % (
            _TEXT_HEADS[len(stream)], stream.encode(), _TEXT_HEADS[len(key)], key.encode(),
        )  # fmt: skip
    else:
        data = encode([stream, key])
    raw = bytearray(blake3(data).digest(UUID_BYTES))
    raw[6] = (raw[6] & 0x0F) | 0x80
    raw[8] = (raw[8] & 0x3F) | 0x80
    return bytes(raw)


recent_uuid = lru_cache(maxsize=64)(event_uuid)
"""`event_uuid` for an append, which asks twice: it looks the key up, and then it writes it."""


def anchor_id(stream: str, kind: str, key: str, ground: list[Any], rule: list[Any]) -> str:
    """The id of an anchor, from what makes it the same: `ground` is [item key, part, start, end] per source."""
    return "an:" + blake3(encode([stream, kind, key, ground, rule])).hexdigest()[:24]


def short_name(text: str) -> str:
    """A bounded stand-in for a provider id that is too long or not valid text."""
    return "h:" + blake3(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
