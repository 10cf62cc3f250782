"""`ef export --format`: one JSON object whose messages a provider takes; what it lacks is said and counted."""

from __future__ import annotations

import json

import pytest

from ef.cli.commands import PROVIDERS
from ef.render.export import WRITERS

from .conftest import SESSION, Run

FIELDS = "format session at all system messages left_out as_text renamed"


def test_the_formats_of_the_command_are_those_that_are_written() -> None:
    assert tuple(WRITERS) == PROVIDERS


@pytest.mark.parametrize("form", PROVIDERS)
def test_a_session_in_a_providers_format_is_one_json_object_with_or_without_json(
    form: str, ef: Run
) -> None:
    words = ("export", SESSION, "--format", form)
    done, as_json = ef(*words), ef(*words, "--json")
    assert (done.code, as_json.code) == (0, 0)
    assert done.out == as_json.out
    assert list(done.json) == FIELDS.split()
    assert done.json["format"] == form and len(done.json["messages"]) > 50
    thoughts = done.json["left_out"].get("reasoning", 0)
    assert bool(thoughts) == (form != "anthropic")
    assert done.err == (f"ef: left out: {thoughts} reasoning\n" if thoughts else "")
    assert as_json.err == ""


def test_an_export_as_of_a_moment_is_a_beginning_of_the_whole(ef: Run) -> None:
    whole = ef("export", SESSION, "--format", "openai").json["messages"]
    early = ef("export", SESSION, "--format", "openai", "--at", "120").json
    assert early["at"] == 120
    assert 0 < len(early["messages"]) < len(whole)
    assert early["messages"][:-2] == whole[: len(early["messages"]) - 2]


def test_the_whole_history_says_that_it_is_one(ef: Run) -> None:
    found = ef("export", SESSION, "--format", "gemini", "--all").json
    assert found["all"] is True
    assert found["messages"] == ef("export", SESSION, "--format", "gemini").json["messages"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--all"], "--all needs --format"),
        (["--at", "3"], "--at needs --format"),
        (["--original", "--format", "openai"], "are of a source"),
        (["--length", "3", "--format", "openai"], "are of a source"),
        (["--format", "cohere"], "invalid choice"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(
    words: list[str], said: str, ef: Run
) -> None:
    done = ef("export", SESSION, *words, "--json")
    assert done.code == 64
    assert said in done.err and json.loads(done.out)["exit"] == 64


def test_a_session_that_is_not_there_is_not_found(ef: Run) -> None:
    assert ef("export", "nope", "--format", "openai").code == 66
