"""The built-in detector of secrets, for those who put it together with one of their own.

    from ef.integrations.secrets import Together, detector
    store.import_file(path, redact=Together((detector(), mine)))

Needs the extra `redact`. `KeyFinder()` is its half that needs nothing: the table of published key shapes. What is
promised of it, and what is not: docs/redaction.md.
"""

from __future__ import annotations

from ..importers.keyfinder import KeyFinder
from ..importers.redaction import Redactor, Span, Together
from ..session.secrets import detector

__all__ = ["KeyFinder", "Redactor", "Span", "Together", "detector"]
