"""Texts that stand alone in a request: its system text, or the user's words in the place of messages. Pure; version 1.

They are a JSON string, a list of text blocks, or an object that holds such a list as `parts`.
"""

from __future__ import annotations

from typing import Any

from ..events import Channel, Part, Reading
from ..events.shapes import is_list, is_map
from .jsonvalues import parse
from .pieces import capped, opaque, text_of, text_part

VERSION = 1
SYSTEM, USER = "system-text", "user-text"


def read_system(data: bytes) -> Reading:
    """The reading of a system text's bytes."""
    return system(parse(data))


def read_user(data: bytes) -> Reading:
    """The reading of the user's words."""
    return Reading("user", _parts(parse(data), Channel.USER_TYPED))


def system(value: Any) -> Reading:
    """The reading of a system text."""
    return Reading("system", _parts(value, Channel.SYSTEM))


def _parts(value: Any, channel: Channel) -> tuple[Part, ...]:
    if is_map(value) and "parts" in value:
        value = value["parts"]
    blocks = value if is_list(value) else [value]
    return capped([_part(block, channel) for block in blocks])


def _part(block: Any, channel: Channel) -> Part:
    if isinstance(block, str):
        return text_part(channel, block)
    if is_map(block) and isinstance(block.get("text"), str):
        return text_part(channel, text_of(block.get("text")))
    return opaque(block)
