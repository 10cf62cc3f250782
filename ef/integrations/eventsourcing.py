"""A store as the persistence of an application of the eventsourcing library: `PERSISTENCE_MODULE` names this module.

The library wants exactly one factory in it. How to use it: docs/eventsourcing.md.
"""

from __future__ import annotations

from ..log import factory
from ..log.lmdb_log import LmdbLog
from ..session.store import open_store


class Factory(factory.LmdbFactory):
    """Opens the store as `ef.open` does."""

    def open_log(self, path: str) -> LmdbLog:
        """Open the store in a folder; make it if it is not there."""
        store = open_store(path)
        return store.in_folder(
            "EF_STORE", "recorders of the library need a store that others can open"
        )
