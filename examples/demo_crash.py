"""A writer that is killed in a burst of appends, and what is left of its work.

Run as a program, this file is the writer: it appends to a session and acknowledges each append on its standard output,
after the append has returned. `burst` starts it, kills it with SIGKILL at a moment that it cannot know, and reads what it had acknowledged;
`survey` opens the store again and counts.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SESSION = "burst"


def message(name: str, n: int) -> dict[str, str]:
    """The n-th message of a writer."""
    return {
        "role": "user",
        "content": f"{name}: note {n}: " + "what was acknowledged is there. " * 8,
    }


@dataclass(frozen=True)
class Killed:
    """A writer's end: the numbers that it had acknowledged, and how its process ended (-9: by SIGKILL)."""

    name: str
    acked: tuple[int, ...]
    ended: int


def burst(store: Path, name: str, after: int, *, writer: Sequence[str] | None = None) -> Killed:
    """Start a writer and kill it once `after` acknowledgements were seen; those still in the pipe count as well."""
    command = list(writer or [sys.executable, __file__])
    with subprocess.Popen([*command, str(store), name], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        seen: list[bytes] = []
        for line in child.stdout:
            seen.append(line)
            if len(seen) == after:
                child.send_signal(signal.SIGKILL)
        ended = child.wait()
    whole = (line for line in seen if line.endswith(b"\n"))
    return Killed(name, tuple(int(line) for line in whole), ended)


@dataclass(frozen=True)
class Survey:
    """What the log holds of a writer: `kept` messages, numbers that were acknowledged and are not there or not whole."""

    acked: int
    kept: int
    lost: tuple[int, ...]


def survey(store: Path, killed: Killed) -> Survey:
    """Open the store and compare: each acknowledged message must be there, byte for byte."""
    from demo_evidence import events

    import ef

    kept: dict[str, str] = {}
    with ef.open(store, create=False) as opened:
        for each in events(opened, SESSION):
            h = each.header
            if h.item is not None and h.key.startswith(killed.name + "/"):
                body = opened.log.body(opened.log.get(h.stream, h.seq))
                kept[h.key] = json.loads(body)["content"]
    lost = [
        n
        for n in killed.acked
        if kept.get(f"{killed.name}/{n}") != message(killed.name, n)["content"]
    ]
    return Survey(len(killed.acked), len(kept), tuple(lost))


def write(path: str, name: str) -> None:
    """The writer: appends without end."""
    import ef

    with ef.open(path) as store:
        session = store.session(SESSION)
        n = 0
        while True:
            n += 1
            session.append(message(name, n), key=f"{name}/{n}")
            os.write(1, b"%d\n" % n)


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2])
