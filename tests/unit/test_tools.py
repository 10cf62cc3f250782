"""The neutral view of tool calls: one action for what all vendors name differently, and the fields that it has."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ef.events import Channel, Part, PartKind, ToolCall, ToolResult
from ef.readers.actions import ACTIONS, NAMES, known, plainly
from ef.readers.tools import digest, named, neutral


def view(name: str, given: Any, **how: Any) -> dict[str, Any]:
    """What the neutral view says beside what it was given."""
    call = asdict(neutral("c", name, given, **how))
    said = {k: v for k, v in call.items() if v not in (None, False, ())}
    for key in ("call_id", "name", "given", "input"):
        said.pop(key, None)
    return said


def shell(command: str, **how: Any) -> dict[str, Any]:
    return {"action": "shell", "command": command, **how}


def at(action: str, *paths: str, **how: Any) -> dict[str, Any]:
    return {"action": action, "path": paths[0], "paths": paths, **how}


# -- names ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "names"),
    [
        ("shell", "Bash bash shell exec_command local_shell container.exec run_in_terminal execute_command"),
        ("shell", "run_shell_command execute_bash terminal write_stdin developer__shell functions.exec_command"),
        ("shell", "run_terminal_cmd run_commands BashOutput KillShell read_bash stop_bash"),
        ("read", "Read read read_file view open NotebookRead read_many_files view_image default_api:read_file"),
        ("write", "Write write write_file write_to_file create create_file"),
        ("edit", "Edit edit MultiEdit str_replace replace replace_in_file insert_content search_and_replace"),
        ("patch", "apply_patch apply_diff patch ApplyPatch"),
        ("search", "Grep Glob LS grep glob codebase_search list_dir list_directory search_files find_file"),
        ("web", "WebFetch WebSearch webfetch web_search google_web_search browser_action browse fetch"),
        ("todo", "TodoWrite TodoRead todowrite update_plan write_todos TaskCreate task_tracker"),
        ("plan", "ExitPlanMode EnterPlanMode plan_mode_respond create_plan"),
        ("agent", "Task Agent task spawn_agent wait_agent close_agent delegate new_task subagent subagent_codex"),
        ("notebook", "NotebookEdit execute_ipython_cell edit_notebook_file"),
        ("other", "AskUserQuestion finish submit think attempt_completion job_output TaskOutput skill"),
        ("other", "get_user_details reading bashful my_edit_tool cordis_mount"),
        ("other", "mcp__pencil__batch_design mcp__slack__search mcp__db__read mcp__notes__create mcp__a__task"),
        ("shell", "mcp__box__execute_command mcp__a__bash"),
        ("read", "mcp__filesystem__read_file mcp__filesystem__read_text_file"),
        ("write", "mcp__filesystem__write_file"),
        ("web", "mcp__brave__web_search"),
    ],
)  # fmt: skip
def test_each_name_has_its_action_and_what_only_resembles_one_has_none(
    action: str, names: str
) -> None:
    assert {name: known(name)[1] for name in names.split()} == dict.fromkeys(names.split(), action)


def test_no_name_stands_for_two_actions_and_every_action_is_one_of_ours() -> None:
    every = [(plainly(n), action) for action, names in NAMES.items() for n in names.split()]
    assert len(dict(every)) == len(set(every))
    assert set(ACTIONS.values()) == set(
        "shell read write edit patch search web todo plan agent notebook other".split()
    )


# -- fields -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("Bash", {"command": "ls", "run_in_background": True}, shell("ls", background=True)),
        ("exec_command", '{"cmd":"pytest -q","workdir":"/w"}', shell("pytest -q", cwd="/w")),
        ("shell", {"command": ["bash", "-lc", "cd x && ls"], "workdir": "/w"}, shell("cd x && ls", cwd="/w")),
        ("shell", {"command": ["/bin/zsh", "-c", "ls"]}, shell("ls")),
        ("shell", {"command": ["bash", "--norc", "-lc", "ls"]}, shell("ls")),
        ("shell", {"command": ["powershell.exe", "-Command", "dir"]}, shell("dir")),
        ("shell", {"command": ["git", "commit", "-m", "a b"]}, shell("git commit -m 'a b'")),
        ("shell", {"command": ["perl", "-c", "x.pl"]}, shell("perl -c x.pl")),
        ("local_shell", {"action": {"command": ["ls"], "working_directory": "/q"}}, shell("ls", cwd="/q")),
        ("run_commands", {"commands": ["ls", {"command": "pwd"}, 3]}, shell("ls\npwd")),
        ("run_shell_command", {"command": "ls", "is_background": True}, shell("ls", background=True)),
        ("run_shell_command", {"command": "ls", "dir_path": "d"}, shell("ls", cwd="d")),
        ("bash", {"command": "sleep 9", "mode": "async"}, shell("sleep 9", background=True)),
        ("bash", "ls -la", shell("ls -la")),
        ("bash", '{ echo "a"; }', shell('{ echo "a"; }')),
        ("execute_bash", {"command": "C-c", "is_input": True}, {"action": "shell", "text": "C-c"}),
        ("execute_bash", {"command": "ls", "is_input": "false"}, shell("ls")),
        ("write_stdin", {"session_id": 1, "chars": "pytest\n"}, {"action": "shell", "text": "pytest\n"}),
        ("write_stdin", {"session_id": 1, "chars": ""}, {"action": "shell"}),
        ("exec", {"command": "ls"}, shell("ls")),
        ("exec", "await tools.exec_command({})", {"action": "other", "text": "await tools.exec_command({})"}),
        ("bash", {"command": 3}, {"action": "shell"}),
        ("bash", {"command": []}, {"action": "shell"}),
        ("Read", {"file_path": "/a", "offset": 3}, at("read", "/a")),
        ("read", {"filePath": "/a"}, at("read", "/a")),
        ("read_files", {"files": [{"path": "a"}, "b", {"path": "a"}, 3]}, at("read", "a", "b")),
        ("read_file", {"args": {"file": [{"path": "a"}, {"path": "b"}]}}, at("read", "a", "b")),
        ("read_file", {"args": {"file": {"path": "a"}}}, at("read", "a")),
        ("Write", {"file_path": "a", "content": "x"}, at("write", "a", text="x")),
        ("create", {"path": "a", "file_text": "x"}, at("write", "a", text="x")),
        ("create", {"filename": "a"}, at("write", "a")),
        ("Edit", {"file_path": "a", "old_string": "x", "new_string": "y"}, at("edit", "a", text="y")),
        ("edit", {"path": "a", "oldText": "x", "newText": "y"}, at("edit", "a", text="y")),
        ("MultiEdit", {"file_path": "a", "edits": [{"old_string": "x", "new_string": "y"}]}, at("edit", "a")),
        ("NotebookEdit", {"notebook_path": "a.ipynb", "new_source": "1"}, at("notebook", "a.ipynb", text="1")),
        ("str_replace_editor", {"command": "view", "path": "a"}, at("read", "a")),
        ("file_editor", {"command": "create", "path": "a", "file_text": "x"}, at("write", "a", text="x")),
        ("text_editor", {"command": "write", "path": "a", "file_text": "x"}, at("write", "a", text="x")),
        ("str_replace_based_edit_tool", {"command": "x", "path": "a", "new_str": "y"}, at("edit", "a", text="y")),
        ("str_replace_editor", {"command": "insert", "path": "a", "new_str": "y"}, at("edit", "a", text="y")),
        ("str_replace_editor", {"command": "undo_edit", "path": "a"}, at("edit", "a")),
        ("editor", {"path": "a", "old_text": "x", "new_text": "y"}, at("edit", "a", text="y")),
        ("editor", {"path": "a", "file_text": "x"}, at("write", "a", text="x")),
        ("editor", {"path": "a"}, at("read", "a")),
        ("edit", {"path": "a", "command": "create", "file_text": "x", "impl_source": ""}, at("write", "a", text="x")),
        ("read", {"path": "a", "start": 0, "impl_source": "oh_aci"}, at("read", "a")),
        ("edit", {"path": "a", "command": "view"}, at("edit", "a")),
        ("Grep", {"pattern": "x", "path": "src"}, at("search", "src", query="x")),
        ("glob", {"pattern": "**/*.py"}, {"action": "search", "query": "**/*.py"}),
        ("find_file", {"file_name": "a.py", "dir": "src"}, at("search", "src", query="a.py")),
        ("list_directory", {"dir_path": "src"}, at("search", "src")),
        ("WebFetch", {"url": "http://a", "prompt": "what"}, {"action": "web", "query": "http://a", "text": "what"}),
        ("WebSearch", {"query": "x"}, {"action": "web", "query": "x"}),
        ("Task", {"prompt": "do", "subagent_type": "x"}, {"action": "agent", "text": "do"}),
        ("spawn_agent", {"message": "do"}, {"action": "agent", "text": "do"}),
        ("TodoWrite", {"todos": []}, {"action": "todo"}),
        ("mcp__x__y", {"path": "a", "content": "x"}, at("other", "a", text="x")),
        ("mcp__x__y", {"filePath": "a", "prompt": "x"}, {"action": "other", "text": "x"}),
        ("finish", "all done", {"action": "other", "text": "all done"}),
    ],
)  # fmt: skip
def test_what_a_tool_was_given_is_read_whoever_offers_it(
    name: str, given: Any, said: dict[str, Any]
) -> None:
    assert view(name, given) == said
    if isinstance(given, dict):
        assert neutral("c", name, json.dumps(given)) == neutral("c", name, given)


@pytest.mark.parametrize(
    ("own", "cwd", "found"),
    [
        (None, "/r", "/r"), ("/w", "/r", "/w"), ("sub", "/r", "/r/sub"), ("./sub", "/r/", "/r/sub"), (".", "/r", "/r"),
        ("sub", None, "sub"), ("~/x", "/r", "~/x"), ("C:\\x", "/r", "C:\\x"), (3, "/r", "/r"), ("", "/r", "/r"),
        (None, "", None),
    ],
)  # fmt: skip
def test_a_command_runs_in_its_own_folder_else_in_the_sessions(
    own: Any, cwd: str | None, found: str | None
) -> None:
    assert neutral("c", "bash", {"command": "ls", "workdir": own}, cwd=cwd).cwd == found


def test_other_calls_are_in_the_sessions_folder_whatever_folder_they_name() -> None:
    assert neutral("c", "Read", {"file_path": "a", "cwd": "/x"}, cwd="/r").cwd == "/r"


def test_what_a_call_was_given_is_kept_whole_and_told_apart_by_a_digest() -> None:
    one, other = {"command": "ls", "n": 1}, {"n": 1, "command": "ls"}
    assert neutral("c", "Bash", one).input == one
    assert neutral("c", "Bash", json.dumps(one)).input == one
    assert neutral("c", "apply_patch", "*** Begin Patch").input == "*** Begin Patch"
    assert digest(one) == digest(other) != digest({"command": "ls", "n": 2})
    assert digest(None) == digest({}) == digest([]) and len(digest("x")) == 8
    assert (
        neutral("c", "Bash", '{"command": "ls"} and more').command == '{"command": "ls"} and more'
    )


# -- agents whose tools are words -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ('open "src/a.py" 12', "open", at("read", "src/a.py")),
        ("goto 12", "goto", {"action": "read"}),
        ("create a.py\n", "create", at("write", "a.py")),
        ("edit 1:3\nx = 1\ny = 2\nend_of_edit\n", "edit", {"action": "edit", "text": "x = 1\ny = 2"}),
        ("edit 'old' 'new'", "edit", {"action": "edit", "text": "new"}),
        ("insert 'a\nb' 3", "insert", {"action": "edit", "text": "a\nb"}),
        ("search_dir needle src", "search_dir", at("search", "src", query="needle")),
        ("find_file a.py", "find_file", {"action": "search", "query": "a.py"}),
        ("submit", "submit", {"action": "other"}),
        ("str_replace_editor view /a.py", "str_replace_editor", at("read", "/a.py")),
        ("str_replace_editor create /a.py --file_text 'x y'", "str_replace_editor", at("write", "/a.py", text="x y")),
        ("file_editor str_replace /a.py --old_str 'x' --new_str 'y'", "file_editor", at("edit", "/a.py", text="y")),
        ("str_replace_editor str_replace /a.py --new_str", "str_replace_editor", at("edit", "/a.py")),
        ('open "half', "open", at("read", '"half')),
        ("python a.py", "bash", shell("python a.py")),
        ("opener x", "bash", shell("opener x")),
        ("open-it x", "bash", shell("open-it x")),
        ("", "bash", {"action": "shell"}),
    ],
)  # fmt: skip
def test_words_on_a_line_are_tools_only_where_the_agent_has_them(
    text: str, name: str, said: dict[str, Any]
) -> None:
    assert neutral("c", "", text).name == name
    assert view("", text) == said
    if name not in ("", "bash"):
        assert view(name, text) == said
    assert view("bash", text) == (shell(text) if text else {"action": "shell"})


# -- hostile ----------------------------------------------------------------------------------------------------

ODD = ["", "mcp__a__bash", "__", "functions."]
TOOLS = st.sampled_from(sorted(ACTIONS)) | st.text(max_size=12) | st.sampled_from(ODD)
KEYS = st.sampled_from(
    "command cmd commands path file_path files args edits content text diff input operation action workdir query url "
    "prompt is_input mode impl_source type new_str message file".split()
) | st.text(max_size=4)  # fmt: skip
TEXTS = st.text(st.characters(), max_size=12) | st.sampled_from(
    [
        "view",
        "bash",
        "-lc",
        "\ud800",
        "apply_patch",
        "*** Begin Patch\n*** Add File: a\n+x",
        '{"command":',
        "open 'x",
        "create_file",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(TOOLS, st.dictionaries(KEYS, JSON, max_size=6) | JSON | TEXTS)
def test_no_arguments_make_it_raise_and_each_field_has_its_type(name: str, given: Any) -> None:
    call = neutral("c", name, given)
    assert call == neutral("c", name, given) or given != given or "nan" in repr(given)
    for field in (call.command, call.path, call.text, call.query, call.cwd):
        assert field is None or (isinstance(field, str) and field)
    assert call.path == (call.paths[0] if call.paths else None)
    assert all(isinstance(path, str) and path for path in call.paths)
    assert call.action in set(ACTIONS.values()) and isinstance(call.background, bool)


def test_depth_length_and_odd_texts_are_borne() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    assert neutral("c", "Bash", {"command": deep}).given == ""
    text = '{"command":' * 5_000 + "1" + "}" * 5_000
    assert neutral("c", "Bash", text).command == text
    long = neutral("c", "shell", {"command": ["x"] * 100_000})
    assert long.command is not None and len(long.command) < 10_000
    many = neutral("c", "read_files", {"files": [f"f{n}" for n in range(100_000)]})
    assert 100 < len(many.paths) <= 256
    assert neutral("c", "Bash", {"command": "\ud800"}).command == "\ud800"
    assert neutral("c", "Bash", '{"command": "\\ud800"}').command == "\ud800"
    assert neutral("c", "x" * 1_000_000, {}).action == "other"
    assert neutral("c", "Bash", {1: 2, "command": "ls"}).command == "ls"
    del deep


def test_a_call_and_its_result_can_be_given_another_id() -> None:
    call = Part(PartKind.TOOL_CALL, Channel.ASSISTANT, call=ToolCall("", "x", "other"))
    result = Part(PartKind.TOOL_RESULT, Channel.TOOL, result=ToolResult("", "x", False))
    for part in (named(call, "n"), named(result, "n")):
        inner = part.call or part.result
        assert inner is not None and (part.call_id, inner.call_id) == ("n", "n")
    assert named(Part(PartKind.TEXT, Channel.TOOL), "n").call_id == "n"


@pytest.mark.parametrize(
    ("name", "given", "action"),
    [
        ("fs_write", {"command": "create", "path": "a", "file_text": "x"}, "write"),
        (
            "fs_write",
            {"command": "str_replace", "path": "a", "old_str": "x", "new_str": "y"},
            "edit",
        ),
        ("fs_write", {"command": "insert", "path": "a", "new_str": "y"}, "edit"),
        ("fs_write", {"command": "append", "path": "a", "new_str": "y"}, "edit"),
        ("write_file", {"path": "a", "content": "x"}, "write"),
        ("write_file", {"path": "a", "content": "x", "append": False, "mode": "w"}, "write"),
        ("write_file", {"path": "a", "content": "x", "append": True}, "edit"),
        ("write_file", {"path": "a", "content": "x", "mode": "a"}, "edit"),
    ],
)
def test_what_is_put_behind_or_into_a_file_is_an_edit_of_it(
    name: str, given: dict[str, Any], action: str
) -> None:
    assert neutral("c", name, given).action == action
