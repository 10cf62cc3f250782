"""Text from outside, made safe to look at: what a terminal would obey or hide becomes a visible escape. Pure.

Rules: C0 and C1 controls, DEL, bidirectional overrides and isolates, characters without width, line and paragraph
separators, tag characters and lone surrogates become Python-style escapes (a newline too: who wants lines splits
them first). Everything else stays as it is, in every script.
"""

from __future__ import annotations

import re

_HIDDEN = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # C0, DEL, C1
    "\u00ad\u061c\u180e"  # soft hyphen, Arabic letter mark, Mongolian vowel separator
    "\u200b-\u200f\u2028-\u202e"  # zero width, marks, separators, embeddings and overrides
    "\u2060-\u206f\ufeff\ufff9-\ufffb"  # joiners, isolates, byte order mark, annotations
    "\ud800-\udfff"  # lone surrogates
    "\U000e0000-\U000e007f"  # tags
    "]"
)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str) -> str:
    """The text with every hidden character as an escape: \\n, \\x1b, \\u202e, \\U000e0041. Encodes as UTF-8 always."""
    return _HIDDEN.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    code = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
