"""The real tools of the recorded session, in the shapes Claude Code shows them in.

``record_session.py`` calls them. Nothing is made up here: commands run in bash, files
are read, searched and changed in the throw-away repository at /tmp/shopcart.
"""

import difflib
import os
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from script_words import ROOT

REPO = Path(ROOT)
Record = dict[str, Any]
Result = tuple[str, Any, bool]  # what the assistant sees, toolUseResult, is_error


class Tools:
    """One method for each tool, called with the input of the call."""

    def __init__(self, now: datetime) -> None:
        self.now = now  # the scripted time, which commits get as their date
        self.todos: list[Record] = []

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a shell command in the repository, with nothing of this machine's environment."""
        when = self.now.strftime("%Y-%m-%dT%H:%M:%S+00:00")
        env = {
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "HOME": ROOT, "LC_ALL": "C.UTF-8", "TZ": "UTC", "COLUMNS": "80",
            "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0",
            "PYTEST_ADDOPTS": "-p no:cacheprovider", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "Shop Demo", "GIT_AUTHOR_EMAIL": "demo@example.org", "GIT_AUTHOR_DATE": when,
            "GIT_COMMITTER_NAME": "Shop Demo", "GIT_COMMITTER_EMAIL": "demo@example.org", "GIT_COMMITTER_DATE": when,
        }  # fmt: skip
        return subprocess.run(
            ["bash", "-c", command], cwd=REPO, env=env, capture_output=True, text=True, check=False
        )

    def bash(self, command: str, description: str) -> Result:
        done = self.run(command)
        stdout, stderr = done.stdout.rstrip("\n"), done.stderr.rstrip("\n")
        text = "\n".join(part for part in (stdout, stderr) if part)
        if done.returncode:
            text = f"Exit code {done.returncode}" + (f"\n{text}" if text else "")
            return text, f"Error: {text}", True
        return (
            text,
            {"stdout": stdout, "stderr": stderr, "interrupted": False, "isImage": False},
            False,
        )

    def read(self, file_path: str) -> Result:
        path = Path(file_path)
        if not path.is_file():
            return tool_error("File does not exist.")
        text = path.read_text(encoding="utf-8")
        rows = text.split("\n")
        shown = "\n".join(f"{number:6d}→{row}" for number, row in enumerate(rows, 1))
        file = {
            "filePath": file_path,
            "content": text,
            "numLines": len(rows),
            "startLine": 1,
            "totalLines": len(rows),
        }
        return shown, {"type": "text", "file": file}, False

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool) -> Result:
        path = Path(file_path)
        before = path.read_text(encoding="utf-8")
        found = before.count(old_string)
        if not found:
            return tool_error(f"String to replace not found in file.\nString: {old_string}")
        if found > 1 and not replace_all:
            return tool_error(
                f"Found {found} matches of the string to replace, but replace_all is false."
            )
        after = before.replace(old_string, new_string)
        path.write_text(after, encoding="utf-8")
        result: Record = {
            "filePath": file_path, "oldString": old_string, "newString": new_string, "originalFile": before,
            "structuredPatch": patch(before, after), "userModified": False, "replaceAll": replace_all,
        }  # fmt: skip
        return f"The file {file_path} has been updated successfully.", result, False

    def write(self, file_path: str, content: str) -> Result:
        if Path(file_path).exists():
            raise SystemExit(f"the script writes over {file_path}")
        Path(file_path).write_text(content, encoding="utf-8")
        result: Record = {
            "type": "create",
            "filePath": file_path,
            "content": content,
            "structuredPatch": [],
            "originalFile": None,
        }
        return f"File created successfully at: {file_path}", result, False

    def glob(self, pattern: str) -> Result:
        names = sorted(str(path) for path in REPO.glob(pattern) if ".git" not in path.parts)
        return (
            "\n".join(names),
            {"filenames": names, "durationMs": 12, "numFiles": len(names), "truncated": False},
            False,
        )

    def grep(self, pattern: str, path: str, output_mode: str, glob: str = "*") -> Result:
        hits = []
        for file in sorted(
            path for path in Path(path).rglob(glob) if path.is_file() and ".git" not in path.parts
        ):
            rows = file.read_text(encoding="utf-8").splitlines()
            hits += [
                f"{file}:{number}:{row}"
                for number, row in enumerate(rows, 1)
                if re.search(pattern, row)
            ]
        text = "\n".join(hits) or "No matches found"
        return (
            text,
            {
                "mode": output_mode,
                "numFiles": 0,
                "filenames": [],
                "content": text,
                "numLines": len(hits),
            },
            False,
        )

    def todowrite(self, todos: list[Record]) -> Result:
        old, self.todos = self.todos, todos
        return "Todos have been modified successfully.", {"oldTodos": old, "newTodos": todos}, False


def tool_error(text: str) -> Result:
    return f"<tool_use_error>{text}</tool_use_error>", f"Error: {text}", True


def patch(before: str, after: str) -> list[Record]:
    """The hunks of a change, in the shape of structuredPatch."""
    old, new = before.splitlines(), after.splitlines()
    hunks = []
    for group in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_grouped_opcodes(3):
        lines = []
        for tag, a1, a2, b1, b2 in group:
            if tag == "equal":
                lines += [f" {row}" for row in old[a1:a2]]
            else:
                lines += [f"-{row}" for row in old[a1:a2]] + [f"+{row}" for row in new[b1:b2]]
        (_, a1, _, b1, _), (_, _, a2, _, b2) = group[0], group[-1]
        hunks.append(
            {
                "oldStart": a1 + 1,
                "oldLines": a2 - a1,
                "newStart": b1 + 1,
                "newLines": b2 - b1,
                "lines": lines,
            }
        )
    return hunks
