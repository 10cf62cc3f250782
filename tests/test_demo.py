"""The demo: it runs anywhere, what it shows follows the transcript, and it says so when a check fails."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
SHOPCART = EXAMPLES / "shopcart.jsonl"
FIXTURES = ROOT / "tests" / "fixtures" / "claude_code"
SUMMARY = re.compile(r"(?:\d+ \w+, )*\d+ (?:passed|failed|errors?)(?:, \d+ \w+)* in [\d.]+s")


def run_demo(*arguments: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The demo as `make demo` runs it: piped, with nothing but the core."""
    return subprocess.run(
        [sys.executable, str(EXAMPLES / "demo.py"), *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(home), "PYTHONUTF8": "1", **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )  # fmt: skip


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    done = run_demo(home=tmp_path_factory.mktemp("home"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The demo in this process, with one short burst: what is under test here is not the crash."""
    monkeypatch.syspath_prepend(EXAMPLES)
    import demo as module

    monkeypatch.setattr(module, "KILLS", 1)
    monkeypatch.setattr(module, "BURST", (3, 8))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    yield module
    for name in [n for n in sys.modules if n == "demo" or n.startswith("demo_")]:
        del sys.modules[name]


def play(demo: ModuleType, transcript: Path, out: io.StringIO | None = None) -> tuple[int, str]:
    screen = out or io.StringIO()
    code = demo.main(["--transcript", str(transcript)], out=screen)
    return code, screen.getvalue()


def edited(tmp_path: Path, change: Callable[[str], str], line: int) -> Path:
    """A copy of the session with one line changed."""
    lines = SHOPCART.read_text(encoding="utf-8").splitlines(keepends=True)
    changed = change(lines[line - 1])
    assert changed != lines[line - 1], "the edit changes nothing"
    json.loads(changed)
    lines[line - 1] = changed
    copy = tmp_path / "edited.jsonl"
    copy.write_text("".join(lines), encoding="utf-8")
    return copy


def verdicts() -> list[tuple[int, str]]:
    """(line, the runner's summary) of the results in the file that hold one, read without ef."""
    found = []
    for number, text in enumerate(SHOPCART.read_text(encoding="utf-8").splitlines(), 1):
        content: Any = json.loads(text).get("message", {}).get("content", "")
        for block in content if isinstance(content, list) else []:
            if block["type"] == "tool_result" and (summary := SUMMARY.findall(block["content"])):
                found.append((number, summary[-1]))
    return found


# ---------------------------------------------------------------------------------------------- on the recorded session


def test_it_is_a_screen_that_a_pipe_can_take(shown: str) -> None:
    lines = shown.splitlines()
    assert 60 <= len(lines) <= 95
    assert max(map(len, lines)) <= 80
    assert "\033" not in shown


def test_every_check_holds_on_the_recorded_session(shown: str) -> None:
    said = re.search(r"(\d+) of (\d+) checks hold", shown)
    assert said and said[1] == said[2] and int(said[2]) >= 9
    assert shown.count("✔") == int(said[2]) and "✘" not in shown


def test_the_moments_are_those_of_the_file(shown: str) -> None:
    runs = verdicts()
    last_red = max(n for n, summary in runs if "failed" in summary)
    now = runs[-1]
    red = dict(runs)[last_red]
    assert "passed" in now[1] and "failed" not in now[1]
    audit = shown.partition("─ Audit")[2].partition("\n─ ")[0]
    assert re.search(
        rf"source +item \d+, line {last_red} of the file +item \d+, line {now[0]} ", audit
    )
    assert re.search(rf"quote +“{red}” +“{now[1]}”", audit)


def test_the_summary_is_quoted_and_the_state_contradicts_it(shown: str) -> None:
    summary = json.loads(SHOPCART.read_text(encoding="utf-8").splitlines()[179])
    assert summary["isCompactSummary"]
    section = shown.partition("A summary is not evidence")[2].partition("\n─ ")[0]
    claim = re.search(r"summary +“(.+)”", section)
    assert claim and claim[1] in summary["message"]["content"] and "pass" in claim[1]
    assert re.search(r"state +failed “\d+ failed", section)
    assert "The summary was wrong" in section
    before, after = re.findall(r"\b[0-9a-f]{12}\b", section)
    assert before == after


def test_the_rule_is_in_the_words_that_the_user_typed(shown: str) -> None:
    rule = re.search(r"rule +“(.+)”", shown)
    assert rule
    typed = [
        content
        for text in SHOPCART.read_text(encoding="utf-8").splitlines()
        if isinstance(content := json.loads(text).get("message", {}).get("content"), str)
    ]
    assert any(rule[1] in content for content in typed)


# ------------------------------------------------------------------------------------- what is shown follows the bytes


def test_another_verdict_at_the_end_turns_the_screen_around(
    demo: ModuleType, tmp_path: Path
) -> None:
    line, summary = verdicts()[-1]
    red = "1 failed, 30 passed in 7.77s"
    code, shown = play(demo, edited(tmp_path, lambda text: text.replace(summary, red), line))
    assert code == 0, shown
    assert "Replay: when it was last passed" in shown
    assert re.search(rf"quote +“[^”]+passed[^”]+” +“{red}”", shown)
    assert re.search(r"✔ audit at seq \d+: failed, by “1 failed, 30 passed in 7\.77s”", shown)
    assert re.search(r"test/pytest/status: passed at seq \d+, failed at", shown)


def test_another_summary_is_quoted_as_it_is(demo: ModuleType, tmp_path: Path) -> None:
    copy = edited(
        tmp_path, lambda text: text.replace("All 31 tests pass.", "No test could pass."), 180
    )
    code, shown = play(demo, copy)
    assert code == 0, shown
    assert "“No test could pass.”" in shown and "All 31 tests pass" not in shown
    assert "The summary was wrong" not in shown


def test_other_words_of_the_user_make_another_rule(demo: ModuleType, tmp_path: Path) -> None:
    copy = edited(
        tmp_path,
        lambda text: text.replace("Do not change the public API", "Do not touch a line"),
        6,
    )
    code, shown = play(demo, copy)
    assert code == 0, shown
    assert re.search(r"rule +“Do not touch a line of cart\.py\.”", shown)


# ------------------------------------------------------------------------------------------------- a check that fails


class Meddler(io.StringIO):
    """Does something the moment a text appears on the screen."""

    def __init__(self, text: str, deed: Callable[[], object]) -> None:
        super().__init__()
        self._text, self._deed = text, deed

    def write(self, text: str) -> int:
        if self._text in text:
            self._text = "\0"
            self._deed()
        return super().write(text)


def test_a_file_that_changed_meanwhile_is_no_match(demo: ModuleType, tmp_path: Path) -> None:
    copy = tmp_path / "session.jsonl"
    copy.write_bytes(SHOPCART.read_bytes())
    code, shown = play(
        demo, copy, Meddler("Crash", lambda: copy.write_bytes(copy.read_bytes()[:-1]))
    )
    assert code == 1
    assert "✘ the exported source is not the file that is on disk now" in shown
    assert "1 check failed" in shown


LIAR = """
import os, sys, time
for n in range(1, 1000):
    os.write(1, b"%d\\n" % n)
    time.sleep(0.001)
"""


def test_a_writer_that_acknowledges_what_it_did_not_append_is_found_out(
    demo: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    liar = tmp_path / "liar.py"
    liar.write_text(LIAR)
    crash = demo.demo_crash
    monkeypatch.setattr(crash, "burst", partial(crash.burst, writer=[sys.executable, str(liar)]))
    code, shown = play(demo, SHOPCART)
    assert code == 1
    assert re.search(r"✘ 1 writers? killed: acknowledged \d+, lost [1-9]", shown)


def test_a_writer_that_ends_by_itself_was_not_killed(
    demo: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = tmp_path / "idle.py"
    idle.write_text("")
    crash = demo.demo_crash
    monkeypatch.setattr(crash, "burst", partial(crash.burst, writer=[sys.executable, str(idle)]))
    code, shown = play(demo, SHOPCART)
    assert code == 1 and "acknowledged 0" in shown


def test_a_quote_that_is_not_in_the_line_is_not_found(demo: ModuleType) -> None:
    file = demo.Transcript(SHOPCART)
    end = file.data.index(b"\n")
    assert not file.holds(0, end, b"31 passed in 0.06s")
    line, summary = verdicts()[-1]
    start = sum(len(row) for row in file.data.splitlines(keepends=True)[: line - 1])
    assert file.holds(start, file.data.index(b"\n", start), summary.encode())
    assert not file.holds(start, file.data.index(b"\n", start), b"32 passed")


# ------------------------------------------------------------------------------------------------ on other transcripts


@pytest.mark.parametrize(
    "name", ["list-content", "compaction", "interrupted", "torn-tail", "bidi-and-zero-width", "invalid-utf8"]
)  # fmt: skip
def test_a_transcript_without_test_runs_is_shown_all_the_same(demo: ModuleType, name: str) -> None:
    code, shown = play(demo, FIXTURES / f"{name}.jsonl")
    assert code == 0, shown
    assert "no test run" in shown or "the state is empty" in shown
    assert not re.search("[\x00-\x09\x0b-\x1f\u202a-\u202e\u2066-\u2069]", shown)


@pytest.mark.parametrize("name", ["empty", "blank-lines-only"])
def test_what_is_no_session_is_refused_in_a_sentence(tmp_path: Path, name: str) -> None:
    done = run_demo("--transcript", str(FIXTURES / f"{name}.jsonl"), home=tmp_path)
    assert done.returncode == 65
    assert done.stderr.startswith("demo: ") and "Traceback" not in done.stderr


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    done = run_demo("--transcript", str(tmp_path / "none.jsonl"), home=tmp_path)
    assert done.returncode == 65 and "none.jsonl" in done.stderr and "Traceback" not in done.stderr


# ----------------------------------------------------------------------------------------------------------- its looks


def test_colour_is_for_terminals_or_on_request(demo: ModuleType, tmp_path: Path) -> None:
    out = io.StringIO()
    given = ["--transcript", str(FIXTURES / "list-content.jsonl"), "--color", "always"]
    assert demo.main(given, out=out) == 0
    assert "\033[1m" in out.getvalue()


def test_a_terminal_without_unicode_gets_plain_signs(demo: ModuleType) -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    assert demo.main(["--transcript", str(FIXTURES / "list-content.jsonl")], out=out) == 0
    out.flush()
    assert b"+ verify says sound" in raw.getvalue()


def test_own_transcripts_are_named_and_never_read(
    demo: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ".claude" / "projects" / "p"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "a.jsonl")  # whoever reads it waits for ever
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    code, shown = play(demo, FIXTURES / "list-content.jsonl")
    assert code == 0
    assert "import ~/.claude/projects" in shown


def test_the_store_can_be_kept(demo: ModuleType, tmp_path: Path) -> None:
    import ef

    out = io.StringIO()
    given = [
        "--transcript",
        str(FIXTURES / "list-content.jsonl"),
        "--store",
        str(tmp_path / "s.ef"),
    ]
    assert demo.main(given, out=out) == 0
    with ef.open(tmp_path / "s.ef", create=False) as store:
        assert store.verify().ok
