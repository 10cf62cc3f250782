"""Documents are cut into values: those that a plain walk finds at the same paths, each with the bytes that hold it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ef.events.shapes import is_list, is_map
from ef.readers.jsoncuts import Path, Paths, cuts

KEYS = st.sampled_from(["a", "b", "#", "*", "0", "é"])
JSON = st.recursive(
    st.none() | st.integers(-9, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)
DESCENDS = st.frozensets(st.lists(st.sampled_from(["a", "b", "#", "*"]), max_size=3).map(tuple))


def walked(value: Any, descend: Paths, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if not (is_list(value) or is_map(value)) or not any(fits(each, path) for each in descend):
        yield path, value
        return
    pairs = value.items() if is_map(value) else enumerate(value)
    for key, each in pairs:
        yield from walked(each, descend, (*path, key))


def fits(wanted: tuple[str, ...], path: Path) -> bool:
    pairs = list(zip(wanted, path, strict=False))
    same = all(w in ("*", p) or (w == "#" and isinstance(p, int)) for w, p in pairs)
    return same and len(wanted) == len(path)


@given(JSON, DESCENDS, st.sampled_from([None, 1]))
def test_values_are_those_of_a_plain_walk_and_their_bytes_hold_them(
    value: Any, descend: Paths, indent: int | None
) -> None:
    data = json.dumps(value, indent=indent, ensure_ascii=False).encode()
    found = list(cuts(data, descend))
    assert [(cut.path, cut.value) for cut in found] == list(walked(value, descend))
    for cut in found:
        assert cut.fault is None
        assert json.loads(data[cut.start : cut.end]) == cut.value
        assert cut.line == 1 + data.count(b"\n", 0, cut.start)
