"""What is excluded from coverage in the packages that must be at 100 %: few lines, each with a reason and a row."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MEASURED = ("ef/codec", "ef/log", "reducers")
EXCLUDED_MAX = 10
PRAGMA = re.compile(r"#\s*pragma:\s*no (?:cover|branch)(?P<reason>\s+-\s+\S.*)?")


def excluded(text: str) -> list[tuple[int, str]]:
    """Line number and reason ("" for none) of each exclusion."""
    return [
        (number, (found["reason"] or "").strip(" -"))
        for number, line in enumerate(text.splitlines(), 1)
        if (found := PRAGMA.search(line))
    ]


def all_excluded() -> dict[str, str]:
    return {
        f"{path.relative_to(ROOT).as_posix()}:{number}": reason
        for folder in MEASURED
        for path in sorted((ROOT / folder).rglob("*.py"))
        for number, reason in excluded(path.read_text(encoding="utf-8"))
    }


def test_few_lines_are_excluded_and_each_says_why_and_is_listed() -> None:
    found, page = all_excluded(), (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8")
    assert len(found) <= EXCLUDED_MAX, found
    assert not [place for place, reason in found.items() if not reason]
    rows = re.findall(r"^\| `(\S+:\d+)` \|", page, re.MULTILINE)
    assert sorted(rows) == sorted(found)


def test_the_packages_are_where_they_are_looked_for() -> None:
    for folder in MEASURED:
        assert len(list((ROOT / folder).rglob("*.py"))) > 4


def test_the_makefile_demands_the_whole_of_them() -> None:
    asked = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert "--include='ef/codec/*,ef/log/*,reducers/*' --fail-under=100" in asked


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("x = 1  # pragma: no cover - the disk is full", [(1, "the disk is full")]),
        ("x = 1  # pragma: no cover", [(1, "")]),
        ("x = 1  # pragma: no branch", [(1, "")]),
        ("x = 1  #pragma:no cover", [(1, "")]),
        ("x = 1  # nothing", []),
    ],
)
def test_an_exclusion_is_found(line: str, found: list[tuple[int, str]]) -> None:
    assert excluded(line) == found
