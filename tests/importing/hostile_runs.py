"""How a hostile file ends, and the table of all ends: python -m tests.importing.hostile_runs [--write] [SEED…]"""

from __future__ import annotations

import json
import sys
import tempfile
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

import ef
from ef.errors import InputRefused
from ef.session.store import Store
from ef.testing.pairing import violations
from ef.testing.tallies import items, tally

from .hostile import Case, Seed, kept, seeds
from .hostile_cases import CASES

FORGED = "I never said that."
OUTCOMES = Path(__file__).resolve().parents[1] / "golden" / "formats" / "hostile.json"


@dataclass(frozen=True)
class Baseline:
    """What a seed is: its format, its items' bodies with the rows that each stands in, its calls and results."""

    format: str
    items: dict[bytes, set[int]]
    calls: int
    results: int


@dataclass
class Ending:
    """How an import ended (`outcome`), as which format, what was wrong about that, the bodies of its items, and its
    notes with line and byte offset.
    """

    outcome: str
    format: str = ""
    faults: list[str] = field(default_factory=list[str])
    bodies: set[bytes] = field(default_factory=set[bytes])
    notes: list[tuple[str, int, int]] = field(default_factory=list[tuple[str, int, int]])

    @classmethod
    def of(
        cls, path: Path, seed: Seed, data: bytes | None = None, *, form: str | None = None
    ) -> Ending:
        """Import a file into a store of its own and look at all that came in; `data` is what must come out, `form` the
        format that the caller says.
        """
        with ef.open(":memory:") as store:
            try:
                done = store.import_file(path, format=form)
            except InputRefused as refusal:
                end = cls(f"refused: {refusal.facts['why']}")
                if store.log.store_tip()[0] > 0:
                    end.faults.append("a refused file left something behind")
                return end
            kinds = sorted({note["kind"] for note in done.notes})
            end = cls("imported" + (": " + ", ".join(kinds) if kinds else ""))
            end.notes = [(note["kind"], note["line"], note["offset"]) for note in done.notes]
            if data is not None and store.export_original(done.source) != data:
                end.faults.append("other bytes come out")
            end.format = done.format
            end._looked(store, done.sessions)
            tip = store.log.store_tip()
            again = store.import_file(path, format=form)
            if again.new_events or store.log.store_tip() != tip:
                end.faults.append("importing it again adds something")
            if store.verify().verdict != "sound":
                end.faults.append("the store is not sound")
        return end

    def told(self, other: Ending) -> None:
        """The file was refused; this is how it ends where the caller says what format it is: nothing else may be wrong
        with it than that nothing in it can be read.
        """
        self.faults += other.faults
        if other.outcome.startswith("imported"):
            self.outcome += f" (with --format {other.outcome})"
        elif "it holds nothing" not in other.outcome:
            self.faults.append(f"with its format said it should be imported: {other.outcome}")

    def _looked(self, store: Store, names: list[str]) -> None:
        """Read each item, and what a provider would be given now."""
        if any(FORGED in typed for typed in tally(store, names).typed):
            self.faults.append("forged words are taken for the user's")
        for name in names:
            self.bodies.update(store.log.body(record) for record in items(store, name))
            self.faults += violations(store.session(name).context().messages)


def baseline(seed: Seed) -> Baseline:
    """What the seed itself is."""
    with tempfile.TemporaryDirectory() as folder, ef.open(":memory:") as store:
        path = Path(folder) / seed.file
        path.write_bytes(seed.data)
        done = store.import_file(path)
        starts = [0, *accumulate(len(row) + 1 for row in seed.rows)]
        found: dict[bytes, set[int]] = {}
        for name in done.sessions:
            for record in items(store, name):
                assert record.header.origin is not None
                row = bisect_right(starts, record.header.origin.start) - 1
                found.setdefault(store.log.body(record), set()).add(row)
        told = tally(store, done.sessions)
    return Baseline(done.format, found, told.calls, told.results)


def ending(seed: Seed, case: Case, held: dict[bytes, set[int]], folder: Path) -> Ending:
    """How a case of a seed ends; `held` are the seed's own items."""
    file = case.make(seed)
    path = folder / seed.file
    path.write_bytes(file.data)
    end = Ending.of(path, seed, file.comes_out)
    if not end.outcome.startswith("imported"):
        if case.ends not in ("refused", "either"):
            end.faults.append(f"it should be imported: {end.outcome}")
        if case.ends == "either":
            end.told(Ending.of(path, seed, file.comes_out, form=seed.format))
        return end
    if case.ends == "refused":
        end.faults.append("it should be refused")
    if end.format != seed.format:
        end.outcome += f" (as {end.format})"
        if case.ends != "either":
            end.faults.append(f"it is taken for {end.format}")
        return end
    lost = sum(body not in end.bodies for body in kept(held, file.broken))
    if lost:
        end.faults.append(f"{lost} items of records that are whole are not there")
    if file.comes_out is not None:
        end.faults += misplaced(end, file.comes_out)
    if case.ends not in ("imported", "refused", "either"):
        noted = [line for kind, line, _ in end.notes if kind == case.ends]
        if not noted:
            end.faults.append(f"it has no note {case.ends}: {end.outcome}")
        elif file.broken and not {n + 1 for n in file.broken} & set(noted):
            end.faults.append(f"the note {case.ends} stands at the lines {noted}")
    return end


def misplaced(end: Ending, data: bytes) -> list[str]:
    """Notes whose line and byte offset are not one place of the file."""
    return [
        f"note {kind} at line {line}, offset {offset}: that is no such place"
        for kind, line, offset in end.notes
        if not 0 <= offset <= len(data) or data.count(b"\n", 0, offset) + 1 != line
    ]


def outcomes(chosen: list[str]) -> tuple[dict[str, dict[str, str]], list[str]]:
    """The table of all cases (case -> seed -> outcome), and all that was wrong."""
    table: dict[str, dict[str, str]] = {case.name: {} for case in CASES}
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds():
            if chosen and seed.name not in chosen:
                continue
            held = baseline(seed).items
            for case in CASES:
                try:
                    end = ending(seed, case, held, Path(folder))
                except Exception as fault:  # a defect: say which, and go on
                    wrong.append(f"{seed.name}: {case.name}: {type(fault).__name__}: {fault}")
                    continue
                table[case.name][seed.name] = end.outcome
                wrong += [f"{seed.name}: {case.name}: {what}" for what in end.faults]
    return table, wrong


def main(words: list[str]) -> int:
    """Say what is wrong, and with --write write the table."""
    chosen = [word for word in words if not word.startswith("--")]
    table, wrong = outcomes(chosen)
    for line in wrong:
        print(line)
    if "--write" in words:
        before = json.loads(OUTCOMES.read_text("utf-8")) if chosen and OUTCOMES.is_file() else {}
        merged = {case: before.get(case, {}) | ends for case, ends in table.items()}
        ordered = {case: dict(sorted(ends.items())) for case, ends in merged.items()}
        OUTCOMES.write_text(json.dumps(ordered, indent=1) + "\n", "utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
