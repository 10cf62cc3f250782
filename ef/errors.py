"""Floor 0: every error that a user can meet.

The docstring of a class is its message; the names in braces are the facts that it is raised with, and
each is an attribute of the error. `exit_code` is what the command line ends with. Whose fault it is
decides the branch: the caller's, the store's, damage, or the world outside.
"""

from __future__ import annotations

from typing import Any, ClassVar

SHOWN_CHARS_MAX = 4_000
"""What somebody gave may be long; in a message the middle of it is left out."""


class EfError(Exception):
    """ef failed in a way that is its own fault: {detail}. Please report it."""

    exit_code: ClassVar[int] = 70

    def __init__(self, **facts: Any) -> None:
        self.facts = facts
        shown = {name: _shown(value) for name, value in facts.items()}
        super().__init__((type(self).__doc__ or "").format(**shown))

    def __getattr__(self, name: str) -> Any:
        facts = self.__dict__.get("facts", {})
        if name in facts:
            return facts[name]
        raise AttributeError(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.facts)


def _shown(value: Any) -> Any:
    """A fact as the message shows it; the fact itself stays whole."""
    if not isinstance(value, str) or len(value) <= SHOWN_CHARS_MAX:
        return value
    return f"{value[: SHOWN_CHARS_MAX // 2]} … {value[-SHOWN_CHARS_MAX // 4 :]}"


def _rebuild(kind: type[EfError], facts: dict[str, Any]) -> EfError:
    return kind(**facts)


class CallerError(EfError):
    """{detail}"""

    exit_code = 64


class UsageError(CallerError):
    """{detail}"""


class InputRefused(CallerError):
    """{where}: {why}. {remedy}"""

    exit_code = 65


class KeyConflict(CallerError):
    """stream {stream}: the idempotency key {key} already names event {seq}, which has other content ({difference}). Use a new key for a new event."""

    exit_code = 65


class NotFound(CallerError):
    """{what} {name!r} is not in {where}. {remedy}"""

    exit_code = 66


class NotAllowed(CallerError):
    """not allowed: {what}: {why}."""

    exit_code = 77


class OriginalRedacted(NotAllowed):
    """not allowed: the original of source {source}: it is not here. It was redacted before anything was stored: {what}. `ef export SOURCE --redacted` writes what was stored; the original is where it was imported from."""


class OutputFailed(CallerError):
    """cannot write to {path}: {why}. The command itself was carried out."""

    exit_code = 73


class StoreError(EfError):
    """{detail}"""

    exit_code = 69


class StoreUnavailable(StoreError):
    """store {path}: {why}. {remedy}"""


class CannotWrite(StoreError):
    """cannot write to {path}: {why}. Nothing of this append was kept; what was acknowledged before is safe. {remedy}"""

    exit_code = 73


class BackupFailed(StoreError):
    """no backup was made at {path}: {why}. The store is as it was. {remedy}"""

    exit_code = 73


class RebuildFailed(StoreError):
    """the projections were not rebuilt in {path}: {why}. The log is as it was, and so is every answer. {remedy}"""

    exit_code = 73


class TipConflict(StoreError):
    """stream {stream}: expected its tip to be {expected}, found {found}: somebody else appended. Read again, then retry."""

    exit_code = 75


class Busy(StoreError):
    """store {path} is busy: {why}. Try again."""

    exit_code = 75


class OutcomeUnknown(StoreError):
    """store {path}: the commit failed and its outcome is unknown ({why}). Open the store again and append with the same keys: what was kept is found, what was not is added."""

    exit_code = 75


class DamageError(EfError):
    """{detail}"""

    exit_code = 1


class Damaged(DamageError):
    """damaged: {where}: {what}. Run `ef verify`."""


class Unreadable(DamageError):
    """unreadable: {where}: {what}. Run `ef verify`."""

    exit_code = 2


class RolledBack(DamageError):
    """rolled back: {where}: {what}. An older copy of the store seems to have been put back; run `ef verify`."""

    exit_code = 3


class OtherStore(DamageError):
    """another store: {where}: {what}. Put the right data file back, or delete the file tip because this one is wanted."""

    exit_code = 3


class NotProjectable(StoreError):
    """stream {stream}, event {seq}: kind {kind} version {version} is required and not known to this version of ef. The stream can be read and exported; update ef to see its state."""
