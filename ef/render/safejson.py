"""JSON text that is always valid: lone surrogates escaped, numbers beyond JSON as text, any depth. Pure."""

from __future__ import annotations

import json
import math
from typing import Any

from ..events.shapes import is_list, is_map


def dumps(value: Any, *, indent: int | None = None) -> str:
    """ASCII JSON of a value that came from JSON; what JSON cannot say (NaN, 1e400) becomes text."""
    try:
        return json.dumps(value, ensure_ascii=True, allow_nan=False, indent=indent)
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=True, allow_nan=False, indent=indent)


def canonical(value: Any) -> bytes:
    """One spelling for equal values: sorted keys, no spaces. For digests of contexts."""
    try:
        text = json.dumps(
            value, ensure_ascii=True, allow_nan=False, sort_keys=True, separators=(",", ":")
        )
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return text.encode("ascii")


def sendable(value: Any) -> Any:
    """The value itself where it is JSON of Unicode text; else a copy with U+FFFD for lone surrogates and with what JSON
    cannot say as text."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        return _whole(_finite(value))
    return value


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if is_map(value):
        return {_whole(key): _whole(each) for key, each in value.items()}
    return [_whole(each) for each in value] if is_list(value) else value


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if is_map(value):
        return {key: _finite(each) for key, each in value.items()}
    if is_list(value):
        return [_finite(each) for each in value]
    return value
