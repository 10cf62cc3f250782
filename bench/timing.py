"""Runs side by side: every round runs each contestant once, in another order, so that a slow moment of the machine hits
all of them alike. What counts is the median of a contestant's rounds, and its ratio to the first of the same run.
"""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

Work = Callable[[Path], float | None]
"""Does its work in a fresh folder; gives the seconds that count, or None for all of them."""


@dataclass
class Table:
    """One benchmark: its title, the unit of the rates, and the rows in order."""

    title: str
    unit: str
    rows: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class Row:
    """A contestant: the median seconds of a round, `amount` units that a round does, least and greatest seconds."""

    name: str
    seconds: float
    amount: float
    least: float
    greatest: float

    @property
    def rate(self) -> float:
        """Units a second."""
        return self.amount / self.seconds if self.seconds else float("inf")


@contextmanager
def scratch() -> Iterator[Path]:
    """A fresh folder on the disk that the benchmark is about (TMPDIR chooses it)."""
    folder = Path(tempfile.mkdtemp(prefix="ef-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def race(
    title: str,
    unit: str,
    amount: float | Mapping[str, float],
    contestants: Mapping[str, Work],
    rounds: int,
) -> Table:
    """Run all contestants `rounds` times, interleaved, and time them. `amount`: units a round, each or by name."""
    names = list(contestants)
    taken: dict[str, list[float]] = {name: [] for name in names}
    for n in range(rounds):
        for name in names[n % len(names) :] + names[: n % len(names)]:
            with scratch() as folder:
                start = time.perf_counter()
                counted = contestants[name](folder)
                whole = time.perf_counter() - start
            taken[name].append(whole if counted is None else counted)
    table = Table(title, unit)
    for name, seconds in taken.items():
        middle = statistics.median(seconds)
        units = amount[name] if isinstance(amount, Mapping) else amount
        table.rows.append(Row(name, middle, units, min(seconds), max(seconds)))
    return table


def show(table: Table) -> str:
    """The table as text; the ratio is to the first row, above 1 is faster."""
    head = f"  {'':34}{table.unit:>14}{'median ms':>12}{'least':>10}{'greatest':>10}{'ratio':>8}"
    lines = [f"\n{table.title}", head]
    first = table.rows[0].rate
    for row in table.rows:
        lines.append(
            f"  {row.name:34}{row.rate:>14,.1f}{row.seconds * 1e3:>12.2f}{row.least * 1e3:>10.2f}"
            f"{row.greatest * 1e3:>10.2f}{row.rate / first:>8.2f}"
        )
    return "\n".join(lines)


def machine() -> str:
    """What the figures were taken on."""
    import lmdb

    import ef

    facts = (
        f"{os.cpu_count()} CPUs",
        f"{platform.system()} {platform.machine()}",
        f"Python {platform.python_version()}",
        f"lmdb {lmdb.__version__} (LMDB {'.'.join(map(str, lmdb.version()))})",
        f"eventsourcing {version('eventsourcing')}",
        f"ef {ef.__version__}",
    )
    return ", ".join(facts)
