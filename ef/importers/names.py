"""Names of session streams and header facts of readings."""

from __future__ import annotations

import re

from ..codec.digests import short_name
from ..events import ItemFacts, Reading

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
SESSION_PREFIX = "session/"
OWN = "ef:"
"""Keys that begin so are ours: a caller's key never does."""
OPEN_KEY = OWN + "open"


def session_name(given: str) -> str:
    """A session's id: the provider's where it is a plain name of at most 128 characters, else a stand-in."""
    return given if _NAME.fullmatch(given) else short_name(given).replace("h:", "x")


def session_stream(name: str) -> str:
    """The stream of a session."""
    return SESSION_PREFIX + name


def facts_of(reading: Reading, meter: str, tokens: int) -> ItemFacts:
    """What a header says of an item that was read so."""
    return ItemFacts(reading.role, tuple(part.facts() for part in reading.parts), tokens, meter)
