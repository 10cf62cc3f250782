"""Floor 3: records, chain, LMDB, and the same store as a recorder of the eventsourcing library."""

from .base import EMPTY, Appended, Draft, Log, Record, Tip
from .sources import source_stream

__all__ = ["EMPTY", "Appended", "Draft", "Log", "Record", "Tip", "source_stream"]
