"""How text looks: widths, cells, colours on a terminal only, progress that is gone when it is done."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ef.cli.layout import Column, Look, cells, fit, one_line, pad, sides, squeeze, table
from ef.cli.progress import Progress
from ef.cli.words import count, moment, size, value

from .conftest import ROOT, SESSION, environment

PLAIN = Look(60, color=False)


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("🙂", 2), ("naïve", 5), ("", 0)]
)
def test_cells_count_what_a_terminal_shows(text: str, width: int) -> None:
    assert cells(text) == width


def test_what_does_not_fit_is_cut_with_an_ellipsis() -> None:
    assert fit("abcdef", 6) == "abcdef"
    assert fit("abcdefg", 6) == "abcde…"
    assert fit("日本語", 5) == "日本…"
    assert squeeze("beginning and end", 9) == "beg…d end"
    assert squeeze("short", 9) == "short"
    assert pad("日", 4) == "日  "
    assert pad("7", 3, right=True) == "  7"


def test_a_table_fits_its_width_and_cuts_the_wide_column_only() -> None:
    columns = (Column("id"), Column("n", right=True), Column("title", wide=True))
    rows = [("a" * 20, "1", "t" * 200), ("b", "12345", "日" * 100)]
    lines = table(PLAIN, columns, rows)
    assert all(cells(line) <= 60 for line in lines)
    assert "a" * 20 in lines[1]
    assert lines[1].endswith("…")
    assert len(sides(PLAIN, "l" * 100, "right")) == 60


def test_text_on_one_line_has_its_blanks_squeezed_and_its_controls_visible() -> None:
    assert one_line("  a\r\n\tb\x1b[0m\u2028c ") == "a b\\x1b[0m\\u2028c"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (None, "unknown"),
        (True, "true"),
        (0, "0"),
        ([], "none"),
        ({}, "()"),
        ("passed", "passed"),
        ("5", '"5"'),
        ("", '""'),
        ("none", '"none"'),
        (" a", '" a"'),
        ("a\x1b", "a\\x1b"),
        ({"passed": 3, "failed": None}, "passed 3, failed unknown"),
        (["a", ["b", 1]], "a, (b, 1)"),
        ({"a": {"b": []}}, "a (b none)"),
    ],
)
def test_values_in_words(given: Any, shown: str) -> None:
    assert value(given) == shown


def test_units_counts_sizes_and_times_in_words() -> None:
    assert value(45, "s\x07") == "45 s\\x07"
    assert (count(1, "event"), count(1200, "event")) == ("1 event", "1,200 events")
    assert (size(999), size(292390), size(5 * 10**9)) == ("999 bytes", "292.4 kB", "5.0 GB")
    assert moment("2026-03-14T11:52:34.496Z") == "2026-03-14 11:52"
    assert moment(None) == "unknown"


def test_the_progress_line_knows_its_share() -> None:
    progress = Progress("import", 200, "bytes")
    progress.at(50, "a.jsonl")
    assert progress.line(3) == "import [######..................] 50 of 200 bytes, 3 s  a.jsonl"
    assert Progress("verify", unit="records").line(1) == "verify 0 records, 1 s"


def on_terminal(words: list[str], columns: int = 70, **env: str) -> tuple[int, str]:
    """Run a command with a terminal of so many columns for both outputs; what came to it."""
    pty = pytest.importorskip("pty")
    termios = pytest.importorskip("termios")
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, columns))
    process = subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, env=environment(TERM="xterm", **env),
        stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    found = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # the other side is gone
            break
        if not piece:
            break
        found += piece
    os.close(ours)
    return process.wait(60), found.decode("utf-8").replace("\r\n", "\n")


def test_a_terminal_gets_colours_and_its_own_width(imported: Path) -> None:
    words = ["-m", "ef", "--store", str(imported), "context", SESSION]
    code, said = on_terminal(words)
    assert code == 0
    assert "\x1b[1mContext\x1b[0m" in said
    assert max(len(line) for line in said.splitlines()[4:]) == 70


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_declined(env: dict[str, str], imported: Path) -> None:
    words = ["-m", "ef", "--store", str(imported), "sessions"]
    if "TERM" in env:
        words = [
            "-c",
            "import os; os.environ['TERM'] = 'dumb'\nfrom ef.cli import main\nmain()",
            *words[2:],
        ]
        env = {}
    assert "\x1b" not in on_terminal(words, **env)[1]


def test_what_is_no_terminal_gets_no_colours(imported: Path) -> None:
    words = [sys.executable, "-m", "ef", "--store", str(imported), "sessions"]
    done = subprocess.run(words, cwd=ROOT, env=environment(), capture_output=True, check=True)
    assert b"\x1b" not in done.stdout


SLOW = """
import time
from ef.cli.progress import Progress
with Progress("import", 100, "bytes") as progress:
    progress.at(50, "big.jsonl")
    time.sleep({seconds})
print("done")
"""


def test_what_takes_over_a_second_shows_its_progress_and_takes_it_away() -> None:
    _, said = on_terminal(["-c", SLOW.format(seconds=1.6)])
    assert "\r\x1b[Kimport [############............] 50 of 100 bytes, 1 s  big.jsonl" in said
    assert said.endswith("\r\x1b[Kdone\n")


def test_what_is_quick_shows_none() -> None:
    assert on_terminal(["-c", SLOW.format(seconds=0.1)])[1] == "done\n"


def test_what_is_no_terminal_sees_no_progress() -> None:
    words = [sys.executable, "-c", SLOW.format(seconds=1.6)]
    done = subprocess.run(words, cwd=ROOT, env=environment(), capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"done\n", b"")
