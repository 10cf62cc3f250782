"""Surface nodes -> what a provider takes as a request, in its form, and what of them could not be carried. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from . import anthropic, gemini, openai, responses
from .safejson import sendable
from .turns import Links, Shown, told
from .writer import Writer

WRITERS: dict[str, type[Writer]] = {
    "anthropic": anthropic.Export,
    "openai": openai.Export,
    "responses": responses.Export,
    "gemini": gemini.Export,
}
"""Format -> who writes it."""


@dataclass(frozen=True, slots=True)
class Written:
    """`system`: what goes in the field for the system's words (None: there are none, or they stand in the messages).

    How many parts of which kind were left out, became text, or got another name.
    """

    system: Any
    messages: list[Any]
    left_out: dict[str, int]
    as_text: dict[str, int]
    renamed: dict[str, int]


def write(form: str, nodes: Iterable[Shown], links: Links) -> Written:
    """The nodes in a format of `WRITERS`; valid JSON of Unicode text. See turns.py and the format's own module."""
    writer = WRITERS[form]()
    turns = told(nodes, links)
    system, messages = writer.write(turns)
    writer.note_renamed(turns)
    writer.left_out["pending_call"] = turns.pending
    counts = (writer.left_out, writer.as_text, writer.renamed)
    left_out, as_text, renamed = ({k: n for k, n in sorted(each.items()) if n} for each in counts)
    return Written(sendable(system), sendable(messages), left_out, as_text, renamed)
