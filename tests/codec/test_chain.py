"""The partial decode of a header agrees with the whole one, or gives none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ef.codec.chain import link_of, seq_bytes
from ef.codec.record import encode_header
from tests.codec import samples


def plain(**how: object) -> bytes:
    return encode_header(replace(samples.HEADER, **how))  # type: ignore[arg-type]


@pytest.mark.parametrize("stream", ["s", "s" * 23, "s" * 24, "s" * 250])
@pytest.mark.parametrize("seq", [1, 23, 24, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**63])
def test_the_link_is_that_of_the_header(stream: str, seq: int) -> None:
    header = replace(
        samples.HEADER, stream=stream, seq=seq, prev_stream=bytes([7] * 32), prev_store=bytes([9] * 32)
    )  # fmt: skip
    link = link_of(encode_header(header))
    assert link is not None
    assert (link.kind.decode(), link.stream.decode(), link.seq) == (header.kind, stream, seq)
    assert (link.prev_stream, link.prev_store) == (header.prev_stream, header.prev_store)


@pytest.mark.parametrize(
    "how",
    [{"kind": "K" * 24}, {"version": 24}, {"stream": ""}, {"stream": "session/é"}],
    ids=["long kind", "late version", "no stream", "not in ASCII"],
)
def test_other_forms_have_none(how: dict[str, object]) -> None:
    assert link_of(plain(**how)) is None


def test_bytes_that_are_no_header_have_none() -> None:
    sound = plain()
    assert link_of(sound) is not None
    for at in (0, 1, 2, -68, -67, -34, -33):
        changed = bytearray(sound)
        changed[at] ^= 0xFF
        assert link_of(bytes(changed)) is None, at
    assert link_of(sound[:100]) is None
    kind = sound[2] - 0x60
    for at, value in ((3 + kind, 24), (4 + kind, 0), (5 + kind, 0x79)):
        changed = bytearray(sound)
        changed[at] = value
        assert link_of(bytes(changed)) is None, at


def test_no_change_of_a_byte_and_no_cut_makes_it_raise() -> None:
    sound = plain(stream="s" * 30)
    for at in range(len(sound)):
        for value in (0, 0x18, 0x1B, 0x1C, 0x78, 0xFF):
            changed = bytearray(sound)
            changed[at] = value
            link_of(bytes(changed))
            link_of(bytes(changed[: at + 1]))


@pytest.mark.parametrize("seq", [0, 1, 23, 24, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**63])
def test_a_seq_stands_in_a_header_as_it_is_expected_to(seq: int) -> None:
    header = plain(stream="s" * 30, seq=seq)
    link = link_of(header)
    assert link is not None and header.startswith(seq_bytes(seq), link.seq_at)
    assert not header.startswith(seq_bytes(seq + 1), link.seq_at)
