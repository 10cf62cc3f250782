"""Whether a value that came from JSON is a map or a list, in a way that type checkers follow."""

from __future__ import annotations

from typing import Any, TypeGuard


def is_map(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a JSON value is an array."""
    return isinstance(value, list)
