"""What the command line reads from its surroundings: the environment (nowhere else), the terminal, the platform."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from ..errors import UsageError

PLAIN_WIDTH = 100
NARROWEST = 40


class Settings(NamedTuple):
    """The store's path, whether to answer in JSON, and how text may look."""

    store: str
    json: bool
    color: bool
    width: int
    terminal: bool


def settle(store: str | None, *, as_json: bool) -> Settings:
    """Settings for a command line that said these. Raises UsageError."""
    if store == "":
        raise UsageError(detail="--store: give the path of a folder")
    if (store or default_store()) == ":memory:":
        detail = "a store in memory would end with this command: give the path of a folder"
        raise UsageError(detail=detail)
    terminal = is_terminal(1)
    return Settings(store or default_store(), as_json, terminal and colored(), width(), terminal)


def default_store() -> str:
    """$EF_STORE, else epistemic-fold in the platform's data folder."""
    given = os.environ.get("EF_STORE")
    if given:
        return given
    if sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Application Support")
    elif os.name == "nt":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~")
    else:
        base = os.environ.get("XDG_DATA_HOME") or ""
        if not os.path.isabs(base):  # the XDG rules: a relative one is not to be used
            base = os.path.expanduser("~/.local/share")
    return os.path.join(base, "epistemic-fold")


VARIABLES = ("EF_STORE", "EF_DEBUG", "NO_COLOR", "XDG_DATA_HOME")


def configuration(store: str, *, chosen: bool) -> list[str]:
    """The effective configuration as sentences: which store and why, and the variables that were read."""
    came = "--store" if chosen else "$EF_STORE" if os.environ.get("EF_STORE") else "the default"
    given = [f"{name}={os.environ[name]}" for name in VARIABLES if os.environ.get(name)]
    return [
        f"the store is {os.path.abspath(store)} (from {came})",
        f"environment: {', '.join(given) or 'none of ' + ', '.join(VARIABLES) + ' is set'}",
    ]


def debugging() -> bool:
    """Whether tracebacks are wanted."""
    return os.environ.get("EF_DEBUG", "") not in ("", "0")


def is_terminal(descriptor: int) -> bool:
    """Whether a descriptor is a terminal; False where it is closed."""
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def colored() -> bool:
    """Whether colours are welcome on a terminal (no-color.org)."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width() -> int:
    """Columns of the terminal; 100 where stdout is none."""
    try:
        columns = os.get_terminal_size(1).columns
    except OSError:
        return PLAIN_WIDTH
    return max(NARROWEST, columns) if columns else PLAIN_WIDTH
