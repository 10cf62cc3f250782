"""No text makes the reading of test runs raise, cite what is not there, or slow down."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ef.reducers.observers.testruns import test_runs as judged
from tests.unit.test_testruns import BAD, GREEN, RED

_PIECES = ["pytest ", "go test ", "echo ", "\ud800", *"ab '\"\\$`(){};&|<>#\n!=-"]
_SHELLISH = st.lists(st.sampled_from(_PIECES)).map("".join)
_OUTPUT = st.lists(
    st.sampled_from([*RED.split("\n"), *BAD.split("\n"), *GREEN.split("\n"), "\ud800\r", "é"])
)


@settings(max_examples=300, deadline=None)
@given(_SHELLISH, _OUTPUT, st.sampled_from([None, 0, 1, 137]))
def test_no_text_raises_and_every_span_lies_in_the_output(
    command: str, lines: list[str], code: int | None
) -> None:
    output = "\n".join(lines)
    size = len(output.encode("utf-8", "surrogatepass"))
    for text in (command, "pytest; " + command, "go test ./... | " + command):
        for run in judged(text, output, exit_code=code):
            assert 0 <= run.start <= run.end <= size
            assert run.verdict in ("passed", "failed")


@pytest.mark.parametrize(
    "text",
    [
        " ", "=", "ok ", "ok\t", "FAILED a.py::[ - ", " FAILED", "1 passed, ", "\x1b[", "\x1b]", "--- FAIL: a/",
        "DONE 1 tests, 1 failures", "<[(. ", "ERROR *** ", "$(", "${", "'", '"', "`", "a;", "a|", "cd a;", "<<a\n",
    ],
)  # fmt: skip
def test_time_grows_no_faster_than_the_text(text: str) -> None:
    started = time.perf_counter()
    long = text * (300_000 // len(text))
    for command in ("pytest", "go test ./... | head -9", long):
        judged(command, long, exit_code=1)
    assert time.perf_counter() - started < 10
