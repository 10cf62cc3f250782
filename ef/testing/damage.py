"""Controls that damage a store on purpose: what is changed here must be noticed there."""

from __future__ import annotations

import json
import os
import shutil
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import EfError
from ..log.lmdb_env import LmdbEnv, Txn
from ..log.lmdb_log import LOG, LmdbLog
from ..log.pages import DataFile, Entry
from ..log.rows import KEY, SEQ, STREAM, U64, stream_hash
from ..log.sources import source_stream
from ..session import verify_path

VERIFIED_EACH = 8
"""Of damage that changed nothing so much is verified too: it takes most of the time."""

DATABASES = (LOG, SEQ, KEY, STREAM)
Place = tuple[str, int]
"""A record's stream and seq."""


class _Deleting(Txn):
    """A transaction that can also delete, which the log never does."""

    @classmethod
    def of(cls, txn: Txn) -> _Deleting:
        return cls(txn._txn, txn._dbs)

    def delete(self, db: bytes, key: bytes) -> bool:
        return bool(self._txn.delete(key, db=self._dbs[db]))


def copy_of(store: Path, at: Path) -> Path:
    """A copy of a store's folder; the store must not be open for writing."""
    shutil.copytree(store, at)
    return at


def delete_record(store: Path, position: int) -> None:
    """Delete the row of a record from the database `log`, and nothing else: indexes, tips and tip file stay."""
    env = LmdbEnv.acquire(store)
    try:
        if not env.write(lambda txn: _Deleting.of(txn).delete(LOG, U64.pack(position))):
            raise LookupError(f"the store has no record at position {position}")
    finally:
        env.release()


@dataclass(frozen=True, slots=True)
class Damage:
    """One damage to a data file: a bit that is flipped at byte `at`, or (`bit` None) the file cut there."""

    at: int
    bit: int | None = None

    def done_to(self, file: Path, sound: bytes) -> None:
        """Do it to a file that holds these bytes."""
        if self.bit is None:
            os.truncate(file, self.at)
            return
        with file.open("r+b") as handle:
            handle.seek(self.at)
            handle.write(bytes([sound[self.at] ^ 1 << self.bit]))

    def undone(self, file: Path, sound: bytes) -> None:
        """Make the file what it was."""
        with file.open("r+b") as handle:
            handle.seek(self.at)
            handle.write(sound[self.at :] if self.bit is None else sound[self.at : self.at + 1])


@dataclass(frozen=True, slots=True)
class Kept:
    """A record as it was before any damage: position, digest, body, and every page that its reading rests on."""

    position: int
    digest: bytes
    body: bytes
    pages: frozenset[int]


@dataclass(frozen=True)
class Truth:
    """A closed store as it was: its bytes, its records, its tips, and the rows of its databases."""

    store: Path
    data: bytes
    page_size: int
    records: dict[Place, Kept]
    tips: dict[str, int]
    frames: dict[int, bytes]
    held: tuple[range, ...]
    """Where in the file keys and values of the databases lie: a change there changes a record, a link or a tip."""

    def holds(self, at: int) -> bool:
        """Whether a byte of the file is one of a record, of an index row, or of a tip row."""
        return any(at in each for each in self.held)

    @property
    def file(self) -> Path:
        """The data file."""
        return self.store / "data.mdb"


def truth_of(store: Path) -> Truth:
    """Take down what a sound, closed store holds."""
    data = (store / "data.mdb").read_bytes()
    pages: dict[bytes, dict[bytes, tuple[int, ...]]] = {}
    held: list[range] = []
    frames: dict[int, bytes] = {}
    with DataFile(store / "data.mdb") as file:
        roots, page_size = file.roots(), file.page_size
        for name in DATABASES:
            pages[name] = {}
            for entry in file.entries(roots[name]):
                pages[name][entry.key] = entry.pages
                if name == LOG:
                    frames[U64.unpack(entry.key)[0]] = entry.value
                held += _ranges(data, entry, page_size)
    records: dict[Place, Kept] = {}
    chunks: list[tuple[str, int, int, frozenset[int]]] = []
    with LmdbLog.open(store, now=int, create_missing=False) as log:
        for record in log.all():
            h, own = record.header, set(pages[LOG][U64.pack(record.position)])
            own.update(pages[SEQ][stream_hash(h.stream) + U64.pack(h.seq)], pages[KEY][h.uuid])
            if h.origin is not None and h.stream == source_stream(h.origin.source):
                chunks.append((h.origin.source, h.origin.start, h.origin.end, frozenset(own)))
            elif h.origin is not None:
                own.update(
                    page
                    for source, start, end, held in chunks
                    if source == h.origin.source and start < h.origin.end and h.origin.start < end
                    for page in held
                )
            kept = Kept(record.position, record.digest, log.body(record), frozenset(own))
            records[h.stream, h.seq] = kept
        tips = {stream: tip.seq for stream, tip in log.streams()}
    return Truth(store, data, page_size, records, tips, frames, tuple(held))


def _ranges(data: bytes, entry: Entry, page_size: int) -> list[range]:
    """Where an entry's key and value lie in the file; the value behind the key, or on pages of its own."""
    leaf, *own = entry.pages
    row = entry.key if own else entry.key + entry.value
    upper = int.from_bytes(data[leaf * page_size + 14 : leaf * page_size + 16], "little")
    at = data.index(row, leaf * page_size + upper)  # below it lies what the page held before
    found = [range(at, at + len(row))]
    if own:
        first = own[0] * page_size + 16
        found.append(range(first, first + entry.size))
    return found


@dataclass
class Outcome:
    """What came of one damage, in records: `wrong` ones handed out; of those `outside` it, how many were `served`.

    `changed`: the damage touched a record, a link or a tip. `verdict` is empty where nothing called for a verify.
    """

    wrong: int = 0
    served: int = 0
    outside: int = 0
    refused: int = 0
    older_tips: int = 0
    changed: bool = False
    verdict: str = ""
    said: list[str] = field(default_factory=list[str])


def judged(truth: Truth, damage: Damage) -> dict[str, Any]:
    """Read every record of a damaged store by its stream and by its position, and verify the store."""
    outcome = Outcome()
    got = _read(truth, outcome)
    hurt = range(damage.at // truth.page_size, len(truth.data))
    for place, kept in truth.records.items():
        whole = (
            hurt.start not in kept.pages if damage.bit is not None else max(kept.pages) < hurt.start
        )
        outcome.outside += whole
        outcome.served += whole and place in got
        outcome.refused += place not in got
    outcome.changed = damage.bit is None or truth.holds(damage.at)
    if outcome.changed or outcome.refused or outcome.older_tips or damage.at % VERIFIED_EACH == 0:
        found = verify_path(truth.store)
        outcome.verdict = found.verdict
        outcome.said = [f"{p.where}: {p.what}" for p in found.problems[:2]]
    return vars(outcome)


def _read(truth: Truth, outcome: Outcome) -> set[Place]:
    """The records that came out right; `outcome` counts those that came out wrong."""
    got: set[Place] = set()
    try:
        log = LmdbLog.open(truth.store, now=int, create_missing=False)
    except EfError:
        return got
    with log:
        for place, kept in truth.records.items():
            for by_seq in (True, False):
                try:
                    record = log.get(*place) if by_seq else log.at(kept.position)
                    body = log.body(record)
                except EfError:
                    continue
                right = (record.digest, body) == (kept.digest, kept.body)
                outcome.wrong += not right
                if right:
                    got.add(place)
                    break
        for stream, seq in truth.tips.items():
            try:
                tip = log.tip(stream).seq
            except EfError:
                continue
            outcome.wrong += tip > seq
            outcome.older_tips += tip < seq
    return got


def campaign(
    truth: Truth, damages: Sequence[Damage], judge: Callable[[Truth, Damage], dict[str, Any]]
) -> Iterator[tuple[Damage, dict[str, Any]]]:
    """Do each damage in a forked child, judge it there, and undo it. A child that dies is a case {signal}."""
    left = list(damages)
    while left:
        for damage, found in _batch(truth, tuple(left), judge):
            yield damage, found
            left.pop(0)


def _batch(
    truth: Truth, damages: Sequence[Damage], judge: Callable[[Truth, Damage], dict[str, Any]]
) -> Iterator[tuple[Damage, dict[str, Any]]]:
    receive, send = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        _child(truth, damages, judge, send)
    os.close(send)
    done = 0
    with os.fdopen(receive, "rb") as pipe:
        for line in pipe:
            yield damages[done], json.loads(line)
            done += 1
    _, status = os.waitpid(pid, 0)
    if done < len(damages):
        damages[done].undone(truth.file, truth.data)
        if not os.WIFSIGNALED(status):
            raise RuntimeError(f"the child ended with {status} at {damages[done]}")
        yield damages[done], {"signal": os.WTERMSIG(status)}


def _child(
    truth: Truth,
    damages: Sequence[Damage],
    judge: Callable[[Truth, Damage], dict[str, Any]],
    send: int,
) -> None:
    code = 70
    try:
        for damage in damages:
            damage.done_to(truth.file, truth.data)
            found = judge(truth, damage)
            damage.undone(truth.file, truth.data)
            os.write(send, json.dumps(found).encode("ascii") + b"\n")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)
