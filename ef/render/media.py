"""Images and files of all formats -> what a provider can carry of them, and words for the rest. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..events import Media, Part, PartKind
from ..events.shapes import is_list, is_map

_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}")
_DATA_URL = re.compile(r"data:([\w.+-]{1,64}/[\w.+-]{1,64});base64,")
_WEB = re.compile(r"https?://[^\s\x00-\x1f\x7f]{1,8192}")
_MIME = re.compile(r"[\w.+-]{1,64}/[\w.+-]{1,64}")
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What every provider takes as an image."""
NAME_CHARS = 200


def usable(media: Media | None) -> Media | None:
    """The media with a type and base64 data that decodes, or with an address of the web; None where it has neither."""
    if media is None:
        return None
    mime, data, url = media.mime, media.data, media.url
    mime = mime if mime and _MIME.fullmatch(mime) else None
    found = _DATA_URL.match(url) if url and data is None else None
    if url and found:
        mime, data, url = found[1], url[found.end() :], None
    if data is not None:
        data = data.translate({45: "+", 95: "/"})
        data += "=" * (-len(data) % 4)
        good = bool(data) and mime and _BASE64.fullmatch(data) and len(data.rstrip("=")) % 4 != 1
        return Media(mime, data, None, media.name) if good else None
    return Media(mime, None, url, media.name) if url and _WEB.fullmatch(url) else None


def data_url(media: Media) -> str:
    """The media's address: its own, or its data as one."""
    return media.url or f"data:{media.mime};base64,{media.data}"


def words(part: Part) -> str:
    """What stands for an image or a file that cannot be carried: what it was."""
    media = part.media or Media()
    kind = "image" if part.kind is PartKind.IMAGE else "file"
    said = [kind, *(each[:NAME_CHARS] for each in (media.name, media.mime) if each)]
    if media.url and not media.url.startswith("data:"):
        said.append(f"at {media.url[:NAME_CHARS]}")
    if media.data:
        said.append(f"of {len(media.data) * 3 // 4} bytes")
    told = f"[{' '.join(said)}: it cannot be shown here]"
    return f"{told}\n{part.text}" if part.text else told


def pictures(result: Part, beside: tuple[str, ...] = ()) -> list[Media]:
    """The usable images that stand in a tool's result, whatever format it came in; `beside`: data and addresses of
    images that are parts of their own."""
    found = (usable(media) for block in _inner(result.block) if (media := _picture(block)))
    return [m for m in found if m and m.data not in beside and m.url not in beside]


def _inner(block: Any) -> Iterator[Any]:
    """The blocks that may be images: in a list of them, or in one that a result names `content`, `output`, `parts`."""
    below: list[Any] = [block]
    for _ in range(3):
        level, below = below, list[Any]()
        for each in level:
            if is_list(each):
                yield from each
                below += each
            elif is_map(each):
                below += [v for k in _HOLDERS if (is_list(v := each.get(k)) or is_map(v))]


_HOLDERS = (
    "content",
    "output",
    "result",
    "functionResponse",
    "function_response",
    "parts",
    "response",
)


def _picture(block: Any) -> Media | None:
    if not is_map(block):
        return None
    kind, source = block.get("type"), block.get("source")
    inline = block.get("inlineData", block.get("inline_data"))
    if is_map(inline):
        return _media(inline.get("mimeType", inline.get("mime_type")), inline.get("data"), None)
    if kind == "image" and is_map(source):
        return _media(source.get("media_type"), source.get("data"), source.get("url"))
    if kind == "image":
        return _media(block.get("mimeType"), block.get("data"), block.get("url"))
    if kind in ("image_url", "input_image"):
        url = block.get("image_url")
        return _media(None, None, url.get("url") if is_map(url) else url)
    return None


def _media(mime: Any, data: Any, url: Any) -> Media:
    mime, data, url = (each if isinstance(each, str) else None for each in (mime, data, url))
    return Media(mime, data, url)
