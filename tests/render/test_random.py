"""500 random histories for each provider format: what is exported is what the provider takes."""

from __future__ import annotations

import pytest

from ef.render import anthropic
from ef.render.export import WRITERS, Written, write
from ef.session.views import Export
from ef.testing.pairing import violations
from tests.render.checks import refusals
from tests.render.histories import History, history

HISTORIES = 500


def test_the_context_of_random_histories_pairs_calls_and_results() -> None:
    wrong = {}
    for seed in range(HISTORIES):
        found = history(seed)
        _, messages, _ = anthropic.messages(found.nodes, found.links)
        if problems := violations(messages):
            wrong[seed] = problems
    assert not wrong, f"{len(wrong)} of {HISTORIES}, the first: {next(iter(wrong.items()))}"


def export_of(form: str, seed: int) -> tuple[History, Export]:
    found = history(seed)
    written: Written = write(form, found.nodes, found.links)
    return found, Export(
        "s", 1, form, written.system, written.messages, written.left_out, written.as_text, written.renamed
    )  # fmt: skip


@pytest.mark.parametrize("form", WRITERS)
def test_what_is_exported_of_random_histories_is_what_the_provider_takes(form: str) -> None:
    wrong = {}
    for seed in range(HISTORIES):
        found = refusals(export_of(form, seed)[1])
        if found:
            wrong[seed] = found
    assert not wrong, f"{len(wrong)} of {HISTORIES}, the first: {next(iter(wrong.items()))}"
