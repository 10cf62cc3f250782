"""The working projections of one session: the one of now, taken further as the log grows, and those of past moments."""

from __future__ import annotations

from ..log.items import recorded
from ..log.lmdb_log import LmdbLog
from ..projections.working import Working


class Projected:
    """Projections of one stream. Not for several threads at once: the session's lock guards it."""

    def __init__(self, log: LmdbLog, stream: str) -> None:
        self._log, self._stream = log, stream
        self._own = Working(stream)

    def fresh(self, seq: int) -> Working:
        """The projection as of a seq, for the caller to keep."""
        return Working(self._stream).apply(recorded(self._log, self._stream, upto=seq))

    def as_of(self, seq: int) -> Working:
        """The projection as of a seq, to look at: the own one, taken further, where that is enough."""
        own = self._own
        if seq < own.seq:
            return self.fresh(seq)
        return own.apply(recorded(self._log, self._stream, after=own.seq, upto=seq))
