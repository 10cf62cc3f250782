"""Bit rot: every single-bit flip and every cut of a closed store is right values or typed errors, and it is named.

LMDB has no checksums: a flipped bit comes out of it as a silently wrong value (the control counts how often), and a
file that was cut ends the process that reads it. Each damage is done in a child process that then reads every record
through the log, by stream and by position, compares it with what was taken down before, and verifies the store.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.testing.damage import Damage, Truth, campaign, judged, truth_of
from tests.log.build import item, opened, raw

ROOT = Path(__file__).resolve().parents[2]
SEED = "flips 1"
FLIPS, FLIPS_SHARED, CUTS, CUTS_SHARED = 2_600, 400, 150, 50
META_BYTES = 176
"""What LMDB reads of a meta page: the page's header, the meta, and 8 bytes more."""

SHARED_LINES = 40
SERVED_LEAST = 0.95
SIZES = (100, 300, 700, 1_200, 3_000, 9_000)


def made(store: Path, commits: int) -> Truth:
    """Three streams, four records a commit, from 100 bytes to 9 kB: leaf, branch and overflow pages."""
    chosen = random.Random(SEED)
    with opened(store) as log:
        for n in range(commits):
            batch = [
                item(f"session/{n % 3}", f"{n}.{k}", chosen.randbytes(chosen.choice(SIZES)))
                for k in range(4)
            ]
            log.append(batch)
    return truth_of(store)


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> Truth:
    """A store of twelve commits."""
    return made(tmp_path_factory.mktemp("flips") / "s.ef", 12)


def table(what: str, truth: Truth, damages: Sequence[Damage]) -> Counter[str]:
    """Run a campaign, print what came of it, and return the sums."""
    total: Counter[str] = Counter()
    for damage, found in campaign(truth, damages, judged):
        total["cases"] += 1
        if "signal" in found:
            total["died"] += 1
            total["outside"] += len(truth.records)
            total["changed"] += 1
            continue
        for name in ("wrong", "served", "outside", "refused", "older_tips", "changed"):
            total[name] += found[name]
        total["verified"] += bool(found["verdict"])
        if found["changed"] or found["refused"] or found["older_tips"]:
            total["to be named"] += 1
            total["named"] += found["verdict"] != "sound"
            if found["verdict"] == "sound":
                print(f"{what}: not named: {damage} {found}")
        total["cases below"] += found["served"] < SERVED_LEAST * found["outside"]
    share = total["served"] / total["outside"]
    print(
        f"{what} (seed {SEED!r}): {total['cases']} cases on {len(truth.records)} records in"
        f" {len(truth.data) // truth.page_size} pages: {total['wrong']} wrong values,"
        f" {total['named']} of {total['to be named']} that changed something named"
        f" ({total['verified']} verified), {total['served']} of {total['outside']} records outside"
        f" the damage served ({share:.1%}; {total['cases below']} cases below {SERVED_LEAST:.0%}),"
        f" {total['older_tips']} older tips, {total['died']} deaths by signal"
    )
    return total


def flips(truth: Truth, count: int) -> list[Damage]:
    chosen = random.Random(SEED)
    return [Damage(chosen.randrange(len(truth.data)), chosen.randrange(8)) for _ in range(count)]


def cuts(truth: Truth, count: int) -> list[Damage]:
    chosen = random.Random(SEED)
    return [Damage(chosen.randrange(len(truth.data))) for _ in range(count)]


def holds(total: Counter[str]) -> None:
    assert total["wrong"] == 0
    assert total["named"] == total["to be named"] > 0


def test_no_flipped_bit_comes_out_as_a_value_and_all_that_change_something_are_named(
    synthetic: Truth,
) -> None:
    total = table("flips", synthetic, flips(synthetic, FLIPS))
    holds(total)
    assert total["served"] >= SERVED_LEAST * total["outside"]


def test_no_flipped_bit_of_a_meta_page_hides_a_commit_unnamed(tmp_path: Path) -> None:
    truth = made(tmp_path / "s.ef", 5)
    damages = [
        Damage(page * truth.page_size + at, bit)
        for page in (0, 1)
        for at in range(META_BYTES)
        for bit in range(8)
    ]
    total = table("meta pages", truth, damages)
    holds(total)
    assert total["cases"] == 2 * META_BYTES * 8
    assert total["served"] >= SERVED_LEAST * total["outside"]


def test_a_file_that_was_cut_serves_what_is_left_of_it(synthetic: Truth) -> None:
    total = table("cuts", synthetic, cuts(synthetic, CUTS))
    holds(total)
    assert total["died"] == 0
    assert total["served"] >= SERVED_LEAST * total["outside"]


def test_a_recorded_session_with_flipped_bits(shared_data: Path, tmp_path: Path) -> None:
    source = next(iter(sorted(shared_data.glob("claude-code/entireio-cli/*.jsonl"))))
    lines = source.read_bytes().splitlines(keepends=True)[:SHARED_LINES]
    (tmp_path / "session.jsonl").write_bytes(b"".join(lines))
    with ef.open(tmp_path / "s.ef") as store:
        store.import_file(tmp_path / "session.jsonl")
    truth = truth_of(tmp_path / "s.ef")
    for what, damages in (
        ("flips", flips(truth, FLIPS_SHARED)),
        ("cuts", cuts(truth, CUTS_SHARED)),
    ):
        total = table(f"{what} of a recorded session", truth, damages)
        holds(total)
        assert total["served"] >= SERVED_LEAST * total["outside"]


# -- controls -----------------------------------------------------------------------------------------------------


def unchecked(truth: Truth, damage: Damage) -> dict[str, Any]:
    """The same oracle over a reader that checks no digest: what LMDB hands out is taken as it is."""
    wrong = 0
    with raw(truth.store) as store:
        rows = store.rows(b"log")
    for kept in truth.records.values():
        frame = rows.get(kept.position.to_bytes(8, "big"))
        wrong += frame is not None and frame != truth.frames[kept.position]
    return {"wrong": wrong}


def test_a_reader_that_checks_nothing_hands_out_wrong_values(synthetic: Truth) -> None:
    found = [got for _, got in campaign(synthetic, flips(synthetic, 150), unchecked)]
    wrong = sum(bool(got.get("wrong")) for got in found)
    print(f"without digests: wrong values in {wrong} of {len(found)} cases")
    assert wrong > len(found) // 4


def test_a_store_that_is_not_damaged_is_served_whole(synthetic: Truth) -> None:
    whole = Damage(len(synthetic.data))
    ((_, found),) = campaign(synthetic, [whole], judged)
    assert (found["served"], found["wrong"]) == (len(synthetic.records), 0)
    assert found["verdict"] == "sound"


# -- the command line -----------------------------------------------------------------------------------------------


def ran(store: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "ef", "--store", str(store), "--json", *words],
        capture_output=True, cwd=ROOT, timeout=120, check=False,
    )  # fmt: skip


def test_the_command_line_never_dies_of_a_damaged_store(tmp_path: Path) -> None:
    with ef.open(tmp_path / "s.ef") as store:
        store.import_file(ROOT / "examples" / "shopcart.jsonl")
        name = min(store.session_names(), key=len)
    file = tmp_path / "s.ef" / "data.mdb"
    data, chosen = file.read_bytes(), random.Random(SEED)
    damages = [
        *(Damage(chosen.randrange(8_192, len(data)), chosen.randrange(8)) for _ in range(4)),
        *(Damage(chosen.randrange(2, len(data) // 4_096) * 4_096 + at, 1) for at in (2, 10, 12)),
        *(Damage(page * 4_096 + 144, 0) for page in (0, 1)),
        *(Damage(chosen.randrange(len(data))) for _ in range(3)),
    ]
    codes: Counter[str] = Counter()
    for damage in damages:
        damage.done_to(file, data)
        for words in (("verify",), ("state", name), ("sessions",)):
            done = ran(tmp_path / "s.ef", *words)
            assert done.returncode in (0, 1, 2, 3, 66), (damage, words, done.stderr)
            assert json.loads(done.stdout), (damage, words)
            codes[f"{words[0]} {done.returncode}"] += 1
        file.write_bytes(data)
    print(f"command line: {len(damages)} damages, exit codes {dict(sorted(codes.items()))}")
    assert ran(tmp_path / "s.ef", "verify").returncode == 0
    assert os.path.getsize(file) == len(data)
