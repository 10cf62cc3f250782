"""Values that are made quickly are what the dataclass says, in every other respect."""

from __future__ import annotations

import copy
import inspect
import pickle  # noqa: TID251  (within one test, never from a store)
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from ef.events.quick import quick


@dataclass(frozen=True, slots=True)
class Plain:
    a: int
    b: str = "b"
    c: list[int] = field(default_factory=list[int])


@quick
@dataclass(frozen=True, slots=True)
class Quick:
    a: int
    b: str = "b"
    c: list[int] = field(default_factory=list[int])


def test_it_takes_the_same_arguments() -> None:
    assert repr(Quick(1)) == "Quick(a=1, b='b', c=[])" == repr(Plain(1)).replace("Plain", "Quick")
    assert Quick(1, "x", c=[2]) == Quick(a=1, b="x", c=[2]) != Quick(1)
    assert inspect.signature(Quick).parameters.keys() == inspect.signature(Plain).parameters.keys()
    assert Quick(1).c is not Quick(1).c


@pytest.mark.parametrize("kind", [Plain, Quick])
def test_wrong_arguments_are_refused(kind: type[Quick]) -> None:
    for given in ((), (1, "b", [], 4)):
        with pytest.raises(TypeError, match="argument"):
            kind(*given)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword argument 'd'"):
        kind(1, d=2)  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", [Plain, Quick])
def test_it_is_frozen(kind: type[Quick]) -> None:
    made = kind(1)
    with pytest.raises(FrozenInstanceError):
        made.a = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del made.a
    with pytest.raises((FrozenInstanceError, TypeError)):  # of Python 3.11 the second
        made.d = 2  # type: ignore[attr-defined]
    assert made.a == 1


@pytest.mark.parametrize("kind", [Plain, Quick])
def test_it_is_copied(kind: type[Quick]) -> None:
    made = kind(1, "x", [3])
    assert replace(made, a=2) == kind(2, "x", [3])
    for other in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert other == made
        assert type(other) is kind
    assert hash(replace(made, c=())) == hash(kind(1, "x", ()))  # type: ignore[arg-type]


def test_what_is_made_is_of_its_class() -> None:
    made = Quick(1)
    assert type(made) is Quick
    assert isinstance(made, Quick)
    match made:
        case Quick(a, b):
            assert (a, b) == (1, "b")
