"""Verdicts of test runs in recorded transcripts, against labels made by hand without reading the observers' code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.events import Anchor, AnchorDeclared
from ef.importers.names import session_stream
from ef.log.items import event_of

LABELS = json.loads(
    (Path(__file__).resolve().parents[1] / "golden" / "labels" / "testruns.json").read_text("utf-8")
)["files"]
FILES = sorted(LABELS)
RECALL_LEAST = 0.9


@dataclass(frozen=True)
class Verdict:
    """A status anchor: the call whose result grounds it, and what it says."""

    call_id: str
    value: str
    key: str


def statuses(store: ef.Store, name: str) -> Iterator[Verdict]:
    """Every status anchor of a session's log, with the call id from the facts of the item that it cites."""
    for record in store.log.read(session_stream(name)):
        if record.header.kind != AnchorDeclared.__name__:
            continue
        event = event_of(store.log, record)
        assert isinstance(event, AnchorDeclared)
        anchor: Anchor = event.anchor
        if anchor.key.property != "status":
            continue
        (ref,) = anchor.sources
        cited = store.log.get(ref.stream, ref.seq).header
        assert cited.item is not None
        yield Verdict(str(cited.item.parts[ref.part].call_id), str(anchor.value), str(anchor.key))


@dataclass
class Compared:
    """Labels against anchors of one file."""

    decidable: int = 0
    right: int = 0
    unknown: int = 0
    decoys: int = 0
    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    invented: list[str] = field(default_factory=list)


def compare(store: ef.Store, sessions: list[str], entry: dict[str, Any]) -> Compared:
    found: dict[str, list[Verdict]] = {}
    for name in sessions:
        for verdict in statuses(store, name):
            found.setdefault(verdict.call_id, []).append(verdict)
    out = Compared()
    known: set[str] = set()
    for label in entry["labels"]:
        call, want = label["call_id"], label["verdict"]
        known.add(call)
        got = found.get(call, [])
        if want not in ("passed", "failed"):
            out.unknown += 1
            out.invented += [f"{call}: labelled {want}, {v.key} says {v.value}" for v in got]
            continue
        out.decidable += 1
        out.wrong += [f"{call}: {v.key} says {v.value}, not {want}" for v in got if v.value != want]
        if not got:
            out.missed.append(f"{call}: {want} ({label['command_shape']}): {label['why']}")
        elif all(v.value == want for v in got):
            out.right += 1
    for decoy in entry.get("decoys", []):
        call = decoy["call_id"] if isinstance(decoy, dict) else decoy
        known.add(call)
        out.decoys += 1
        out.invented += [f"decoy {call}: {v.key} says {v.value}" for v in found.get(call, [])]
    out.invented += [
        f"{call}: no label, {v.key} says {v.value}"
        for call, verdicts in found.items()
        if call not in known
        for v in verdicts
    ]
    return out


def compared(file: str, shared_data: Path, tmp_path: Path) -> Compared:
    with ef.open(tmp_path / f"{FILES.index(file)}.ef") as store:
        done = store.import_file(shared_data / file)
        return compare(store, done.sessions, LABELS[file])


@pytest.mark.parametrize("file", FILES)
def test_no_verdict_is_wrong_or_invented_and_nine_in_ten_are_found(
    file: str, shared_data: Path, tmp_path: Path
) -> None:
    c = compared(file, shared_data, tmp_path)
    print(
        f"{file}: {c.right} of {c.decidable} decidable right, {len(c.wrong)} wrong, {c.unknown} unknown,"
        f" {c.decoys} decoys, {len(c.invented)} invented; missed: {c.missed}"
    )
    assert c.decidable > 0
    assert c.wrong == []
    assert c.invented == []
    assert c.right >= RECALL_LEAST * c.decidable, c.missed


def test_over_all_files_nine_in_ten_decidable_verdicts_are_found(
    shared_data: Path, tmp_path: Path
) -> None:
    found = [compared(file, shared_data, tmp_path) for file in FILES]
    right = sum(c.right for c in found)
    decidable = sum(c.decidable for c in found)
    unknown = sum(c.unknown for c in found)
    decoys = sum(c.decoys for c in found)
    print(f"{right} of {decidable} decidable, {unknown} unknown, {decoys} decoys")
    assert decidable >= 40
    assert unknown > 0 and decoys >= 100
    assert right >= RECALL_LEAST * decidable


@pytest.mark.parametrize("file", FILES[:2])
def test_a_turned_label_or_a_labelled_decoy_would_be_noticed(
    file: str, shared_data: Path, tmp_path: Path
) -> None:
    turn = {"passed": "failed", "failed": "passed"}
    labels = [dict(x, verdict=turn.get(x["verdict"], "unknown")) for x in LABELS[file]["labels"]]
    with ef.open(tmp_path / "s.ef") as store:
        sessions = store.import_file(shared_data / file).sessions
        turned = compare(store, sessions, {"labels": labels})
        assert len(turned.wrong) == turned.decidable > 0
        none = compare(store, sessions, {"labels": [], "decoys": labels})
        assert len(none.invented) >= turned.decidable
