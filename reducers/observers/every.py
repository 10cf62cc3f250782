"""The list of all observers."""

from __future__ import annotations

from .contract import Observer
from .files import FILES
from .outcomes import OUTCOMES
from .runs import RUNS

ALL: tuple[Observer, ...] = (RUNS, OUTCOMES, FILES)
