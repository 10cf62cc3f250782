"""Verify the store in a folder, whatever state it is in: its bytes are looked at in plain Python before LMDB may."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..errors import DamageError, EfError, NotFound, OtherStore, StoreUnavailable
from ..log import databytes
from ..log.birth import is_there
from ..log.check import Problem
from ..log.lmdb_log import LmdbLog
from .store import Store, must_be_a_path, now_micros
from .verify import Verified, verify_log


def verify_path(
    path: str | Path,
    *,
    quick: bool = False,
    session: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Verified:
    """Verify the store in a folder; the verdict is the answer, also a bad one. Others may write to it meanwhile.

    `session` may be a unique beginning of an id. Raises NotFound for a store or a session that is not there, and
    StoreUnavailable for a folder that holds no data file, as every opening of it does.
    """
    must_be_a_path(path)
    folder = Path(path).absolute()
    data = folder / "data.mdb"
    try:
        data.stat()
    except FileNotFoundError:
        if not is_there(
            folder
        ):  # raises where it is a folder of something else, or its data file is gone
            raise _missing(path) from None
    except OSError as fault:
        return _verdict("unreadable", fault, str(data))
    try:
        broken = [] if quick else _structure(folder)
        with _opened(folder, broken) as log:
            name = Store(log).find_session(session).id if session else None
            found = verify_log(log, quick=quick, session=name, progress=progress)
    except OtherStore as fault:
        return _verdict("rolled-back", fault, "the file tip")
    except DamageError as fault:
        return _verdict("damaged", fault, str(data))
    except (StoreUnavailable, OSError) as fault:
        return _verdict("unreadable", fault, str(data))
    known = {(p.what, p.where) for p in found.problems}
    found.problems += [p for p in broken if (p.what, p.where) not in known]
    if broken:
        found.verdict = "damaged"
    return found


def _missing(path: str | Path) -> NotFound:
    return NotFound(
        what="store",
        name=str(path),
        where="the file system",
        remedy="Give the folder of a store.",
    )


def _verdict(verdict: str, fault: EfError | OSError, where: str) -> Verified:
    return Verified(verdict, 0, 0, b"", [Problem(str(fault), where, verdict)])


def _opened(folder: Path, broken: list[Problem]) -> LmdbLog:
    plain = broken[0].what if broken else None
    return LmdbLog.open(folder, now=now_micros, create_missing=False, plain=plain)


def _structure(folder: Path) -> list[Problem]:
    """What is wrong with the pages of the data file. Where somebody commits meanwhile, of a moment that is held."""
    data = folder / "data.mdb"
    before = databytes.transaction(data)
    found = databytes.check(data)
    if found and databytes.transaction(data) != before:
        with _opened(folder, []) as log, log.moment():
            found = databytes.check(data)
    return [Problem(what, str(data)) for what in found]
