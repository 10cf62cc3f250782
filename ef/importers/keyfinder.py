"""A redactor of what has the shape of a key: published shapes, private key blocks, and values that are assigned to a
credential's name and look drawn by lot. Pure, and linear in the text.

Left alone: what only shows a shape (few different characters, the word EXAMPLE, `user:password@`), a key block's header
without a key, UUIDs, digests and commits that no credential's name stands before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .keyshapes import SHAPES, VERSION

LENGTH_MIN = 8
KEY_BLOCK_MAX = 16 << 10
_HINTED = [(hint, n) for n, shape in enumerate(SHAPES) for hint in shape.hints]


class KeyFinder:
    """See Redactor. What it finds changes with its version only."""

    name = "key-shapes"
    version = VERSION

    def __call__(self, text: str, /) -> Iterator[tuple[int, int, str]]:
        """See Redactor."""
        if len(text) < LENGTH_MIN:
            return
        for n in {n: None for hint, n in _HINTED if hint in text}:
            shape = SHAPES[n]
            group = "secret" if "secret" in shape.pattern.groupindex else 0
            for found in shape.pattern.finditer(text):
                if not _placeholder(found[group], found):
                    yield found.start(group), found.end(group), shape.kind
        if "PRIVATE KEY" in text:
            yield from _key_blocks(text)
        yield from _assigned(text)


PLACEHOLDERS = frozenset(
    "password passwd pass pwd pw secret user username postgres root admin token changeme example test guest".split()
)


def _placeholder(value: str, found: re.Match[str]) -> bool:
    """Whether a value only shows the shape."""
    tail = set(value[-16:])
    if "EXAMPLE" in value or "xxxx" in value.lower() or len(tail) < 3:
        return True
    if "user" not in found.re.groupindex:
        return len(tail) < 5
    return value.lower() in PLACEHOLDERS or value == found["user"] or value.startswith(("%", "..."))


# ------------------------------------------------------------------------------------------------- private key blocks

_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_RUN = re.compile(r"[A-Za-z0-9+/=]{16,}")
_KEY_TEXT_MIN, _DIFFERENT_IN_KEY_MIN = 60, 12
_BETWEEN_LINES_MAX = 24
"""Between two lines of a key: a line's end, its number, a quote."""


def _key_blocks(text: str) -> Iterator[tuple[int, int, str]]:
    """From BEGIN to END, or as far as there is key: with line numbers, quoted, cut short."""
    begins = list(_BEGIN.finditer(text))
    for n, begin in enumerate(begins):
        last = begins[n + 1].start() if n + 1 < len(begins) else len(text)
        last = min(last, begin.end() + KEY_BLOCK_MAX)
        end = _END.search(text, begin.end(), last)
        runs = list(_RUN.finditer(text, begin.end(), end.start() if end else last))
        if end is None:
            runs = _near(runs, begin.end())
        key = "".join(run[0] for run in runs)
        if len(key) >= _KEY_TEXT_MIN and len(set(key)) > _DIFFERENT_IN_KEY_MIN:
            yield begin.start(), end.end() if end else runs[-1].end(), "private-key"


def _near(runs: list[re.Match[str]], at: int) -> list[re.Match[str]]:
    """The runs that follow one another as the lines of a key do."""
    kept: list[re.Match[str]] = []
    for run in runs:
        if run.start() - at > _BETWEEN_LINES_MAX:
            break
        kept.append(run)
        at = run.end()
    return kept


# --------------------------------------------------------------------------------------------------------- assignments

_VALUE = re.compile(
    r"[=:][>=]?\s{0,3}[\"'`\\]{0,2}(?P<secret>[A-Za-z0-9][A-Za-z0-9_+/.~!@#%^&*-]{15,499}={0,2})"
)
_CREDENTIAL = re.compile(
    r"(?i)(?:pass(?:word|wd|phrase)|pwd|secret|token|credentials?|(?:api|access|auth|private|account|secret)[_.-]?key)"
    r"[\"'\]\\]{0,3}\s{0,3}\Z"
)
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_CAPITALS = re.compile("[A-Z]{2,}")
_CASE_RUNS = re.compile("[A-Z]+|[a-z]+")
_BEFORE = 40
_LOT_MIN, _DIGITS_MIN, _LETTERS_MIN, _DIFFERENT_MIN = 16, 2, 4, 10


def _assigned(text: str) -> Iterator[tuple[int, int, str]]:
    """Values of names such as `api_key` that look drawn by lot: not words, not paths, not UUIDs."""
    for found in _VALUE.finditer(text):
        at = found.start()
        if _CREDENTIAL.search(text, max(at - _BEFORE, 0), at):
            value = found["secret"].rstrip(".,=!*&-_/")
            if _drawn_by_lot(value) and not _placeholder(value, found):
                yield found.start("secret"), found.end("secret"), "assigned-secret"


def _drawn_by_lot(value: str) -> bool:
    digits, letters = sum(c.isdigit() for c in value), sum(c.isalpha() for c in value)
    return (
        len(value) >= _LOT_MIN
        and (digits >= _DIGITS_MIN or _mixed(value))
        and letters >= _LETTERS_MIN
        and len(set(value)) >= _DIFFERENT_MIN
        and not _UUID.fullmatch(value)
        and value.count("/") < 4
        and value.count(".") < 3
    )


def _mixed(value: str) -> bool:
    """Letters whose case changes as no words' in one name does: short runs, capitals side by side more than once."""
    runs = _CASE_RUNS.findall(value)
    return len(runs) * 3 >= len(value) and len(_CAPITALS.findall(value)) > 1
