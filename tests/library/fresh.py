"""What puts the library's suites on our store: a fresh store for every test, since notification ids begin at 1."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from typing import Any
from uuid import uuid4  # noqa: TID251  (the suites' own way to make ids)

from eventsourcing.utils import Environment

import ef
from ef.integrations.eventsourcing import Factory
from ef.log.lmdb_env import LmdbEnv

MODULE = "ef.integrations.eventsourcing"
TOPIC = f"{MODULE}:Factory"


class Fresh:
    """For suites of recorders: `log` is the log of a store that `ef.open` made. Stands before the suite's class."""

    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp()
        self.store = ef.open(os.path.join(self.folder, "store"))
        self.log = self.store.log
        super().setUp()  # type: ignore[misc]

    def tearDown(self) -> None:
        try:
            super().tearDown()  # type: ignore[misc]
            verified = self.store.verify()
            assert verified.ok, verified.problems
        finally:
            self.store.close()
            shutil.rmtree(self.folder)


class TextIds:
    """For suites of recorders: originator ids are texts."""

    def new_originator_id(self) -> str:
        return "order/" + str(uuid4())


class FreshEnvironment:
    """For suites of applications: a fresh store is named in `env` and in the process's environment."""

    env: Any

    def setUp(self) -> None:
        self.folder = tempfile.mkdtemp()
        self.path = os.path.join(self.folder, "store")
        given = {"PERSISTENCE_MODULE": MODULE, "EF_STORE": self.path}
        self.env = Environment("", given)
        self.kept = {key: os.environ.get(key) for key in given}
        os.environ.update(given)
        super().setUp()  # type: ignore[misc]

    def tearDown(self) -> None:
        try:
            super().tearDown()  # type: ignore[misc]
            close_factories()
            close_what_is_left(self.path)
            with ef.open(self.path) as store:
                verified = store.verify()
                assert verified.ok, verified.problems
        finally:
            for key, value in self.kept.items():
                if value is None:
                    del os.environ[key]
                else:
                    os.environ[key] = value
            shutil.rmtree(self.folder)


def close_factories() -> None:
    """The suites leave applications open."""
    for thing in gc.get_objects():
        if isinstance(thing, Factory):
            thing.close()


def close_what_is_left(path: str) -> None:
    """Factories that were forgotten before they were closed have left the store open."""
    for env in [env for env in LmdbEnv._open.values() if str(env.path) == str(path)]:
        while not env.release():
            pass
