"""The same log gives the same digests in processes that differ in hash seed, time zone, locale and recursion limit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ef

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "claude_code"
SCRIPT = """
import json, sys
sys.setrecursionlimit(int(sys.argv[2]))
import ef
out = {}
with ef.open(sys.argv[1], create=False) as store:
    for name in sorted(store.session_names()):
        session = store.session(name)
        for p in range(1, session.seq + 1, max(1, session.seq // 12)):
            context = session.context(at=p)
            out[f"{name}@{p}"] = [
                context.digest, session.state(at=p).digest, session.working(p).canonical().hex()[-64:],
                json.dumps(context.messages, sort_keys=False)[-200:],
            ]
print(json.dumps(out))
"""
SURROUNDINGS = (
    ({"PYTHONHASHSEED": "0", "TZ": "UTC", "LC_ALL": "C"}, 1000),
    ({"PYTHONHASHSEED": "4242", "TZ": "Asia/Kathmandu", "LC_ALL": "C.UTF-8"}, 1000),
    ({"PYTHONHASHSEED": "77", "TZ": "America/St_Johns", "LC_ALL": "tr_TR.UTF-8"}, 20000),
)


def digests(home: Path, env: dict[str, str], limit: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(home), str(limit)], cwd=ROOT, capture_output=True, text=True, check=True,
        env={**os.environ, **env, "PYTHONUTF8": "0"},
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check(home: Path, least: int) -> None:
    first, *others = [digests(home, env, limit) for env, limit in SURROUNDINGS]
    assert len(first) >= least
    assert len({entry[0] for entry in first.values()}) > 1
    for other in others:
        assert other == first
    print(f"{len(first)} moments in {len(SURROUNDINGS)} processes")


def test_fixtures_have_the_same_digests_in_every_process(tmp_path: Path) -> None:
    with ef.open(tmp_path / "s.ef") as store:
        for file in sorted(FIXTURES.glob("*.jsonl")):
            if file.stem not in ("empty", "blank-lines-only"):
                store.import_file(file)
    check(tmp_path / "s.ef", 300)


@pytest.mark.parametrize(
    "name",
    [
        "claude-code/entireio-cli/cd__95adddad32__0__full.jsonl",
        "claude-code/claude-code-viewer/5c0375b4-57a5-4f26-b12d-d022ee4e51b7.jsonl",
    ],
)
def test_a_transcript_has_the_same_digests_in_every_process(
    name: str, shared_data: Path, tmp_path: Path
) -> None:
    with ef.open(tmp_path / "s.ef") as store:
        store.import_file(shared_data / name)
    check(tmp_path / "s.ef", 12)


def test_two_processes_that_import_the_same_file_agree(tmp_path: Path) -> None:
    """Depth, numbers and texts that a parser's limits touch are read the same wherever they are read."""
    script = (
        "import sys, ef\n"
        "sys.setrecursionlimit(int(sys.argv[3]))\n"
        "with ef.open(sys.argv[1]) as store:\n"
        "    store.import_file(sys.argv[2])\n"
    )
    for stem in ("depth-5000-input", "depth-5000-progress", "depth-70-input", "number-5000-digits"):
        answers = []
        for n, (env, limit) in enumerate(SURROUNDINGS):
            home = tmp_path / f"{stem}-{n}.ef"
            subprocess.run(
                [sys.executable, "-c", script, str(home), str(FIXTURES / f"{stem}.jsonl"), str(limit)],
                cwd=ROOT, check=True, env={**os.environ, **env},
            )  # fmt: skip
            answers.append(digests(home, *SURROUNDINGS[0]))
        assert answers[0] == answers[1] == answers[2], stem
