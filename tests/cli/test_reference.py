"""The reference is made from the table of commands, and the parsers know what it says."""

from __future__ import annotations

import pytest

from ef.cli.commands import COMMANDS, EXITS, LATER
from ef.cli.parser import build
from ef.cli.reference import reference, usage

from .conftest import ROOT


def test_the_reference_names_every_command_argument_and_exit_code() -> None:
    page = reference()
    for command in COMMANDS:
        assert f"\n## ef {command.name}\n" in page
        assert usage(command) in page
        for argument in (*command.arguments, *command.one_of):
            assert all(f"`{flag}" in page for flag in argument.flags)
    assert all(f"| {code} | {meaning} |" in page for code, meaning in EXITS)
    assert all(f"`{name}`" in page for name in LATER)


def test_the_page_in_docs_is_in_step() -> None:
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == reference()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.name)
def test_the_examples_parse(command: object) -> None:
    import shlex

    parser = build()
    for example in command.examples:  # type: ignore[attr-defined]
        words = shlex.split(example.partition(" > ")[0])[1:]
        assert parser.parse_args(words).command == words[0]
