"""What the observers of one stream know, as of one seq: what they need to understand the next item.

Rule: every item up to `seq` went through them, in order, read as its record says. Invariants: as large as the calls
that wait, the newest that were answered, and the targets that fail; never as the history.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..codec import cbor
from ..codec.digests import ZERO
from ..events import Header, ItemAppended, ItemReplaced
from ..log.items import read_as
from ..readers import READERS
from ..reducers.observers import Observers, rules

VERSION = 3
"""Of the rule and of the dump."""

_REPLACED = ItemReplaced.__name__
ITEMS = (ItemAppended.__name__, _REPLACED)
"""The kinds of events that are items."""


@dataclass(slots=True)
class Watched:
    """The observers, the seq that they stand at and that record's digest."""

    seq: int = 0
    digest: bytes = ZERO
    observers: Observers = field(default_factory=Observers)

    def apply(self, header: Header, digest: bytes, body: Callable[[], bytes]) -> None:
        """The next record; its bytes are asked for when it is an item."""
        if header.kind in ITEMS:
            self.observers.item(read_as(header, body()), replaces=header.kind == _REPLACED)
        self.seq, self.digest = header.seq, digest

    def dump(self) -> bytes:
        """What they know, in canonical CBOR."""
        return cbor.encode(self.observers.dump())

    @classmethod
    def loaded(cls, seq: int, digest: bytes, dump: bytes) -> Watched:
        """The observers as of the record of that seq and digest. Raises cbor.Malformed."""
        try:
            observers = Observers.load(cbor.decode_trusted(dump))
        except (TypeError, ValueError, AttributeError) as fault:
            raise cbor.Malformed(f"no dump of observers: {fault}") from None
        return cls(seq, digest, observers)


def made_by() -> list[Any]:
    """What decides of the state besides this module: the observers' rules and the readers' versions."""
    return [rules(), sorted([name, version] for name, version in READERS)]
