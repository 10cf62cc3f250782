"""Tool calls that stand as XML in an assistant's text, as Cline and Roo Code wrote them. Pure.

A call is a tag that is the name of one of their tools at the beginning of a line, arguments as tags in it, and its end
tag. Only these names count: an answer may well show other XML. An argument reaches to the first end of its tag; one
that holds a file (`content`, `diff`) to the last, for what it holds may show that tag too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

TOOLS = frozenset((
    "execute_command", "read_file", "write_to_file", "replace_in_file", "apply_diff", "search_files", "list_files",
    "list_code_definition_names", "browser_action", "use_mcp_tool", "access_mcp_resource", "ask_followup_question",
    "attempt_completion", "new_task", "plan_mode_respond", "load_mcp_documentation", "web_fetch", "web_search",
    "switch_mode", "fetch_instructions", "insert_content", "search_and_replace", "edit_file", "update_todo_list",
    "codebase_search", "generate_image", "run_slash_command", "condense", "summarize_task", "report_bug", "new_rule",
))  # fmt: skip
CALLS_MAX = 64
"""Calls of one text; what comes behind them stays text."""
_OPENS = re.compile(rf"^[ \t]*<({'|'.join(sorted(TOOLS))})>", re.MULTILINE)
_ARGUMENT = re.compile(r"\s*<(\w{1,64})>")
_WHOLE = ("content", "diff")


_HEAD = re.compile(r"\[(\w{1,64})[ \]]")
_SAYS = "] Result:"


@dataclass(frozen=True, slots=True)
class Call:
    """A call: text[start:end], the tool's name, and its arguments as texts."""

    name: str
    given: dict[str, str]
    start: int
    end: int


def calls(text: str) -> Iterator[Call]:
    """The calls of a text, in order."""
    at = 0
    for _ in range(CALLS_MAX):
        found = _OPENS.search(text, at)
        if found is None:
            return
        name = found[1]
        at = found.end()
        end = _end(text, at, name)
        if end < 0:
            continue
        yield Call(name, _given(text[at:end]), found.start(), end + len(name) + 3)
        at = end + len(name) + 3


def result_of(text: str) -> str | None:
    """What stands behind the line that says which call a text answers; None where it does not begin with one."""
    head = _HEAD.match(text)
    if head is None or head[1] not in TOOLS:
        return None
    says = text.find(_SAYS, head.end() - 1, text.find("\n") if "\n" in text else len(text))
    return text[says + len(_SAYS) :].lstrip(" \t").removeprefix("\n") if says >= 0 else None


def _end(text: str, at: int, name: str) -> int:
    """Where the end tag of a call stands: behind the file that it holds, if it holds one."""
    end = text.find(f"</{name}>", at)
    for whole in _WHOLE:
        begins = text.find(f"<{whole}>", at, end) if end >= 0 else -1
        if begins >= 0:
            last = text.rfind(f"</{whole}>", begins)
            further = text.find(f"</{name}>", last) if last >= 0 else -1
            end = further if further >= 0 else end
    return end


def _given(body: str) -> dict[str, str]:
    given: dict[str, str] = {}
    at = 0
    while found := _ARGUMENT.match(body, at):
        name, begins = found[1], found.end()
        closing = f"</{name}>"
        ends = body.rfind(closing, begins) if name in _WHOLE else body.find(closing, begins)
        if ends < 0:
            break
        given.setdefault(name, body[begins:ends].strip("\n"))
        at = ends + len(closing)
    return given
