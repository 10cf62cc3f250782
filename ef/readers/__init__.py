"""Floor 2: provider bytes -> parts. One pure, versioned reader per format; a record names the one that read it."""

from __future__ import annotations

from collections.abc import Callable

from ..events import Reading
from . import anthropic, claude_code

READERS: dict[tuple[str, int], Callable[[bytes], Reading]] = {
    (claude_code.NAME, claude_code.VERSION): claude_code.read,
    (anthropic.NAME, anthropic.VERSION): anthropic.read,
}
"""Every reader of every version that a store may name."""


def read_item(reader: tuple[str, int] | None, data: bytes) -> Reading:
    """Read an item's bytes with the reader that its record names; one opaque reading when it is not known."""
    found = READERS.get(reader) if reader else None
    return found(data) if found else Reading("opaque", ())
