"""Headers, frames and bodies: round trips for every field, each limit with its twin, and damage that is named."""

from __future__ import annotations

import zlib
from dataclasses import fields, replace
from typing import Any

import cbor2
import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from ef import events as ev
from ef.codec import cbor, kinds, limits, record
from ef.codec.digests import commitment, record_digest
from ef.errors import Damaged, InputRefused
from tests.codec.samples import HEADER, HEADERS, VALUES

SALT = bytes(range(16))

# -- headers ----------------------------------------------------------------------------------------------------


@settings(max_examples=500)
@given(HEADERS)
def test_a_header_is_read_as_it_was_written(header: ev.Header) -> None:
    data = record.encode_header(header)
    assert record.decode_header(data) == header
    assert record.decode_header(data, strict=True) == header


@pytest.mark.parametrize("name", [f.name for f in fields(ev.Header)])
@settings(max_examples=20)
@given(st.data())
def test_every_field_of_a_header_is_in_its_bytes(name: str, data: Any) -> None:
    other = replace(HEADER, **{name: getattr(data.draw(HEADERS), name)})
    same = getattr(other, name) == getattr(HEADER, name)
    assert (record.encode_header(other) == record.encode_header(HEADER)) is same
    assert record.decode_header(record.encode_header(other)) == other


def test_the_order_of_the_array_is_that_of_the_format() -> None:
    assert cbor.decode(record.encode_header(HEADER)) == [
        1, "ItemAppended", 1, True, "session/a", 3, bytes(range(16)), "key-3", 1_700_000_000_000_000,
        1_600_000_000_000_000, "claimed", "user_typed", ["src", 4, 100, 200], ["session/a", 2], ["g1", True],
        ["user", [["text", "user_typed", None], ["tool_result", "tool", "c1"]], 12, "meter/1"],
        bytes([1] * 32), 100, "inline", ["claude_code", 1], "none", bytes([2] * 32), bytes([3] * 32),
    ]  # fmt: skip


def test_the_constants_of_the_format_are_what_they_were() -> None:
    assert (record.FORMAT, record.MAGIC, record.FRAME.size, record.COMPRESS_FROM) == (
        1,
        b"EFr1",
        60,
        512,
    )
    assert record.FRAME.format == ">4sII16s32s"
    assert {name: getattr(limits, name) for name in dir(limits) if name.isupper()} == {
        "DEPTH_MAX": 64,
        "INT_MIN": -(2**63),
        "INT_MAX": 2**64 - 1,
        "HEADER_BYTES_MAX": 65_536,
        "BODY_BYTES_MAX": 268_435_456,
        "KEY_BYTES_MAX": 256,
        "NAME_BYTES_MAX": 256,
        "SOURCE_CHUNK_BYTES": 65_536,
        "SOURCE_PIECE_BYTES_MAX": 1_048_576,
    }


def test_the_words_of_the_format_are_what_they_were() -> None:
    words = {
        kind.__name__: " ".join(kind) for kind in (ev.Basis, ev.Channel, ev.Place, ev.PartKind)
    }
    assert words == {
        "Basis": "claimed equal unknown",
        "Channel": "operator user_typed system tool subagent web assistant ci filesystem importer observer",
        "Place": "inline blob source",
        "PartKind": "text reasoning tool_call tool_result image file opaque",
    }


def facts(call: str) -> ev.ItemFacts:
    return ev.ItemFacts("r", (ev.PartFacts(ev.PartKind.TOOL_CALL, ev.Channel.TOOL, call),))


@pytest.mark.parametrize(
    ("what", "make"),
    [
        ("stream", lambda text: replace(HEADER, stream=text)),
        ("key", lambda text: replace(HEADER, key=text)),
        ("group", lambda text: replace(HEADER, group=ev.Group(text))),
        ("reader", lambda text: replace(HEADER, reader=(text, 1))),
        ("call id", lambda text: replace(HEADER, item=facts(text))),
    ],
)
def test_a_name_fits_its_bytes_or_is_refused_by_its_name(what: str, make: Any) -> None:
    for text in ("a" * 256, "é" * 128, ""):
        assert record.decode_header(record.encode_header(make(text))) == make(text)
    for text in ("a" * 257, "é" * 129):
        with pytest.raises(InputRefused, match=f"its {what} is longer than 256 bytes"):
            record.encode_header(make(text))


def test_a_header_fits_its_bytes_or_is_refused() -> None:
    def of(role: int) -> ev.Header:
        return replace(HEADER, item=ev.ItemFacts("r" * role, ()))

    most = 60_000 + limits.HEADER_BYTES_MAX - len(record.encode_header(of(60_000)))
    assert len(record.encode_header(of(most))) == limits.HEADER_BYTES_MAX
    with pytest.raises(InputRefused, match="its header has 65537 bytes, more than 65536"):
        record.encode_header(of(most + 1))


@pytest.mark.parametrize(
    "bad",
    [
        {"seq": -1},
        {"version": True},
        {"kind": None},
        {"required": 1},
        {"uuid": b"short"},
        {"commitment": b"x" * 31},
        {"prev_store": "x" * 32},
        {"occurred_at": "yesterday"},
        {"encoding": b"none"},
        {"reader": ("r", "1")},
        {"origin": ev.Origin("s", 1, -1, 2)},
        {"origin": ev.Origin(None, 1, 1, 2)},  # type: ignore[arg-type]
        {"cause": ev.Cause("s", None)},  # type: ignore[arg-type]
        {"group": ev.Group("g", 1)},  # type: ignore[arg-type]
        {"item": ev.ItemFacts(1, ())},  # type: ignore[arg-type]
        {"item": ev.ItemFacts("r", (), False)},
        {"item": ev.ItemFacts("r", (), 1, 2)},  # type: ignore[arg-type]
    ],
)
def test_a_header_that_could_not_be_read_again_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InputRefused, match="could not be read again"):
        record.encode_header(replace(HEADER, **bad))


def with_value(index: int, value: Any) -> bytes:
    array = cbor.decode(record.encode_header(HEADER))
    array[index] = value
    return cbor.encode(array)


WRONG: list[Any] = [None, -1, 0, 1, True, "x", b"x", [], [1], ["x", 1], [1, 2, 3, 4], ["s", "l", 1, 2], {}, [[]],
                    ["r", ["abc"], 1, "m"], ["r", [{"text": 0, "tool": 0, "call-1": 0}], 1, "m"],
                    ["r", {"abc": 0}, 1, "m"],
                    ["r", [["text"]], 1, "m"], ["r", [["text", "tool", 1]], 1, "m"], ["r", [], 1], ["x", 1, 2],
                    [1, True], ["x", 0], "tool"]  # fmt: skip


@pytest.mark.parametrize("index", range(23))
@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_a_header_with_a_strange_value_is_malformed_or_writes_the_same_bytes(
    index: int, value: Any
) -> None:
    data = with_value(index, value)
    for strict in (False, True):
        try:
            header = record.decode_header(data, strict=strict)
        except cbor.Malformed:
            continue
        assert record.encode_header(header) == data


@given(st.integers(0, 22), VALUES)
def test_a_header_with_any_value_is_malformed_or_writes_the_same_bytes(
    index: int, value: Any
) -> None:
    data = with_value(index, value)
    try:
        header = record.decode_header(data)
    except cbor.Malformed:
        return
    assert record.encode_header(header) == data


@pytest.mark.parametrize("value", [[], {}, None, [1] * 23, [2, *([None] * 22)], [1, 2]])
def test_what_is_no_array_of_format_1_is_no_header(value: Any) -> None:
    with pytest.raises(cbor.Malformed):
        record.decode_header(cbor.encode(value))


def test_only_a_strict_reading_demands_the_canonical_form() -> None:
    data = record.encode_header(HEADER)
    longer = data.replace(b"\x97\x01", b"\x98\x17\x01", 1)
    assert longer != data
    assert record.decode_header(longer) == HEADER
    with pytest.raises(cbor.Malformed, match="canonical"):
        record.decode_header(longer, strict=True)


# -- frames -----------------------------------------------------------------------------------------------------


@given(HEADERS, st.binary(min_size=16, max_size=16), st.binary(max_size=40))
def test_a_frame_is_read_as_it_was_written(header: ev.Header, salt: bytes, body: bytes) -> None:
    head = record.encode_header(header)
    data = record.encode_frame(head, salt, body)
    frame = record.decode_frame(data, where="here", strict=True)
    assert frame == record.Frame(head, header, salt, record_digest(head), body)
    assert record.encode_frame(frame.header_bytes, frame.salt, frame.body) == data
    assert frame.digest == blake3(head).digest() == data[28:60]


def sound(body: bytes = b"body") -> tuple[ev.Header, bytes]:
    """A header and its frame, in which all digests hold."""
    header = replace(HEADER, commitment=commitment(SALT, body), body_size=len(body))
    return header, record.encode_frame(record.encode_header(header), SALT, body)


def body_of(data: bytes) -> bytes:
    frame = record.decode_frame(data, where="here")
    return record.unpack_body(frame.header, frame.salt, frame.body, where="here")


def test_every_changed_byte_of_a_frame_is_found_when_header_and_body_are_read() -> None:
    _, data = sound()
    for at in range(len(data)):
        for bit in (1, 0x80):
            bad = bytearray(data)
            bad[at] ^= bit
            with pytest.raises(Damaged, match="here"):
                body_of(bytes(bad))
    assert body_of(data) == b"body"


def test_a_frame_of_another_length_is_damage() -> None:
    _, data = sound()
    for cut in range(len(data)):
        with pytest.raises(Damaged):
            record.decode_frame(data[:cut], where="here")
    for more in (data + b"\0", data + data):
        with pytest.raises(Damaged, match="magic or lengths"):
            record.decode_frame(more, where="here")
    record.decode_frame(data, where="here")


@pytest.mark.parametrize("head", [b"", b"\xff", cbor.encode([]), cbor.encode([1] * 23)])
def test_a_frame_whose_digest_holds_over_no_header_is_damage(head: bytes) -> None:
    with pytest.raises(Damaged, match="the header cannot be read"):
        record.decode_frame(record.encode_frame(head, SALT, b""), where="here")


@given(st.binary(max_size=100))
def test_hostile_bytes_are_no_frame(data: bytes) -> None:
    for made in (data, record.MAGIC + data, record.encode_frame(data, SALT, b"")):
        with pytest.raises(Damaged):
            record.decode_frame(made, where="here")


# -- bodies -----------------------------------------------------------------------------------------------------


def body_header(plain: bytes, encoding: str, stored: bytes) -> ev.Header:
    return replace(
        HEADER, commitment=commitment(SALT, stored), body_size=len(plain), encoding=encoding
    )


def unpack(plain: bytes, encoding: str, stored: bytes) -> bytes:
    return record.unpack_body(body_header(plain, encoding, stored), SALT, stored, where="here")


@given(st.binary(max_size=2_000) | st.integers(0, 3_000).map(lambda n: b"ab" * n))
def test_a_body_is_unpacked_as_it_was_packed(plain: bytes) -> None:
    encoding, stored = record.pack_body(plain, where="here")
    assert unpack(plain, encoding, stored) == plain
    assert len(stored) <= len(plain)
    assert encoding == "none" or (len(plain) >= 512 and len(stored) * 8 <= len(plain) * 7)


def test_a_body_is_compressed_from_512_bytes_where_that_saves_an_eighth() -> None:
    noise = b"".join(blake3(bytes([n])).digest() for n in range(32))
    assert record.pack_body(b"a" * 511, where="x") == ("none", b"a" * 511)
    assert record.pack_body(b"a" * 512, where="x")[0] == "zlib"
    assert record.pack_body(noise, where="x") == ("none", noise)


def test_a_body_fits_its_bytes_or_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record, "BODY_BYTES_MAX", 1_000)  # the real limit takes a quarter of a GiB
    assert record.pack_body(bytes(1_000), where="here")[0] == "zlib"
    with pytest.raises(InputRefused, match="here: its body has 1001 bytes, more than 1000"):
        record.pack_body(bytes(1_001), where="here")


def test_a_decompression_bomb_is_stopped_at_the_stated_size() -> None:
    bomb = zlib.compress(bytes(64 << 20), 9)
    assert len(bomb) < 100_000
    with pytest.raises(Damaged, match="wrong length"):
        unpack(b"a" * 600, "zlib", bomb)
    assert unpack(bytes(64 << 20), "zlib", bomb) == bytes(64 << 20)


PLAIN = b"all work and no play makes a dull body. " * 40
PACKED = zlib.compress(PLAIN, 6)


@pytest.mark.parametrize(
    ("plain", "encoding", "stored", "why"),
    [
        (PLAIN, "zlib", PACKED[:-1], "wrong length"),
        (PLAIN, "zlib", PACKED[:20], "wrong length"),
        (PLAIN, "zlib", PACKED + b"x", "wrong length"),
        (PLAIN, "zlib", PACKED + PACKED, "wrong length"),
        (PLAIN[:-1], "zlib", PACKED, "wrong length|has 1600 bytes"),
        (PLAIN + b"x", "zlib", PACKED, "has 1600 bytes, not 1601"),
        (PLAIN, "zlib", b"", "wrong length"),
        (PLAIN, "zlib", PLAIN, "does not decompress"),
        (PLAIN, "zlib", PACKED[:-1] + bytes([PACKED[-1] ^ 1]), "does not decompress"),
        (PLAIN, "none", PLAIN[:-1], "has 1599 bytes, not 1600"),
        (PLAIN, "none", PACKED, "bytes, not 1600"),
        (PLAIN, "zstd", PACKED, "'zstd' is not known"),
        (PLAIN, "", PLAIN, "'' is not known"),
    ],
)
def test_a_body_that_is_not_what_its_header_says_is_damage(
    plain: bytes, encoding: str, stored: bytes, why: str
) -> None:
    with pytest.raises(Damaged, match=why):
        unpack(plain, encoding, stored)


@pytest.mark.parametrize("level", range(10))
def test_a_body_that_was_compressed_at_any_level_is_read(level: int) -> None:
    assert unpack(PLAIN, "zlib", zlib.compress(PLAIN, level)) == PLAIN
    assert record.pack_body(PLAIN, where="here", level=level)[0] == ("zlib" if level else "none")


def test_the_commitment_is_checked_before_anything_is_decompressed() -> None:
    header = body_header(PLAIN, "zlib", PACKED)
    assert record.unpack_body(header, SALT, PACKED, where="here") == PLAIN
    for salt, stored in ((SALT, PACKED + b"x"), (bytes(16), PACKED), (SALT, b"")):
        with pytest.raises(Damaged, match="here: the body does not match its commitment"):
            record.unpack_body(header, salt, stored, where="here")


def test_a_strict_reading_takes_no_time_beyond_64_bits() -> None:
    early, late = -(2**63), -(2**64)
    good = record.encode_header(replace(HEADER, occurred_at=early))
    assert record.decode_header(good, strict=True).occurred_at == early
    bad = good.replace(cbor.encode(early), cbor2.dumps(late), 1)
    assert bad != good
    with pytest.raises(cbor.Malformed, match="64 bits"):
        record.decode_header(bad, strict=True)


# -- what is written can be read --------------------------------------------------------------------------------


def test_what_cannot_be_decoded_again_is_never_given_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule S6: a decode of what was encoded comes before the commit. Here the CBOR library reads nothing."""

    def unreadable(data: bytes) -> Any:
        raise cbor.Malformed("not CBOR")

    event = ev.ForeignCompaction("claude-code", "compact", None, None)
    assert record.encode_header(HEADER) and kinds.encode_body(event)
    monkeypatch.setattr(cbor, "decode_trusted", unreadable)
    with pytest.raises(InputRefused, match="read again: not CBOR"):
        record.encode_header(HEADER)
    with pytest.raises(InputRefused, match="read again: not CBOR"):
        kinds.encode_body(event)
