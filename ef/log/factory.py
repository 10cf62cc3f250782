"""The infrastructure factory of the eventsourcing library for a store. Who opens the store, with which clock, is said
by a subclass on a floor that may draw the time.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeVar

from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    InfrastructureFactory,
    ProcessRecorder,
)
from eventsourcing.utils import Environment, EnvType, resolve_topic

from .lmdb_log import LmdbLog
from .recorder import (
    LmdbAggregateRecorder,
    LmdbApplicationRecorder,
    LmdbProcessRecorder,
    LmdbRecorder,
    LmdbTrackingRecorder,
)
from .stored import EVENTS

R = TypeVar("R", bound=LmdbRecorder)


class LmdbFactory(InfrastructureFactory[LmdbTrackingRecorder]):
    """Recorders over the store in the folder that EF_STORE names; the application's name keeps its rows apart."""

    EF_STORE = "EF_STORE"

    def __init__(self, env: Environment | EnvType | None) -> None:
        super().__init__(env)
        path = self.env.get(self.EF_STORE)
        if not path:
            keys = ", ".join(self.env.create_keys(self.EF_STORE))
            raise OSError(f"the folder of the store is not in the environment: set one of {keys}")
        self.log = self.open_log(path)

    @abstractmethod
    def open_log(self, path: str) -> LmdbLog:
        """Open the store in a folder; make it if it is not there."""

    def close(self) -> None:
        """Let the store go. What was inserted is durable already."""
        self.log.close()

    def aggregate_recorder(self, purpose: str = EVENTS) -> AggregateRecorder:
        """A recorder of stored events; those of another purpose than `events` are no notifications."""
        return LmdbAggregateRecorder(self.log, self.env.name, purpose)

    def application_recorder(self) -> ApplicationRecorder:
        """A recorder of events and notifications: that of APPLICATION_RECORDER_TOPIC where it is set."""
        return self._made(self.APPLICATION_RECORDER_TOPIC, LmdbApplicationRecorder)

    def tracking_recorder(
        self, tracking_recorder_class: type[LmdbTrackingRecorder] | None = None
    ) -> LmdbTrackingRecorder:
        """A recorder of positions: of the given class, else that of TRACKING_RECORDER_TOPIC where it is set."""
        if tracking_recorder_class is not None:
            return tracking_recorder_class(self.log, self.env.name)
        return self._made(self.TRACKING_RECORDER_TOPIC, LmdbTrackingRecorder)

    def process_recorder(self) -> ProcessRecorder:
        """A recorder of events and the positions they come from: that of PROCESS_RECORDER_TOPIC where it is set."""
        return self._made(self.PROCESS_RECORDER_TOPIC, LmdbProcessRecorder)

    def _made(self, key: str, default: type[R]) -> R:
        topic = self.env.get(key)
        kind: type[R] = resolve_topic(topic) if topic else default
        return kind(self.log, self.env.name)
