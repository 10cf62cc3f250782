"""The check of a log that lies in memory: its records, their chains and their bodies. Files it has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from ..errors import DamageError
from .base import Tip
from .check import Checker
from .storelog import StoreLog

if TYPE_CHECKING:
    from .check import Seen
    from .lmdb_log import LmdbLog


class RowChecker(Checker):
    """See Checker. It asks the log for its records instead of reading its files."""

    def __init__(
        self,
        log: StoreLog,
        *,
        quick: bool = False,
        progress: Callable[[int], None] | None = None,
        seen: Seen | None = None,
    ) -> None:
        super().__init__(cast("LmdbLog", log), quick=quick, progress=progress, seen=seen)

    def _run(self) -> None:
        chain, out = self._chain, self.out
        try:
            for record in self._log.all():
                if self._progress is not None:
                    self._progress(record.position)
                self._linked(record)
                chain.next, chain.digest = record.position + 1, record.digest
                out.position, out.events = record.position, out.events + 1
        except DamageError as fault:
            self._say(str(fault), f"position {chain.next}")
        out.digest = chain.digest
        out.tips = {stream: Tip(*tip) for stream, tip in chain.tips.items()}
