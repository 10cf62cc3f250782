"""Long replays without the collector of reference cycles.

A replay makes millions of objects that live on, none of them in a cycle, and the collector goes through them again and
again: measured, a quarter of the time. Reference counts free what is let go all the same.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def calm() -> Generator[None, None, None]:
    """No collections until it ends. For work that ends by itself; it holds for all threads of the process."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
