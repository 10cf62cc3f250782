"""Floor 4: read models built from the log by reducers; disposable; each carries the seq that it has seen."""

from ..errors import (
    EfError as EfError,
)  # an upward import: a bare import of this folder fails and makes no twin classes
