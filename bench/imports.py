"""Imports of every format beside json.loads of the same file, in the same run: the bar is six times as long.

Of each format the largest recorded session, where the folder of those is there; else its seed, many times over.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

from ef.importers.formats import Head, recognised

from .reads import SHARED, SHOPCART, imports
from .timing import Table, Work, race, scratch

BAR = 6.0
SEEDS = SHOPCART.parent.parent / "tests" / "fixtures" / "seeds"
GROWN_BYTES = 1 << 20
HEAD_BYTES = 1 << 20
_IDS = re.compile(rb'"((?:[a-z]+[_:-]|[a-z])\d+)"')


def loads(path: Path) -> Work:
    """json.loads of a file: of all of it where it is one document, else of each of its lines."""
    whole = is_document(path)

    def work(_: Path) -> None:
        data = path.read_bytes()
        for line in [data] if whole else data.split(b"\n"):
            with contextlib.suppress(ValueError):  # two records glued on one line, a blank line
                json.loads(line)

    return work


def is_document(path: Path) -> bool:
    """Whether a file is one JSON value."""
    try:
        json.loads(path.read_bytes())
    except ValueError:
        return False
    return True


def form_of(path: Path) -> str | None:
    """The format of a file, None where it is none that is read."""
    with path.open("rb") as file:
        data = file.read(HEAD_BYTES)
    found = recognised(Head(data, str(path), len(data) == path.stat().st_size))
    return found.name if found else None


def recorded() -> dict[str, Path]:
    """Format -> its largest recorded session."""
    found: dict[str, Path] = {}
    data = SHARED.parent
    for path in sorted(data.rglob("*"), key=lambda p: p.stat().st_size) if data.is_dir() else []:
        if path.is_file() and path.relative_to(data).parts[0] not in ("tool-outputs", "LICENSES"):
            form = form_of(path)
            if form is not None:
                found[form] = path
    return found


def grown(seed: Path, folder: Path, size: int) -> Path:
    """A file like a seed, its records again and again under other ids, in `folder`."""
    rows = seed.read_bytes().removesuffix(b"\n").split(b"\n")
    first, last = (0, len(rows)) if not seed.name.endswith(".json") else (1, len(rows) - 1)
    comma = b"" if first == 0 else b","
    body: list[bytes] = []
    held = 0
    while held < size:
        n = str(len(body)).encode()
        for row in rows[first:last]:
            body.append(_IDS.sub(rb'"\1-' + n + rb'"', row.removesuffix(b",")))
            held += len(body[-1])
    path = folder / ("api_conversation_history.json" if seed.stem == "roo" else seed.name)
    path.write_bytes(b"\n".join([*rows[:first], (comma + b"\n").join(body), *rows[last:]]) + b"\n")
    return path


def seeded(folder: Path, known: set[str], size: int) -> dict[str, Path]:
    """Format -> a grown seed of it, for those that are not `known`."""
    found: dict[str, Path] = {}
    for seed in sorted(SEEDS.glob("*.json*")):
        place = folder / seed.stem
        place.mkdir()
        path = grown(seed, place, size)
        form = form_of(path)
        if form is not None and form not in known | found.keys():
            found[form] = path
    return found


def tables(*, quick: bool, rounds: int) -> Iterator[Table]:
    """A table for each format, in the order of their names."""
    with scratch() as folder:
        files = {} if quick else recorded()
        files |= seeded(folder, set(files), GROWN_BYTES // (32 if quick else 1))
        for form in sorted(files):
            path = files[form]
            size = path.stat().st_size / 1e6
            yield race(
                f"Import of {form} ({size:.2f} MB; a ratio of {1 / BAR:.2f} or more keeps the bar)",
                "MB/s",
                size,
                {
                    "json.loads of the file": loads(path),
                    "ef, import into a new store": imports(path),
                },
                rounds,
            )
