"""Every recorded session comes in: its counts are those of an independent count, its bytes come out as they were.

The list of sessions and their counts is tests/golden/formats/counts.json; what is no session is refused with a reason.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.errors import InputRefused
from ef.importers.formats import Head, format_of, names
from ef.testing.tallies import Tally, sessions_of, tally

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "formats"
COUNTS: dict[str, dict[str, Any]] = json.loads((GOLDEN / "counts.json").read_text("utf-8"))["files"]
FILES = sorted(COUNTS)
REFUSED = 144
CHECKED_AGAIN = (
    "claude-code/claude-code-viewer/",
    "cline/",
    "gemini-cli/",
    "openhands/OpenHands/tests",
)

PENDING: dict[str, str] = {
    form: "no importer yet"
    for form in sorted({COUNTS[name]["format"] for name in FILES})
    if not any(known.startswith(form) for known in names())
}
"""Formats of recorded sessions that nothing reads yet. It must be empty."""


def is_session(path: Path, folder: Path) -> bool:
    """Whether a file of the folder is a session: no tool's output, no licence, no other text."""
    name = path.relative_to(folder).as_posix()
    aside = ("tool-outputs/", "LICENSES/", "MANIFEST.md")
    return not name.startswith(aside) and not name.endswith("stdout.expected.jsonl")


def others(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and not is_session(p, folder))


def of_format(name: str) -> str:
    form: str = COUNTS[name]["format"]
    return form


def counted(main: Tally, side: Tally, sub_agents: int) -> dict[str, int]:
    """What a store says of a file, in the words of the table."""
    responses = main.messages | main.synthetic | side.messages | side.synthetic
    return {
        "typed": len(main.typed) + len(side.typed),
        "messages": len(responses),
        "texts": main.texts + side.texts,
        "calls": main.calls + side.calls,
        "results": main.results + side.results,
        "errors": main.errors + side.errors,
        "usage": len(main.usage | side.usage),
        "images": main.images + side.images,
        "compactions": main.compactions + side.compactions,
        "subagents": sub_agents,
    }


def test_no_recorded_session_waits_for_its_importer() -> None:
    assert PENDING == {}


def test_every_session_of_the_folder_is_counted(shared_data: Path) -> None:
    found = {p for p in shared_data.rglob("*") if p.is_file() and p.stat().st_size}
    sessions = {p.relative_to(shared_data).as_posix() for p in found if is_session(p, shared_data)}
    assert sessions == set(FILES)
    assert len(others(shared_data)) == REFUSED


@pytest.mark.parametrize("name", FILES)
def test_a_session_is_recognised_as_one_format(name: str, shared_data: Path) -> None:
    data = (shared_data / name).read_bytes()
    head = Head(data[: 1 << 20], str(shared_data / name), len(data) <= 1 << 20)
    taken = [
        n for n in names() if (f := format_of(n)) and f.form != "database" and f.recognises(head)
    ]
    assert [n for n in taken if not n.startswith(of_format(name))] == []
    assert len(taken) == 1


@pytest.mark.parametrize("name", FILES)
def test_a_session_comes_in_once_with_all_that_it_holds_and_goes_out_as_it_was(
    name: str, shared_data: Path, tmp_path: Path, figure: Callable[[str], None]
) -> None:
    want = COUNTS[name]
    with ef.open(tmp_path / "s.ef") as store:
        done = store.import_file(shared_data / name)
        assert done.format.startswith(of_format(name))
        assert done.sessions
        assert store.export_original(done.source) == (shared_data / name).read_bytes()
        tip = store.log.store_tip()
        again = store.import_file(shared_data / name)
        assert (again.relation, again.new_events, store.log.store_tip()) == ("same", {}, tip)
        side = sessions_of(store, done.sessions, side=True)
        main = sessions_of(store, done.sessions, side=False)
        got = counted(tally(store, main), tally(store, side), len(side))
        assert store.verify().verdict == "sound"
    assert got == {key: got[key] if want[key] is None else want[key] for key in got}
    figure(f"sessions: {name}: {' '.join(f'{k} {v}' for k, v in got.items() if v)}")


def test_what_is_no_session_is_refused_with_a_reason(
    shared_data: Path, tmp_path: Path, figure: Callable[[str], None]
) -> None:
    with ef.open(tmp_path / "s.ef") as store:
        tip = store.log.store_tip()
        for path in others(shared_data):
            with pytest.raises(InputRefused) as refusal:
                store.import_file(path)
            assert refusal.value.facts["why"]
            assert store.log.store_tip() == tip
    figure(f"sessions: {len(FILES)} files came in, {REFUSED} others were refused")


@pytest.mark.parametrize("prefix", CHECKED_AGAIN)
def test_the_table_is_what_the_one_line_commands_say(
    prefix: str, shared_data: Path, figure: Callable[[str], None]
) -> None:
    if shutil.which("jq") is None:
        figure("sessions: jq is not installed: the table of counts was not counted again")
        return
    name = next(n for n in FILES if n.startswith(prefix))
    told = subprocess.run(
        ["bash", str(GOLDEN / "recount.sh"), str(shared_data), name],
        capture_output=True, text=True, check=True, timeout=300,
    ).stdout  # fmt: skip
    assert json.loads(told)["files"] == {name: COUNTS[name]}
