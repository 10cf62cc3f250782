"""A header and its CBOR array: one look at all types, then no call for a field that needs none.

A replay decodes each header once, so this is the innermost loop of every rebuild and of every verify.
"""

from __future__ import annotations

from itertools import product
from types import NoneType
from typing import Any

from ..errors import InputRefused
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
from . import cbor
from .digests import DIGEST_BYTES, UUID_BYTES
from .limits import HEADER_BYTES_MAX, INT_MIN, KEY_BYTES_MAX, NAME_BYTES_MAX

FORMAT = 1
_BASES = {each.value: each for each in Basis}
_CHANNELS = {each.value: each for each in Channel}
_PLACES = {each.value: each for each in Place}
_PARTS = {each.value: each for each in PartKind}
_SILENT_PARTS = {(p.value, c.value): PartFacts(p, c) for p, c in product(PartKind, Channel)}
"""Parts without a call id: there are few, and equal ones are one object."""

_LIST = (list, NoneType)
_SHAPES = frozenset(
    product(
        (int,), (str,), (int,), (bool,), (str,), (int,), (bytes,), (str,), (int,), (int, NoneType), (str,), (str,),
        _LIST, _LIST, _LIST, _LIST, (bytes,), (int,), (str,), _LIST, (str,), (bytes,), (bytes,),
    )
)  # fmt: skip
"""The tuples of types that the array of a header may have."""


def encode_header(h: Header) -> bytes:
    """Canonical header bytes, decoded again before they are given out; refuses what is beyond the limits."""
    _refuse_long_names(h)
    value = [
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
        h.basis._value_,
        h.channel._value_,
        [h.origin.source, h.origin.line, h.origin.start, h.origin.end] if h.origin else None,
        [h.cause.stream, h.cause.seq] if h.cause else None,
        [h.group.id, h.group.inferred] if h.group else None,
        _item_value(h.item) if h.item else None,
        h.commitment,
        h.body_size,
        h.place._value_,
        list(h.reader) if h.reader else None,
        h.encoding,
        h.prev_stream,
        h.prev_store,
    ]
    try:
        _header_in(value)
        data = cbor.dumps(value)
        cbor.decode_trusted(data)
    except ValueError as fault:
        cbor.encode(value, where=f"header of {h.kind}")  # says it better where it cannot be stored
        raise InputRefused(
            where=_where(h),
            why=f"its header could not be read again: {fault}",
            remedy="Give each field a value of its type.",
        ) from None
    if len(data) > HEADER_BYTES_MAX:
        raise InputRefused(
            where=_where(h),
            why=f"its header has {len(data)} bytes, more than {HEADER_BYTES_MAX}",
            remedy="Split the item.",
        )
    return data


def _where(h: Header) -> str:
    return f"{h.kind} in {h.stream[:80]}"


def _refuse_long_names(h: Header) -> None:
    # No character has more than four bytes: short texts need not be encoded.
    if len(h.stream) * 4 > NAME_BYTES_MAX:
        _refuse_long(h, "stream", h.stream, NAME_BYTES_MAX)
    if len(h.key) * 4 > KEY_BYTES_MAX:
        _refuse_long(h, "key", h.key, KEY_BYTES_MAX)
    if h.group:
        _refuse_long(h, "group", h.group.id, NAME_BYTES_MAX)
    if h.reader:
        _refuse_long(h, "reader", h.reader[0], NAME_BYTES_MAX)
    if h.item:
        for part in h.item.parts:
            if part.call_id:
                _refuse_long(h, "call id", part.call_id, NAME_BYTES_MAX)


def _refuse_long(h: Header, what: str, text: str, most: int) -> None:
    if len(text) * 4 > most and len(text.encode("utf-8", "surrogatepass")) > most:
        raise InputRefused(
            where=_where(h),
            why=f"its {what} is longer than {most} bytes",
            remedy="Use a shorter one.",
        )


def _item_value(item: ItemFacts) -> list[Any]:
    parts = [[p.kind._value_, p.channel._value_, p.call_id] for p in item.parts]
    return [item.role, parts, item.tokens, item.meter]


def decode_header(data: bytes, *, strict: bool = False) -> Header:
    """The header that `data` spells; raises cbor.Malformed when it is not one of this format.

    `strict` (a foreign store, a verify) also demands the canonical form; else bytes whose digest holds suffice.
    """
    value = cbor.decode_trusted(data)
    header = _header_in(value)
    if strict:
        # No map and no float is in it: what the library writes for these values is their one canonical form.
        if cbor.dumps(value) != data:
            raise cbor.Malformed("not canonical, or with trailing bytes")
        if (header.occurred_at or 0) < INT_MIN:  # no other number of it may be negative
            raise cbor.Malformed("an integer outside 64 bits")
    return header


def _header_in(v: list[Any]) -> Header:
    """The header that a decoded array holds: values of a stranger, each of the type that its annotation promises."""
    if type(v) is not list or tuple(map(type, v)) not in _SHAPES or v[0] != FORMAT:
        raise cbor.Malformed("not a header of format 1")
    (
        _, kind, version, required, stream, seq, uuid, key, recorded_at, occurred_at, basis, channel,
        origin, cause, group, item, commitment, body_size, place, reader, encoding, prev_stream, prev_store,
    ) = v  # fmt: skip
    try:
        made = Header(
            kind, version, required, stream, seq, uuid, key, recorded_at, occurred_at,
            _BASES[basis], _CHANNELS[channel],
            None if origin is None else _origin(*origin),
            None if cause is None else _cause(*cause),
            None if group is None else _group(*group),
            None if item is None else _facts(*item),
            commitment, body_size, _PLACES[place],
            None if reader is None else _reader(*reader),
            encoding, prev_stream, prev_store,
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as fault:
        raise cbor.Malformed(f"a header field has a wrong form: {fault}") from None
    if (
        version < 0 or seq < 0 or recorded_at < 0 or body_size < 0
        or len(uuid) != UUID_BYTES
        or not len(commitment) == len(prev_stream) == len(prev_store) == DIGEST_BYTES
    ):  # fmt: skip
        raise cbor.Malformed("a header field is out of its bounds")
    return made


def _origin(source: Any, line: Any, start: Any, end: Any) -> Origin:
    if not (
        type(source) is str
        and type(line) is type(start) is type(end) is int
        and line >= 0 <= start
        and end >= 0
    ):
        raise TypeError("no origin")
    return Origin(source, line, start, end)


def _cause(stream: Any, seq: Any) -> Cause:
    if type(stream) is not str or type(seq) is not int or seq < 0:
        raise TypeError("no cause")
    return Cause(stream, seq)


def _group(name: Any, inferred: Any) -> Group:
    if type(name) is not str or type(inferred) is not bool:
        raise TypeError("no group")
    return Group(name, inferred)


def _reader(name: Any, version: Any) -> tuple[str, int]:
    if type(name) is not str or type(version) is not int or version < 0:
        raise TypeError("no reader")
    return name, version


def _facts(role: Any, parts: Any, tokens: Any, meter: Any) -> ItemFacts:
    found: list[Any] = []
    for part in parts:
        kind, channel, call_id = part
        if type(part) is not list:
            raise TypeError("no part")
        if call_id is None:
            found.append(_SILENT_PARTS[kind, channel])
        elif type(call_id) is str:
            found.append(PartFacts(_PARTS[kind], _CHANNELS[channel], call_id))
        else:
            raise TypeError("no call id")
    if not (
        type(role) is str
        and type(parts) is list
        and (tokens is None or (type(tokens) is int and tokens >= 0))
        and (meter is None or type(meter) is str)
    ):
        raise TypeError("no item facts")
    return ItemFacts(role, tuple(found), tokens, meter)
