"""Files read and edited: which file was read, and which was written or changed last, by which tool.

Keys: file/<path>/read and file/<path>/content. The content's digest is claimed only where its whole content was seen (a
tool that wrote the file anew); an edit makes it unknown (null). The quote is the tool's own confirmation.
Refuses: failed calls; results without text.
"""

from __future__ import annotations

from blake3 import blake3

from ...events import AnchorKey, Authority, Channel, Kind, Rule
from .contract import ENTITY_BYTES_MAX, Exchange, Observer, Proposal, first_line, plain

RULE = Rule("observe/files", 1)


def _observe(state: None, seen: Exchange) -> tuple[None, list[Proposal]]:
    call = seen.call
    start, end = first_line(seen.result.text)
    changes = call.action in ("write", "edit", "notebook")
    usable = (
        call.path
        and call.path.strip()
        and not seen.result.is_error
        and start < end
        and seen.channel is Channel.TOOL
    )
    if not usable or not (changes or call.action == "read"):
        return state, []
    digest = None
    if call.action == "write" and call.text is not None:
        digest = "blake3:" + blake3(call.text.encode("utf-8", "surrogatepass")).hexdigest()
    value = (
        {"by": plain(call.name, 60), "digest": digest} if changes else {"by": plain(call.name, 60)}
    )
    key = AnchorKey(
        "file", plain(call.path or "", ENTITY_BYTES_MAX), "content" if changes else "read"
    )
    return state, [
        Proposal(Kind.ARTIFACT, key, value, Authority.EMPIRICAL, seen.part, start, end, RULE)
    ]


FILES = Observer(RULE, lambda: None, _observe)
"""The observer of files."""
