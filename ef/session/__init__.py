"""Floor 6: the public API and the composition root. Time and ids are drawn here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .session import Session
from .store import SessionInfo, Store, open_store

if TYPE_CHECKING:
    from .verifying import verify_path as verify_path

__all__ = ["Session", "SessionInfo", "Store", "open_store", "verify_path"]


def __getattr__(name: str) -> Any:
    """`verify_path` is imported when it is first asked for: it needs what nothing else does."""
    if name != "verify_path":
        raise AttributeError(f"module 'ef.session' has no attribute {name!r}")
    from .verifying import verify_path

    return verify_path
