"""Floor 6: the public API and the composition root. Time and ids are drawn here."""

from .session import Session
from .store import SessionInfo, Store, open_store, verify_path

__all__ = ["Session", "SessionInfo", "Store", "open_store", "verify_path"]
