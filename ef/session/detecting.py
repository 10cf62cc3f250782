"""The built-in detector of secrets: Kingfisher's rules, run in this process, and our own table of key shapes.

It reads no settings and keeps nothing on disk. Of Kingfisher's package only what looks at bytes is used: nothing here
can ask a provider about a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..importers.keyfinder import PLACEHOLDERS, KeyFinder
from ..importers.keyshapes import BEGINS
from ..importers.redaction import Named, Redactor, Together

if TYPE_CHECKING:
    from kingfisher_sdk import Scanner

LENGTH_MIN = 8
_BEGINS = re.compile(BEGINS)
_RULE_SET = re.compile(r"^(?:betterleaks\.|kingfisher\.|veles\.secrets/)")
_SECRET_PART = re.compile(r"secret|passphrase|security-token|(?:api|consumer|application)-key")
"""Of what Kingfisher finds only beside a key, to ask its provider, these are secrets; the others are ids and hosts."""


@cache
def detector() -> Redactor:
    """The built-in detector of the extra `redact`; making it takes seconds. Raises UsageError without the extra."""
    try:
        from kingfisher_sdk import Rules, Scanner, __version__
    except ModuleNotFoundError:
        detail = "no detector is installed: pip install 'epistemic-fold[redact]', or give one"
        raise UsageError(detail=detail) from None
    scanner = Scanner(Rules(cache=False))
    return Together((KeyFinder(), Named("kingfisher", __version__, _Kingfisher(scanner))))


class _Kingfisher:
    """Kingfisher's scanner as a function from text to spans."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner

    def __call__(self, text: str) -> Iterator[tuple[int, int, str]]:
        if len(text) < LENGTH_MIN:
            return
        # Half surrogates become "?" and NULs spaces: as many characters, and bytes that are taken for UTF-8.
        data = text.encode("utf-8", "replace").replace(b"\0", b" ")
        places = [
            (found.location["start_offset"], found.location["end_offset"], found.rule_id)
            for found in self._scanner.scan(data)
            if (found.visible or _SECRET_PART.search(found.rule_id))
            and found.secret.lower() not in PLACEHOLDERS
        ]
        at = _characters(data, [offset for start, end, _ in places for offset in (start, end)])
        for start, end, rule in places:
            if _BEGINS.match(text, at[start]):
                yield at[start], at[end], _RULE_SET.sub("", rule).lower()


def _characters(data: bytes, offsets: Iterable[int]) -> dict[int, int]:
    """Which character of a text begins at each of some offsets of its bytes."""
    found: dict[int, int] = {}
    before = count = 0
    for offset in sorted(set(offsets)):
        count += len(data[before:offset].decode())
        before = offset
        found[offset] = count
    return found
