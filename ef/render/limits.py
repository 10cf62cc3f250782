"""Call ids and names of tools as a provider takes them. Pure.

Rules: what is valid and not yet used stays as it is; else it is mapped, the same way each time, from what stands before
it alone: what is appended later changes no name that was handed out.
"""

from __future__ import annotations

import re

from blake3 import blake3

from .turns import Place

_NOT_NAME = re.compile(r"[^a-zA-Z0-9_-]")
HASH_HEX = 24


def short_hash(text: str, digits: int = HASH_HEX) -> str:
    """Hex digits that tell a text apart from others."""
    return blake3(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]


class CallIds:
    """The ids of calls, each used once: `valid` says which are taken as they are, of at most `most` characters."""

    def __init__(self, valid: re.Pattern[str], most: int) -> None:
        self._valid, self._most = valid, most
        self._used: set[str] = set()
        self._times: dict[str, int] = {}
        self._of: dict[Place, str] = {}

    def of(self, place: Place, given: str) -> str:
        """The id of the call at a place, whose own id is `given`."""
        found = self._of.get(place)
        if found is None:
            fits = len(given) <= self._most and self._valid.fullmatch(given)
            base = given if fits else f"call_{short_hash(given)}"
            found = base
            while found in self._used:
                n = self._times[base] = self._times.get(base, 1) + 1
                found = f"{base[: self._most - 12]}_{n}"
            self._used.add(found)
            self._of[place] = found
        return found


def tool_name(name: str, most: int) -> str:
    """A tool's name of letters, digits, _ and -, at most `most`; what had to be changed ends with a hash of it all."""
    safe = _NOT_NAME.sub("_", name)
    if safe == name and 0 < len(name) <= most:
        return name
    return f"{safe[: most - 9] or 'tool'}_{short_hash(name, 8)}"
