"""The one way out: stdout is written at once and whole; errors are a message on stderr and, with --json, an object."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..errors import EfError, NotFound, OutputFailed
from ..render.visible import visible
from .settings import debugging

INTERRUPTED, BROKEN_PIPE = 130, 141
BYTES_AT_ONCE = 1 << 20


class Answer(NamedTuple):
    """What a command has to say. `said` are messages for stderr; `raw` goes out as it is, instead of all else."""

    data: Mapping[str, Any]
    text: Callable[[], str]
    exit: int = 0
    said: tuple[str, ...] = ()
    raw: bytes | None = None


def hold_standard_descriptors() -> None:
    """Where 0, 1 or 2 came closed, something else takes its number: else a store's file would get it, and our text.

    Reading finds the end, stdout refuses to be written, messages to stderr vanish.
    """
    for number, flags in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)


def emit(answer: Answer, *, as_json: bool, pretty: bool) -> int:
    """Write an answer; its exit code. Raises BrokenPipeError, OutputFailed."""
    if answer.raw is not None:
        write(answer.raw)
    elif as_json:
        write_json(answer.data, pretty=pretty)
    else:
        write_text(answer.text())
    for message in answer.said:
        say(message)
    return answer.exit


def write(data: bytes) -> None:
    """All bytes to stdout, past Python's buffer: what is not written cannot come out late. Raises OutputFailed."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[os.write(1, rest[:BYTES_AT_ONCE]) :]
    except BrokenPipeError:
        raise
    except OSError as fault:
        raise OutputFailed(path="stdout", why=fault.strerror) from None


def write_text(text: str) -> None:
    """Text to stdout in its encoding; characters that it lacks become escapes."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    write(text.encode(encoding, "backslashreplace"))


def write_json(data: Mapping[str, Any], *, pretty: bool = False) -> None:
    """One JSON object and a newline to stdout."""
    from ..render.safejson import dumps

    write((dumps(dict(data), indent=2 if pretty else None) + "\n").encode("ascii"))


def say(message: str) -> None:
    """One message to stderr. That it cannot be written is no reason to fail."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"ef: {visible(message)}\n")
            sys.stderr.flush()


def fault_json(fault: EfError) -> dict[str, Any]:
    """An error as JSON fields."""
    facts = {name: _plain(value) for name, value in fault.facts.items()}
    return {"kind": type(fault).__name__, "message": str(fault), "facts": facts}


def failed(fault: EfError, *, as_json: bool) -> int:
    """Report an error; its exit code."""
    say(f"{fault}{hint(fault)}")
    if as_json and not isinstance(fault, OutputFailed):
        with contextlib.suppress(OSError, OutputFailed):
            write_json({"error": fault_json(fault), "exit": fault.exit_code})
    return fault.exit_code


def hint(fault: EfError) -> str:
    """What the command line can add to an error's own message."""
    if isinstance(fault, NotFound) and fault.facts.get("what") == "store":
        return " --store or $EF_STORE choose another store."
    return ""


def guarded(work: Callable[[], int], *, as_json: bool) -> int:
    """Run something; whatever happens becomes an exit code and at most one message. A traceback only if asked for."""
    try:
        return work()
    except EfError as fault:
        return failed(fault, as_json=as_json)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return BROKEN_PIPE
    except Exception as fault:
        if debugging():
            import traceback

            traceback.print_exc()
        what = f"{type(fault).__name__}: {fault}".rstrip(": ")
        detail = what if debugging() else f"{what} (set EF_DEBUG=1 for the traceback)"
        return failed(EfError(detail=detail), as_json=as_json)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)
