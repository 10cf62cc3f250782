"""The outline of a block of one stream: which kind each of its events has.

Rule: one code an event, in seq order, for the events since the last multiple of `BLOCK`; the code is the kind's row in
the table of event kinds, and `UNKNOWN` for what that table does not have. Who asks for few kinds reads those events
and no others. Bounded size: a block.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from ..codec import cbor
from ..codec.digests import ZERO
from ..codec.kinds import KINDS
from ..events import Header

BLOCK = 1_000
"""Events of a block."""

UNKNOWN = 255
VERSION = 1
"""Of the rule and of the dump."""

_CODES = {(spec.name, spec.version): code for code, spec in enumerate(KINDS)}


@dataclass(slots=True)
class Outline:
    """The outline as of one seq, and that record's digest."""

    seq: int = 0
    digest: bytes = ZERO
    codes: bytearray = field(default_factory=bytearray)

    def apply(self, header: Header, digest: bytes) -> None:
        """The next record."""
        if self.seq % BLOCK == 0:
            self.codes.clear()
        self.seq, self.digest = header.seq, digest
        self.codes.append(_CODES.get((header.kind, header.version), UNKNOWN))

    def seqs(self, kinds: Collection[type], after: int, upto: int) -> list[int]:
        """The seqs in (after, upto] whose events are of these kinds, or of one that is not known."""
        wanted = {code for code, spec in enumerate(KINDS) if spec.type in kinds} | {UNKNOWN}
        start = self.seq - len(self.codes)
        some = enumerate(self.codes[after - start : upto - start], after + 1)
        return [seq for seq, code in some if code in wanted]

    def dump(self) -> bytes:
        """The codes, in canonical CBOR."""
        return cbor.encode(bytes(self.codes))

    @classmethod
    def loaded(cls, seq: int, digest: bytes, dump: bytes) -> Outline:
        """The outline of the block that ends with the record of that seq and digest. Raises cbor.Malformed."""
        codes = cbor.decode_trusted(dump)
        if type(codes) is not bytes or len(codes) != BLOCK or seq % BLOCK:
            raise cbor.Malformed("no dump of an outline")
        return cls(seq, digest, bytearray(codes))
