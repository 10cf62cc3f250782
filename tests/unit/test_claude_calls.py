"""Claude Code's own tools have the fields that they always had; calls of all formats are measured alike."""

from __future__ import annotations

import json
from typing import Any

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from ef.events import Channel, Part, PartKind, Reading
from ef.meter import estimate
from ef.readers import claude_code
from ef.readers.tools import neutral

ACTIONS = {
    "Bash": "shell", "Read": "read", "NotebookRead": "read", "Write": "write", "Edit": "edit", "MultiEdit": "edit",
    "NotebookEdit": "notebook", "Grep": "search", "Glob": "search", "LS": "search", "WebFetch": "web",
    "WebSearch": "web", "TodoWrite": "todo", "TodoRead": "todo", "ExitPlanMode": "plan", "EnterPlanMode": "plan",
    "Task": "agent", "Agent": "agent", "AskUserQuestion": "other", "mcp__a__b": "other",
}  # fmt: skip
TEXT = st.text(min_size=1, max_size=6)
GIVEN = {
    "shell": {"command": TEXT, "run_in_background": st.booleans(), "description": TEXT, "timeout": st.integers()},
    "read": {"file_path": TEXT, "limit": st.integers()},
    "write": {"file_path": TEXT, "content": TEXT},
    "edit": {"file_path": TEXT, "old_string": TEXT, "new_string": TEXT, "replace_all": st.booleans()},
    "notebook": {"notebook_path": TEXT, "cell_id": TEXT},
    "search": {"path": TEXT, "pattern": TEXT, "glob": TEXT},
    "web": {"url": TEXT, "prompt": TEXT},
    "agent": {"prompt": TEXT, "description": TEXT, "subagent_type": TEXT},
    "todo": {"todos": st.just([{"content": "x"}])},
    "plan": {"plan": TEXT},
    "other": {"path": TEXT, "content": TEXT, "prompt": TEXT, "filePath": TEXT},
}  # fmt: skip


def call(name: str, given: Any) -> Part:
    block = {"type": "tool_use", "id": "c", "name": name, "input": given}
    record = {"type": "assistant", "cwd": "/r", "message": {"content": [block]}}
    return claude_code.reading(record).parts[0]


@given(st.data(), st.sampled_from(sorted(ACTIONS)))
def test_its_own_tools_are_read_as_ever(data: st.DataObject, name: str) -> None:
    action = ACTIONS[name]
    given: dict[str, Any] = data.draw(st.fixed_dictionaries({}, optional=GIVEN[action]))
    found = call(name, given).call
    assert found is not None
    path = given.get("file_path") or given.get("notebook_path") or given.get("path")
    text = given.get("content") or given.get("new_string") or given.get("prompt")
    command = given.get("command") if action == "shell" else None
    seen = blake3(json.dumps(given, sort_keys=True).encode()).hexdigest()[:8]
    assert (found.call_id, found.name, found.action, found.cwd) == ("c", name, action, "/r")
    assert (found.command, found.path, found.text) == (command, path, text)
    assert (found.background, found.given) == (given.get("run_in_background") is True, seen)


@pytest.mark.parametrize("given", [{"command": "ls", "n": 1}, {}, None, "text", [1], 3, True])
def test_the_tokens_of_a_call_are_those_of_what_it_was_given(given: Any) -> None:
    tokens = -(-len(json.dumps(given)) // 4)
    assert estimate(Reading("assistant", (call("Bash", given),))) == tokens


def test_calls_of_other_formats_are_measured_by_what_they_were_given() -> None:
    for block in ({"arguments": '{"cmd": "ls"}'}, {}, None):
        made = neutral("c", "exec_command", '{"cmd": "ls"}')
        part = Part(PartKind.TOOL_CALL, Channel.ASSISTANT, block=block, call=made)
        assert estimate(Reading("assistant", (part,))) == 4
    patch = Part(PartKind.TOOL_CALL, Channel.ASSISTANT, call=neutral("c", "apply_patch", "x" * 400))
    assert estimate(Reading("assistant", (patch,))) == 101
