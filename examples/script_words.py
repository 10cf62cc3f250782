"""The words that a script is made of: what the user says, what the assistant says and calls."""

from typing import Any

ROOT = "/tmp/shopcart"
Entry = dict[str, Any]


def user(text: str, minutes: float, queued: bool = False) -> Entry:
    return {"kind": "user", "text": text, "minutes": minutes, "queued": queued}


def step(*calls: Entry, think: str = "", say: str = "", seconds: float = 0) -> Entry:
    return {"kind": "step", "calls": calls, "think": think, "say": say, "seconds": seconds}


def call(name: str, expect: str = "", reminder: str = "", **args: Any) -> Entry:
    return {"name": name, "input": args, "expect": expect, "reminder": reminder}


def bash(command: str, about: str, expect: str = "") -> Entry:
    return call("Bash", expect, command=command, description=about)


def read(path: str, expect: str = "", reminder: str = "") -> Entry:
    return call("Read", expect, reminder, file_path=f"{ROOT}/{path}")


def edit(
    path: str, old: str, new: str, replace_all: bool = False, expect: str = "has been updated"
) -> Entry:
    return call(
        "Edit",
        expect,
        file_path=f"{ROOT}/{path}",
        old_string=old,
        new_string=new,
        replace_all=replace_all,
    )


def write(path: str, content: str) -> Entry:
    return call("Write", file_path=f"{ROOT}/{path}", content=content)


def todo(*items: tuple[str, str]) -> Entry:
    todos = [
        {"content": text, "status": status, "activeForm": f"Doing: {text}"}
        for status, text in items
    ]
    return call("TodoWrite", todos=todos)


END: Entry = {"kind": "end"}
FULL = "python -m pytest -q"
