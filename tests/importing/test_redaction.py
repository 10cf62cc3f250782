"""Lines without their secrets: what must hold whatever the line and whatever the redactor."""

from __future__ import annotations

import itertools
import json
import random
import re
import string
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ef.errors import InputRefused, UsageError
from ef.importers.keyfinder import KeyFinder
from ef.importers.redaction import (
    DEPTH_MAX,
    LOOKED,
    REDACTED,
    WITHHELD,
    Named,
    Redaction,
    Redactor,
    Together,
    is_whole,
    redact_line,
)
from ef.session.secrets import redactor_of, together

SECRET = "Zq" + "-secret-7"
MARK = f"[{REDACTED}:test]"


def find(text: str) -> list[tuple[int, int, str]]:
    return [(m.start(), m.end(), "test") for m in re.finditer(SECRET, text)]


FINDER = Named("finder", "3", find)


def redacted(line: bytes, redactor: Redactor = FINDER) -> bytes:
    return redact_line(line, redactor)[0]


def hexed(text: str) -> str:
    return "".join(f"\\u{ord(c):04X}" for c in text)


# ------------------------------------------------------------------------------------------------------------- where


@pytest.mark.parametrize(
    "line",
    [
        '{"a": "x SECRET y"}',
        '{"SECRET": 1}',
        '["SECRET", "no", "SECRET"]',
        '"SECRET"',
        'text SECRET "quoted" and more',
        'text "quoted SECRET" and more',
        '{"a": "whole"} SECRET behind it',
        '{"a": "torn SECRET',
        '{"a": "b\\n\\"SECRET\\"\\/ \\ud83d\\ude00 é"}',
        '  "pretty": "SECRET",',
        "# {\"commented\": \"SECRET\"}",
        '\ufeff{"a": "SECRET"}',
        '{"a": "\\ud83d SECRET \\udc00"}',
        '{"bad": "\\x SECRET \\',
    ],
)  # fmt: skip
def test_a_secret_is_replaced_and_every_other_byte_stays(line: str) -> None:
    planted = line.replace("SECRET", SECRET).encode()
    assert redacted(planted) == line.replace("SECRET", MARK).encode()
    assert redacted(line.encode()) == line.encode()


@pytest.mark.parametrize("cut", range(1, len(SECRET)))
def test_a_secret_that_escapes_split_is_found(cut: int) -> None:
    said = SECRET[:cut] + hexed(SECRET[cut]) + SECRET[cut + 1 :]
    assert redacted(f'{{"a": "b {said} c"}}'.encode()) == f'{{"a": "b {MARK} c"}}'.encode()
    assert redacted(f'not json "{said}"'.encode()) == f'not json "{MARK}"'.encode()


def test_a_secret_with_a_line_feed_and_a_slash_in_it_is_found() -> None:
    lines = Named(
        "lines", "1", lambda text: [(n, n + 5, "pair") for n in [text.find("a/b\nc")] if n >= 0]
    )
    assert redacted(rb'{"x": "1 a\/b\nc 2"}', lines) == b'{"x": "1 [redacted:pair] 2"}'
    assert redacted(rb'{"x": "1 a\/b\\nc 2"}', lines) == rb'{"x": "1 a\/b\\nc 2"}'


@pytest.mark.parametrize("depth", range(1, DEPTH_MAX + 1))
def test_a_secret_in_json_inside_of_strings_is_found(depth: int) -> None:
    said = json.dumps({"cmd": "\n" + hexed(SECRET)}).replace("\\\\u", "\\u")
    for _ in range(depth):
        said = json.dumps({"arguments": said, "note": "\t"})
    clean = redacted(said.encode())
    value: Any = json.loads(clean)
    for _ in range(depth):
        value = json.loads(value["arguments"])
    assert value == {"cmd": f"\n{MARK}"}


def test_bytes_that_are_no_utf8_stay_as_they_are() -> None:
    line = b'\xff{"a\xc3": "' + SECRET.encode() + b'\xe2\x82"}\x80'
    assert redacted(line) == line.replace(SECRET.encode(), MARK.encode())


def test_a_secret_in_utf16_is_found() -> None:
    for name in ("utf-16-le", "utf-16-be"):
        line = f'{{"a": "{SECRET}"}}'.encode(name)
        clean = redacted(line)
        assert MARK.encode() in clean
        assert SECRET.encode(name) not in clean
        assert redacted('{"a": "b"}'.encode(name)) == '{"a": "b"}'.encode(name)


def test_the_value_of_a_credential_s_key_is_shown_with_its_key() -> None:
    texts: list[str] = []

    def keyed(text: str) -> Iterable[tuple[int, int, str]]:
        texts.append(text)
        return [(0, len(text), "word")] if text.startswith("password=") else []

    line = b'{"password": "tea", "path": "tea", "cup": {"password": 5}}'
    asked = Named("keyed", "1", keyed)
    assert redacted(line, asked) == line.replace(b'"tea", "path"', b'"[redacted:word]", "path"')
    assert "password=tea" in texts and "path=tea" not in texts


def test_strings_of_nothing_but_base64_are_not_shown() -> None:
    texts: list[str] = []
    asked = Named("asked", "1", lambda text: texts.append(text) or [])  # type: ignore[func-returns-value]
    image = "A1b2" * 2000
    redacted(json.dumps({"data": image, "url": "data:image/png;base64," + image}).encode(), asked)
    assert sorted(texts) == ["data", "url"]
    redacted(json.dumps({"text": image + "."}).encode(), asked)
    assert image + "." in texts


def test_spans_that_overlap_are_one_under_the_name_of_the_first() -> None:
    first = Named("one", "1", lambda text: [(2, 5, "first")])
    second = Named("two", "2", lambda text: [(4, 7, "second"), (8, 9, "third")])
    both = Together((first, second))
    assert (both.name, both.version) == ("one+two", "1+2")
    assert redacted(b"0123456789", both) == b"01[redacted:first]7[redacted:third]9"
    assert redacted(b"0123456789", Together((second, first))) == (
        b"01[redacted:first]7[redacted:third]9"
    )


# --------------------------------------------------------------------------------------------------------------- laws

LETTERS = st.sampled_from('ab"\\/\n\té€😀{}[]:, u0') | st.characters(exclude_categories=["Cs"])
TEXTS = st.text(LETTERS, max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


def with_secrets(value: Any, secret: str) -> Any:
    """A value with the word in each of its strings."""
    if isinstance(value, str):
        return f"{value}{secret}é"
    if isinstance(value, list):
        return [with_secrets(each, secret) for each in value]
    if isinstance(value, dict):
        return {k + secret: with_secrets(v, secret) for k, v in value.items()}
    return value


@given(VALUES, st.booleans(), st.sampled_from([None, 2]), st.integers(0, 2))
def test_json_stays_json_and_says_the_same_without_its_secrets(
    value: Any, ascii_only: bool, indent: int | None, nested: int
) -> None:
    def written(secret: str) -> bytes:
        found = with_secrets(value, secret)
        for _ in range(nested):
            found = {"json": json.dumps(found, ensure_ascii=ascii_only)}
        return json.dumps(found, ensure_ascii=ascii_only, indent=indent).encode() + b"\n"

    whole = written(SECRET)
    clean = b"".join(Redaction(FINDER).through([whole]))
    assert json.loads(clean) == json.loads(written(MARK))
    assert clean == whole.replace(SECRET.encode(), MARK.encode())
    assert SECRET.encode() not in clean


@given(st.binary(max_size=80), st.integers(0, 80))
def test_whatever_the_bytes_the_secret_goes_and_the_rest_stays(line: bytes, at: int) -> None:
    assert redacted(line) == line
    planted = line[:at] + SECRET.encode() + line[at:]
    assert redacted(planted) == planted.replace(SECRET.encode(), MARK.encode())
    assert redacted(redacted(planted)) == redacted(planted)


LINES = st.lists(
    st.sampled_from(["{}", '{"a": "SECRET"}', '{"b": "x\\nSECRET\\n"}', "", "plain SECRET", '{"torn": "SEC', "[1,"]),
    max_size=6,
)  # fmt: skip


@given(LINES, st.lists(st.integers(0, 200), max_size=5))
def test_a_file_that_grew_begins_with_the_bytes_that_were_made_of_it_before(
    lines: list[str], cuts: list[int]
) -> None:
    data = "\n".join(lines).replace("SECRET", SECRET).encode()
    whole = b"".join(Redaction(FINDER).through([data]))
    at = sorted({0, *cuts, len(data)})
    blocks = [data[start:end] for start, end in itertools.pairwise(at)]
    assert b"".join(Redaction(FINDER).through(blocks)) == whole
    assert Redaction(FINDER).lines(whole) == whole
    for cut in at:
        before = b"".join(Redaction(FINDER).through([data[:cut]]))
        assert whole.startswith(before)
        assert SECRET.encode() not in before


def test_an_unfinished_last_line_is_withheld_because_half_a_secret_looks_like_none() -> None:
    half = SECRET[:5]
    for head, end in (
        ("", f"plain {half}"),
        ("", f"4111 {half}"),
        ("[", f"4111 {half}"),
        ('{"a": "b", ', f'"c": "{half}'),
        ('{"a": "b", ', '"password": '),
        ('{"a": ["b", ', f'"{half}\\'),
        ("{", '"a": tru'),
        ("{", '"a": "b"'),
        ("[", "INFO] said"),
    ):
        redaction = Redaction(FINDER)
        assert not is_whole((head + end).encode())
        made = b"".join(redaction.through([b"{}\n", (head + end).encode()]))
        assert made == b"{}\n" + head.encode()
        assert [r.kind for r in redaction.remarks()] == [LOOKED, WITHHELD]
    for whole in ('{"a": "b"}', '{"a": "b"}  ', "  ]", '{"a": "b", ', ""):
        redaction = Redaction(FINDER)
        assert is_whole(whole.encode())
        assert b"".join(redaction.through([b"{}\n", whole.encode()])) == b"{}\n" + whole.encode()
        assert [r.kind for r in redaction.remarks()] == [LOOKED]


def test_only_a_line_feed_ends_a_line() -> None:
    data = f'{{"a":\r"{SECRET}",\r\n"b\x0b\x1c": 1}}\n\n[1'.encode()
    redaction = Redaction(FINDER)
    assert redaction.lines(data) == data.replace(SECRET.encode(), MARK.encode())
    assert redaction.number == 5


def test_what_is_shown_to_a_redactor_grows_with_the_line_and_no_faster() -> None:
    def shown(line: bytes) -> int:
        count = 0

        def counting(text: str) -> Iterable[tuple[int, int, str]]:
            nonlocal count
            count += len(text)
            return []

        redact_line(line, Named("counting", "1", counting))
        return count

    for make in (
        lambda n: b'"' + b'\\"' * n,
        lambda n: b'{"a":"' + b"\\\\" * n + b'"}',
        lambda n: b'"' * n,
        lambda n: b'{"a":' * n,
        lambda n: b'x "\\n" ' * n,
        lambda n: json.dumps(json.dumps(json.dumps({"a": "\n" * n}))).encode(),
    ):
        small, large = shown(make(2_000)), shown(make(16_000))
        assert large <= 8.5 * small + 100


# ------------------------------------------------------------------------------------------------------- what is said


def test_what_was_replaced_is_noted_by_kind_with_its_count_and_nothing_of_the_secret() -> None:
    redaction = Redaction(FINDER)
    lines = [b'{"a": "b"}\n', f'{{"a": "{SECRET} {SECRET}"}}\n'.encode(), SECRET.encode() + b"\n"]
    clean = b"".join(redaction.through(lines))
    assert redaction.findings == {"test": 3}
    (remark,) = redaction.remarks()
    assert (remark.kind, remark.line) == (REDACTED, 2)
    assert clean[remark.offset :].startswith(MARK.encode())
    assert remark.text == "3 × test replaced (found by finder 3)"
    behind = clean.rindex(b"\n", 0, -1)
    (later,) = redaction.remarks(behind)
    assert (later.line, later.text) == (3, "1 × test replaced (found by finder 3)")
    assert redaction.remarks(len(clean)) == []


def test_a_redaction_that_found_nothing_says_so() -> None:
    redaction = Redaction(FINDER)
    list(redaction.through([b"{}\n"]))
    (remark,) = redaction.remarks()
    assert (remark.kind, remark.text) == (LOOKED, "no secrets (none found by finder 3)")


# ------------------------------------------------------------------------------------------------------------ refusals


def failing(text: str) -> list[tuple[int, int, str]]:
    if SECRET in text:
        raise ValueError(f"cannot read {text}")
    return []


@pytest.mark.parametrize(
    "faulty",
    [
        failing,
        lambda text: [(0, len(text) + 1, "test")],
        lambda text: [(1, 1, "test")],
        lambda text: [(-2, 1, "test")],
        lambda text: [(0, True, "test")],
        lambda text: [(0, 1, text)],
        lambda text: [(0, 1, "Two Words")],
        lambda text: [(0, 1, None)],
        lambda text: [(0, 1)],
        lambda text: [text],
        lambda text: 5,
        lambda text: None,
    ],
)
def test_a_redactor_that_fails_refuses_the_file_and_says_nothing_of_the_text(faulty: Any) -> None:
    redaction = Redaction(Named("faulty", "1", faulty), where="chat.jsonl")
    lines = [f'{{"a": "{SECRET}"}}\n'.encode()]
    with pytest.raises(InputRefused) as refused:
        list(redaction.through(lines))
    said = f"{refused.value} {refused.value!r} {refused.value.facts}"
    assert "faulty" in said and "chat.jsonl, line 1" in said
    assert SECRET not in said
    assert refused.value.__context__ is None and refused.value.__cause__ is None
    assert b"".join(Redaction(FINDER).through(lines)) == lines[0].replace(
        SECRET.encode(), MARK.encode()
    )


def test_functions_together_are_one_redactor_and_nothing_is_none() -> None:
    both = together(find, FINDER)
    assert (both.name, both.version) == ("find+finder", "+3")
    assert redacted(SECRET.encode(), both) == MARK.encode()
    for nothing in ((), (False,)):
        with pytest.raises(UsageError, match="together"):
            together(*nothing)


def test_what_a_caller_gives_is_taken_as_it_is_meant() -> None:
    assert redactor_of(None) is None and redactor_of(False) is None
    plain = redactor_of(find)
    assert plain is not None and (plain.name, plain.version) == ("find", "")
    named = redactor_of(FINDER)
    assert named is not None and (named.name, named.version) == ("finder", "3")
    for wrong in ("yes", 5, Named, [find], Named("a\nb", "1", find), Named("a" * 300, "1", find)):
        with pytest.raises(UsageError):
            redactor_of(wrong)


# -- keys and values that are written with escapes --------------------------------------------------------------

VALUE = "VRl7tjkDFOG" + "GZD3jUJTd8"


def _nested(text: str, depth: int) -> str:
    for _ in range(depth):
        text = json.dumps({"arguments": text})
    return text


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("password", VALUE),
        ("password", VALUE[:11] + "\\u0026" + VALUE[11:]),
        ("password", VALUE[:11] + "\\u0041" + VALUE[11:]),
        ("p\\u0061ssword", VALUE),
        ("api\\u005fkey", VALUE[:11] + "\\u0026" + VALUE[11:]),
    ],
)
def test_the_value_of_a_credential_s_key_goes_however_json_writes_both(
    key: str, value: str, depth: int
) -> None:
    line = _nested(f'{{"n": 1, "{key}": "{value}", "city": "Berlin"}}', depth)
    redacted, findings = redact_line(line.encode(), KeyFinder())
    assert [f.kind for f in findings] == ["assigned-secret"]
    text = redacted.decode()
    assert VALUE[:11] not in text and VALUE[11:] not in text
    assert "Berlin" in text
    for _ in range(depth):
        text = json.loads(text)["arguments"]
    assert json.loads(text)["n"] == 1


def test_the_same_under_the_key_of_no_credential_stays() -> None:
    for depth in range(3):
        line = _nested(f'{{"commit": "{VALUE[:11]}\\u0026{VALUE[11:]}"}}', depth).encode()
        assert redact_line(line, KeyFinder()) == (line, [])


def test_values_that_are_drawn_by_lot_are_found_and_names_are_not(
    figure: Callable[[str], None],
) -> None:
    draw = random.Random(3)
    letters = string.ascii_letters + string.digits
    finder, missed = KeyFinder(), 0
    for _ in range(2_000):
        value = "".join(draw.choice(letters) for _ in range(24))
        missed += not list(finder(f"DB_PASSWORD={value}"))
    figure(f"redaction, 24 random letters and digits that are assigned: {2_000 - missed} of 2000")
    assert missed <= 40
    for name in (
        "getUserPasswordFromEnvironment", "thisIsMyVeryLongVariableNameHere", "HTTPSConnectionPoolURLParser",
        "SecretsManagerClientFactoryBean", "AWSSecretsManagerARNPrefixValue", "settings.DATABASE_PASSWORD_VALUE",
    ):  # fmt: skip
        assert list(finder(f"password={name}")) == [], name
