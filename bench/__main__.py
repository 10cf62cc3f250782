"""All benchmarks: python -m bench [--quick]"""

from __future__ import annotations

import argparse
import sys
import tempfile

from . import appends, cold, follow, imports, in_flight, reads, replay
from .timing import machine, show

ROUNDS = 5


def main(arguments: list[str]) -> int:
    """Run them and print a table each."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="The benchmarks.")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run at all")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"at least {ROUNDS} for figures")
    given = parser.parse_args(arguments)
    rounds = 1 if given.quick else given.rounds
    print(machine())
    print(f"median of {rounds} interleaved rounds; files in {tempfile.gettempdir()} (TMPDIR)")
    print("ratio: how often as fast as the first row of its table, in the same run")
    for module in (appends, in_flight, reads, imports, follow, replay, cold):
        for table in module.tables(quick=given.quick, rounds=rounds):
            print(show(table), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
