"""Check ``shopcart.jsonl`` and print its moments: python examples/check_session.py

Every line is one JSON object, calls and results pair up, times do not go back, no path
of the recording machine is in it, and the compaction summary is wrong about the state
at that moment, as it is meant to be.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

VERDICT = re.compile(r"\d+ (?:passed|failed|errors?)(?:, \d+ \w+)* in [\d.]+s")
VALUE = re.compile(r"(?<![.\d])(?:30|45|120|180)\b")
PATHS = re.compile(r"(?<![\w.$:}*/-])/[\w.-]+(?:/[\w.-]+)+")
ALLOWED = ("/tmp/shopcart", "/usr/lib", "/usr/local/lib", "/dev/null")
Row = tuple[Any, ...]  # the first item is the line number


def check(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.endswith("\n"), "no newline at the end"
    records: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines()]
    check_envelopes(text, records)

    calls: dict[str, dict[str, Any]] = {}
    results: set[str] = set()
    typed: list[Row] = []
    errors: list[Row] = []
    tests: list[Row] = []
    values: list[Row] = []
    boundary = 0
    for number, record in enumerate(records, 1):
        if record.get("subtype") == "compact_boundary":
            boundary = number
        content = record.get("message", {}).get("content", [])
        if isinstance(content, str):
            hidden = record.get("isMeta") or record.get("isCompactSummary") or record["isSidechain"]
            if not hidden and not content.startswith("<"):
                typed.append((number, content.splitlines()[0][:90]))
            continue
        for block in content:
            if block["type"] == "tool_use":
                assert block["id"] not in calls, "a call id comes twice"
                calls[block["id"]] = block
            elif block["type"] == "tool_result":
                key, shown, failed = (
                    block["tool_use_id"],
                    block["content"],
                    block.get("is_error", False),
                )
                assert key in calls and key not in results, (
                    f"a result without a call, or a second one: {key}"
                )
                results.add(key)
                if failed:
                    errors.append((number, shown.splitlines()[0]))
                given = calls[key]["input"]
                if "pytest" in given.get("command", ""):
                    verdicts = VERDICT.findall(shown)
                    assert verdicts, f"line {number}: no verdict"
                    tests.append(
                        (number, verdicts[-1], "is_error" if failed else "", given["command"])
                    )
                if calls[key]["name"] in ("Edit", "Write") and not failed:
                    new = given.get("new_string") or given["content"]
                    name = given["file_path"].removeprefix("/tmp/shopcart/")
                    values += [
                        (number, name, row.strip()) for row in new.splitlines() if VALUE.search(row)
                    ]
    assert set(calls) == results, "a call without a result"

    # The summary, the record after the boundary, claims a state which is not so.
    summary = records[boundary]
    assert summary["isCompactSummary"]
    claims = summary["message"]["content"]
    suite = [
        row
        for row in tests
        if row[0] < boundary and row[3].startswith("python -m pytest -q") and "-k" not in row[3]
    ]
    assert "All 31 tests pass" in claims and "failed" in suite[-1][1], (
        "the summary is right about the tests"
    )
    config = [row for row in values if row[0] < boundary and row[1] == "config.toml"]
    assert "timeout is 30 seconds" in claims and config[-1][2] == "timeout = 45", (
        "the summary is right about the timeout"
    )

    mark = (boundary, "-- compaction; the summary says: all tests pass, timeout 30 --")
    show("pytest runs", sorted([*tests, mark]))
    show("values of the timeout", sorted([*values, mark]))
    show("results with is_error", errors)
    show("typed by the user", typed)
    print(f"\n{len(records)} records: {dict(Counter(record['type'] for record in records))}")
    print(
        f"{len(calls)} calls, {len(results)} results, {len(errors)} errors, {len(typed)} typed texts"
    )


def check_envelopes(text: str, records: list[dict[str, Any]]) -> None:
    for found in PATHS.findall(text):
        assert found.startswith(ALLOWED), f"a path of the machine: {found}"
    for word in ("pytest-of-", "/root", "/home"):
        assert word not in text, f"a trace of the machine: {word}"
    stamps = [record["timestamp"] for record in records if "timestamp" in record]
    assert stamps == sorted(stamps), "times go back"
    ids: set[str | None] = {None}
    for record in records:
        assert record.get("parentUuid") in ids, "a parent which does not come before"
        if "uuid" in record:
            assert record["uuid"] not in ids, "an id comes twice"
            ids.add(record["uuid"])


def show(title: str, rows: list[Row]) -> None:
    print(f"\n{title} (line first)")
    for number, *cells in rows:
        widths = (32, 8, 0) if len(cells) == 3 else (0, 0)
        print(
            f"{number:5d}  "
            + "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=False))
        )


if __name__ == "__main__":
    check(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "shopcart.jsonl")
