"""Quick makers of frozen values.

The `__init__` of a frozen dataclass calls object.__setattr__ for each field: of a header that is two thirds of the time
that reading it takes. A maker fills a twin of the same slots that is not frozen and gives it the frozen class, once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, make_dataclass
from typing import Any, TypeVar

T = TypeVar("T")


def twin(kind: type) -> Any:
    """The twin of a frozen dataclass with slots: fill it, then set its `__class__` to the frozen class."""
    names = [field.name for field in fields(kind)]
    about = {
        "__doc__": "A twin."
    }  # without one, dataclasses asks inspect for a signature, which takes long
    return make_dataclass(
        f"_{kind.__name__}",
        names,
        namespace=about,
        slots=True,
        eq=False,
        repr=False,
        match_args=False,
    )


def maker(kind: type[T]) -> Callable[..., T]:
    """A function that makes a `kind` (a frozen dataclass with slots) of all its fields, in order, unchecked."""
    made_of = twin(kind)

    def make(*values: Any) -> T:
        made = made_of(*values)
        made.__class__ = kind
        return made  # type: ignore[no-any-return]

    return make
