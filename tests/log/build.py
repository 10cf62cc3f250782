"""Stores for tests: how to open one, what to append, and how to change what lies on the disk behind its back."""

from __future__ import annotations

import os
import pickle  # noqa: TID251  (between two processes of one test, never from a store)
import select
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import lmdb

from ef import events as ev
from ef.log.base import Draft
from ef.log.check import Checked, Checker
from ef.log.lmdb_log import LmdbLog
from ef.log.rows import U64

ROOT = Path(__file__).resolve().parent.parent.parent
DATABASES = (b"log", b"seq", b"key", b"stream")


def clock(start: int = 1_000) -> Callable[[], int]:
    return count(start).__next__


def opened(path: Path, **how: Any) -> LmdbLog:
    return LmdbLog.open(path, now=clock(), **how)


def item(stream: str, key: str, data: bytes = b"body", **how: Any) -> Draft:
    facts = ev.ItemFacts("user", (ev.PartFacts(ev.PartKind.TEXT, ev.Channel.USER_TYPED),))
    return Draft(stream, key, ev.ItemAppended(data), ev.Channel.USER_TYPED, item=facts, **how)


def title(stream: str, key: str, text: str = "t", **how: Any) -> Draft:
    return Draft(stream, key, ev.SessionDescribed(text), ev.Channel.OPERATOR, **how)


def filled(path: Path, count: int = 5, stream: str = "session/a", size: int = 40) -> Path:
    """A closed store with `count` events of one stream."""
    with opened(path) as log:
        log.append([item(stream, f"k{n}", bytes([65 + n % 26]) * size) for n in range(count)])
    return path


def checked(path: Path, *, plain: str | None = None, **how: Any) -> Checked:
    with opened(path, create_missing=False, plain=plain) as log:
        return Checker(log, **how).run()


def says(found: Checked) -> str:
    return "\n".join(f"{p.verdict}: {p.where}: {p.what}" for p in found.problems)


class Raw:
    """The rows of a closed store, without any rule."""

    def __init__(self, env: Any) -> None:
        self._env = env
        self._dbs = {name: env.open_db(name, create=False) for name in DATABASES}

    def rows(self, db: bytes) -> dict[bytes, bytes]:
        with self._env.begin() as txn:
            return dict(iter(txn.cursor(self._dbs[db])))

    def put(self, db: bytes, key: bytes, value: bytes) -> None:
        with self._env.begin(write=True) as txn:
            txn.put(key, value, db=self._dbs[db])

    def delete(self, db: bytes, key: bytes) -> None:
        with self._env.begin(write=True) as txn:
            assert txn.delete(key, db=self._dbs[db])


@contextmanager
def raw(path: Path) -> Iterator[Raw]:
    env = lmdb.open(str(path), max_dbs=8, map_size=1 << 28, create=False)
    try:
        yield Raw(env)
    finally:
        env.close()


def frame_at(path: Path, position: int) -> bytes:
    with raw(path) as store:
        return store.rows(b"log")[U64.pack(position)]


def in_child(work: Callable[[], Any], *, seconds: int = 60) -> Any:
    """What `work` returns in a forked child. A child that ends by a signal, or by nothing at all, fails the test."""
    receive, send = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            try:
                said: Any = ("returned", work())
            except BaseException as fault:
                said = ("raised", type(fault).__name__, str(fault))
            os.write(send, pickle.dumps(said))
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        stuck = not select.select([pipe], [], [], seconds)[0]
        if stuck:
            os.kill(pid, signal.SIGKILL)
        data = pipe.read()
    _, status = os.waitpid(pid, 0)
    assert not stuck, f"the child was stuck for {seconds} seconds"
    assert os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0, f"the child ended with {status}"
    said = pickle.loads(data)
    assert said[0] == "returned", said
    return said[1]


def typed(work: Callable[[], Any]) -> str:
    """The name of the error that `work` ends with; "" when it ends well."""
    try:
        work()
    except Exception as fault:
        return type(fault).__name__
    return ""


PRELUDE = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
from ef import events as ev
from ef.errors import *
from tests.log.build import *
path = Path({path!r})
"""


def script(path: Path, text: str) -> list[str]:
    return [sys.executable, "-c", PRELUDE.format(root=str(ROOT), path=str(path)) + text]


def run(path: Path, text: str) -> str:
    """What a Python program in a process of its own prints; `path` and the names of this module are at hand."""
    done = subprocess.run(script(path, text), capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def running(path: Path, text: str) -> Generator[subprocess.Popen[str], None, None]:
    """The same, while the test goes on; it ends when the test closes its input."""
    child = subprocess.Popen(
        script(path, text), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        yield child
        _, _ = child.communicate(timeout=120)
        assert child.returncode == 0
    finally:
        child.kill()
        child.communicate()
