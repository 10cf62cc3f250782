"""What readers of other vendors' records share: texts, media and parts of them. Pure.

Whatever the types are, nothing raises: what is not of the type that is wanted is absent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..events import Channel, Media, Part, PartKind, ToolResult
from ..events.shapes import is_list, is_map
from .claude_code import PARTS_MAX, name_of
from .tools import neutral, outcome

_DATA_URL = re.compile(r"data:([\w.+/-]{1,127})?(?:;[\w.+=-]{1,127}){0,4};base64,")


def text_of(value: Any) -> str:
    """A text, or "" where there is none."""
    return value if isinstance(value, str) else ""


def map_of(value: Any) -> Mapping[str, Any]:
    """An object, or an empty one where there is none."""
    return value if is_map(value) else {}


def list_of(value: Any) -> list[Any]:
    """A list, or an empty one where there is none."""
    return value if is_list(value) else []


def maps_of(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list."""
    return [each for each in list_of(value) if is_map(each)]


def kind_of(block: Any) -> str:
    """What a block says that it is."""
    return text_of(map_of(block).get("type"))


def id_of(value: Any) -> str:
    """A provider's id as we name it, "" where there is none."""
    return name_of(value) if isinstance(value, str) and value else ""


def text_part(channel: Channel, text: str, block: Any = None) -> Part:
    """A part that is text."""
    return Part(PartKind.TEXT, channel, text, block=block)


def thought(channel: Channel, text: str, block: Any = None) -> Part:
    """A part that is reasoning."""
    return Part(PartKind.REASONING, channel, text, block=block)


def opaque(block: Any) -> Part:
    """A part of a kind that is not known."""
    return Part(PartKind.OPAQUE, Channel.IMPORTER, block=block)


def call_part(channel: Channel, call_id: str, name: str, given: Any, block: Any = None) -> Part:
    """A part that calls a tool; "" as its id where the format has none."""
    call = neutral(call_id, name[:1024], given)
    return Part(PartKind.TOOL_CALL, channel, "", call_id, block, call=call)


def result_part(
    call_id: str,
    text: str,
    is_error: bool | None,
    block: Any = None,
    *,
    form: str | None = None,
    name: str | None = None,
    exit_code: Any = None,
) -> Part:
    """A part that answers a call. `name` is the tool's where the record has it; `exit_code` where it has that."""
    call = neutral("", name[:1024], {}) if name else None
    text, failed, code = outcome(call, text, is_error, form=form)
    if type(exit_code) is int and abs(exit_code) < 1 << 31:
        code = exit_code
    result = ToolResult(call_id, text, failed, code)
    return Part(PartKind.TOOL_RESULT, Channel.TOOL, text, call_id, block, result=result)


def media_part(channel: Channel, mime: Any, data: Any, block: Any, *, name: Any = None) -> Part:
    """An image or a file whose bytes stand in the record as base64 text, or not at all."""
    kind = PartKind.IMAGE if text_of(mime).startswith("image/") else PartKind.FILE
    media = Media(text_of(mime) or None, text_of(data) or None, name=text_of(name) or None)
    return Part(kind, channel, "", block=block, media=media)


def linked_part(channel: Channel, mime: Any, url: Any, block: Any, *, name: Any = None) -> Part:
    """An image or a file that an address names; a `data:` address holds its bytes."""
    found = _DATA_URL.match(text_of(url))
    if found:
        return media_part(channel, mime or found[1], url[found.end() :], block, name=name)
    kind = PartKind.IMAGE if text_of(mime).startswith("image/") else PartKind.FILE
    media = Media(text_of(mime) or None, url=text_of(url) or None, name=text_of(name) or None)
    return Part(kind, channel, "", block=block, media=media)


def joined(blocks: Any) -> str:
    """A text, or the texts of a list's text blocks joined by line feeds."""
    if is_list(blocks):
        return "\n".join(text_of(b.get("text")) for b in maps_of(blocks) if kind_of(b) == "text")
    return text_of(blocks)


def capped(parts: list[Part]) -> tuple[Part, ...]:
    """Parts of one item; what are too many for a header become one opaque part."""
    if len(parts) <= PARTS_MAX:
        return tuple(parts)
    rest = [part.block for part in parts[PARTS_MAX - 1 :]]
    return (*parts[: PARTS_MAX - 1], opaque(rest))


__all__ = [
    "call_part",
    "capped",
    "id_of",
    "joined",
    "kind_of",
    "linked_part",
    "list_of",
    "map_of",
    "maps_of",
    "media_part",
    "name_of",
    "opaque",
    "result_part",
    "text_of",
    "text_part",
    "thought",
]
