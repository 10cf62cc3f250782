"""Writers that are killed, and the oracle that says what the store owes.

A child process appends or imports by a plan and acknowledges each step on a pipe once the store has said that it is
durable. The parent kills it with SIGKILL at a chosen moment, reads what was acknowledged, opens the store again and
asks: is every acknowledged step there, as it was acknowledged; is each other step there whole or not at all; does doing
all of it again add only what is missing. `Append(early=True)` is the positive control: it acknowledges, then appends.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Protocol

from ..importers.names import session_stream
from ..log import source_stream
from ..session.sources import SourceCatalogue
from ..session.store import Store, open_store
from .transcripts import transcript


class Plan(Protocol):
    """Numbered steps that a child does and acknowledges, and what a store must hold of them."""

    @property
    def steps(self) -> int:
        """How many steps there are."""
        ...

    def words(self) -> list[str]:
        """The plan as arguments of the child."""
        ...

    def run(self, store: Store) -> Iterator[str]:
        """Do the steps; yields the acknowledgement of each."""
        ...

    def kept(self, store: Store, step: int) -> str | None:
        """The acknowledgement that a step deserves by what the store holds; None when nothing of it is there."""
        ...

    def surplus(self, store: Store) -> int:
        """How many events of the plan's streams belong to no step, or are there twice."""
        ...


@dataclass(frozen=True, slots=True)
class Append:
    """Messages `first` to `first + steps` of a session, each with its key. `early`: acknowledge, then append."""

    session: str
    first: int
    steps: int
    early: bool = False

    def words(self) -> list[str]:
        """See Plan.words."""
        return ["append", self.session, str(self.first), str(self.steps), str(int(self.early))]

    def _text(self, step: int) -> str:
        n = self.first + step
        return f"message {n} of {self.session}: " + "word " * (n * 37 % 400)

    def _key(self, step: int) -> str:
        return f"k{self.first + step}"

    def run(self, store: Store) -> Iterator[str]:
        """See Plan.run."""
        session = store.session(self.session)
        for step in range(self.steps):
            if self.early:
                yield f"{session.seq + (1 if session.seq else 2)}"
            seq = session.append({"role": "user", "content": self._text(step)}, key=self._key(step))
            if not self.early:
                yield f"{seq}"

    def kept(self, store: Store, step: int) -> str | None:
        """See Plan.kept."""
        stream = session_stream(self.session)
        seq = store.log.find(stream, self._key(step))
        if seq is None:
            return None
        body = store.log.body(store.log.get(stream, seq)).decode()
        return f"{seq}" if self._text(step) in body else f"{seq} with other content"

    def surplus(self, store: Store) -> int:
        """See Plan.surplus."""
        wanted = {"ef:open", *(f"k{n}" for n in range(self.first + self.steps))}
        keys = [r.header.key for r in store.log.read(session_stream(self.session))]
        return len(keys) - len(wanted.intersection(keys))


@dataclass(frozen=True, slots=True)
class Import:
    """Snapshots of one growing made-up transcript, `turns` turns longer each; the file lies beside the store."""

    session: str
    first: int
    steps: int
    turns: int = 60

    def words(self) -> list[str]:
        """See Plan.words."""
        return ["import", self.session, str(self.first), str(self.steps), str(self.turns)]

    def data(self, step: int) -> bytes:
        """The snapshot of a step."""
        rows = _longest(self.turns * (self.first + self.steps), self.session)
        return b"".join(rows[: 4 * self.turns * (self.first + step + 1)])

    def run(self, store: Store) -> Iterator[str]:
        """See Plan.run."""
        file = store.path.with_name(f"{self.session}.jsonl")
        for step in range(self.steps):
            file.write_bytes(self.data(step))
            done = store.import_file(file)
            yield f"{done.source}"

    def kept(self, store: Store, step: int) -> str | None:
        """See Plan.kept. Whole: the bytes can be exported, and the session holds an item for every line."""
        data = self.data(step)
        for source in store.sources():
            if len(data) in dict(SourceCatalogue(store.log).lengths(source.id)):
                if store.export_original(source.id, length=len(data)) != data:
                    return f"{source.id} with other bytes"
                items = self._items(store)
                return source.id if items >= data.count(b"\n") else f"{source.id}, {items} items"
        return None

    def _items(self, store: Store) -> int:
        records = store.log.read(session_stream(self.session))
        return sum(r.header.item is not None for r in records)

    def surplus(self, store: Store) -> int:
        """See Plan.surplus. Bytes and items behind the longest complete import, and items that are there twice."""
        found = 0
        for source in store.sources():
            lengths = [n for n, _ in SourceCatalogue(store.log).lengths(source.id)]
            spans = [
                r.header.origin for r in store.log.read(source_stream(source.id)) if r.header.origin
            ]
            found += sum(span.end > max(lengths) for span in spans)
            lines = store.export_original(source.id).count(b"\n")
            found += self._items(store) - lines
        return found


@cache
def _longest(turns: int, session: str) -> list[bytes]:
    return transcript(turns, session=session).splitlines(keepends=True)


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

    def _run(
        self, store: Path, plan: Plan, after: float, from_start: bool
    ) -> tuple[dict[int, str], bool]:
        """The ledger (step -> acknowledgement) of a child that was killed, and whether it had come to its end."""
        assert self._maker.stdin is not None
        words = [str(store), str(int(from_start)), *plan.words()]
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
            elif word == "ready":
                ready = True
            else:
                ledger[int(word)] = what
            if pid and ready:
                time.sleep(after)
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
    path, from_start, kind, session, first, steps, last = words
    plan: Append | Import
    if kind == "append":
        plan = Append(session, int(first), int(steps), bool(int(last)))
    else:
        plan = Import(session, int(first), int(steps), int(last))
        plan.data(0)
    if int(from_start):
        os.write(1, b"ready\n")
    with open_store(path) as store:
        if not int(from_start):
            os.write(1, b"ready\n")
        for step, what in enumerate(plan.run(store)):
            os.write(1, f"{step} {what}\n".encode())


def _make_children() -> None:
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
