"""What finds secrets, made ready: the built-in detector, or what the caller gives; and what a redacted source refuses.

The built-in detector is Kingfisher's rules, run in this process, and our own table of key shapes. It reads no settings
and keeps nothing on disk; of its package only what looks at bytes is used: nothing here can ask a provider about a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from ..errors import OriginalRedacted, UsageError
from ..events import Redacted
from ..importers.keyfinder import PLACEHOLDERS, KeyFinder
from ..importers.keyshapes import BEGINS
from ..importers.redaction import REDACTED, Finds, Named, Redaction, Redactor, Together

if TYPE_CHECKING:
    from kingfisher_sdk import Finding, Scanner

LENGTH_MIN = 8
NAME_CHARS_MAX = 200
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


def redactor_of(given: Any) -> Redactor | None:
    """What a caller's `redact` means: None or False nothing, True the built-in detector, a function itself.

    A function's `name` and `version`, where it has them, are noted with what it redacts. Raises UsageError.
    """
    if given is None or given is False:
        return None
    if given is True:
        return detector()
    find: Finds = given
    if not callable(given) or isinstance(given, type):
        detail = (
            f"redact: it is a {type(given).__name__}; give True, or a function from text to spans"
        )
        raise UsageError(detail=detail)
    name = getattr(given, "name", None) or getattr(given, "__qualname__", type(given).__name__)
    version = getattr(given, "version", "")
    if not all(isinstance(said, str) and said.isprintable() for said in (name, version)):
        raise UsageError(detail="redact: its `name` and `version` are no texts of one line")
    if len(name + version) > NAME_CHARS_MAX:
        raise UsageError(
            detail=f"redact: its `name` and `version` have more than {NAME_CHARS_MAX} characters"
        )
    return Named(name, version, find)


def refuse_original(source: str, notes: Iterable[Mapping[str, Any]]) -> None:
    """Raises OriginalRedacted when something of a source was replaced before it was stored. `notes`: all of it."""
    said = [str(note["text"]) for note in notes if note["kind"] == REDACTED]
    if said:
        raise OriginalRedacted(source=source[:12], what="; ".join(said))


def without_secrets(data: bytes, redactor: Redactor | None) -> tuple[bytes, Redacted | None]:
    """A message's bytes as they may be stored, and what to note of that. Raises InputRefused."""
    if redactor is None:
        return data, None
    redaction = Redaction(redactor, where="message")
    data = redaction.line(data)
    found = redaction.findings
    return data, Redacted(redactor.name, redactor.version, dict(found)) if found else None


class _Kingfisher:
    """Kingfisher's scanner as a function from text to spans."""

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner

    def __call__(self, text: str) -> Iterator[tuple[int, int, str]]:
        if len(text) < LENGTH_MIN:
            return
        # Half surrogates become "?" and NULs spaces: as many characters, and bytes that are taken for UTF-8.
        data = text.encode("utf-8", "replace").replace(b"\0", b" ")
        for found in self._scanner.scan(data):
            if found.visible or _SECRET_PART.search(found.rule_id):
                start, end, kind = _place(found, text, data)
                if _BEGINS.match(text, start) and found.secret.lower() not in PLACEHOLDERS:
                    yield start, end, kind


def _place(found: Finding, text: str, data: bytes) -> tuple[int, int, str]:
    start, end = found.location["start_offset"], found.location["end_offset"]
    if not text.isascii():
        start, end = len(data[:start].decode()), len(data[:end].decode())
    return start, end, _RULE_SET.sub("", found.rule_id).lower()
