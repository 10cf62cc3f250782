"""A line on stderr for what takes over a second: only on a terminal, gone when the work is done."""

from __future__ import annotations

import contextlib
import sys
import threading
import time

from .layout import fit
from .settings import is_terminal, width

QUIET_SECONDS, TICK_SECONDS, BAR_CELLS = 1.0, 0.2, 24


class Progress:
    """Use as a context manager; tell it with `at`. A thread draws, so that also one long step is seen to run."""

    def __init__(self, label: str, total: int | None = None, unit: str = "") -> None:
        self._label, self._total, self._unit = label, total, unit
        self._done, self._detail = 0, ""
        self._began = time.monotonic()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Progress:
        if is_terminal(2):
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()

    def at(self, done: int, detail: str = "") -> None:
        """So much is done; `detail` says what is being done now."""
        self._done, self._detail = done, detail or self._detail

    def line(self, seconds: float) -> str:
        """The line as it is now."""
        amount = f"{self._done:,}"
        bar = ""
        if self._total:
            share = min(1.0, self._done / self._total)
            full = round(share * BAR_CELLS)
            bar = f"[{'#' * full}{'.' * (BAR_CELLS - full)}] "
            amount += f" of {self._total:,}"
        text = f"{self._label} {bar}{amount} {self._unit}, {seconds:.0f} s  {self._detail}"
        return text.rstrip()

    def _run(self) -> None:
        drawn = False
        while not self._stop.wait(TICK_SECONDS):
            seconds = time.monotonic() - self._began
            if seconds >= QUIET_SECONDS:
                self._draw(fit(self.line(seconds), width() - 1))
                drawn = True
        if drawn:
            self._draw("")

    def _draw(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
