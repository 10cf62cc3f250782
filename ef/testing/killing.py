"""Writers that are killed, and the oracle that says what the store owes.

A child process appends or imports by a plan and acknowledges each step on a pipe once the store has said that it is
durable. The parent kills it with SIGKILL at a chosen moment, reads what was acknowledged, opens the store again and
asks: is every acknowledged step there, as it was acknowledged; is each other step there whole or not at all; does doing
all of it again add only what is missing. A child is killed after a time, or while it is held at a named point.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ..log import points
from ..session.store import Store, open_store
from .plans import Append, Burst, Import, Plan, plan_of


@dataclass(slots=True)
class Outcome:
    """What a kill left: steps acknowledged, those of them that are lost, others that were kept, and what is wrong."""

    acked: int = 0
    lost: list[str] = field(default_factory=list[str])
    kept_unacked: int = 0
    duplicates: int = 0
    faults: list[str] = field(default_factory=list[str])
    done: bool = False

    def add(self, other: Outcome) -> None:
        """Add another kill's figures."""
        self.acked += other.acked
        self.lost += other.lost
        self.kept_unacked += other.kept_unacked
        self.duplicates += other.duplicates
        self.faults += other.faults


class Writers:
    """Makes the children: a process that has loaded all code, holds nothing open, and forks one for each plan."""

    def __init__(self) -> None:
        words = [sys.executable, "-m", __name__]
        self._maker = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )

    def __enter__(self) -> Writers:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._maker.stdin is not None
        assert self._maker.stdout is not None
        self._maker.stdin.close()
        self._maker.wait()
        self._maker.stdout.close()

    def kill_one(
        self, store: Path, plan: Plan, after: float, *, from_start: bool = False
    ) -> Outcome:
        """Run the plan in a child, kill it `after` seconds after its start signal, and judge the store.

        The signal comes before the child opens the store (`from_start`) or behind it.
        """
        ledger, done = self._run(store, plan, after, from_start)
        out = judge(store, plan, ledger)
        out.done = done
        return out

    def kill_at(self, store: Path, plan: Plan, point: str, nth: int) -> Outcome | None:
        """Run the plan in a child and kill it while it is held at a point for the n-th time; None when it never was."""
        ledger, done = self._run(store, plan, None, True, f"{point}:{nth}")
        if done:
            return None
        return judge(store, plan, ledger)

    def _run(
        self, store: Path, plan: Plan, after: float | None, from_start: bool, held: str = ""
    ) -> tuple[dict[int, str], bool]:
        """The ledger (step -> acknowledgement) of a child that was killed, and whether it had come to its end."""
        assert self._maker.stdin is not None
        words = [str(store), str(int(from_start)), held, *plan.words()]
        self._maker.stdin.write(json.dumps(words).encode() + b"\n")
        pid = 0
        ledger: dict[int, str] = {}
        ready = False
        while True:
            word, _, what = self._line().partition(" ")
            if word == "end":
                return ledger, what == "0"
            if word == "pid":
                pid = int(what)
            elif word in ("ready", "held"):
                ready = ready or word == "held" or after is not None
            else:
                ledger[int(word)] = what
            if pid and ready:
                time.sleep(after or 0)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                ready = False

    def _line(self) -> str:
        assert self._maker.stdout is not None
        line = self._maker.stdout.readline()
        if not line.endswith(b"\n"):
            raise ChildProcessError(f"the maker of writers ended: {line!r}")
        return line[:-1].decode()


def judge(store_path: Path, plan: Plan, ledger: dict[int, str]) -> Outcome:
    """Compare a ledger with the store, then do the whole plan again and compare with the plan."""
    out = Outcome(acked=len(ledger))
    with open_store(store_path) as store:
        kept = {step: plan.kept(store, step) for step in range(plan.steps)}
        for step, what in ledger.items():
            if kept[step] != what:
                out.lost.append(f"step {step}: acknowledged {what}, found {kept[step]}")
        there = [step for step, what in kept.items() if what is not None]
        out.kept_unacked = len(set(there) - set(ledger))
        if there != list(range(len(there))):
            out.faults.append(f"the kept steps are no beginning of the plan: {there}")
        out.faults += [f"step {n}: {w}" for n, w in kept.items() if w and " " in w]
        out.duplicates += plan.surplus(store)
        _sound(store, out, "after the kill")
        for _ in plan.run(store):
            pass
        again = {step: plan.kept(store, step) for step in range(plan.steps)}
        out.faults += [
            f"step {n} is not there after a retry" for n, w in again.items() if w is None
        ]
        moved = [n for n in there if again[n] != kept[n]]
        out.faults += [f"step {n} moved at a retry" for n in moved]
        out.duplicates += plan.surplus(store)
        _sound(store, out, "after the retry")
    return out


def _sound(store: Store, out: Outcome, when: str) -> None:
    checked = store.verify()
    if not checked.ok:
        out.faults.append(f"{when}: {checked.verdict}: {[p.what for p in checked.problems][:3]}")


def _child(words: list[str]) -> None:
    path, from_start, held, *rest = words
    plan = plan_of(rest)
    if isinstance(plan, Import):
        plan.data(0)
    if held:
        points.hold(_holder(held))
    if int(from_start):
        os.write(1, b"ready\n")
    with open_store(path) as store:
        if not int(from_start):
            os.write(1, b"ready\n")
        for step, what in enumerate(plan.run(store)):
            os.write(1, f"{step} {what}\n".encode())


def _holder(held: str) -> Callable[[str], None]:
    """Stops the thread that reaches a point for the n-th time, for good; the others go on."""
    name, _, nth = held.rpartition(":")
    left = [int(nth)]

    def at(point: str) -> None:
        if point == name:
            left[0] -= 1
            if not left[0]:
                os.write(1, b"held\n")
                while True:
                    time.sleep(1)

    return at


def _load_all(folder: Path) -> None:
    with open_store(folder / "s.ef") as store:
        for plan in (Append("warm", 0, 1), Burst("warm", 1, 1), Import("cold", 0, 1, turns=1)):
            for _ in plan.run(store):
                store.session("warm").working()


def _make_children() -> None:
    # A child that still imports would be killed before it does anything.
    with tempfile.TemporaryDirectory() as folder:
        _load_all(Path(folder))
    while line := sys.stdin.buffer.readline():
        pid = os.fork()
        if not pid:
            status = 1
            try:
                _child(json.loads(line))
                status = 0
            finally:
                os._exit(status)
        os.write(1, f"pid {pid}\n".encode())
        _, ended = os.waitpid(pid, 0)
        os.write(1, f"end {ended}\n".encode())


if __name__ == "__main__":
    _make_children()
