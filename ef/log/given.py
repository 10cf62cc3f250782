"""What a caller gives to a public method, checked once: a mistake is a UsageError with what, why and what to do."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..codec.limits import HEADER_BYTES_MAX as NAME_BYTES_MAX
from ..errors import UsageError

PATH_BYTES_MAX = 4096
"""What a system takes."""

NUMBER_MAX = 2**127 - 1
"""Further than any log comes."""


def text(what: str, value: Any, *, empty: bool = False) -> str:
    """A name: text of bounded size."""
    if not isinstance(value, str):
        raise _wrong(what, value, "it is no text", "give a str")
    if not value and not empty:
        raise _wrong(what, value, "it is empty", "give a name")
    if len(value) > NAME_BYTES_MAX:
        why = f"it has {len(value):,} characters, and no name has more than {NAME_BYTES_MAX:,}"
        raise _wrong(what, value, why, "give a shorter one")
    return value


def number(what: str, value: Any, *, least: int = 0, most: int = NUMBER_MAX) -> int:
    """A whole number from `least` on; True and False are none."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(what, value, "it is no whole number", "give an int")
    if not least <= value <= most:
        raise _wrong(what, value, "it is out of range", f"give an int from {least} on")
    return value


def path(what: str, value: Any) -> Path:
    """A path: a str or a Path, of bounded size. What the system says of it is not asked here."""
    name: Any = value if isinstance(value, str) else None
    if hasattr(value, "__fspath__"):
        name = os.fspath(value)
    if not isinstance(name, str):
        raise _wrong(what, value, "it is no path", "give a str or a Path")
    if not name:
        raise _wrong(what, value, "it is empty", "give a path, `.` for this folder")
    try:
        size = len(os.fsencode(name))
    except UnicodeEncodeError:
        raise _wrong(what, value, "it holds half a surrogate pair", "give valid text") from None
    if size > PATH_BYTES_MAX:
        raise _wrong(what, value, "it is too long for a path", "give a shorter one")
    return Path(name)


def function(what: str, value: Any) -> None:
    """What can be called, or None."""
    if value is not None and not callable(value):
        raise _wrong(what, value, "it cannot be called", "give a function, or None")


def _wrong(what: str, value: Any, why: str, remedy: str) -> UsageError:
    if isinstance(value, int):
        shown = (
            hex(value) if abs(value) > NUMBER_MAX else repr(value)
        )  # Python refuses long decimals
    else:
        shown = repr(value[:60]) if isinstance(value, (str, bytes)) else repr(value)
    shown = shown if len(shown) <= 60 else shown[:60] + "…"
    return UsageError(detail=f"{what} {shown} ({type(value).__name__}): {why}; {remedy}")
