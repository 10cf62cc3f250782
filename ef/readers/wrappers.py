"""How vendors wrap what a command printed -> its exit code, and where its own output stands. Pure.

Rule: a code counts only at the wrapper's own place: the very head of the text, or its very tail. What stands between is
the command's own output, and may quote anything. Where an output could be taken for a wrapper, there is no code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..events.quick import quick
from ..events.shapes import is_map
from .arguments import json_text

_CODE = r"(-?\d{1,9})"
_CODEX = re.compile(
    r"(?:Chunk ID: \S{1,64}\n)?Wall time: [\d.]{1,32} seconds\n"
    rf"(?:Process exited with code {_CODE}\n|Process running with session ID \d{{1,20}}\n)?"
    r"(?:Original token count: \d{1,20}\n)?Output:(?:\n|\Z)"
)
_CODEX_FREE = re.compile(
    rf"Exit code: {_CODE}\nWall time: [\d.]{{1,32}} seconds\n(?:Total output lines: \d{{1,20}}\n)?Output:(?:\n|\Z)"
)
_MINI = re.compile(
    rf"(?:<exception>[^<]{{0,4000}}</exception>\s*)?<returncode>{_CODE}</returncode>\s*(?=<(?:output|warning|output_head)>)(?:<output>\n?)?"
)
_MINI_END = re.compile(r"\n?</(?:output|output_tail)>\s*\Z")
_CLAUDE = re.compile(rf"(?:Error: )?Exit code {_CODE}(?:\n|\Z)")
_GEMINI = re.compile(r"Command: [\s\S]*?\nDirectory: [^\n]*\n(?:Stdout|Output): ")
_GEMINI_END = re.compile(
    rf"\n(?:Stderr: [^\n]*\n)?(?:Error: [^\n]*\n)?Exit Code: (?:{_CODE}|\(none\))\nSignal: [^\n]*"
    r"(?:\nBackground PIDs: [^\n]*)?(?:\nProcess Group PGID: [^\n]*)?\s*\Z"
)
_COPILOT_END = re.compile(
    rf"(?:\A|\n)<(?:shellId: \S{{1,64}} completed|exited) with exit code {_CODE}>\s*\Z"
)
_OPENHANDS_END = re.compile(
    rf"(?:\A|\n)\[(?:The command completed|Command finished) with exit code {_CODE}\.?(?: CTRL\+[A-Z] was sent\.)?\]"
    r"(?:\n\[(?:Current working directory|Python interpreter|Command finished with exit code)\b[^\n]*\])*\s*\Z"
)
_PI_END = re.compile(rf"(?:\A|\n\n)Command exited with code {_CODE}\s*\Z")
_HARNESS_END = re.compile(rf"(?:\A|\n)\[exit code: {_CODE}\]\Z")
"""Said of codes other than 0 alone: a command's own last line could be this, so it counts only where `form` says so."""
_ROO = re.compile(
    r"Command executed in terminal[^\n]{0,4096}\. "
    rf"(?:Command execution was not successful[^\n]{{0,200}}\n)?Exit code: {_CODE}\nOutput:(?:\n|\Z)"
)
_CLINE = re.compile(
    rf"Command (?:executed successfully \(exit code |failed with exit code ){_CODE}\)?\.(?:\n(?:Output:\n)?|\Z)"
)
LITERAL = re.compile(r'\{\s*"output"\s*:\s*"')
"""Where the output begins in a JSON object that begins with it."""
_TAIL = 2_048
"""A tail is looked for in so many last characters."""


@quick
@dataclass(frozen=True, slots=True)
class Wrapped:
    """text[start:end] is what the command printed; `code` is None where the wrapper says none; the line `said` says it.

    `own` is what was printed where it stands escaped in the text, None where it stands as it is.
    """

    code: int | None
    start: int
    end: int
    said: tuple[int, int] = (0, 0)
    own: str | None = None


def _head(pattern: re.Pattern[str], text: str) -> Wrapped | None:
    found = pattern.match(text)
    return Wrapped(_number(found[1]), found.end(), len(text), _line(text, found)) if found else None


def _tail(pattern: re.Pattern[str], text: str, start: int = 0) -> Wrapped | None:
    """The place where the pattern reaches to the end."""
    found = pattern.search(text, max(start, len(text) - _TAIL))
    return Wrapped(_number(found[1]), start, found.start(), _line(text, found)) if found else None


def _number(digits: str | None) -> int | None:
    return int(digits) if digits else None


def _line(text: str, found: re.Match[str]) -> tuple[int, int]:
    """The line that the code stands in."""
    if found[1] is None:
        return 0, 0
    end = text.find("\n", found.end(1))
    return text.rfind("\n", 0, found.start(1)) + 1, len(text) if end < 0 else end


def _codex(text: str, is_error: bool | None) -> Wrapped | None:
    return _head(_CODEX, text) or _head(_CODEX_FREE, text) or _json(text, "metadata")


def _json(text: str, inner: str | None) -> Wrapped | None:
    """An object of `output` and the code, as JSON: its own output is escaped, so no place in the text is it."""
    value = json_text(text) if text.startswith("{") else None
    if not is_map(value) or not isinstance(value.get("output"), str):
        return None
    holder = value.get(inner) if inner else value
    code = holder.get("exit_code" if inner else "returncode") if is_map(holder) else None
    known = {"output", inner} if inner else {"output", "returncode", "exception_info", "exception"}
    if not isinstance(code, int) or isinstance(code, bool) or not set(value) <= known:
        return None
    return Wrapped(code, 0, len(text), own=value["output"] if LITERAL.match(text) else None)


def _mini(text: str, is_error: bool | None) -> Wrapped | None:
    found = _head(_MINI, text)
    if found is None:
        return _json(text, None)
    end = _MINI_END.search(text, max(found.start, len(text) - 64))
    return replace(found, end=end.start()) if end else None


def _claude(text: str, is_error: bool | None) -> Wrapped | None:
    return _head(_CLAUDE, text) if is_error else None


def _gemini(text: str, is_error: bool | None) -> Wrapped | None:
    head = _GEMINI.match(text)
    return _tail(_GEMINI_END, text, head.end()) if head else None


def _copilot(text: str, is_error: bool | None) -> Wrapped | None:
    return _tail(_COPILOT_END, text)


def _openhands(text: str, is_error: bool | None) -> Wrapped | None:
    return _tail(_OPENHANDS_END, text)


def _pi(text: str, is_error: bool | None) -> Wrapped | None:
    return _tail(_PI_END, text) if is_error else None


def _harness(text: str, is_error: bool | None) -> Wrapped | None:
    return _tail(_HARNESS_END, text)


def _roo(text: str, is_error: bool | None) -> Wrapped | None:
    return _head(_ROO, text) or _head(_CLINE, text)


_AROUND = (_codex, _mini, _gemini, _copilot, _openhands, _pi, _roo)
FORMS: dict[str, Callable[[str, bool | None], Wrapped | None]] = {
    "claude-code": _claude, "codex": _codex, "mini-swe-agent": _mini, "gemini-cli": _gemini, "copilot-cli": _copilot,
    "openhands": _openhands, "pi": _pi, "cline": _roo, "roo": _roo,
    "deepseek-harness": _harness,
}  # fmt: skip
"""Vendor -> how it wraps."""


def wrapped(text: str, is_error: bool | None, form: str | None) -> Wrapped | None:
    """The wrapper of a text in a vendor's form; in whichever form it has where `form` is None."""
    if form is not None:
        found = FORMS.get(form)
        return found(text, is_error) if found else None
    return _claude(text, is_error) or around(text, is_error)


def around(text: str, is_error: bool | None) -> Wrapped | None:
    """The wrapper of a text, whichever it is, that is more than a first line which says the exit code."""
    return next(filter(None, (each(text, is_error) for each in _AROUND)), None)
