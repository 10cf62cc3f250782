"""What a tool was given -> the fields of the neutral view. Pure; whatever the types are, it does not raise.

Vendors name the same argument differently; of several names the first that holds a text counts.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from ..events.shapes import is_list, is_map
from .jsonvalues import Decoder, too_deep

PATHS_MAX = 256
WORDS_MAX = 4096
"""Words of a command that is given as a list; what comes behind them is not joined."""

FILES = (
    "file_path", "filePath", "notebook_path", "notebookPath", "absolute_path", "target_file", "targetFile",
    "target_notebook", "AbsolutePath", "TargetFile", "path", "Path", "filename", "file_name", "fileName", "file",
)  # fmt: skip
"""Arguments that name a file. `path` comes behind those that can mean nothing else."""
FOLDERS = (
    "dir_path", "directory", "DirectoryPath", "relative_workspace_path", "target_directory", "SearchDirectory",
    "SearchPath", "dir", "folder", "root",
)  # fmt: skip
WORKDIRS = ("workdir", "cwd", "Cwd", "working_directory", "workingDirectory", "working_dir", *FOLDERS[:2])  # fmt: skip
COMMANDS = ("command", "cmd", "commands", "CommandLine", "commandLine", "script")
WRITTEN = (
    "content", "contents", "file_text", "fileText", "CodeContent", "file_content",
    "new_string", "newString", "new_str", "new_text", "newText", "new_source", "replace", "replacement", "diff",
    "code_edit", "new_content", "newContent", "text",
)  # fmt: skip
WHOLE = ("content", "contents", "file_text", "fileText", "file_content")
"""Arguments that hold a whole file."""
PATCHES = ("patchText", "patch", "input", "diff", "patch_text", "diffContent", "content")
TYPED = ("chars", "input", "text", "data")
PROMPTS = ("prompt", "message", "instructions", "task", "question", "objective", "script")
QUERIES = (
    "pattern", "query", "Query", "regex", "search_term", "search_query", "searchTerm", "queryString", "file_name",
    "glob_pattern", "Pattern", "q", "keywords",
)  # fmt: skip
URLS = ("query", "search_term", "search_query", "url", "Url", "uri", "q", "prompt")
_SEVERAL = frozenset(("files", "paths", "file_paths", "edits", "replacements", "args"))
_BACKGROUND = frozenset((
    "run_in_background", "background", "is_background", "isBackground", "runInBackground", "async", "detach",
))  # fmt: skip
_SHELLS = frozenset((
    "bash", "sh", "zsh", "dash", "ksh", "fish", "pwsh", "powershell", "powershell.exe", "cmd", "cmd.exe",
))  # fmt: skip
_RUNS = re.compile(r"-[a-z]*c|-command|/c", re.IGNORECASE)


def first(given: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    """The first argument of these names that is a text and not empty."""
    for key in keys:
        value = given.get(key)
        if isinstance(value, str) and value:
            return value
    return None


def json_text(text: str) -> Any:
    """The one JSON object that a text holds, whole; else the text itself."""
    bare = text.strip()
    if not (bare.startswith("{") and bare.endswith("}")):
        return text
    decoder = Decoder.taken()
    try:
        value, end = decoder.decode(bare, 0)
    except RecursionError:
        if not too_deep(bare, 0):
            raise  # not the text is too deep but the caller's stack
        return text
    except ValueError:
        return text
    finally:
        decoder.release()
    return value if end == len(bare) else text


def command(given: Mapping[str, Any]) -> str | None:
    """The command line: a text, or the words of a list; of `bash -lc TEXT` the text."""
    action = given.get("action")  # a local shell call of the Responses form
    return _line(given) or (_line(action) if is_map(action) else None)


def _line(given: Mapping[str, Any]) -> str | None:
    for key in COMMANDS:
        value = given.get(key)
        if isinstance(value, str) and value:
            return value
        if is_list(value) and value and (found := _of_list(value, lines=key == "commands")):
            return found
    return None


def _of_list(words: list[Any], *, lines: bool) -> str | None:
    texts = [_word(each) for each in words[:WORDS_MAX]]
    if lines:
        return "\n".join(each for each in texts if each) or None
    if len(texts) >= 3 and _shell(texts[0]) and _RUNS.fullmatch(texts[-2]):
        return texts[-1] or None
    return shlex.join(texts).strip() or None


def _shell(word: str) -> bool:
    return word.replace("\\", "/").rpartition("/")[2].lower() in _SHELLS


def _word(value: Any) -> str:
    if is_map(value):
        return _line(value) or ""
    return value if isinstance(value, str) else ""


def workdir(given: Mapping[str, Any], cwd: str | None) -> str | None:
    """The folder of a command: its own argument, else the folder that the session was in."""
    own = first(given, WORKDIRS)
    if own is None and is_map(action := given.get("action")):
        own = first(action, WORKDIRS)
    if own is None or own.startswith(("/", "~")) or not cwd or re.match(r"[A-Za-z]:", own):
        return own or cwd
    return cwd if own in (".", "./") else f"{cwd.rstrip('/')}/{own.removeprefix('./')}"


def files(given: Mapping[str, Any], keys: tuple[str, ...] = FILES) -> tuple[str, ...]:
    """All files that the arguments name, each once, in order, at most PATHS_MAX."""
    one = first(given, keys)
    if _SEVERAL.isdisjoint(given):
        return (one,) if one else ()
    found = {one: None} if one else {}
    inner = given.get("args")
    several = [given.get(key) for key in ("files", "paths", "file_paths", "edits", "replacements")]
    for value in (*several, inner.get("file") if is_map(inner) else None):
        for each in (value if is_list(value) else [value])[:PATHS_MAX]:
            path = each if isinstance(each, str) else first(each, keys) if is_map(each) else None
            if path:
                found[path] = None
    return tuple(found)[:PATHS_MAX]


def background(given: Mapping[str, Any]) -> bool:
    """Whether the call goes on behind its result."""
    if given.get("mode") in ("async", "detached"):
        return True
    return not _BACKGROUND.isdisjoint(given) and any(given.get(key) is True for key in _BACKGROUND)


_HOW = {"create_file": "Add", "update_file": "Update", "delete_file": "Delete"}


def patch(given: Mapping[str, Any]) -> str | None:
    """The patch: its text; an operation on one file is written as one."""
    inner = given.get("operation")
    operation = inner if is_map(inner) else given
    how, path = operation.get("type"), first(operation, ("path",))
    if isinstance(how, str) and how in _HOW and path:
        diff = operation.get("diff")
        body = f"{diff.rstrip()}\n" if isinstance(diff, str) else ""
        return f"*** Begin Patch\n*** {_HOW[how]} File: {path}\n{body}*** End Patch"
    return first(given, PATCHES)
