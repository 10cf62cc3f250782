"""Values, anchors and counts in words."""

from __future__ import annotations

import json
from typing import Any

from ..events.shapes import is_list, is_map
from ..render.visible import visible
from .layout import one_line

DIGEST_CHARS = 12


def value(given: Any, unit: str | None = None) -> str:
    """An anchor's value on one line: maps as 'name value', empty lists as none, what is null as unknown."""
    text = _value(given, nested=False)
    return f"{text} {visible(unit)}" if unit else text


def _value(given: Any, *, nested: bool) -> str:
    if given is None:
        return "unknown"
    if isinstance(given, bool):
        return "true" if given else "false"
    if isinstance(given, str):
        return _text(given)
    if is_map(given):
        inner = ", ".join(f"{one_line(k)} {_value(v, nested=True)}" for k, v in given.items())
        return f"({inner})" if nested or not given else inner
    if is_list(given):
        inner = ", ".join(_value(v, nested=True) for v in given)
        return (f"({inner})" if nested else inner) if given else "none"
    return str(given)


def _text(given: str) -> str:
    """Text bare; in quotes where bare it could be taken for something else."""
    try:
        json.loads(given)
    except (ValueError, RecursionError):
        alike = given in ("", "none", "unknown") or given != given.strip()
    else:
        alike = True
    return json.dumps(given) if alike else visible(given)


def count(number: int, one: str, many: str | None = None) -> str:
    """'1 event', '2 events'."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def short(digest: str | bytes) -> str:
    """The beginning of a digest."""
    return (digest.hex() if isinstance(digest, bytes) else digest)[:DIGEST_CHARS]


def size(number: int) -> str:
    """Bytes for people."""
    amount = float(number)
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000:
            return f"{number} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def moment(iso: str | None) -> str:
    """A time without its seconds, UTC; 'unknown' for none."""
    return "unknown" if iso is None else iso[:16].replace("T", " ")
