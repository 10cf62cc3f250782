"""A long session for the tests of snapshots: made once, without and with snapshots; nobody writes to these."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ef
from tests.session.longer import NAME, made

EVENTS = 3_300


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a long session and no snapshots."""
    return made(tmp_path_factory.mktemp("long") / "s.ef", EVENTS)


@pytest.fixture(scope="session")
def warm(plain: Path) -> Path:
    """The same, with snapshots."""
    copied = Path(shutil.copytree(plain, plain.with_name("warm.ef")))
    with ef.open(copied) as store:
        store.session(NAME).working()
        store.session(NAME).state(at="2030-01-01T00:00:00Z")
        store.sessions()
    return copied
