"""The closed table of event kinds: name, version, whether required, and how a body is read and written.

Nothing is ever imported, evaluated or revived by a name found in a store: a kind that is not in this table
becomes an UnknownEvent. Bodies are canonical CBOR maps of the type's fields; those of `raw` kinds are the
provider's or the source's bytes and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from enum import StrEnum
from functools import cache
from operator import attrgetter, contains
from types import NoneType, UnionType
from typing import Any, NamedTuple, cast, get_args, get_origin, get_type_hints

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
    _spec(ev.ImportProgressed),
    _spec(ev.Redacted, required=False),
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
        read, write = _forms(spec.type)
        data = cbor.encode(write(event), where=spec.name, ordered=True)
        read(cbor.decode_trusted(data))
    except (AttributeError, KeyError, TypeError, ValueError) as fault:
        raise InputRefused(
            where=spec.name,
            why=f"it could not be read again: {fault}",
            remedy="Give each field a value of its type.",
        ) from None
    return data


def decode_body(
    name: str, version: int, plain: bytes, *, where: str, trusted: bool = False
) -> ev.Event:
    """The typed event; an UnknownEvent for a kind or version that this table does not have. Raises Damaged.

    `trusted`: bytes of a log that is trusted, whose commitment held; their canonical form is not looked at again.
    """
    spec = BY_NAME.get(name)
    if spec is None or spec.version != version:
        return ev.UnknownEvent(name, version)
    if spec.raw:
        return cast("ev.Event", spec.type(plain))
    try:
        value = cbor.decode_trusted(plain) if trusted else cbor.decode(plain)
        return cast("ev.Event", _forms(spec.type)[0](value))
    except (KeyError, TypeError, ValueError) as fault:
        raise Damaged(where=where, what=f"the body of {name} cannot be read: {fault}") from None


def _order(key: object) -> tuple[int, bytes]:
    return cbor.key_order(str(key))  # what is no text is refused when it is encoded


def _plain(value: Any) -> Any:
    """A value whose form no hint names: enumerations become their values, tuples lists, and maps are put in order."""
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in cast("tuple[Any, ...]", value)]
    if is_map(value):
        return {key: _plain(value[key]) for key in sorted(value, key=_order)}
    return value


Change = Callable[[Any], Any]


class _Form(NamedTuple):
    """What a field's hint demands of a decoded value: its exact type, and what makes the field of it, and it of the
    field (None: they are the same)."""

    types: frozenset[type]
    read: Change | None = None
    write: Change | None = None


_ANY = frozenset({NoneType, bool, int, str, bytes, list, dict})


def _form(hint: Any) -> _Form:
    """The form of a field's type hint."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return _Form(_ANY, None, _plain)
    if origin is UnionType:
        (inner,) = (_form(a) for a in args if a is not NoneType)
        assert (inner.read, inner.write) == (None, None)
        return _Form(inner.types | {NoneType})
    if origin is tuple:
        return _tuple_form(_form(args[0]))
    if origin is dict:
        return _Form(frozenset({dict}), None, _plain)
    if hint is ev.AnchorKey:
        return _Form(frozenset({list}), _anchor_key, _anchor_key_value)
    kind: type[Any] = hint
    if issubclass(kind, StrEnum):
        words = {each.value: each for each in kind}
        return _Form(frozenset({str}), words.__getitem__, attrgetter("value"))
    if is_dataclass(kind):
        return _Form(frozenset({dict}), *_record_forms(kind))
    return _Form(frozenset({kind}))


def _tuple_form(each: _Form) -> _Form:
    def read(value: list[Any]) -> tuple[Any, ...]:
        for one in value:
            if type(one) not in each.types:
                raise TypeError(f"a list holds a {type(one).__name__}")
        return tuple(map(each.read, value)) if each.read else tuple(value)

    def write(value: tuple[Any, ...]) -> list[Any]:
        return list(map(each.write, value)) if each.write else list(value)

    return _Form(frozenset({list}), read, write)


_anchor_key_parts = attrgetter("namespace", "entity", "property")


def _anchor_key(value: list[Any]) -> ev.AnchorKey:
    if list(map(type, value)) != [str, str, str]:
        raise TypeError("a key is no list of three texts")
    return ev.AnchorKey(*value)


def _anchor_key_value(key: ev.AnchorKey) -> list[str]:
    return list(_anchor_key_parts(key))


def _expect(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise TypeError(f"expected {kind.__name__}, found {type(value).__name__}")
    return value


def _record_forms(kind: type) -> tuple[Change, Change]:
    """What reads a map of all fields of a type, and what writes it."""
    forms = {name: _form(hint) for name, hint in get_type_hints(kind).items()}
    names, count = tuple(forms), len(forms)
    types = [form.types for form in forms.values()]
    reads = [(n, form.read) for n, form in enumerate(forms.values()) if form.read]
    ordered = sorted(names, key=cbor.key_order)
    writes = [(name, form.write) for name, form in forms.items() if form.write]
    sound: set[tuple[type, ...]] = set()  # there are few: those that the hints allow

    def read(value: Any) -> Any:
        given = _expect(value, dict)
        if len(given) != count:
            raise TypeError(f"{kind.__name__} has other fields: {sorted(given)}")
        values = [given[name] for name in names]
        shape = tuple(map(type, values))
        if shape not in sound:
            if not all(map(contains, types, shape)):
                raise TypeError(f"a field of {kind.__name__} has a wrong type")
            sound.add(shape)
        for n, change in reads:
            values[n] = change(values[n])
        return kind(*values)

    def write(value: Any) -> dict[str, Any]:
        given = {name: getattr(value, name) for name in ordered}
        for name, change in writes:
            given[name] = change(given[name])
        return given

    return read, write


@cache
def _forms(kind: type) -> tuple[Change, Change]:
    """What reads and what writes the bodies of a type: made when the first one is met."""
    return _record_forms(kind)
