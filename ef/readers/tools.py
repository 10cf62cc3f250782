"""What is common to tool calls of all formats: the neutral view of a call and of its outcome. Pure.

Rule: a call is read by its name (`actions`) and by what it was given (`arguments`), whoever the vendor is. What it was
given is hostile: whatever its types are, nothing raises, and what cannot be read is absent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from blake3 import blake3

from ..events import Part, ToolCall
from ..events.shapes import is_map
from . import arguments, commanded, patches, wrappers
from .actions import EDITORS, known
from .arguments import FILES, FOLDERS, first

_View = dict[str, Any]
"""Fields of the neutral view."""
_ASIDE = frozenset((
    "writestdin", "readbash", "writebash", "stopbash", "listbash", "readpowershell", "writepowershell",
    "stoppowershell", "bashoutput", "killshell", "killbash", "sendtoterminal", "sendcommandinput", "commandstatus",
    "readcommandoutput", "getterminaloutput", "readterminal", "terminallastcommand",
))  # fmt: skip
"""Tools of a shell that start no command: they type into a running one, read what it printed, or end it."""
_SCRIPT = "exec"
"""Given a text, this one runs a script that calls other tools; given arguments, a command."""
_COMMANDED = ("", "sweagent")
_PLACES = ("path", *FILES[:8], "file", *FOLDERS)
"""Arguments that say where to search."""
_APPLIES = re.compile(r"\s*(?:cd (\S{1,4096}) && )?apply_?patch\s*(?:<<|['\"]?\*\*\* Begin Patch)")
_APPLIED = re.compile(r"\*\*\* End Patch['\"]?\s*(?:['\"]?\w{1,40})?\s*\Z")
_OTHER_FILES = ("file_path", "notebook_path", "path")
_OTHER_TEXTS = ("content", "new_string", "prompt")


def neutral(call_id: str, name: str, given: Any, *, cwd: str | None = None) -> ToolCall:
    """The neutral view of a call; `given` is its arguments: an object, JSON text of one, or free text.

    `cwd` is the folder that the session is in, where the provider says so. A name that says nothing ("") with free text
    is a line of a shell, or of an agent whose tools are words on it.
    """
    value = arguments.json_text(given) if isinstance(given, str) else given
    own, action = known(name)
    view = _View({"name": name, "action": action, "cwd": cwd or None})
    if isinstance(value, str):
        _free(view, own, value)
    elif is_map(value):
        _named(view, own, value)
    return ToolCall(call_id=call_id, given=digest(value), input=value, **view)


def digest(given: Any) -> str:
    """What tells two calls of a tool apart: eight hex digits of all that it was given."""
    given = given if is_map(given) or isinstance(given, str) else {}
    try:
        data = json.dumps(given, sort_keys=True, default=str).encode()
    except (ValueError, TypeError, RecursionError):  # nothing that a reader of JSON gives
        return ""
    return blake3(data).hexdigest()[:8]


def outcome(
    call: ToolCall | None, text: str, is_error: bool | None, *, form: str | None = None
) -> tuple[str, bool, int | None]:
    """(text, is_error, exit code) of a result: the code where the vendor's wrapper says one, in its own place.

    The text stays what the model saw. `is_error` is the vendor's word; where it has none (None), another code than 0 is
    an error. `form` is a key of `wrappers.FORMS`, "" for a vendor that wraps nothing, None where nobody knows: then any
    form counts, of a call that may be a shell's.
    """
    if call is not None and call.action not in ("shell", "patch"):
        return text, bool(is_error), None
    found = wrappers.wrapped(text, is_error, form)
    code = found.code if found else None
    return text, code not in (None, 0) if is_error is None else is_error, code


def named(part: Part, call_id: str) -> Part:
    """The part of a call or a result under another call id."""
    call = replace(part.call, call_id=call_id) if part.call else None
    result = replace(part.result, call_id=call_id) if part.result else None
    return replace(part, call_id=call_id, call=call, result=result)


def _free(view: _View, own: str, text: str) -> None:
    """A call that was given a text and no arguments."""
    name, action = view["name"], view["action"]
    nameless = own in _COMMANDED
    done = commanded.read(text) if nameless or name == commanded.word(text) else None
    if done is not None:
        view.update(name=done.name, action=done.action, text=done.text, query=done.query)
        _at(view, (done.path,) if done.path else ())
    elif action == "patch":
        _patch(view, {}, text)
    elif own == _SCRIPT:
        view.update(action="other", text=text or None)
    elif nameless or action == "shell":
        view.update(name=name or "bash", action="shell")
        _shell(view, text, {})
    else:
        view["text"] = text or None


def _at(view: _View, paths: tuple[str, ...]) -> None:
    if paths:
        view.update(path=paths[0], paths=paths)


def _named(view: _View, own: str, given: Mapping[str, Any]) -> None:
    """A call that was given arguments."""
    view["background"] = arguments.background(given)
    if own in EDITORS or (own == "edit" and "impl_source" in given and first(given, ("command",))):
        view["action"] = _edits(given)
    match view["action"]:
        case "shell" if own in _ASIDE or given.get("is_input") is True:
            view["text"] = first(given, (*arguments.TYPED, "command"))
        case "shell":
            _shell(view, arguments.command(given), given)
        case "patch":
            _patch(view, given, arguments.patch(given))
        case "read":
            _at(view, arguments.files(given))
        case "write" | "edit" | "notebook":
            if view["action"] == "write" and _is_in_part(given):
                view["action"] = "edit"
            view["text"] = first(given, arguments.WRITTEN)
            _at(view, arguments.files(given))
        case "search":
            view["query"] = first(given, arguments.QUERIES)
            _at(view, arguments.files(given, _PLACES))
        case "web":
            view.update(query=first(given, arguments.URLS), text=first(given, ("prompt",)))
        case "agent":
            view["text"] = first(given, arguments.PROMPTS)
        case _:
            view["text"] = first(given, _OTHER_TEXTS)
            path = first(given, _OTHER_FILES)
            _at(view, (path,) if path else ())


def _is_in_part(given: Mapping[str, Any]) -> bool:
    """Whether what is written is not the whole file: it is put behind what is there, or in its midst."""
    sub, mode = given.get("command"), given.get("mode")
    if isinstance(sub, str) and sub and commanded.sub_action(sub) == "edit":
        return True
    return given.get("append") is True or (isinstance(mode, str) and mode in ("a", "a+", "append"))


def _edits(given: Mapping[str, Any]) -> str:
    """What an editor of several commands does."""
    sub = given.get("command")
    if isinstance(sub, str) and sub:
        return commanded.sub_action(sub)
    if first(given, arguments.WRITTEN) is None:
        return "read"
    return "write" if first(given, arguments.WHOLE) is not None else "edit"


def _shell(view: _View, line: str | None, given: Mapping[str, Any]) -> None:
    view.update(command=line or None, cwd=arguments.workdir(given, view["cwd"]))
    applies = _APPLIES.match(line) if line else None
    if line and applies and _APPLIED.search(line, max(0, len(line) - 200)):
        begin = line.find(patches.BEGIN)
        view.update(action="patch", command=None, cwd=arguments.workdir({"cwd": applies[1]}, view["cwd"]))  # fmt: skip
        _patch(view, {}, line[begin:] if begin >= 0 else "")


def _patch(view: _View, given: Mapping[str, Any], text: str | None) -> None:
    view["text"] = text or None
    found = (*arguments.files(given), *(each.path for each in patches.changes(text or "")))
    _at(view, tuple(dict.fromkeys(found)))


__all__ = ["digest", "named", "neutral", "outcome"]
