"""Floor 3: pure reducers (state, event) -> state, and observers of items.

`ALL` lists every reducer; one law test runs over all of them.
"""

from ..errors import (
    EfError as EfError,
)  # an upward import: a bare import of this folder fails and makes no twin classes
from . import described, heads, surface
from .contract import Reducer

ALL: tuple[Reducer, ...] = (surface.REDUCER, heads.REDUCER, described.REDUCER)

__all__ = ["ALL", "Reducer"]
