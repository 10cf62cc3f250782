"""Digests and ids: they are what the format says, and stay so."""

from __future__ import annotations

import uuid

from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from ef.codec import cbor, digests
from tests.codec.samples import TEXT, VALUES


def test_a_record_digest_is_blake3_of_the_header_bytes() -> None:
    assert digests.record_digest(b"header") == blake3(b"header").digest()
    assert len(digests.record_digest(b"")) == digests.DIGEST_BYTES == len(digests.ZERO)


def test_a_commitment_binds_the_salt_and_the_body() -> None:
    salt = bytes(digests.SALT_BYTES)
    assert digests.commitment(salt, b"x") == blake3(salt + b"x").digest()
    assert digests.commitment(salt, b"x") != digests.commitment(b"\1" + salt[1:], b"x")


def test_a_value_digest_is_that_of_the_canonical_bytes() -> None:
    assert digests.value_digest({"b": 1, "a": [True]}) == blake3(b"\xa2aa\x81\xf5ab\x01").digest()


@given(VALUES, VALUES)
def test_values_have_equal_digests_exactly_when_their_bytes_are_equal(a: object, b: object) -> None:
    same = cbor.encode(a) == cbor.encode(b)
    assert (digests.value_digest(a) == digests.value_digest(b)) is same


def test_event_uuids_are_stable() -> None:
    assert digests.event_uuid("session/a", "k").hex() == "3ab6eaf2d76886b897bf1983c08564e8"
    assert digests.event_uuid("session/é", "").hex() == "8abacc87661982fd996ed330df615b1a"


@given(TEXT, TEXT)
def test_an_event_uuid_is_a_uuid_of_version_8(stream: str, key: str) -> None:
    made = uuid.UUID(bytes=digests.event_uuid(stream, key))
    assert made.version == 8 and made.variant == uuid.RFC_4122


@given(TEXT, TEXT, TEXT, TEXT)
def test_stream_and_key_do_not_run_into_each_other(a: str, b: str, c: str, d: str) -> None:
    assert (digests.event_uuid(a, b) == digests.event_uuid(c, d)) is ((a, b) == (c, d))


def test_anchor_ids_are_stable_and_depend_on_all_that_they_are_made_of() -> None:
    args = ("session/a", "value", "a/b/c", [["key", 0, 1, 2]], ["rule", 1])
    made = digests.anchor_id(*args)
    assert made == "an:ccc404418d87c875f2a0297c"
    others = ("session/b", "fact", "a/b/d", [["key", 0, 1, 3]], ["rule", 2])
    for n, other in enumerate(others):
        assert digests.anchor_id(*args[:n], other, *args[n + 1 :]) != made


@given(st.text(max_size=20))
def test_a_short_name_is_bounded_and_plain_even_for_lone_surrogates(text: str) -> None:
    assert digests.short_name(text).isascii()
    assert len(digests.short_name(text)) == 34
    assert digests.short_name(text) != digests.short_name(text + "x")
