"""Imports in a process of their own: python -m tests.importing.size_probe STORE FILE…; a list of figures on stdout.

The memory is the most that the process has had so far: give the files that may take the least of it first.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import time
from pathlib import Path

import ef
from ef.errors import InputRefused


def probe(store_path: Path, path: Path) -> dict[str, float | str]:
    """Seconds of the import, the process's greatest memory then (bytes), and seconds of json.loads of the same file."""
    start = time.perf_counter()
    with ef.open(store_path) as store:
        try:
            kinds = sorted({note["kind"] for note in store.import_file(path).notes})
            outcome = "imported" + (": " + ", ".join(kinds) if kinds else "")
        except InputRefused as refusal:
            outcome = f"refused: {refusal.facts['why']}"
        seconds = time.perf_counter() - start
        peak = peak_bytes()
    return {"outcome": outcome, "seconds": seconds, "peak": peak, "json": json_seconds(path)}


def peak_bytes() -> int:
    """The most memory that this program has had; getrusage would count what its parent had when it began."""
    told = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text("ascii"))
    assert told is not None
    return int(told[1]) * 1024


def json_seconds(path: Path) -> float:
    """Seconds that json.loads takes for the whole file, or for each of its lines."""
    data = path.read_bytes()
    lines = [data] if path.suffix != ".jsonl" else data.split(b"\n")
    start = time.perf_counter()
    for line in lines:
        with contextlib.suppress(ValueError, RecursionError):
            json.loads(line)
    return time.perf_counter() - start


if __name__ == "__main__":
    store, *files = map(Path, sys.argv[1:])
    found = [probe(store / str(n), file) for n, file in enumerate(files)]
    sys.stdout.write(json.dumps(found))
