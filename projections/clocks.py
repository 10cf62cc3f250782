"""The clocks of one stream, as of one seq: how far each had come.

Rule: the greatest occurred_at and the greatest recorded_at of records 1 to `seq`, in microseconds since 1970 UTC; None
while no record had one. Invariants: neither ever steps back, so a moment is found by halving. Bounded size.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import NoneType

from ..codec import cbor
from ..codec.digests import ZERO
from ..events import Header
from ..reducers.saved import checked, row_types


@dataclass(slots=True)
class Clocks:
    """The clocks, the seq they stand at and that record's digest."""

    seq: int = 0
    digest: bytes = ZERO
    occurred: int | None = None
    recorded: int | None = None

    def passes(self, header: Header, moment: int, *, recorded: bool) -> bool:
        """Whether a record lies behind a moment of the clock that counts."""
        clock = header.recorded_at if recorded else header.occurred_at
        return clock is not None and clock > moment

    def before(self, moment: int, *, recorded: bool) -> bool:
        """Whether all records so far lie at or before a moment."""
        clock = self.recorded if recorded else self.occurred
        return clock is None or clock <= moment

    def apply(self, header: Header, digest: bytes) -> None:
        """The next record."""
        self.seq, self.digest = header.seq, digest
        if header.occurred_at is not None and (
            self.occurred is None or header.occurred_at > self.occurred
        ):
            self.occurred = header.occurred_at
        if self.recorded is None or header.recorded_at > self.recorded:
            self.recorded = header.recorded_at

    def dump(self) -> bytes:
        """Both clocks, in canonical CBOR."""
        return cbor.encode([self.occurred, self.recorded])

    @classmethod
    def loaded(cls, seq: int, digest: bytes, dump: bytes) -> Clocks:
        """The clocks as of the record of that seq and digest. Raises cbor.Malformed."""
        try:
            occurred, recorded = checked(cbor.decode_trusted(dump), _FIELDS)
        except (TypeError, ValueError) as fault:
            raise cbor.Malformed(f"no dump of clocks: {fault}") from None
        return cls(seq, digest, occurred, recorded)


_FIELDS = row_types((int, NoneType), (int, NoneType))
VERSION = 1
"""Of the rule and of the dump."""
