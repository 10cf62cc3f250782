"""Blocks that are not what their dialect says, and broken transcripts: what is exported of them is still valid."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.render.export import WRITERS, write
from ef.render.turns import Shown
from ef.session.views import Export
from ef.testing.mutations import mutated
from tests.render.checks import refusals
from tests.render.histories import history

ROOT = Path(__file__).resolve().parents[2]
HISTORIES = 150
JUNK: tuple[Any, ...] = (
    None, 5, "words", [], {}, [None, {"type": 7}], {"type": None}, {"type": "text"}, {"type": "text", "text": 5},
    {"type": "tool_use"}, {"type": "tool_use", "id": 5, "input": []}, {"type": "tool_result", "content": [5, None]},
    {"type": "tool_result", "tool_use_id": [], "content": {"a": 1}}, {"type": "thinking"}, {"type": "image"},
    {"type": "image", "source": 5}, {"role": "tool", "content": [5]}, {"function": 5}, {"custom": {"input": 5}},
    {"function": {"arguments": {}}}, {"type": "function_call", "arguments": 5}, {"type": "message", "role": "x"},
    {"type": "function_call_output", "output": [5]}, {"type": "reasoning", "encrypted_content": 5, "summary": "s"},
    {"type": "reasoning", "encrypted_content": "s", "summary": ["s"]}, {"type": "input_image", "image_url": 5},
    {"functionCall": 5}, {"functionResponse": {"response": 5}}, {"inlineData": 5}, {"functionCall": {"args": 5}},
    {"type": "input_text", "text": 5}, {"type": "output_text"}, {"type": "input_file", "file_data": 5}, {"text": 5},
    {"type": "image_url", "image_url": {"url": 5}}, {"type": "file", "file": {}}, {"executableCode": 5}, {"novel": {}},
    {"type": "tool^use", "id": "x"}, {"type": "item_reference", "id": "x"}, {"content": [{"type": "image", "data": 5}]},
)  # fmt: skip
"""What stands where a block should."""


def spoiled(seed: int, nodes: list[Shown]) -> list[Shown]:
    chosen = random.Random(seed)
    return [
        replace(
            node,
            parts=tuple(
                replace(part, block=chosen.choice(JUNK)) if chosen.random() < 0.4 else part
                for part in node.parts
            ),
        )
        for node in nodes
    ]


@pytest.mark.parametrize("form", WRITERS)
def test_blocks_that_are_not_what_their_dialect_says_are_exported_as_what_was_read(
    form: str,
) -> None:
    wrong = {}
    for seed in range(HISTORIES):
        found = history(seed, (form, ""))
        done = write(form, spoiled(seed, found.nodes), found.links)
        export = Export("s", 1, form, done.system, done.messages, {}, {}, {})
        if problems := refusals(export):
            wrong[seed] = problems
    assert not wrong, f"{len(wrong)} of {HISTORIES}, the first: {next(iter(wrong.items()))}"


def test_a_broken_transcript_is_exported_as_each_provider_takes_it(tmp_path: Path) -> None:
    lines = (ROOT / "examples" / "shopcart.jsonl").read_bytes().splitlines()[:40]
    looked = 0
    with ef.open(tmp_path / "s.ef") as store:
        for seed in range(12):
            chosen = random.Random(seed)
            rows = list(lines)
            for _ in range(8):
                at = chosen.randrange(len(rows))
                rows[at] = mutated(chosen, [rows[at]])[1].replace(b"\n", b" ") or b"{}"
            file = tmp_path / f"{seed}.jsonl"
            file.write_bytes(b"\n".join(rows) + b"\n")
            for name in store.import_file(file, format="claude-code").sessions:
                for form in WRITERS:
                    assert refusals(store.session(name).export(form)) == [], (seed, form)
                    looked += 1
    assert looked >= 40
