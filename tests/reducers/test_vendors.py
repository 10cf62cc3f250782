"""Observers over calls of other vendors: the same verdict from the same run, whoever wrapped its output."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from ef.codec import cbor
from ef.events import Channel, Part, PartKind, Reading, ToolResult
from ef.readers.tools import neutral, outcome
from ef.reducers.observers import Observers, Proposal
from ef.reducers.observers.contract import Observed
from ef.reducers.observers.shown import shown
from tests.reducers.test_observers import said

RED = "FAILED tests/a.py::test_é - no\n1 failed, 2 passed in 0.12s"
GREEN = "..........      [100%]\n10 passed in 0.12s"
HEAD = "Chunk ID: 1a2b\nWall time: 0.5 seconds\nProcess exited with code {}\nOriginal token count: 9\nOutput:\n"
FREE = "Exit code: {}\nWall time: 0.1 seconds\nOutput:\n"
COMMAND = "pytest -q"


def seen(
    name: str, given: Any, text: str, is_error: bool | None = None, **how: Any
) -> list[Proposal]:
    """What the result of a call grounds."""
    call = neutral("c", name, given)
    text, failed, code = outcome(call, text, is_error, **how)
    code = 0 if name == "Bash" and not is_error else code
    parts = (
        Part(PartKind.TOOL_CALL, Channel.ASSISTANT, call_id="c", call=call),
        Part(PartKind.TOOL_RESULT, Channel.TOOL, text, "c", result=ToolResult("c", text, failed, code)),
    )  # fmt: skip
    return Observers().item(Reading("r", parts))


def quotes(found: list[Proposal], text: str) -> dict[str, str]:
    data = text.encode("utf-8", "surrogatepass")
    assert all(0 <= p.start < p.end <= len(data) for p in found)
    return {str(p.key): data[p.start : p.end].decode("utf-8", "surrogatepass") for p in found}


# -- test runs --------------------------------------------------------------------------------------------------


def codex_json(code: int, output: str) -> str:
    return json.dumps({"output": output, "metadata": {"exit_code": code, "duration_seconds": 0.5}})


def shapes(code: int, output: str) -> dict[str, tuple[str, Any, str]]:
    """Vendor -> (tool, what it was given, the text that the model saw) of one run."""
    openhands = (
        f"{output}\n[The command completed with exit code {code}.]\n[Current working directory: /w]"
    )
    gemini = f"Command: {COMMAND}\nDirectory: (root)\nOutput: {output}\nError: (none)\nExit Code: {code}\nSignal: 0"
    return {
        "codex": ("exec_command", json.dumps({"cmd": COMMAND}), HEAD.format(code) + output),
        "codex, free": ("exec_command", {"cmd": COMMAND}, FREE.format(code) + output),
        "codex, before": ("shell", {"command": ["bash", "-lc", COMMAND]}, codex_json(code, output)),
        "mini-swe-agent": ("bash", COMMAND, f"<returncode>{code}</returncode>\n<output>\n{output}\n</output>"),
        "copilot-cli": ("bash", {"command": COMMAND}, f"{output}\n<shellId: 3 completed with exit code {code}>"),
        "openhands": ("execute_bash", {"command": COMMAND, "is_input": "false"}, openhands),
        "gemini-cli": ("run_shell_command", {"command": COMMAND}, gemini),
    }  # fmt: skip


@pytest.mark.parametrize("vendor", sorted(shapes(0, "")))
@pytest.mark.parametrize(("code", "output"), [(1, RED), (0, GREEN)])
def test_a_run_grounds_the_same_verdict_whoever_ran_it(vendor: str, code: int, output: str) -> None:
    ours = seen(
        "Bash", {"command": COMMAND}, f"Exit code 1\n{output}" if code else output, bool(code)
    )
    name, given, text = shapes(code, output)[vendor]
    found = seen(name, given, text)
    assert len(found) == 3 and said(found) == said(ours)
    whole = dict.fromkeys(quotes(found, text).values())
    for quote in whole:
        plain: str = json.loads(f'"{quote}"') if vendor == "codex, before" else quote
        assert plain in output and ("failed" in plain or "passed" in plain)


@pytest.mark.parametrize("vendor", sorted(shapes(0, "")))
def test_a_run_whose_wrapper_contradicts_what_is_printed_grounds_nothing(vendor: str) -> None:
    for code, output in ((0, RED), (2, GREEN)):
        name, given, text = shapes(code, output)[vendor]
        assert not [p for p in seen(name, given, text) if p.key.namespace == "test"]


def test_what_another_command_prints_of_a_run_grounds_nothing() -> None:
    for given in ({"cmd": "cat pytest.log"}, {"cmd": "rg passed"}):
        assert seen("exec_command", given, HEAD.format(0) + GREEN) == []
    assert seen("write_stdin", {"session_id": 1, "chars": COMMAND}, HEAD.format(0) + GREEN) == []


def test_a_run_that_printed_elsewhere_is_decided_by_the_wrappers_own_line() -> None:
    given = {"cmd": "pytest -q > log"}
    text = HEAD.format(0)
    found = seen("exec_command", given, text)
    assert said(found)["test/pytest/status"] == "passed"
    assert set(quotes(found, text).values()) == {"Process exited with code 0"}
    assert seen("bash", {"command": "pytest -q > log"}, "") == []
    still = "Chunk ID: 1\nWall time: 10.0 seconds\nProcess running with session ID 5\nOutput:\n"
    assert seen("exec_command", given, still) == []


# -- errors -----------------------------------------------------------------------------------------------------


def test_an_exit_code_is_an_error_and_its_quote_is_what_was_printed() -> None:
    text = HEAD.format(2) + "make: *** [all] Error 2\nmore"
    found = seen("exec_command", {"cmd": "make"}, text)
    assert said(found) == {"call/exec_command:make/outcome": {"outcome": "error", "exit": 2}}
    assert [*quotes(found, text).values()] == ["make: *** [all] Error 2"]
    assert seen("exec_command", {"cmd": "make"}, HEAD.format(0) + "make: *** [all] Error 2") == []


def test_a_code_that_the_vendors_flag_does_not_tell_is_an_error_too() -> None:
    text = "<shellId: 3 completed with exit code 1>"
    found = seen("bash", {"command": "false"}, text, False)
    assert said(found) == {"call/bash:false/outcome": {"outcome": "error", "exit": 1}}
    assert [*quotes(found, text).values()] == [text], "where nothing is printed, the wrapper's line"


@pytest.mark.parametrize(
    "text",
    [
        "The user denied this operation.",
        "The user rejected permission to use this specific tool call with the following feedback: no",
        "[Operation Cancelled] Reason: User did not allow tool call",
    ],
)
def test_a_call_that_the_user_refused_is_rejected_and_no_error(text: str) -> None:
    key = "call/bash:ls/outcome"
    assert said(seen("bash", {"command": "ls"}, text, True))[key]["outcome"] == "rejected"
    assert said(seen("bash", {"command": "ls"}, f"ls: {text}", True))[key]["outcome"] == "error"


# -- files ------------------------------------------------------------------------------------------------------

PATCH = """*** Begin Patch
*** Add File: docs/a.md
+# A
*** Update File: src/SKILL.md
@@
-x
+y
*** Update File: other/SKILL.md
@@
-x
+y
*** Update File: old.py
*** Move to: new.py
@@
-x
+y
*** Delete File: gone.py
*** End Patch"""
DONE = "Success. Updated the following files:\nA /r/docs/a.md\nM src/SKILL.md\nM other/SKILL.md\nM new.py\nD gone.py\n"
KNOWN = {"by": "apply_patch", "digest": None}
GONE = {**KNOWN, "deleted": True}


@pytest.mark.parametrize("text", [FREE.format(0) + DONE, DONE, codex_json(0, DONE)])
def test_a_patch_says_of_each_file_what_it_did_and_cites_the_line_that_names_it(text: str) -> None:
    found = seen("apply_patch", PATCH, text)
    written = said(seen("Write", {"file_path": "docs/a.md", "content": "# A\n"}, "done", False))
    digest = written["file/docs/a.md/content"]["digest"]
    assert digest is not None and said(found) == {
        "file/docs/a.md/content": {"by": "apply_patch", "digest": digest},
        "file/src/SKILL.md/content": KNOWN,
        "file/other/SKILL.md/content": KNOWN,
        "file/old.py/content": GONE,
        "file/new.py/content": KNOWN,
        "file/gone.py/content": GONE,
    }
    assert quotes(found, text) == {
        "file/docs/a.md/content": "A /r/docs/a.md",
        "file/src/SKILL.md/content": "M src/SKILL.md",
        "file/other/SKILL.md/content": "M other/SKILL.md",
        "file/old.py/content": "Success. Updated the following files:",
        "file/new.py/content": "M new.py",
        "file/gone.py/content": "D gone.py",
    }


def test_a_line_that_could_be_of_two_files_is_cited_for_none() -> None:
    whole = PATCH.replace("File: src/", "File: /r/src/").replace("File: other/", "File: /r/other/")
    found = quotes(seen("apply_patch", whole, DONE), DONE)
    first = "Success. Updated the following files:"
    assert found["file//r/src/SKILL.md/content"] == found["file//r/other/SKILL.md/content"] == first
    assert found["file/gone.py/content"] == "D gone.py"


def test_a_patch_that_nothing_says_was_applied_changes_nothing() -> None:
    for text in (
        "apply_patch verification failed: Failed to find expected lines in old.py",
        "",
        "ok",
    ):
        assert seen("apply_patch", PATCH, text) == [], text
    failed = seen("apply_patch", PATCH, FREE.format(1) + DONE)
    assert [p.key.namespace for p in failed] == ["call"]
    assert len(seen("apply_patch", PATCH, "Done!")) == 6
    assert seen("apply_patch", "no patch", "Done!") == []


def test_a_file_that_a_patch_names_twice_is_as_the_last_of_them_left_it() -> None:
    twice = "*** Begin Patch\n*** Delete File: a\n*** Add File: a\n+x\n*** End Patch"
    [found] = seen("apply_patch", twice, "Done!")
    assert found.value["digest"] is not None and "deleted" not in found.value


def test_several_files_of_a_call_are_each_read_and_none_has_the_content_of_all() -> None:
    given = {"files": [{"path": "a"}, {"path": "b"}, {"path": " "}]}
    assert said(seen("read_files", given, "1 x")) == {
        "file/a/read": {"by": "read_files"},
        "file/b/read": {"by": "read_files"},
    }
    several = {**given, "content": "x"}
    assert {p.value["digest"] for p in seen("write_file", several, "done")} == {None}


@pytest.mark.parametrize(
    "text",
    [
        "File already exists at: a.py. Cannot overwrite files using command `create`.",
        "ERROR:\nNo replacement was performed.",
        "Your proposed edit has introduced new syntax error(s).",
        '{"status":"error","message":"The tool execution failed"}',
    ],
)
def test_a_file_that_a_tool_says_it_did_not_change_is_not_changed(text: str) -> None:
    write = {"path": "a.py", "file_text": "x"}
    assert seen("create", write, text) == seen("edit", {"path": "a.py"}, text) == []
    assert len(seen("create", write, f"Created. {text}")) == 1
    assert len(seen("view", {"path": "a.py"}, text)) == 1, "what is read may say anything"


def test_a_block_of_search_and_replace_leaves_its_file_with_unknown_content() -> None:
    found = seen(
        "apply_diff",
        {"path": "a.py", "diff": "<<<<<<< SEARCH"},
        "Changes successfully applied to a.py",
    )
    assert said(found) == {"file/a.py/content": {"by": "apply_diff", "digest": None}}


# -- what is kept -----------------------------------------------------------------------------------------------


def test_what_a_call_was_given_is_not_kept_and_what_is_kept_goes_into_a_dump() -> None:
    call = neutral("c", "apply_patch", {"input": PATCH, "more": "x" * 99})
    assert call.input is not None
    seen = Observed()
    assert not [
        *seen.exchanges(Reading("r", (Part(PartKind.TOOL_CALL, Channel.ASSISTANT, call=call),)))
    ]
    assert seen.call("c") == replace(call, input=None)
    again = Observed.load(cbor.decode(cbor.encode(seen.dump())))
    assert again.call("c") == seen.call("c") and again.dump() == seen.dump()
    searched = neutral("s", "Grep", {"pattern": "x", "path": "\ud800"})
    assert not [
        *seen.exchanges(Reading("r", (Part(PartKind.TOOL_CALL, Channel.ASSISTANT, call=searched),)))
    ]
    again = Observed.load(cbor.decode(cbor.encode(seen.dump())))
    assert again.call("s") == seen.call("s") == replace(searched, input=None, query=None)


def test_places_in_escaped_output_are_carried_over_to_the_text() -> None:
    own = 'a\t"é"\\ \U0001f600 z\n\ud800end'
    for text in (json.dumps({"output": own, "metadata": {"exit_code": 0}}),
                 '{"output": "a\\t\\"é\\"\\\\ \U0001f600 z\\n\\ud800end", "metadata": {"exit_code": 0}}'):  # fmt: skip
        found = shown(ToolResult("c", text, False))
        data, raw = own.encode("utf-8", "surrogatepass"), text.encode("utf-8", "surrogatepass")
        assert found.text == own
        for word in ("a", "é", "\U0001f600 z", "end", '"é"\\ '):
            start = data.index(word.encode())
            a, b = found.place(start, start + len(word.encode()))
            assert json.loads(b'"' + raw[a:b] + b'"') == word
    turned = json.dumps({"metadata": {"exit_code": 0}, "output": own})
    assert shown(ToolResult("c", turned, False)).text == turned


def test_places_behind_what_is_not_ascii_are_counted_in_bytes() -> None:
    text = "Command executed in terminal within working directory '/é'. Exit code: 1\nOutput:\nboom"
    found = shown(ToolResult("c", text, False))
    a, b = found.place(0, 4)
    assert text.encode()[a:b] == b"boom"
    assert text.encode()[slice(*found.said)].decode().endswith("Exit code: 1")
