"""Quick making of frozen values.

The `__init__` of a frozen dataclass calls object.__setattr__ for each field: a fifth of the time that an import
took, and two thirds of reading a header, were spent there. Here a value is made as one of a twin class of the same
slots, which is not frozen, and is given the frozen class once.
"""

from __future__ import annotations

from dataclasses import MISSING, field, fields, make_dataclass
from typing import Any, TypeVar

K = TypeVar("K", bound=type)


def quick(kind: K) -> K:
    """Make values of `kind`, a frozen dataclass with slots and without a base or __post_init__, three times faster.

    Nothing else changes: arguments, defaults, equality, hash, repr; what is made is frozen. For what is made by the
    thousand. It has no subclasses.
    """
    made: Any = kind
    names = [each.name for each in fields(kind)]
    twin = make_dataclass(
        kind.__name__,
        [(each.name, Any, _default(each)) for each in fields(kind)],
        namespace={"__doc__": "A twin."},  # without one, dataclasses asks for a signature, which takes long
        slots=True,
        eq=False,
        repr=False,
        match_args=False,
    )  # fmt: skip

    def __new__(_kind: Any, /, *given: Any, **named: Any) -> Any:  # noqa: N807
        found: Any = twin(*given, **named)
        found.__class__ = _kind
        return found

    def __reduce__(self: Any) -> Any:  # noqa: N807
        return type(self), tuple(getattr(self, name) for name in names)

    new: Any = __new__
    new.__wrapped__ = made.__init__  # whose arguments they are
    made.__new__, made.__reduce__ = new, __reduce__
    del made.__init__
    return kind


def _default(given: Any) -> Any:
    if given.default_factory is not MISSING:
        return field(default_factory=given.default_factory)
    return field() if given.default is MISSING else field(default=given.default)
