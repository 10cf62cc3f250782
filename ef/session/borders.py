"""What a caller gives, checked once, before it becomes an event. pydantic guards this border and nothing behind it.

It is imported when something is first given (models.py): who only reads does not wait for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..codec.cbor import encode
from ..codec.limits import DEPTH_MAX
from ..errors import InputRefused, UsageError
from ..events import AnchorKey, Authority, Kind
from ..events.shapes import is_list, is_map
from ..importers.names import OWN
from ..reducers.gate import VALUE_DEPTH_MAX, nested

if TYPE_CHECKING:
    from pydantic import ValidationError

    from .models import Declaration

ITEM_BYTES_MAX = 64 << 20
VALUE_BYTES_MAX = 64 << 10
KEY_BYTES_MAX = 200
RESERVED = (OWN, "an:")
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def message_bytes(message: Mapping[str, Any]) -> bytes:
    """The bytes of a message as they will be stored: the caller's JSON, once checked. Raises InputRefused."""
    from .models import Message, ValidationError

    given: Any = message
    if not isinstance(given, Mapping):
        raise InputRefused(
            where="message",
            why=f"it is a {type(given).__name__}, not a mapping",
            remedy='Give {"role": "user" or "assistant", "content": text or a list of blocks}.',
        )
    try:
        Message.model_validate(dict(message))
        text = _ENCODER.encode(message)
        data = text.encode("utf-8", "surrogatepass")
        if len(data) > ITEM_BYTES_MAX:
            raise InputRefused(
                where="message",
                why=f"it has {len(data)} bytes, more than {ITEM_BYTES_MAX}",
                remedy="Split it.",
            )
        if not text.isascii():
            data.decode("utf-8")
    except ValidationError as fault:
        raise InputRefused(
            where="message",
            why=_said(fault),
            remedy='Give {"role": "user" or "assistant", "content": text or a list of blocks}.',
        ) from None
    except UnicodeDecodeError:
        return json.dumps(message, ensure_ascii=True, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as fault:
        raise InputRefused(
            where="message", why=f"it is no JSON: {fault}", remedy="Give plain JSON values."
        ) from None
    return data


def declaration(value: Any, **given: Any) -> Declaration:
    """A checked declaration. Raises UsageError, naming the field, or InputRefused."""
    from .models import Declaration, ValidationError

    given = {
        name: value if value is None or name not in ("kind", "authority") else _named(name, value)
        for name, value in given.items()
    }
    try:
        found = Declaration.model_validate(given)
    except ValidationError as fault:
        raise UsageError(detail=f"declaration: {_said(fault)}") from None
    _checked_value(value)
    if AnchorKey.parse(found.key) is None:
        raise UsageError(
            detail=f"key {found.key!r} is not namespace/entity/property, e.g. config/server/timeout"
        )
    if (found.quote is None) != (found.source is None):
        raise UsageError(
            detail="give both quote and source (the seq of the item that holds the quote), or neither"
        )
    return found


def _named(what: str, given: Any) -> Any:
    kind = Kind if what == "kind" else Authority
    try:
        return kind(given)
    except ValueError:
        known = ", ".join(member.value for member in kind)
        raise UsageError(detail=f"{what} {given!r} is not known; it is one of {known}") from None


def _said(fault: ValidationError) -> str:
    first = fault.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(step) for step in first["loc"]) or "it"
    return f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}"


def checked_key(key: str | None) -> str | None:
    """A caller's idempotency key: 1 to 128 characters of valid text. Raises UsageError."""
    if key is None:
        return None
    given: Any = key
    good = isinstance(given, str) and 0 < len(given.encode("utf-8", "replace")) <= KEY_BYTES_MAX
    if not good or key.encode("utf-8", "replace").decode() != key:
        raise UsageError(
            detail=f"idempotency key {str(key)[:60]!r}: give text of 1 to {KEY_BYTES_MAX} bytes"
        )
    if key.startswith(RESERVED):
        raise UsageError(
            detail=f"idempotency key {key[:60]!r}: {' and '.join(RESERVED)} begin keys of ef's own; choose another"
        )
    return key


def _checked_value(value: Any) -> None:
    """A declared value: null, bool, int, text, lists and maps of those, of bounded size. Raises InputRefused."""
    if _has_bytes(value):
        raise InputRefused(
            where="value",
            why="it holds bytes",
            remedy="Give null, booleans, integers, text, lists or maps.",
        )
    if nested(value, VALUE_DEPTH_MAX):
        raise InputRefused(
            where="value",
            why=f"its nesting is deeper than {VALUE_DEPTH_MAX}",
            remedy="Append it as a message and declare what it says.",
        )
    size = len(encode(value, where="value"))
    if size > VALUE_BYTES_MAX:
        raise InputRefused(
            where="value",
            why=f"it has {size} bytes, more than {VALUE_BYTES_MAX}",
            remedy="Append it as a message and declare what it says.",
        )


def _has_bytes(value: Any) -> bool:
    """Looks at most DEPTH_MAX deep, so that a value that holds itself comes to an end; `encode` refuses that one."""
    layer: list[Any] = [value]
    for _ in range(DEPTH_MAX):
        below: list[Any] = []
        for each in layer:
            if isinstance(each, (bytes, bytearray)):
                return True
            if is_map(each):
                below += each.values()
            elif is_list(each) or isinstance(each, tuple):
                below += each
        layer = below[: 1 << 16]
    return False
