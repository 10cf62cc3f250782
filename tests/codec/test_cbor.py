"""Canonical CBOR: what is written can be read, and nothing else is read."""

from __future__ import annotations

import enum
import math
from collections import OrderedDict
from typing import Any

import cbor2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ef.codec import cbor
from ef.codec.limits import DEPTH_MAX, INT_MAX, INT_MIN
from ef.errors import InputRefused
from tests.codec.samples import VALUES


def head(major: int, n: int) -> bytes:
    """A CBOR head in its shortest form."""
    if n < 24:
        return bytes([major << 5 | n])
    for code, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if n < 256**size:
            return bytes([major << 5 | code]) + n.to_bytes(size, "big")
    raise ValueError(n)


def revived_tags() -> list[int]:
    """The tags of which the library makes something of its own, unless it is told otherwise."""
    found = []
    for tag in range(60_000):
        for content in (b"\x00", b"\x40", b"\x60", b"\x80"):
            try:
                value = cbor2.loads(head(6, tag) + content)
            except Exception:
                value = None
            if not isinstance(value, cbor2.CBORTag):
                found.append(tag)
                break
    return found


def nested(depth: int, kind: type) -> Any:
    value: Any = kind()
    for _ in range(depth - 1):
        value = [value] if kind is list else {"k": value}
    return value


# -- what is written is read ------------------------------------------------------------------------------------


@given(VALUES)
def test_what_is_encoded_decodes_to_an_equal_value_of_the_same_types(value: Any) -> None:
    data = cbor.encode(value)
    assert repr(cbor.decode(data)) == repr(dict_order(value))
    assert cbor.decode_trusted(data) == value


def dict_order(value: Any) -> Any:
    """Maps in canonical order: by the length of the encoded key, then by its bytes."""
    if isinstance(value, dict):
        keys = sorted(value, key=lambda k: (len(k.encode()), k.encode()))
        return {key: dict_order(value[key]) for key in keys}
    return [dict_order(each) for each in value] if isinstance(value, list) else value


def test_equal_maps_have_equal_bytes_whatever_their_order() -> None:
    assert cbor.encode({"b": 1, "aa": 2, "a": 3}) == cbor.encode(OrderedDict(a=3, aa=2, b=1))
    assert cbor.encode({"b": 1, "aa": 2, "a": 3}).hex() == "a361610361620162616102"


def test_a_tuple_is_written_as_a_list() -> None:
    assert cbor.encode((1, (2,))) == cbor.encode([1, [2]])


@pytest.mark.parametrize("number", [INT_MIN, INT_MIN + 1, -1, 0, 23, 24, 255, 256, INT_MAX])
def test_an_integer_of_64_bits_is_kept(number: int) -> None:
    assert cbor.decode(cbor.encode(number)) == number


@pytest.mark.parametrize("kind", [list, dict])
def test_nesting_is_kept_up_to_the_limit_and_refused_beyond(kind: type) -> None:
    most = nested(DEPTH_MAX, kind)
    assert cbor.decode(cbor.encode(most)) == most
    with pytest.raises(InputRefused, match="nesting deeper than 64"):
        cbor.encode(nested(DEPTH_MAX + 1, kind))
    beyond = cbor2.dumps(nested(DEPTH_MAX + 1, kind), canonical=True)
    with pytest.raises(cbor.Malformed):
        cbor.decode(beyond)


def test_nesting_that_kills_the_library_is_refused_first() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(InputRefused, match="nesting"):
        cbor.encode(value)
    for _ in range(99_999):  # its destruction would nest as deep
        value = value[0]


# -- what is refused before a byte is written -------------------------------------------------------------------


class Colour(enum.Enum):
    RED = 1


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (INT_MAX + 1, "64 bits"),
        (INT_MIN - 1, "64 bits"),
        (1.0, "float"),
        (math.nan, "float"),
        (math.inf, "float"),
        ({1, 2}, "set"),
        (bytearray(b"x"), "bytearray"),
        (Colour.RED, "Colour"),
        (object(), "object"),
        ("\ud800", "surrogate"),
        ("é\udfff", "surrogate"),
        ({"\ud800": 1}, "surrogate"),
        ({1: "x"}, "map key of type int"),
        ({b"k": "x"}, "map key of type bytes"),
        ([{"a": [1.5]}], "float"),
        (cbor2.CBORTag(1, 0), "CBORTag"),
        (cbor2.undefined, "Undefined"),
        (cbor2.CBORSimpleValue(99), "CBORSimpleValue"),
    ],
)
def test_what_could_not_be_read_again_is_not_written(value: Any, why: str) -> None:
    with pytest.raises(InputRefused, match=f"here: it cannot be stored: .*{why}") as caught:
        cbor.encode(value, where="here")
    assert caught.value.exit_code == 65


# -- what is refused when it is read ----------------------------------------------------------------------------


@pytest.mark.parametrize("tag", revived_tags())
def test_no_tag_that_the_library_revives_is_revived(tag: int) -> None:
    for content in (b"\x00", b"\x40", b"\x60", b"\x80", b"\x82\x00\x01", b"\xa0"):
        for read in (cbor.decode, cbor.decode_trusted):
            with pytest.raises(cbor.Malformed):
                read(head(6, tag) + content)
            with pytest.raises(cbor.Malformed):
                read(b"\x81" + head(6, tag) + content)


def test_the_list_of_refused_tags_is_that_of_the_library() -> None:
    assert sorted(cbor._TAGS) == revived_tags()


@pytest.mark.parametrize("tag", [6, 24, 99, 255, 1000, 65_536, 2**32, 2**64 - 1])
def test_an_unknown_tag_is_no_value_either(tag: int) -> None:
    for read in (cbor.decode, cbor.decode_trusted):
        with pytest.raises(cbor.Malformed):
            read(head(6, tag) + b"\x00")


def test_an_expression_and_an_endless_number_are_not_made() -> None:
    regex = head(6, 35) + b"\x64(a+)"
    decimal = head(6, 4) + b"\x82" + head(0, 2**40) + b"\x01"
    for data in (regex, decimal):
        with pytest.raises(cbor.Malformed, match="tag"):
            cbor.decode_trusted(data)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ("", "nothing"),
        ("f93c00", "a half float"),
        ("fa3f800000", "a float"),
        ("fb3ff0000000000000", "a double"),
        ("f97e00", "not a number"),
        ("f97c00", "infinity"),
        ("f7", "undefined"),
        ("f0", "a simple value"),
        ("a2616101616102", "a duplicate key"),
        ("a26161016162", "a map that is cut off"),
        ("a10101", "a map with a number as a key"),
        ("a1810101", "a map with a list as a key"),
        ("a1410101", "a map with bytes as a key"),
        ("0100", "trailing bytes"),
        ("8000", "trailing bytes after a list"),
        ("1800", "a number in a longer form"),
        ("190017", "a number in a still longer form"),
        ("980101", "a length in a longer form"),
        ("7801" + "61", "a text's length in a longer form"),
        ("a2616201616101", "keys out of order"),
        ("a262616101616101", "a longer key first"),
        ("9f01ff", "a list of no stated length"),
        ("bf616101ff", "a map of no stated length"),
        ("7f6161ff", "a text in pieces"),
        ("5f4161ff", "bytes in pieces"),
        ("61ff", "a text that is not UTF-8"),
        ("63eda080", "a lone surrogate in UTF-8"),
        ("62c080", "an overlong NUL"),
        ("1bffffffffffffff", "a number that is cut off"),
        ("9b0fffffffffffffff", "a list of 2^60"),
        ("5b0fffffffffffffff", "bytes of 2^60"),
        ("ff", "a break"),
        ("1c", "a reserved length"),
        ("c249010000000000000000", "a number of 65 bits"),
        ("c3490100000000000000ff", "a negative number of 65 bits"),
        ("3bffffffffffffffff", "a negative number below 64 bits"),
    ],
)
def test_other_bytes_are_malformed(data: str, what: str) -> None:
    with pytest.raises(cbor.Malformed):
        cbor.decode(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("00", 0),
        ("a2616101616202", {"a": 1, "b": 2}),
        ("80", []),
        ("6161", "a"),
        ("63ed9fbf", "\ud7ff"),
        ("4161", b"a"),
        ("1bffffffffffffffff", INT_MAX),
        ("3b7fffffffffffffff", INT_MIN),
        ("f6", None),
        ("f4", False),
    ],
)
def test_their_sound_twins_are_read(data: str, value: Any) -> None:
    assert cbor.decode(bytes.fromhex(data)) == value


@settings(max_examples=2_000)
@given(st.binary(max_size=40))
def test_any_bytes_are_malformed_or_exactly_what_encode_writes(data: bytes) -> None:
    try:
        value = cbor.decode(data)
    except cbor.Malformed:
        return
    assert cbor.encode(value) == data


@given(VALUES, st.data())
def test_a_changed_byte_gives_malformed_or_another_canonical_value(value: Any, draw: Any) -> None:
    data = bytearray(cbor.encode(value))
    data[draw.draw(st.integers(0, len(data) - 1))] ^= draw.draw(st.integers(1, 255))
    try:
        other = cbor.decode(bytes(data))
    except cbor.Malformed:
        return
    assert cbor.encode(other) == bytes(data) != cbor.encode(value)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        ("a2616101616102", "a duplicate key"),
        ("9f01ff", "a list of no stated length"),
        ("bf616101ff", "a map of no stated length"),
        ("a1810101", "a list as a key"),
        ("81" * 100 + "80", "nesting far beyond the limit"),
        ("61ff", "a text that is not UTF-8"),
    ],
)
def test_bytes_whose_digest_holds_are_still_no_way_in_for_a_forged_value(
    data: str, what: str
) -> None:
    with pytest.raises(cbor.Malformed):
        cbor.decode_trusted(bytes.fromhex(data))
    assert cbor.decode_trusted(bytes.fromhex("1801")) == 1, "only the form is not looked at again"


def test_a_stated_length_of_a_terabyte_takes_no_memory() -> None:
    with pytest.raises(cbor.Malformed):
        cbor.decode_trusted(head(2, 2**40) + b"x")
