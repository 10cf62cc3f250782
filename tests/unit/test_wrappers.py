"""What a result says of its command's exit: the wrapper's own place counts, and never what an output quotes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ef.events import ToolCall
from ef.readers.tools import neutral, outcome
from ef.readers.wrappers import FORMS, around, wrapped

OUT = "collected 3 items\n1 failed, 2 passed in 0.1s"
CODEX = "Chunk ID: 1a2b3c\nWall time: 0.0512 seconds\nProcess exited with code {}\nOriginal token count: 9\nOutput:\n{}"
FREE = "Exit code: {}\nWall time: 0.1 seconds\nOutput:\n{}"
MINI = "<returncode>{}</returncode>\n<output>\n{}\n</output>"
GEMINI = (
    "Command: pytest\nDirectory: (root)\nOutput: {1}\nError: (none)\nExit Code: {0}\nSignal: 0\n"
    "Background PIDs: (none)\nProcess Group PGID: 7"
)
COPILOT = "{1}\n<shellId: 30 completed with exit code {0}>"
COPILOT_OLD = "{1}\n<exited with exit code {0}>"
OPENHANDS = (
    "{1}\n[The command completed with exit code {0}.]\n[Current working directory: /w]\n[Python interpreter: /py]\n"
    "[Command finished with exit code {0}]"
)
OPENHANDS_SHORT = "{1}\n[The command completed with exit code {0}.]"
ROO = "Command executed in terminal  within working directory '/w'. Exit code: {}\nOutput:\n{}"
ROO_BAD = "Command executed in terminal. Command execution was not successful, see why.\nExit code: {}\nOutput:\n{}"
CLINE = "Command failed with exit code {}.\nOutput:\n{}"
WRAPPED = {
    "codex": (CODEX, FREE), "mini-swe-agent": (MINI,), "gemini-cli": (GEMINI,),
    "copilot-cli": (COPILOT, COPILOT_OLD), "openhands": (OPENHANDS, OPENHANDS_SHORT), "roo": (ROO, ROO_BAD),
    "cline": (CLINE,),
}  # fmt: skip
EACH = [(form, shape) for form, shapes in WRAPPED.items() for shape in shapes]
SHELL = neutral("c", "bash", {"command": "pytest"})


@pytest.mark.parametrize(("form", "shape"), EACH)
@pytest.mark.parametrize("code", [0, 1, 137, -1])
def test_the_wrapper_says_the_exit_code_and_the_text_stays(
    form: str, shape: str, code: int
) -> None:
    text = shape.format(code, OUT)
    for call in (SHELL, None):
        for named in (form, None):
            assert outcome(call, text, None, form=named) == (text, code != 0, code)
    found = around(text, None)
    assert found is not None and text[found.start : found.end] == OUT
    assert str(code) in text[slice(*found.said)] and "\n" not in text[slice(*found.said)]


@pytest.mark.parametrize(("form", "shape"), EACH)
def test_an_empty_output_is_wrapped_as_any_other(form: str, shape: str) -> None:
    text = shape.format(2, "")
    assert outcome(SHELL, text, None, form=form)[2] == 2


@pytest.mark.parametrize(("form", "shape"), EACH)
@pytest.mark.parametrize(("other", "quoted"), EACH)
def test_what_an_output_quotes_says_nothing_of_the_command(
    form: str, shape: str, other: str, quoted: str
) -> None:
    output = f"$ cat log\n{quoted.format(7, OUT)}\nend of log"
    assert outcome(SHELL, output, None, form=form)[2] is None, "a quote alone is no wrapper"
    assert outcome(SHELL, output, None)[1:] == (False, None)
    assert outcome(SHELL, shape.format(0, output), None, form=form)[2] == 0
    bare = quoted.format(7, OUT)
    assert outcome(SHELL, shape.format(0, bare), None, form=form)[2] == 0, "a quote that is all"
    assert outcome(SHELL, bare, None, form="")[2] is None, "a vendor that wraps nothing"


def test_a_command_that_still_runs_has_no_exit_code() -> None:
    head = "Chunk ID: 1\nWall time: 10.0 seconds\nProcess running with session ID 5\nOutput:\n"
    text = head + "Process exited with code 3\n"
    assert outcome(SHELL, text, None, form="codex") == (text, False, None)
    waits = "[Command finished with exit code 5]\n[The command has no new output after 30 seconds.]"
    assert outcome(SHELL, waits, None, form="openhands")[2] is None
    stopped = (
        "Command: x\nDirectory: (root)\nOutput: \nError: (none)\nExit Code: (none)\nSignal: SIGINT"
    )
    assert outcome(SHELL, stopped, None, form="gemini-cli")[2] is None
    cut = "<returncode>1</returncode>\n<output>\nno end"
    assert outcome(SHELL, cut, None, form="mini-swe-agent")[2] is None


def test_an_output_that_was_shortened_or_a_command_that_was_ended_has_its_code() -> None:
    long = "<output_head>\na\n</output_head>\n<elided_chars>\n9\n</elided_chars>\n<output_tail>\nb\n</output_tail>"
    text = f"<returncode>1</returncode>\n<warning>\nToo long.\n</warning>{long}"
    assert outcome(SHELL, text, None, form="mini-swe-agent")[2] == 1
    ended = "boom\n[The command completed with exit code 130. CTRL+C was sent.]"
    assert outcome(SHELL, ended, None, form="openhands")[2] == 130


def test_a_code_that_is_said_of_errors_alone_needs_the_vendors_word_for_an_error() -> None:
    claude = "Exit code 2\nboom"
    assert outcome(SHELL, claude, True) == (claude, True, 2)
    assert outcome(SHELL, claude, False) == (claude, False, None)
    assert outcome(SHELL, "see: Exit code 2", True)[2] is None
    pi = "boom\n\nCommand exited with code 2"
    assert outcome(SHELL, pi, True, form="pi") == (pi, True, 2)
    assert outcome(SHELL, pi, False, form="pi") == outcome(SHELL, pi, False) == (pi, False, None)
    assert outcome(SHELL, "Command exited with code 2\nok", True, form="pi")[2] is None


def test_a_last_line_that_any_command_could_print_counts_only_for_its_vendor() -> None:
    text = "[stderr]\nboom\n[exit code: 1]"
    assert outcome(SHELL, text, False, form="deepseek-harness") == (text, False, 1)
    assert outcome(SHELL, text, None, form="deepseek-harness")[1] is True
    assert outcome(SHELL, text, None)[2] is None
    assert outcome(SHELL, f"{text}\n", None, form="deepseek-harness")[2] is None


@pytest.mark.parametrize(
    ("form", "value", "code"),
    [
        ("codex", {"output": OUT, "metadata": {"exit_code": 1, "duration_seconds": 0.1}}, 1),
        ("codex", {"metadata": {"exit_code": 0}, "output": OUT}, 0),
        ("mini-swe-agent", {"returncode": 1, "output": OUT}, 1),
        ("mini-swe-agent", {"returncode": -1, "output": OUT, "exception_info": "x"}, -1),
        ("codex", {"output": OUT, "metadata": {"exit_code": "1"}}, None),
        ("codex", {"output": OUT, "metadata": {"exit_code": True}}, None),
        ("codex", {"output": OUT, "metadata": 1}, None),
        ("codex", {"output": 3, "metadata": {"exit_code": 1}}, None),
        ("codex", {"output": OUT, "metadata": {"exit_code": 1}, "more": 1}, None),
        ("mini-swe-agent", {"returncode": 1, "output": OUT, "more": 1}, None),
    ],
)
def test_json_of_the_output_and_the_code_is_a_wrapper_and_other_json_is_none(
    form: str, value: Any, code: int | None
) -> None:
    text = json.dumps(value)
    assert outcome(SHELL, text, None, form=form) == (text, code not in (None, 0), code)
    assert outcome(SHELL, text + " }", None, form=form)[2] is None
    found = wrapped(text, None, form)
    if found is not None:
        assert found.own == (OUT if text.startswith('{"output"') else None)


@pytest.mark.parametrize("name", ["Read", "Grep", "WebFetch", "Task", "mcp__a__b"])
def test_only_commands_have_exit_codes(name: str) -> None:
    text = CODEX.format(1, OUT)
    assert outcome(neutral("c", name, {}), text, None) == (text, False, None)
    assert outcome(neutral("c", "apply_patch", "x"), text, None)[2] == 1


def test_the_vendors_word_for_an_error_stands() -> None:
    text = CODEX.format(1, OUT)
    assert outcome(SHELL, text, False) == (text, False, 1)
    assert outcome(SHELL, "fine", True) == ("fine", True, None)
    assert outcome(None, "fine", None) == ("fine", False, None)
    assert outcome(SHELL, "fine", None, form="nobody") == ("fine", False, None)


PIECES = st.sampled_from(
    "Chunk ID: a|Wall time: 1 seconds|Process exited with code 1|Output:|Exit code: 1|Exit Code: 1|Signal: 0"
    "|<returncode>1</returncode>|<output>|</output>|Command: x|Directory: y|Output: |<exited with exit code 1>"
    '|[Command finished with exit code 1]|\n|\n\n|x|\ud800|é|{"output":"|"}|Command exited with code 1'.split(
        "|"
    )
)


@given(st.lists(PIECES, max_size=14).map("".join), st.sampled_from([None, True, False]))
def test_any_text_gives_an_outcome_and_its_own_output_is_a_part_of_it(
    text: str, is_error: bool | None
) -> None:
    for form in (None, "", *FORMS):
        said, failed, code = outcome(SHELL, text, is_error, form=form)
        assert said == text and isinstance(failed, bool) and (code is None or isinstance(code, int))
    found = around(text, is_error)
    assert found is None or 0 <= found.start <= found.end <= len(text)


def test_long_outputs_take_no_longer_than_their_length() -> None:
    call = ToolCall("c", "bash", "shell")
    for text in (
        "\n" * 2_000_000,
        "Command: " + "\nDirectory: x" * 150_000,
        "[a]\n" * 500_000,
        "{" * 900_000,
    ):
        assert outcome(call, text, None) == (text, False, None)
