"""Strict canonical CBOR: no tags, no floats, no duplicate keys, no trailing bytes, bounded depth.

`encode` refuses what `decode` would refuse, so no event can be written that can never be read (the CBOR
library itself encodes a nesting that it will not decode). Maps have text keys in canonical order
(RFC 8949 4.2.3, length first), so equal values have equal bytes.
"""

from __future__ import annotations

from typing import Any, cast

import cbor2

from ..errors import InputRefused
from .limits import DEPTH_MAX, INT_MAX, INT_MIN


class Malformed(ValueError):
    """Bytes that are not strict canonical CBOR; the message says what is wrong."""


def _check(value: Any, depth: int) -> None:
    if depth > DEPTH_MAX:
        raise Malformed(f"nesting deeper than {DEPTH_MAX}")
    if value is None or isinstance(value, (bool, bytes)):
        return
    if isinstance(value, str):
        if not value.isascii():
            try:
                value.encode("utf-8")
            except UnicodeEncodeError:
                raise Malformed("text with a lone surrogate") from None
    elif isinstance(value, int):
        if not INT_MIN <= value <= INT_MAX:
            raise Malformed("an integer outside 64 bits")
    elif isinstance(value, (list, tuple)):
        for each in cast("tuple[Any, ...]", value):
            _check(each, depth + 1)
    elif isinstance(value, dict):
        for key, each in cast("dict[object, Any]", value).items():
            if not isinstance(key, str):
                raise Malformed(f"a map key of type {type(key).__name__}")
            _check(key, depth + 1)
            _check(each, depth + 1)
    else:
        raise Malformed(f"a value of type {type(value).__name__}")


def encode(value: Any, *, where: str = "value") -> bytes:
    """The canonical bytes of `value` (None, bool, int, str, bytes, list, tuple, dict with text keys).

    Raises InputRefused, naming `where`, for floats, sets, lone surrogates, integers beyond 64 bits, other
    types and nesting beyond DEPTH_MAX.
    """
    try:
        _check(value, 1)
    except Malformed as fault:
        raise InputRefused(
            where=where,
            why=f"it cannot be stored: {fault}",
            remedy="Use null, booleans, 64-bit integers, text, lists and maps with text keys.",
        ) from None
    return cbor2.dumps(value, canonical=True)


def _refuse(*_: Any) -> Any:
    raise Malformed("a CBOR tag")


_TAGS = (*range(6), 25, 28, 29, 30, 35, 36, 37, 52, 54, 100, 256, 258, 260, 261, 1004, 43000, 55799)
_NO_TAGS: dict[int, Any] = dict.fromkeys(_TAGS, _refuse)
"""The library revives these tags (regular expressions, decimals, shared references …) unless told otherwise."""


def decode_trusted(data: bytes) -> Any:
    """The value of bytes whose digest holds; no tag is revived. Raises Malformed. Form is not checked again."""
    try:
        return cbor2.loads(
            data,
            max_depth=DEPTH_MAX,
            allow_indefinite=False,
            allow_duplicate_keys=False,
            strict_hashable_types=True,
            tag_hook=_refuse,
            semantic_decoders=_NO_TAGS,
        )
    except Exception as fault:
        if isinstance(fault.__cause__, Malformed):
            raise fault.__cause__ from None
        raise Malformed(f"not CBOR: {type(fault).__name__}") from None


def decode(data: bytes) -> Any:
    """The value of `data`; raises Malformed unless it is exactly what `encode` writes for that value."""
    value = decode_trusted(data)
    _check(value, 1)
    if cbor2.dumps(value, canonical=True) != data:
        raise Malformed("not canonical, or with trailing bytes")
    return value
