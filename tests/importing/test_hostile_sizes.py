"""A file that is large in a hostile way costs what its size says: in time and in memory, measured in its own process.

Smaller in every run; as large as the list of cases has them in a long one (HYPOTHESIS_PROFILE=long).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.importing.hostile import SEED_NAMES, seeds
from tests.importing.hostile_cases import sizes

ROOT = Path(__file__).resolve().parents[2]
LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
SEEDS = {seed.name: seed for seed in seeds()}
CASES = sizes(full=LONG)
SECONDS, TIMES_JSON = 2.0, 6.0
SLOW_MACHINE = 4.0
"""A machine that tests run on may be slow, and is busy; python -m bench measures the bar itself."""
MEMORY, TIMES_LINE = 128 << 20, 4


@pytest.mark.parametrize("name", SEED_NAMES)
def test_a_large_file_costs_what_its_size_says(
    name: str, tmp_path: Path, figure: Callable[[str], None]
) -> None:
    seed = SEEDS[name]
    paths: list[Path] = []
    for n, case in enumerate(CASES):
        folder = tmp_path / f"file{n}"
        folder.mkdir()
        paths.append(folder / seed.file)
        paths[-1].write_bytes(case.make(seed).data)
    told = subprocess.run(
        [sys.executable, "-m", "tests.importing.size_probe", str(tmp_path), *map(str, paths)],
        cwd=ROOT, capture_output=True, text=True, timeout=3600 if LONG else 300,
    )  # fmt: skip
    assert (told.returncode, told.stderr) == (0, "")
    wrong: list[str] = []
    for case, path, found in zip(CASES, paths, json.loads(told.stdout), strict=True):
        longest = max(len(line) for line in path.read_bytes().split(b"\n"))
        bar = max(SECONDS, TIMES_JSON * found["json"])
        most = MEMORY + TIMES_LINE * longest
        line = (
            f"hostile: {name}: {case.name}: {found['outcome']}, {found['seconds']:.2f} s (bar {bar:.2f}),"
            f" {found['peak'] / 2**20:.0f} MiB (bar {most / 2**20:.0f})"
        )
        figure(line)
        good = found["outcome"].startswith("imported") and found["peak"] <= most
        if not good or found["seconds"] > SLOW_MACHINE * bar:
            wrong.append(line)
    assert wrong == []
