"""Floor 4: estimates of tokens, labelled as estimates. Pure."""

from __future__ import annotations

import json

from ..events import PartKind, Reading

METER = "bytes4/1"
"""UTF-8 bytes of what the model reads, divided by four, rounded up; an image counts as 1,600."""
IMAGE_TOKENS = 1600


def estimate(reading: Reading) -> int:
    """The estimated tokens of an item's parts, by METER."""
    total = 0
    for part in reading.parts:
        if part.kind is PartKind.IMAGE:
            total += IMAGE_TOKENS
        elif part.call is not None:
            total += _quarter(json.dumps(part.call.input, default=str))
        else:
            total += _quarter(part.text)
    return total


def _quarter(text: str) -> int:
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return -(-size // 4)
