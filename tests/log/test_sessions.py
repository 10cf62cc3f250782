"""Sessions and imports run on every kind of log, and say the same on each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ef.session.store import Store
from tests.log.build import ROOT
from tests.log.contract import Kind, Lmdb, Memory, Popo, Sqlite

TRANSCRIPT = ROOT / "examples" / "shopcart.jsonl"
KINDS = (Lmdb, Memory, Popo, Sqlite)


@pytest.fixture
def kinds(tmp_path: Path) -> Iterator[list[Kind]]:
    made = [kind(tmp_path) for kind in KINDS]
    yield made
    for kind in made:
        kind.close()
        if isinstance(kind, Memory):
            kind.end()


def words(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def used(store: Store) -> tuple[object, ...]:
    """What a session and an import leave behind, apart from times, salts and ids."""
    session = store.session("demo")
    seqs = [session.append(words("user", "the port must be 8080"), key="a")]
    waiting = session.append_nowait(words("assistant", "understood"), key="b")
    seqs += [waiting.result(60), asyncio.run(session.aappend(words("user", "go on"), key="c"))]
    seqs.append(session.append(words("user", "go on"), key="c"))
    result = store.import_file(TRANSCRIPT)
    assert store.import_file(TRANSCRIPT).relation == "same"
    assert store.export_original(result.source) == TRANSCRIPT.read_bytes()
    assert store.verify().ok and store.verify(quick=True).ok
    states = {name: store.session(name).state().digest for name in store.session_names()}
    return seqs, result.records, sorted(states.items()), session.context().messages


def test_a_session_says_the_same_on_every_kind_of_log(kinds: list[Kind]) -> None:
    said = {type(kind).__name__: used(Store(kind.open())) for kind in kinds}  # type: ignore[arg-type]
    assert said["Lmdb"][0] and said["Lmdb"][1]
    for name, found in said.items():
        assert found == said["Lmdb"], name
