"""What the key of a test run says of its scope: the whole suite, or a part of it."""

from __future__ import annotations

import re

from ..events import AnchorKey

_WORD = re.compile(r"(?:[^\s']|'[^']*')+")


def whole_suite(key: AnchorKey) -> AnchorKey | None:
    """The status key of the whole suite whose run includes that of `key`; None where that is not plain.

    Plain are runs that were narrowed by paths and by names only. Another folder, other build tags and other wrappers
    may hold tests that the whole suite does not run.
    """
    runner, _, scope = key.entity.partition(":")
    if key.namespace != "test" or not scope:
        return None
    plain_words = ("-k=", "-m=", "-run=", "./")
    named = all(
        w.startswith(plain_words) or "::" in w or w.endswith((".py", "/")) for w in _words(scope)
    )
    return AnchorKey("test", runner, "status") if named else None


def _words(scope: str) -> list[str]:
    """The words of a scope; what stands in quotes is one word with what it is quoted for."""
    return [word.strip() for word in _WORD.findall(scope)]
