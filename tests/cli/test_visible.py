"""What a terminal would obey or hide is made visible; everything else stays as it is."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ef.render.visible import visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\x00b\x07c\x7fd", "a\\x00b\\x07c\\x7fd"),
        ("\x9b2J", "\\x9b2J"),
        ("one\ntwo\tthree\r", "one\\ntwo\\tthree\\r"),
        ("\u202etxt.exe\u202c", "\\u202etxt.exe\\u202c"),
        ("\u2066a\u2069", "\\u2066a\\u2069"),
        ("a\u200bb\u200fc\ufeffd", "a\\u200bb\\u200fc\\ufeffd"),
        ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
        ("\ud800 \udfff \udcff", "\\ud800 \\udfff \\udcff"),
        ("hidden \U000e0041", "hidden \\U000e0041"),
    ],
)
def test_what_a_terminal_would_obey_or_hide_becomes_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("text", ["", "plain", "naïve → 日本語 🙂 العربية", "a\\x1b", "'\"<&"])
def test_text_in_any_script_stays_as_it_is(text: str) -> None:
    assert visible(text) == text


@given(st.text(st.characters(codec=None)))
def test_what_comes_out_encodes_and_holds_no_control_character(text: str) -> None:
    shown = visible(text)
    shown.encode("utf-8")
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")]
    assert visible(shown) == shown
