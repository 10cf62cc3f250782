"""Floor 5: where a value comes from, down to the quoted bytes and along the chain."""

from .trail import Audit, Holds, Quoted, audit, hold

__all__ = ["Audit", "Holds", "Quoted", "audit", "hold"]
