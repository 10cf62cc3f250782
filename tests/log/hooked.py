"""The library's recorder in memory with hooks, and a log over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from eventsourcing.persistence import OperationalError, StoredEvent
from eventsourcing.popo import POPOApplicationRecorder

from ef.log.generic import GenericLog
from tests.log.build import clock


def fails() -> None:
    raise OperationalError("the connection was lost")


class Hooked(POPOApplicationRecorder):
    """The library's recorder, with something that happens before or after an insert."""

    before: Callable[[], object] | None = None
    after: Callable[[], object] | None = None
    broken = False

    def select_events(self, *args: Any, **how: Any) -> Any:
        if self.broken:
            raise OperationalError("it is gone")
        return super().select_events(*args, **how)

    def insert_events(self, stored_events: Sequence[StoredEvent], **how: Any) -> Any:
        hook, self.before = self.before, None
        if hook is not None:
            hook()
        ids = super().insert_events(stored_events, **how)
        hook, self.after = self.after, None
        if hook is not None:
            hook()
        return ids

    def change(self, name: str, version: int, state: Any) -> None:
        """Put another state into a row; None takes the row out."""
        at = self._stored_events_index[name][version]
        if state is None:
            del self._stored_events_index[name][version]
        else:
            old = self._stored_events[at]
            self._stored_events[at] = StoredEvent(name, version, old.topic, state)

    def state(self, name: str, version: int = 1) -> bytes:
        return self._stored_events[self._stored_events_index[name][version]].state


@contextmanager
def over(recorder: Any, **how: Any) -> Iterator[GenericLog]:
    with GenericLog(recorder, now=clock(), **how) as log:
        yield log
