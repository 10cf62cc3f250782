"""Floor 7: the command line. It parses, calls floor 6 in a supervised worker process, and prints; no logic.

Importing it, and parsing, load nothing heavy: neither LMDB nor the event store library nor pydantic.
"""

from .app import main

__all__ = ["main"]
