"""The built-in detector of secrets, and how it is put together with one's own.

    from ef.integrations.secrets import together
    store.import_file(path, redact=together(True, my_function))

`detector()` needs the extra `redact`; `KeyFinder()` is its half that needs nothing. What is promised, and what is not:
docs/redaction.md.
"""

from __future__ import annotations

from ..importers.keyfinder import KeyFinder
from ..importers.redaction import Redactor, Span
from ..session.detecting import detector
from ..session.secrets import together

__all__ = ["KeyFinder", "Redactor", "Span", "detector", "together"]
