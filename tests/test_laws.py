"""The laws of the design, each by its name, for the mechanisms that exist."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.errors import InputRefused
from ef.importers.names import session_stream
from ef.log.items import recorded
from ef.projections.working import Working
from ef.reducers import ALL
from ef.testing.killing import Writers
from ef.testing.mutations import MUTATIONS, mutated
from ef.testing.pairing import violations
from ef.testing.plans import Append
from ef.testing.transcripts import transcript

FIXTURES = Path(__file__).resolve().parent / "fixtures" / "claude_code"
NAMES = sorted(
    p.stem for p in FIXTURES.glob("*.jsonl") if p.stem not in ("empty", "blank-lines-only")
)
MUTANTS = 300
BATCH = 30
EACH_UPTO = 120


def imported(home: Path, data: bytes) -> ef.Store:
    file = home.with_suffix(".jsonl")
    file.write_bytes(data)
    store = ef.open(home)
    store.import_file(file)
    return store


# ------------------------------------------------------------------------------------------------------------ L1


def test_l1_after_a_crash_the_chain_to_every_acknowledged_record_verifies(tmp_path: Path) -> None:
    """More of it, with figures: tests/crash."""
    acked = 0
    with Writers() as writers:
        for n in range(3):
            out = writers.kill_one(tmp_path / "s.ef", Append("law", n * 60, 60), 0.06 + 0.03 * n)
            assert (out.lost, out.faults, out.duplicates) == ([], [], 0)
            acked += out.acked
    with ef.open(tmp_path / "s.ef") as store:
        checked = store.verify()
        assert checked.ok
        assert checked.events >= acked


# ------------------------------------------------------------------------------------------------------------ L2


@pytest.mark.parametrize("name", NAMES)
def test_l2_a_projection_that_stopped_anywhere_goes_on_to_the_same_bytes(
    name: str, tmp_path: Path
) -> None:
    with imported(tmp_path / "s.ef", (FIXTURES / f"{name}.jsonl").read_bytes()) as store:
        for session_name in store.session_names():
            stream = session_stream(session_name)
            events = list(recorded(store.log, stream))
            whole = Working(stream).apply(events)
            kept_up = Working(stream)
            for n, event in enumerate(events):
                kept_up.apply([event])
                rebuilt = Working(stream).apply(events[: n + 1])
                assert rebuilt.canonical() == kept_up.canonical(), f"at {n + 1}"
                went_on = rebuilt.apply(events[n + 1 :])
                assert went_on.canonical() == whole.canonical(), f"split at {n + 1}"


def reloaded(working: Working) -> Working:
    """The projection out of the dumps of its parts."""
    first, *others = (
        Working.loaded(working.stream, r, working.seq, working.digest, working.dump(r))
        for r in working.reducers
    )
    for other in others:
        first.join(other)
    return first


def l2_by_dumps(store: ef.Store, every: int) -> int:
    """Stop each session after each event (or each `every`-th), go on from the dumps alone; how often that was done."""
    stops = 0
    for name in store.session_names():
        stream = session_stream(name)
        events = list(recorded(store.log, stream))
        step = 1 if len(events) <= every else len(events) // every
        kept_up, gone_on = Working(stream), Working(stream)
        for n, event in enumerate(events, 1):
            kept_up.apply([event])
            gone_on.apply([event])
            if n % step == 0 or n == len(events):
                gone_on, stops = reloaded(gone_on), stops + 1
                assert gone_on.canonical() == kept_up.canonical(), f"{name} at {n}"
                assert gone_on.refused == kept_up.refused, f"{name} at {n}"
        assert [gone_on.dump(r) for r in ALL] == [kept_up.dump(r) for r in ALL]
    return stops


@pytest.mark.parametrize("name", NAMES)
def test_l2_a_projection_goes_on_from_its_dumps_at_every_event_of_a_fixture(
    name: str, tmp_path: Path
) -> None:
    with imported(tmp_path / "s.ef", (FIXTURES / f"{name}.jsonl").read_bytes()) as store:
        names = list(store.session_names())
        assert l2_by_dumps(store, every=10**6) >= len(names)


@pytest.mark.shared_data
def test_l2_a_projection_goes_on_from_its_dumps_in_real_sessions(
    shared_data: Path, tmp_path: Path
) -> None:
    """After each event of the shorter ones, at places all over the longer ones."""
    files = sorted((shared_data / "claude-code").rglob("*.jsonl"), key=lambda p: p.stat().st_size)
    assert len(files) >= 10
    stops = 0
    for n, file in enumerate(files):
        with imported(tmp_path / f"{n}.ef", file.read_bytes()) as store:
            stops += l2_by_dumps(store, every=EACH_UPTO if n < len(files) - 4 else 20)
    assert stops > 400


# ------------------------------------------------------------------------------------------------------------ L3


def test_l3_asking_for_a_moment_writes_nothing_and_answers_the_same_again(tmp_path: Path) -> None:
    """Other stores and other processes: tests/replay."""
    with imported(tmp_path / "s.ef", transcript(12)) as store:
        tip = store.log.store_tip()
        (name,) = store.session_names()
        session = store.session(name)
        first = [(session.context(at=p), session.state(at=p)) for p in range(session.seq + 1)]
        again = [(session.context(at=p), session.state(at=p)) for p in range(session.seq + 1)]
        assert first == again
        assert len({context.digest for context, _ in first}) > 20
        assert store.log.store_tip() == tip


def test_l3_what_comes_later_does_not_change_a_past_moment(tmp_path: Path) -> None:
    data = transcript(12)
    rows = data.splitlines(keepends=True)
    with imported(tmp_path / "s.ef", b"".join(rows[:20])) as store:
        (name,) = store.session_names()
        session = store.session(name)
        last = session.seq
        before = [(session.context(at=p), session.state(at=p)) for p in range(last + 1)]
        (tmp_path / "s.jsonl").write_bytes(data)
        store.import_file(tmp_path / "s.jsonl")
        assert session.seq > last
        assert [(session.context(at=p), session.state(at=p)) for p in range(last + 1)] == before


def test_l3_snapshots_change_no_answer(tmp_path: Path) -> None:
    """More of it: tests/session/test_snapshots.py."""
    with imported(tmp_path / "s.ef", transcript(260)) as store:
        (name,) = store.session_names()
        session = store.session(name)
        points = (session.seq, 1_001, 1_000, 999)
        assert session.seq > 1_000
        cold = [session.working(p).canonical() for p in points]
        kept = sorted((tmp_path / "s.ef" / "projections").rglob("1000"))
        names = {file.parent.name.rpartition("-")[0] for file in kept}
        assert names == {"outline", *(reducer.name for reducer in ALL)}
        warm = [session.working(p).canonical() for p in points]
        for file in kept:
            file.write_bytes(file.read_bytes()[:-9])
        assert [session.working(p).canonical() for p in points] == cold == warm


# ----------------------------------------------------------------------------------------------------------- L10


def said(text: str, n: int) -> dict[str, Any]:
    return {
        "type": "assistant", "uuid": f"claim-{n}", "sessionId": "law", "isSidechain": False,
        "timestamp": "2026-03-02T10:00:00.000Z",
        "message": {
            "role": "assistant", "id": f"msg_claim_{n}", "model": "m", "content": [{"type": "text", "text": text}],
        },
    }  # fmt: skip


def summarised(text: str) -> list[dict[str, Any]]:
    return [
        {
            "type": "system", "subtype": "compact_boundary", "uuid": "border", "sessionId": "law", "parentUuid": None,
            "content": "Conversation compacted", "compactMetadata": {"trigger": "auto", "preTokens": 9},
        },
        {
            "type": "user", "uuid": "summary", "sessionId": "law", "isSidechain": False, "isCompactSummary": True,
            "message": {"role": "user", "content": text},
        },
    ]  # fmt: skip


def run(n: int, output: str, *, failed: bool) -> list[dict[str, Any]]:
    call = f"toolu_run_{n}"
    block = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": "pytest"}}
    result = {"type": "tool_result", "tool_use_id": call, "content": output, "is_error": failed}
    return [
        {
            "type": "assistant", "uuid": f"use-{n}", "sessionId": "law", "isSidechain": False,
            "message": {"role": "assistant", "id": f"msg_run_{n}", "model": "m", "content": [block]},
        },
        {
            "type": "user", "uuid": f"result-{n}", "sessionId": "law", "isSidechain": False,
            "message": {"role": "user", "content": [result]},
        },
    ]  # fmt: skip


FAILED_RUN = "Exit code 1\n" + "=" * 20 + " short test summary info " + "=" * 20 + (
    "\nFAILED tests/test_tea.py::test_pot - assert 0\n" + "=" * 20 + " 1 failed, 2 passed in 0.11s " + "=" * 20
)  # fmt: skip
GREEN_RUN = "=" * 20 + " 3 passed in 0.10s " + "=" * 20
CLAIM = "All tests pass now. 3 passed in 0.10s. The bug is verified as fixed."


def heads(store: ef.Store) -> dict[str, Any]:
    return {key: head.value for key, head in store.session("law").state().heads.items()}


def lines(records: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(r).encode() + b"\n" for r in records)


def test_l10_a_summary_and_an_assistant_that_claim_success_change_no_head(tmp_path: Path) -> None:
    told = run(1, FAILED_RUN, failed=True)
    claims = [
        said(CLAIM, 1),
        *summarised(f"This session is being continued. {CLAIM}"),
        said(CLAIM, 2),
    ]
    with imported(tmp_path / "a.ef", lines(told)) as store:
        want, digest = heads(store), store.session("law").state().digest
        assert [value for key, value in want.items() if key.endswith("/status")] == ["failed"]
    with imported(tmp_path / "b.ef", lines([*told, *claims])) as store:
        assert heads(store) == want
        assert store.session("law").state().digest == digest
        assert CLAIM in json.dumps(store.session("law").context().messages)
    with imported(
        tmp_path / "c.ef", lines([*told, *claims, *run(2, GREEN_RUN, failed=False)])
    ) as s:
        now = heads(s)
        assert [value for key, value in now.items() if key.endswith("/status")] == ["passed"]


# ----------------------------------------------------------------------------------------------------------- L12


def test_l12_the_state_follows_the_number_of_keys_and_not_the_length_of_history(
    tmp_path: Path,
) -> None:
    sizes = []
    for times in (4, 40, 400):
        with ef.open(tmp_path / f"{times}.ef") as store:
            session = store.session("law")
            for n in range(times):
                session.declare("value", key=f"config/server/{'abcd'[n % 4]}", value=n % 4)
            working = session.working()
            assert len(working.heads.heads) == 4
            sizes.append(len(working.canonical()))
    assert max(sizes) - min(sizes) < 64, sizes
    with ef.open(tmp_path / "keys.ef") as store:
        session = store.session("law")
        for n in range(40):
            session.declare("value", key=f"config/server/k{n}", value=1)
        assert len(session.working().canonical()) > 4 * max(sizes)


# ----------------------------------------------------------------------------------------------------------- L13


def test_l13_what_is_appended_out_of_order_is_handed_out_as_pairs(tmp_path: Path) -> None:
    """Fixtures and transcripts at every moment: tests/importing. Every provider format: tests/render."""
    chosen = random.Random(13)
    looked = 0
    with ef.open(tmp_path / "s.ef") as store:
        for n in range(12):
            session = store.session(f"law-{n}")
            ids: list[str] = []
            for m in range(20):
                kind = chosen.choice(["use", "use2", "result", "old", "text", "say"])
                session.append(message(kind, f"t{n}-{m}", ids, chosen))
                looked += 1
                assert violations(session.context().messages) == [], f"session {n}, message {m}"
            for p in range(session.seq + 1):
                looked += 1
                assert violations(session.context(at=p).messages) == [], f"session {n} at {p}"
    assert looked > 400


def message(kind: str, name: str, ids: list[str], chosen: random.Random) -> dict[str, Any]:
    if kind.startswith("use"):
        new = [f"{name}-{k}" for k in range(2 if kind == "use2" else 1)]
        ids += new
        blocks = [{"type": "tool_use", "id": i, "name": "Bash", "input": {}} for i in new]
        return {"role": "assistant", "content": blocks}
    if kind in ("result", "old") and ids:
        which = ids.pop() if kind == "result" else chosen.choice(ids)
        block = {"type": "tool_result", "tool_use_id": which, "content": "out"}
        return {"role": "user", "content": [block]}
    return {"role": "assistant" if kind == "say" else "user", "content": f"words {name}"}


# ----------------------------------------------------------------------------------------------------------- L15


def survives(home: Path, what: str, data: bytes) -> str:
    """Import hostile bytes: refused whole, or taken byte for byte with a sound store behind it."""
    file = home.with_suffix(".jsonl")
    file.write_bytes(data)
    with ef.open(home) as store:
        tip = store.log.store_tip()
        try:
            done = store.import_file(file)
        except InputRefused:
            assert store.log.store_tip() == tip, f"{what}: half of it was kept"
            return "refused"
        assert store.export_original(done.source) == data, what
        for name in done.sessions:
            session = store.session(name)
            assert violations(session.context().messages) == [], what
            session.state()
        checked = store.verify()
        assert checked.verdict == "sound", f"{what}: {checked.problems}"
        tip = store.log.store_tip()
        store.import_file(file)
        assert store.log.store_tip() == tip, f"{what}: a second import wrote"
        return "remarked" if done.notes else "taken"


@pytest.mark.parametrize("batch", range(MUTANTS // BATCH))
def test_l15_a_broken_line_is_remarked_or_refused_and_never_half_imported(
    batch: int, tmp_path: Path
) -> None:
    chosen = random.Random(f"mutants {batch}")
    outcomes: dict[str, int] = {}
    for n in range(BATCH):
        rows = (FIXTURES / f"{chosen.choice(NAMES)}.jsonl").read_bytes().split(b"\n")
        what, data = mutated(chosen, [row for row in rows if row])
        outcome = survives(tmp_path / f"{n}.ef", f"batch {batch}, mutant {n}: {what}", data)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    print(f"batch {batch}: {outcomes}")
    assert sum(outcomes.values()) == BATCH
    assert outcomes.get("remarked", 0) > 0


def test_l15_broken_lines_of_real_transcripts_are_survived_too(
    shared_data: Path, tmp_path: Path
) -> None:
    chosen = random.Random("real")
    rows: list[bytes] = []
    for name in ("1af7fc5e-8455-4414-9ccd-011d40f70b2a", "5c0375b4-57a5-4f26-b12d-d022ee4e51b7"):
        file = shared_data / "claude-code" / "claude-code-viewer" / f"{name}.jsonl"
        rows += file.read_bytes().splitlines()
    outcomes: dict[str, int] = {}
    for n in range(60):
        at = chosen.randrange(len(rows) - 12)
        what, data = mutated(chosen, rows[at : at + 12])
        outcome = survives(tmp_path / f"{n}.ef", f"mutant {n}: {what}", data)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    print(outcomes)


@pytest.mark.parametrize("how", MUTATIONS, ids=lambda how: how.__name__)
def test_l15_each_mutation_changes_lines(how: Any) -> None:
    chosen = random.Random(how.__name__)
    rows = [r for r in (FIXTURES / "parallel-interleaved.jsonl").read_bytes().split(b"\n") if r]
    assert sum(how(chosen, row) != row for row in rows * 5) >= len(rows)
