"""What a caller means by `redact`, messages without their secrets, and what a redacted source refuses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import OriginalRedacted, UsageError
from ..events import Redacted
from ..importers.redaction import REDACTED, WITHHELD, Finds, Named, Redaction, Redactor, Together

NAME_CHARS_MAX = 200


def redactor_of(given: Any) -> Redactor | None:
    """What a caller's `redact` means: None or False nothing, True the built-in detector, a function itself.

    A function's `name` and `version`, where it has them, are noted with what it redacts. Raises UsageError.
    """
    if given is None or given is False:
        return None
    if given is True:
        from .detecting import detector

        return detector()
    find: Finds = given
    if not callable(given) or isinstance(given, type):
        detail = (
            f"redact: it is a {type(given).__name__}; give True, or a function from text to spans"
        )
        raise UsageError(detail=detail)
    name: Any = getattr(given, "name", None) or getattr(given, "__qualname__", type(given).__name__)
    version: Any = getattr(given, "version", "")
    if not all(isinstance(said, str) and said.isprintable() for said in (name, version)):
        raise UsageError(detail="redact: its `name` and `version` are no texts of one line")
    if len(name + version) > NAME_CHARS_MAX:
        detail = f"redact: its `name` and `version` have more than {NAME_CHARS_MAX} characters"
        raise UsageError(detail=detail)
    return Named(name, version, find)


def together(*given: bool | Finds) -> Redactor:
    """Several redactors as one: what any of them finds is replaced. True is the built-in one. Raises UsageError."""
    found = tuple(each for each in map(redactor_of, given) if each is not None)
    if not found:
        raise UsageError(detail="redact: together of nothing; give at least one function, or True")
    return Together(found)


def refuse_original(source: str, notes: Iterable[Mapping[str, Any]], length: int) -> None:
    """Raises OriginalRedacted when the first `length` bytes that are stored of a source are not the file's own: some
    were replaced, or its end is withheld. `notes`: all of the source.
    """
    said = [
        str(note["text"])
        for note in notes
        if note["kind"] == REDACTED or (note["kind"] == WITHHELD and note["offset"] == length)
    ]
    if said:
        raise OriginalRedacted(source=source[:12], what="; ".join(said))


def without_secrets(data: bytes, redactor: Redactor) -> tuple[bytes, Redacted | None]:
    """A message's bytes as they may be stored, and what to note of that. Raises InputRefused."""
    redaction = Redaction(redactor, where="message")
    data = redaction.line(data)
    found = redaction.findings
    return data, Redacted(redactor.name, redactor.version, dict(found)) if found else None
