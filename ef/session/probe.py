"""Looks at a store through LMDB in a process of its own, so that nothing that LMDB waits for or dies of reaches us.

The child prints a line of JSON when the store is open, and another one when the write lock was had and given back.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OPEN_SECONDS_MAX, LOCK_SECONDS_MAX = 20.0, 3.0
"""The child starts an interpreter and imports; then it waits for nothing but a lock."""


@dataclass(slots=True)
class Seen:
    """What the child saw: the `condition` of the environment, whether the write lock was `free`, how it ended if badly.

    `tip` is {kind, what} where the tip file speaks of another store, or of a later one; `error` is {kind, message} of
    an error of ours; `signal` what killed it; `hung` that it did not even open.
    """

    condition: dict[str, Any] = field(default_factory=dict[str, Any])
    tip: dict[str, str] = field(default_factory=dict[str, str])
    free: bool = False
    readonly: bool = False
    error: dict[str, str] = field(default_factory=dict[str, str])
    signal: int = 0
    hung: bool = False


def look(folder: Path) -> Seen:
    """Look at the store in a folder; bounded in time whatever others do to it."""
    child = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, str(Path(__file__).resolve().parents[2]), str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    seen = Seen()
    try:
        lines = _Lines(child)
        first = lines.next(OPEN_SECONDS_MAX)
        if first is not None:
            seen = Seen(**first)
        if seen.condition:
            last = lines.next(LOCK_SECONDS_MAX)
            seen.free = last is not None
            seen.readonly = bool(last and last["readonly"])
        elif first is None:
            ended = child.wait() if lines.ended else 0
            seen = Seen(signal=max(0, -ended), hung=not lines.ended)
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(OPEN_SECONDS_MAX if seen.free else 0)
        child.kill()
        child.communicate()
    return seen


_PROGRAM = """\
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from ef.session.probe import main
main(Path(sys.argv[2]))
"""


class _Lines:
    """Lines of JSON that a child writes."""

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdout is not None
        self._pipe = child.stdout.fileno()
        self._data = b""
        self.ended = False

    def next(self, seconds: float) -> dict[str, Any] | None:
        """The next line; None when none came in time, or no more will."""
        end = time.monotonic() + seconds
        while b"\n" not in self._data and not self.ended:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._pipe], [], [], left)[0]:
                return None
            more = os.read(self._pipe, 65_536)
            self.ended = not more
            self._data += more
        line, mark, self._data = self._data.partition(b"\n")
        found: dict[str, Any] | None = json.loads(line) if mark else None
        return found


def main(folder: Path) -> None:
    """What the child does."""
    from ..errors import EfError
    from ..log.lmdb_env import LmdbEnv
    from ..log.plain import PlainEnv

    tip: dict[str, str] = {}
    try:
        env = LmdbEnv.acquire(folder, readonly=True)
        tip = _tip(folder)
        if isinstance(env, PlainEnv):
            _say({"error": {"kind": "Damaged", "message": env.why}, "tip": tip})
            return
        condition = env.condition()
    except EfError as fault:
        _say({"error": {"kind": type(fault).__name__, "message": str(fault)}, "tip": tip})
        return
    condition["readers"] = [r for r in condition["readers"] if r[0] != os.getpid()]
    _say({"condition": condition, "tip": tip})
    env.release()
    env = LmdbEnv.acquire(folder)
    if not env.readonly:
        env.try_write_lock()
    _say({"free": True, "readonly": env.readonly})


def _tip(folder: Path) -> dict[str, str]:
    """What is wrong between the store and its tip file, as every command finds it that opens the store."""
    from ..errors import OtherStore
    from ..log.lmdb_log import LmdbLog

    try:
        with LmdbLog.open(folder, now=time.time_ns, create_missing=False, readonly=True) as log:  # noqa: TID251
            what = log.rolled_back
    except OtherStore as fault:
        return {"kind": "OtherStore", "what": f"{fault.where}: {fault.what}"}
    return {"kind": "RolledBack", "what": f"{what}: rolled back"} if what else {}


def _say(fields: dict[str, Any]) -> None:
    os.write(1, json.dumps(fields).encode("ascii") + b"\n")
