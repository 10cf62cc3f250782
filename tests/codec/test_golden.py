"""The recorded frames of format 1: read, verified, and written again byte for byte; the damaged ones are refused."""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from ef.codec import kinds, record
from ef.codec.digests import commitment
from ef.errors import Damaged

V1 = Path(__file__).resolve().parent.parent / "golden" / "v1"


def load(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((V1 / name).read_text(encoding="utf-8"))
    return found


def plain(value: Any) -> Any:
    """A value as the recorded JSON shows it."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, Enum):
        return value.value
    return {"hex": value.hex()} if isinstance(value, bytes) else value


def opened(frame: str) -> tuple[record.Frame, bytes]:
    """A frame and its plain body, all digests checked."""
    found = record.decode_frame(bytes.fromhex(frame), where="golden", strict=True)
    return found, record.unpack_body(found.header, found.salt, found.body, where="golden")


def test_every_kind_of_the_table_is_recorded() -> None:
    recorded = {case["kind"] for case in load("kinds.json")}
    assert recorded == set(kinds.BY_NAME)


@pytest.mark.parametrize("case", load("kinds.json"), ids=lambda c: c["kind"])
def test_a_recorded_frame_gives_its_digests_and_values(case: dict[str, Any]) -> None:
    frame, body = opened(case["frame"])
    assert frame.digest.hex() == case["digest"] == blake3(frame.header_bytes).hexdigest()
    assert frame.header.commitment.hex() == case["commitment"]
    assert commitment(frame.salt, frame.body).hex() == case["commitment"]
    assert body.hex() == case["body"]
    assert plain(asdict(frame.header)) == case["header"]
    event = kinds.decode_body(frame.header.kind, frame.header.version, body, where="golden")
    assert plain(asdict(event)) == case["event"]


@pytest.mark.parametrize("case", load("kinds.json"), ids=lambda c: c["kind"])
def test_a_recorded_frame_is_written_again_byte_for_byte(case: dict[str, Any]) -> None:
    frame, body = opened(case["frame"])
    event = kinds.decode_body(frame.header.kind, frame.header.version, body, where="golden")
    assert kinds.encode_body(event) == body
    head = record.encode_header(frame.header)
    assert record.encode_frame(head, frame.salt, frame.body).hex() == case["frame"]


@pytest.mark.parametrize("case", load("bodies.json"), ids=lambda c: c["plain_bytes"])
def test_a_recorded_compressed_body_is_read_whatever_compresses_today(case: dict[str, Any]) -> None:
    frame, body = opened(case["frame"])
    assert frame.header.encoding == "zlib" and len(frame.body) < len(body) == case["plain_bytes"]
    assert blake3(body).hexdigest() == case["plain_digest"]
    assert plain(asdict(frame.header)) == case["header"]


@pytest.mark.parametrize("case", load("damaged.json"), ids=lambda c: c["why"])
def test_a_recorded_damaged_frame_is_refused_and_its_sound_twin_is_not(
    case: dict[str, Any],
) -> None:
    assert case["damaged"] != case["sound"]
    with pytest.raises(Damaged):
        opened(case["damaged"])
    assert opened(case["sound"])[1] == b"a body"
