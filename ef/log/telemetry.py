"""What can be told of a log at work, to whoever asks; nobody does unless told to. Times are seconds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Group:
    """A group that was written: callers, records and bytes of frames; how many callers failed; seconds for preparing,
    and for putting and flushing."""

    requests: int
    records: int
    frame_bytes: int
    failed: int
    prepare: float
    flush: float


class Telemetry(Protocol):
    """Hears of groups, appends and rebuilds. It is called on the writer's thread: it must be quick and never raise."""

    def group(self, group: Group) -> None:
        """A group was written."""
        ...

    def appended(self, seconds: float) -> None:
        """A caller's append was acknowledged, so many seconds after it was accepted."""
        ...

    def rebuilt(self, stream: str, events: int, seconds: float) -> None:
        """A projection of a stream was built from so many events of the log."""
        ...
