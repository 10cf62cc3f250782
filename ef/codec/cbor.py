"""Strict canonical CBOR: no tags, no floats, no duplicate keys, no trailing bytes, bounded depth.

`encode` refuses what `decode` would refuse, so no event can be written that can never be read (the CBOR
library itself encodes a nesting that it will not decode). Maps have text keys in canonical order
(RFC 8949 4.2.3, length first), so equal values have equal bytes.
"""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import cbor2

from ..errors import InputRefused
from .limits import DEPTH_MAX, INT_MAX, INT_MIN


class Malformed(ValueError):
    """Bytes that are not strict canonical CBOR; the message says what is wrong."""


_TYPES: tuple[type[Any], ...] = (str, int, bool, bytes, list, tuple, dict)


def _check(value: Any, depth: int) -> bool:
    """Whether a value holds a map; raises Malformed for one that is not to be stored."""
    if depth > DEPTH_MAX:
        raise Malformed(f"nesting deeper than {DEPTH_MAX}")
    if value is None:
        return False
    kind: Any = value.__class__
    if kind not in _TYPES:
        kind = next((base for base in _TYPES if isinstance(value, base)), kind)
    if kind is list or kind is tuple:
        return _check_list(value, depth + 1)
    if kind is dict:
        for key, each in cast("dict[object, Any]", value).items():
            if not isinstance(key, str):
                raise Malformed(f"a map key of type {type(key).__name__}")
            _check_text(key)
            _check(each, depth + 1)
        return True
    if kind is str:
        _check_text(value)
    elif kind is int:
        if not INT_MIN <= value <= INT_MAX:
            raise Malformed("an integer outside 64 bits")
    elif kind is not bool and kind is not bytes:
        raise Malformed(f"a value of type {kind.__name__}")
    return False


def _check_list(values: Any, depth: int) -> bool:
    """`_check` of each value, without a call for what most of them are."""
    maps = False
    for each in values:
        kind = each.__class__
        plain = (
            each.isascii() if kind is str
            else INT_MIN <= each <= INT_MAX if kind is int
            else each is None or kind is bool
        )  # fmt: skip
        if not plain or depth > DEPTH_MAX:
            maps = _check(each, depth) or maps
    return maps


def _check_text(text: str) -> None:
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise Malformed("text with a lone surrogate") from None


def encode(value: Any, *, where: str = "value", ordered: bool = False) -> bytes:
    """The canonical bytes of `value` (None, bool, int, str, bytes, list, tuple, dict with text keys).

    `ordered`: the keys of its maps stand in canonical order already, which saves most of the time that maps take.
    Raises InputRefused, naming `where`, for floats, sets, lone surrogates, integers beyond 64 bits, other
    types and nesting beyond DEPTH_MAX.
    """
    try:
        maps = _check(value, 1)
    except Malformed as fault:
        raise InputRefused(
            where=where,
            why=f"it cannot be stored: {fault}",
            remedy="Use null, booleans, 64-bit integers, text, lists and maps with text keys.",
        ) from None
    return cbor2.dumps(value, canonical=maps and not ordered)


def dumps(value: Any) -> bytes:
    """The canonical bytes of a value without maps, whose types are right; raises ValueError for a lone surrogate."""
    return cbor2.dumps(value)


def key_order(key: str) -> tuple[int, bytes]:
    """By this the keys of a map are ordered: the length of a key in bytes, then its bytes."""
    data = key.encode("utf-8", "surrogatepass")
    return len(data), data


def _refuse(*_: Any) -> Any:
    raise Malformed("a CBOR tag")


_TAGS = (*range(6), 25, 28, 29, 30, 35, 36, 37, 52, 54, 100, 256, 258, 260, 261, 1004, 43000, 55799)
_NO_TAGS: dict[int, Any] = dict.fromkeys(_TAGS, _refuse)
"""The library revives these tags (regular expressions, decimals, shared references …) unless told otherwise."""


_loads = partial(
    cbor2.loads,
    max_depth=DEPTH_MAX,
    allow_indefinite=False,
    allow_duplicate_keys=False,
    strict_hashable_types=True,
    tag_hook=_refuse,
    semantic_decoders=_NO_TAGS,
)


def decode_trusted(data: bytes) -> Any:
    """The value of bytes whose digest holds; no tag is revived. Raises Malformed. Form is not checked again."""
    try:
        return _loads(data)
    except Exception as fault:
        if isinstance(fault.__cause__, Malformed):
            raise fault.__cause__ from None
        raise Malformed(f"not CBOR: {type(fault).__name__}") from None


def decode(data: bytes) -> Any:
    """The value of `data`; raises Malformed unless it is exactly what `encode` writes for that value."""
    value = decode_trusted(data)
    if shortest(value) != len(data):
        raise Malformed("not canonical, or with trailing bytes")
    return value


def shortest(value: Any, depth: int = 1) -> int:
    """How many bytes `encode` writes for a decoded value; raises Malformed where it would refuse, or order a map anew.

    Without tags, floats and indefinite lengths, which no decoded value holds, each value has one shortest form and
    every other one is longer (RFC 8949 4.2.1): bytes of this length are the canonical ones.
    """
    kind: Any = value.__class__
    if kind is str:
        size = len(value) if value.isascii() else len(value.encode())
        return size + _head(size)
    if kind is int:
        if value < INT_MIN:
            raise Malformed("an integer outside 64 bits")
        return _head(value if value >= 0 else -1 - value)
    if kind is bytes:
        return len(value) + _head(len(value))
    if value is None or kind is bool:
        return 1
    if depth == DEPTH_MAX and value:
        raise Malformed(f"nesting deeper than {DEPTH_MAX}")
    if kind is list:
        return _head(len(value)) + sum([shortest(each, depth + 1) for each in value])
    if kind is dict:
        return _head(len(value)) + _entries(value, depth + 1)
    raise Malformed(f"a value of type {kind.__name__}")


def _entries(value: dict[Any, Any], depth: int) -> int:
    size, before = 0, (-1, b"")
    for key, each in value.items():
        if type(key) is not str:
            raise Malformed(f"a map key of type {type(key).__name__}")
        here = key_order(key)
        if here <= before:
            raise Malformed("the keys of a map are out of order")
        before = here
        size += here[0] + _head(here[0]) + shortest(each, depth)
    return size


def _head(n: int) -> int:
    """Bytes of the shortest head that says `n`."""
    return 1 if n < 24 else 2 if n < 0x100 else 3 if n < 0x10000 else 5 if n < 0x100000000 else 9
