"""How well secrets are found: each kind of the corpus, in the ways that they stand in transcripts; and what is left
alone. The figures are told with their denominators.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ef.importers.keyfinder import KeyFinder
from ef.importers.keyshapes import SHAPES
from ef.importers.redaction import Redaction, Redactor, redact_line
from ef.session import detecting
from ef.session.detecting import detector
from tests.importing.redaction_corpus import KEY_BLOCKS, KEYS, PLAIN, Key, filled

EACH = 5
Figure = Callable[[str], None]


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(c):04x}" for c in text)


def in_text(text: str) -> bytes:
    return json.dumps({"type": "user", "message": {"role": "user", "content": text}}).encode()


def in_escapes(text: str) -> bytes:
    return f'{{"content":[{{"type":"text","text":"{escaped(text)}"}}]}}'.encode()


def in_arguments(text: str) -> bytes:
    inner = json.dumps({"cmd": ["sh", "-c", f'echo "{text}"']})
    return json.dumps({"type": "function_call", "arguments": inner}).encode()


def in_numbered_lines(text: str) -> bytes:
    numbered = "\n".join(
        f"{n:>6}→{line}" for n, line in enumerate(f"# .env\n{text}\n".split("\n"), 1)
    )
    return json.dumps({"tool_use_id": "t", "content": numbered}, ensure_ascii=False).encode()


def in_a_key(text: str) -> bytes:
    return json.dumps({"headers": {text: True}}).encode()


def in_colours(text: str) -> bytes:
    return json.dumps({"stdout": f"\x1b[1;32m{text}\x1b[0m\r\n"}).encode()


def in_single_quotes(text: str) -> bytes:
    command = "printf 'one\\n" + text.replace("\n", "\\n") + "\\n' > file"
    return json.dumps({"command": command}).encode()


def in_no_json(text: str) -> bytes:
    return f"2026-03-01 INFO {text!r} was sent".encode()


WAYS = (
    in_text,
    in_escapes,
    in_arguments,
    in_numbered_lines,
    in_a_key,
    in_colours,
    in_single_quotes,
    in_no_json,
)


def planted(key: Key, seed: str) -> tuple[str, str]:
    """A secret of a kind, and the text that holds it."""
    chosen = random.Random(f"{key.name}/{seed}")
    secret = filled(key.secret, chosen)
    return secret, filled(key.where, chosen).format(secret)


def pieces(secret: str) -> list[str]:
    """What must not be left of a secret: all of it, on each of its lines."""
    return [line for line in secret.split("\n") if not line.startswith("-----")]


def kept(key: Key, redactor: Redactor, way: Callable[[str], bytes], seed: str) -> bool:
    """Whether any piece of a planted secret can still be read in what is made of its line."""
    secret, text = planted(key, seed)
    line = way(text)
    redacted, found = redact_line(line, redactor)
    if way is not in_no_json:
        json.loads(redacted)
    shown = redacted.decode()
    for _ in range(3):
        shown += shown.encode("ascii", "backslashreplace").decode("unicode_escape")
    return not found or any(piece in shown for piece in pieces(secret))


@pytest.fixture(scope="module")
def built_in() -> Redactor:
    return detector()


def test_the_corpus_has_more_than_forty_kinds_and_each_shape_of_the_table_is_in_it() -> None:
    assert len({key.name for key in KEYS + KEY_BLOCKS}) > 40
    found = {kind for key in KEYS for _, _, kind in KeyFinder()(planted(key, "0")[1])}
    rest = {"azure-signature"}
    assert {shape.kind for shape in SHAPES} - found <= rest, "a row of the table that no key has"


@pytest.mark.parametrize("key", KEYS + KEY_BLOCKS, ids=lambda key: key.name)
def test_no_secret_of_the_corpus_is_kept_however_it_stands_in_the_line(
    key: Key, built_in: Redactor
) -> None:
    for way in WAYS:
        left = [n for n in range(EACH) if kept(key, built_in, way, str(n))]
        assert not left, (key.name, way.__name__, left)


@pytest.mark.parametrize("key", KEYS + KEY_BLOCKS, ids=lambda key: key.name)
def test_the_legitimate_twin_of_each_secret_is_left_alone(key: Key, built_in: Redactor) -> None:
    for n in range(EACH):
        twin = filled(key.twin, random.Random(f"twin/{key.name}/{n}"))
        for way in (*WAYS, str.encode):
            line = way(twin)
            assert redact_line(line, built_in) == (line, []), (twin, way)


@pytest.mark.parametrize("text", PLAIN)
def test_what_transcripts_are_full_of_is_left_alone(text: str, built_in: Redactor) -> None:
    for n in range(EACH):
        said = filled(text, random.Random(f"{text}/{n}"))
        for way in WAYS:
            line = way(said)
            assert redact_line(line, built_in) == (line, []), (said, way)


def test_images_are_left_alone_and_a_key_beside_one_is_not(built_in: Redactor) -> None:
    chosen = random.Random("image")
    image = base64.b64encode(chosen.randbytes(300_000)).decode()
    source = {"type": "base64", "media_type": "image/png", "data": image}
    line = json.dumps({"content": [{"type": "image", "source": source}]}).encode()
    assert redact_line(line, built_in) == (line, [])
    secret, text = planted(KEY_BLOCKS[0], "beside")
    both = json.dumps({"content": [{"source": source}, {"text": text}]}).encode()
    redacted, found = redact_line(both, built_in)
    assert len(found) == 1 and image.encode() in redacted
    assert pieces(secret)[0].encode() not in redacted


def test_a_key_in_base64_is_found_and_other_base64_is_not(built_in: Redactor) -> None:
    secret, _ = planted(next(key for key in KEYS if key.name == "github token"), "base64")
    for said, count in ((f"token={secret}", 1), ("token=the one of the kettle and the cups", 0)):
        packed = base64.b64encode(said.encode()).decode()
        line = in_text(f"data:\n  config: {packed}\n")
        redacted, found = redact_line(line, built_in)
        assert len(found) == count
        assert (packed.encode() in redacted) is (not count)


def test_the_figures_of_recall_and_precision(built_in: Redactor, figure: Figure) -> None:
    halves = {"key shapes alone": KeyFinder(), "with Kingfisher": built_in}
    for name, redactor in halves.items():
        all_of = [(k, w, n) for k in KEYS + KEY_BLOCKS for w in WAYS for n in range(EACH)]
        lost = [k.name for k, w, n in all_of if kept(k, redactor, w, str(n))]
        twins = [
            way(filled(text, random.Random(f"{text}/{n}")))
            for text in (*(key.twin for key in KEYS + KEY_BLOCKS), *PLAIN)
            for way in WAYS
            for n in range(EACH)
        ]
        touched = [line for line in twins if redact_line(line, redactor)[1]]
        right, wrong = len(all_of) - len(lost), len(touched)
        figure(
            f"redaction, {name}: recall {right} of {len(all_of)} ({len(KEYS + KEY_BLOCKS)} kinds), "
            f"precision {right} of {right + wrong} replaced ({wrong} of {len(twins)} twins touched)"
        )
        assert right / len(all_of) > 0.95 and not touched, (lost, touched[:3])


def lines_of(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            for line in path.read_bytes().split(b"\n"):
                yield path, line


def test_recorded_sessions_hold_few_things_that_only_look_like_secrets(
    shared_data: Path, figure: Figure
) -> None:
    """The recorded sessions were cleaned before they were published: what is found there is a false alarm."""
    redaction = Redaction(KeyFinder())
    size = count = 0
    for _, line in lines_of(shared_data):
        size, count = size + len(line) + 1, count + 1
        redaction.line(line)
    figure(
        f"redaction, key shapes: {len(redaction.replaced)} false alarms in {count:,} recorded lines "
        f"({size / 1e6:.1f} MB): {redaction.findings}"
    )
    assert len(redaction.replaced) <= 2


def test_kingfisher_is_asked_nothing_about_the_world() -> None:
    """Of its package only rules and scanner are named: what verifies or revokes is never there to be called."""
    text = Path(detecting.__file__).read_text(encoding="utf-8")
    imports = [line.strip() for line in text.splitlines() if "kingfisher_sdk import" in line]
    assert imports == [
        "from kingfisher_sdk import Scanner",
        "from kingfisher_sdk import Rules, Scanner, __version__",
    ]
