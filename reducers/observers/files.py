"""Files read and changed: which file was read, and which was written or changed last, by which tool.

Keys: file/<path>/read and file/<path>/content. The content's digest is claimed only where its whole content was seen (a
tool that wrote the file anew, a patch that added it); an edit makes it unknown (null), and so does a deletion, which is
said. The quote is the tool's own confirmation: its line that names the file, else its first one.
Refuses: failed calls; results without text, or that begin as a refusal does; patches that nothing says were applied.
"""

from __future__ import annotations

import re
from typing import Any

from blake3 import blake3

from ...events import AnchorKey, Authority, Channel, Kind, Rule, ToolCall
from ...readers.patches import changes
from .contract import ENTITY_BYTES_MAX, Exchange, Observer, Proposal, first_line, plain
from .shown import Shown, shown

RULE = Rule("observe/files", 1)
_APPLIED = re.compile(
    r"\s*(?:(?:Success|Successfully|Done|Applied|Patch applied|Changes successfully applied)\b"
    r'|<file_write_result>|\{"path":"[^"\n]{1,4096}","operation":"(?:modified|created)")'
)
_REFUSED = re.compile(
    r"\s*(?:(?:ERROR|Error|error|Failed|File already exists|Cannot|Could not|Unable to|No replacement|Invalid"
    r"|Your proposed edit has introduced|The tool execution failed|The user )|<error|<tool_use_error>"
    r'|\{"status":"error")'
)
"""How tools whose vendor has no flag for it begin to say that they changed nothing."""
_NAMED = re.compile(r"^[AMDRU] (\S.*)$", re.MULTILINE)
_WRITES = ("write", "edit", "notebook", "patch")


def _observe(state: None, seen: Exchange) -> tuple[None, list[Proposal]]:
    call = seen.call
    if seen.failed or seen.channel is not Channel.TOOL or call.action not in (*_WRITES, "read"):
        return state, []
    files = _files(call)
    if not files:
        return state, []
    output = shown(seen.result)
    first = first_line(output.text)
    if first[0] == first[1] or not _done(call, output.text):
        return state, []
    lines = _lines(output.text) if call.action == "patch" else {}
    spans = {path: lines.get(path) or lines.get(path.rpartition("/")[2]) or first for path in files}
    return state, [_proposal(seen, output, path, files[path], span) for path, span in spans.items()]


def _done(call: ToolCall, text: str) -> bool:
    """Whether a tool that did not fail did what it was called for: a patch must say so."""
    if call.action == "patch":
        return _APPLIED.match(text) is not None
    return call.action == "read" or _REFUSED.match(text) is None


def _proposal(
    seen: Exchange, output: Shown, path: str, how: dict[str, Any], span: tuple[int, int]
) -> Proposal:
    start, end = output.place(*span)
    name = "read" if seen.call.action == "read" else "content"
    key = AnchorKey("file", plain(path, ENTITY_BYTES_MAX), name)
    value = {"by": plain(seen.call.name, 60), **how}
    return Proposal(Kind.ARTIFACT, key, value, Authority.EMPIRICAL, seen.part, start, end, RULE)


def _files(call: ToolCall) -> dict[str, dict[str, Any]]:
    """The files of a call, and what is said of each; of a file that a patch names twice, the last counts."""
    paths = [path for path in call.paths or (call.path or "",) if path.strip()]
    if call.action == "read":
        return {path: {} for path in paths}
    digest = _digest(call.text) if call.action == "write" and len(paths) == 1 else None
    found: dict[str, dict[str, Any]] = {path: {"digest": digest} for path in paths}
    for change in changes(call.text or "") if call.action == "patch" else ():
        found[change.path] = {"digest": _digest(change.content)}
        if change.how == "delete":
            found[change.path]["deleted"] = True
    return found


def _digest(content: str | None) -> str | None:
    if content is None:
        return None
    return "blake3:" + blake3(content.encode("utf-8", "surrogatepass")).hexdigest()


def _lines(text: str) -> dict[str, tuple[int, int]]:
    """File -> the line of a confirmation that says what was done to it; by its mere name too, where one file has it."""
    found: dict[str, tuple[int, int]] = {}
    names: dict[str, list[tuple[int, int]]] = {}
    at = size = 0
    for line in _NAMED.finditer(text):
        size += len(text[at : line.start()].encode("utf-8", "surrogatepass"))
        at = line.start()
        span = size, size + len(line[0].encode("utf-8", "surrogatepass"))
        path = line[1].rstrip()
        found[path] = span
        names.setdefault(path.rpartition("/")[2], []).append(span)
    return {name: spans[0] for name, spans in names.items() if len(spans) == 1} | found


FILES = Observer(RULE, lambda: None, _observe)
"""The observer of files."""
