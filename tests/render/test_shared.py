"""Recorded sessions of every tool, exported in every provider's format: what providers would take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import ef
from ef.errors import CallerError
from ef.render.export import WRITERS
from tests.render.checks import refusals

EACH = 3
"""Files of each tool; the smallest ones that hold something."""
LARGEST = 3_000_000
TOOLS = (
    "claude-code", "cline", "codex", "copilot-cli", "deepseek-harness", "gemini-cli", "mini-swe-agent", "opencode",
    "openhands", "pi", "swe-agent",
)  # fmt: skip


def files(folder: Path) -> Iterator[Path]:
    found = [p for p in folder.rglob("*") if p.is_file() and 2_000 < p.stat().st_size < LARGEST]
    yield from sorted(found, key=lambda p: (p.stat().st_size, p))


@pytest.mark.parametrize("tool", TOOLS)
def test_a_recorded_session_is_exported_as_each_provider_takes_it(
    tool: str, shared_data: Path, tmp_path: Path
) -> None:
    exports = 0
    with ef.open(tmp_path / "s.ef") as store:
        imported: list[str] = []
        for file in files(shared_data / tool):
            try:
                done = store.import_file(file)
            except CallerError:
                continue
            imported += done.sessions
            if len(imported) >= EACH:
                break
        for name in imported:
            session = store.session(name)
            for form in WRITERS:
                found = session.export(form)
                assert refusals(found) == [], (tool, name, form)
                exports += bool(found.messages)
    assert exports
