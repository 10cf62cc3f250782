"""Lines of JSON from a stranger: what is odd about one line is said of that line alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from ef.readers.jsonvalues import read_line

TWICE, ONCE = b'{"a": 1, "a": 2}', b'{"a": 1, "b": {"a": 2}}'


def test_a_key_that_stands_twice_is_remarked_of_its_own_line_alone() -> None:
    for line, remarks in ((TWICE, {"duplicate-keys"}), (ONCE, set()), (TWICE, {"duplicate-keys"})):
        found = read_line(line)
        assert found.remarks == remarks and found.values[0].value["a"] == 1


def test_lines_that_are_read_at_once_have_each_its_own_remarks() -> None:
    lines = [TWICE, ONCE] * 500
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(read_line, lines))
    assert [bool(f.remarks) for f in found] == [line is TWICE for line in lines]


def test_the_first_of_two_values_counts_also_beside_a_very_long_number() -> None:
    found = read_line(b'{"a": 1, "a": 2, "n": ' + b"9" * 5_000 + b"}")
    assert found.remarks == {"duplicate-keys"} and found.values[0].value["a"] == 1
    assert found.values[0].value["n"] == "9" * 5_000
