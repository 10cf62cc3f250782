"""The closed table of event kinds: name, version, whether required, and how a body is read and written.

Nothing is ever imported, evaluated or revived by a name found in a store: a kind that is not in this table
becomes an UnknownEvent. Bodies are canonical CBOR maps of the type's fields; those of `raw` kinds are the
provider's or the source's bytes and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, cast, get_args, get_origin, get_type_hints

from .. import events as ev
from ..errors import Damaged, InputRefused
from ..events.shapes import is_map
from . import cbor


@dataclass(frozen=True, slots=True)
class KindSpec:
    """One row of the table. `required`: a reader that does not know it must not project the stream."""

    name: str
    version: int
    required: bool
    raw: bool
    type: type


def _spec(kind: type, *, version: int = 1, required: bool = True, raw: bool = False) -> KindSpec:
    return KindSpec(kind.__name__, version, required, raw, kind)


KINDS: tuple[KindSpec, ...] = (
    _spec(ev.StoreOpened),
    _spec(ev.SourceOpened),
    _spec(ev.SourceLines, raw=True),
    _spec(ev.SourceNote, required=False),
    _spec(ev.SourceGrew),
    _spec(ev.SourceRewritten),
    _spec(ev.ImportCompleted),
    _spec(ev.SessionOpened),
    _spec(ev.SessionDescribed, required=False),
    _spec(ev.RouteChanged),
    _spec(ev.ItemAppended, raw=True),
    _spec(ev.ItemReplaced, raw=True),
    _spec(ev.CallClosed),
    _spec(ev.ForeignCompaction),
    _spec(ev.UsageReported, required=False),
    _spec(ev.AnchorDeclared),
    _spec(ev.StoredEvent, required=False),
)
BY_NAME = {spec.name: spec for spec in KINDS}
BY_TYPE = {spec.type: spec for spec in KINDS}


def spec_of(event: ev.Event) -> KindSpec:
    """The table row of an event that this version writes."""
    return BY_TYPE[type(event)]


def encode_body(event: ev.Event) -> bytes:
    """The plain body bytes of an event of this version, decoded again before they are given out: else InputRefused."""
    spec = spec_of(event)
    try:
        if spec.raw:
            return cast("bytes", _expect(event.data, bytes))  # type: ignore[union-attr]
        data = cbor.encode(_plain(event), where=spec.name)
        _READ[spec.type](cbor.decode_trusted(data))
    except (TypeError, ValueError) as fault:
        raise InputRefused(
            where=spec.name,
            why=f"it could not be read again: {fault}",
            remedy="Give each field a value of its type.",
        ) from None
    return data


def decode_body(name: str, version: int, plain: bytes, *, where: str) -> ev.Event:
    """The typed event; an UnknownEvent for a kind or version that this table does not have. Raises Damaged."""
    spec = BY_NAME.get(name)
    if spec is None or spec.version != version:
        return ev.UnknownEvent(name, version)
    if spec.raw:
        return cast("ev.Event", spec.type(plain))
    try:
        return cast("ev.Event", _READ[spec.type](cbor.decode(plain)))
    except (TypeError, ValueError) as fault:
        raise Damaged(where=where, what=f"the body of {name} cannot be read: {fault}") from None


def _plain(value: Any) -> Any:
    """Dataclasses become maps of all their fields, enumerations their values, keys of anchors lists of three."""
    if isinstance(value, ev.AnchorKey):
        return [value.namespace, value.entity, value.property]
    if hasattr(value, "__dataclass_fields__"):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in cast("tuple[Any, ...]", value)]
    if is_map(value):
        return {key: _plain(each) for key, each in value.items()}
    return value


Read = Callable[[Any], Any]


def _reader(hint: Any) -> Read:
    """A function that checks a decoded value against a field's type hint and builds it. Made once at import."""
    if hint is Any:
        return lambda v: v
    origin, args = get_origin(hint), get_args(hint)
    if origin is UnionType:
        (inner,) = (_reader(a) for a in args if a is not NoneType)
        return lambda v: None if v is None else inner(v)
    if origin is tuple:
        each = _reader(args[0])
        return lambda v: tuple(each(x) for x in _items(v))
    if origin is dict:
        return lambda v: _expect(v, dict)
    if hint is ev.AnchorKey:
        part = _reader(str)
        return lambda v: ev.AnchorKey(*(part(x) for x in _items(v)))
    kind: type[Any] = hint
    if issubclass(kind, StrEnum):
        return kind
    if hasattr(kind, "__dataclass_fields__"):
        return _record_reader(kind)
    return lambda v: _expect(v, kind)


def _expect(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}, found {type(value).__name__}")
    return value


def _items(value: Any) -> list[Any]:
    found: list[Any] = _expect(value, list)
    return found


def _record_reader(kind: type) -> Read:
    readers = {name: _reader(hint) for name, hint in get_type_hints(kind).items()}

    def read(value: Any) -> Any:
        if _expect(value, dict).keys() != readers.keys():
            raise TypeError(f"{kind.__name__} has other fields: {sorted(value)}")
        return kind(**{name: readers[name](each) for name, each in value.items()})

    return read


_READ: dict[type, Read] = {spec.type: _record_reader(spec.type) for spec in KINDS if not spec.raw}
