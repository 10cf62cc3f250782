"""Secrets are taken out of lines before anything else sees them. Pure, as far as the redactor is.

A redactor gets one string at a time: each string of a JSON line (keys too), decoded, also those of JSON that is itself
a string; a line that is no JSON as it stands. A string whose key names a credential is shown once more as `key=value`.
What it names is replaced by `[redacted:KIND]` in the line's own bytes: all other bytes stay, and a line that was JSON
is JSON still. What becomes of a line depends on that line alone, so a file that grew keeps its old bytes.

Not seen: a secret that two lines or two strings share, numbers, and strings of nothing but base64 (images).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from ..errors import InputRefused
from .jsonstrings import Lexed, Unescaped, key_before, lex, sound_until
from .meaning import Remark

REDACTED = "redacted"
"""Kind of the remark on each kind of secret that was replaced."""

LOOKED = "looked-for-secrets"
"""Kind of the remark that a redactor ran and replaced nothing."""

WITHHELD = "withheld"
"""Kind of the remark on a last line that is not all there: half a secret looks like none."""

DEPTH_MAX = 8
"""So deep is JSON in strings of JSON read; each level doubles its backslashes."""

PAYLOAD_CHARS = 2048
KNOWN_CHARS, KNOWN_MOST = 80, 1 << 16
"""Answers on strings so short are kept, so many of them: keys and ids come again and again."""

_KIND = re.compile(r"[a-z0-9][a-z0-9._/-]{0,63}")
_PAYLOAD = re.compile(r"(?:data:[\w/+.-]{1,80};base64,)?[A-Za-z0-9+/]*+={0,2}")
_CREDENTIAL = re.compile(
    r"(?i)pass(?:word|wd|phrase)?$|pwd$|secret|token$|credential|auth|(?:api|access|private|account)[_.-]?key"
)


Finds = Callable[[str], Iterable[tuple[int, int, str]]]
"""What a caller may give: from a text to the spans that must not be kept; see Redactor."""


class Span(NamedTuple):
    """Characters [start, end) of the text that a redactor was given, and what kind of secret they are.

    A kind is a short name of lower-case letters, digits and `. _ / -`; it is shown and kept.
    """

    start: int
    end: int
    kind: str


class Redactor(Protocol):
    """Finds secrets in a text. The same text must always give the same spans."""

    @property
    def name(self) -> str:
        """What finds them; noted with the source."""
        ...

    @property
    def version(self) -> str:
        """Which version of it."""
        ...

    def __call__(self, text: str, /) -> Iterable[tuple[int, int, str]]:
        """The spans of the text that must not be kept, in any order; they may overlap."""
        ...


@dataclass(frozen=True, slots=True)
class Named:
    """A plain function as a redactor."""

    name: str
    version: str
    find: Finds

    def __call__(self, text: str, /) -> Iterable[tuple[int, int, str]]:
        """See Redactor."""
        return self.find(text)


@dataclass(frozen=True, slots=True)
class Together:
    """Several redactors as one: what any of them finds is replaced, under the kind that the first of them gives it."""

    redactors: tuple[Redactor, ...]

    @property
    def name(self) -> str:
        """See Redactor."""
        return "+".join(each.name for each in self.redactors)

    @property
    def version(self) -> str:
        """See Redactor."""
        return "+".join(each.version for each in self.redactors)

    def __call__(self, text: str, /) -> Iterable[tuple[int, int, str]]:
        """See Redactor."""
        for each in self.redactors:
            yield from each(text)


def said_of(redactor: Redactor) -> str:
    """A redactor's name and version, as notes say them."""
    return f"{redactor.name} {redactor.version}".strip()


class Finding(NamedTuple):
    """What was replaced: its kind, and where in the redacted line its marker begins (bytes)."""

    kind: str
    offset: int


def redact_line(
    line: bytes, redactor: Redactor, *, where: str = "line"
) -> tuple[bytes, list[Finding]]:
    """A line without its secrets, and what was replaced. Raises InputRefused when the redactor fails."""
    return _Looker(redactor).line(line, where)


class Redaction:
    """The redaction of one file: its lines in order, from line `number` at byte `offset` of the redacted file on.

    `where` names the file in errors. Afterwards `findings` says what was replaced, `remarks()` the same for the log.
    """

    def __init__(
        self, redactor: Redactor, *, where: str = "file", number: int = 1, offset: int = 0
    ) -> None:
        self.redactor, self.where, self.number, self.offset = redactor, where, number, offset
        self.replaced: list[tuple[str, int, int]] = []
        """Kind, line, and the offset of the marker in the redacted file, in order."""
        self.withheld = 0
        self._looker = _Looker(redactor)

    def line(self, line: bytes) -> bytes:
        """The next line, with its line feed if it has one, without its secrets."""
        redacted, findings = self._looker.line(line, f"{self.where}, line {self.number}")
        self.replaced += [(f.kind, self.number, self.offset + f.offset) for f in findings]
        self.number += 1
        self.offset += len(redacted)
        return redacted

    def lines(self, data: bytes) -> bytes:
        """The next lines, of which the last one may lack its line feed if it is whole (`is_whole`)."""
        return b"".join(self.line(line) for line in re.findall(rb"[^\n]*\n|[^\n]+", data))

    def through(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """A file's bytes, however they are cut, without its secrets: a line at a time.

        The end of a last line that is cut in a string, or in no JSON, is withheld: half a secret looks like none. It
        comes when it is whole.
        """
        held: list[bytes] = []
        for block in blocks:
            *ended, rest = block.split(b"\n")
            for line in ended:
                yield self.line(b"".join(held) + line + b"\n")
                held.clear()
            if rest:
                held.append(rest)
        last = b"".join(held)
        text = last.decode("utf-8", "surrogateescape")
        head = text[: sound_until(text)].encode("utf-8", "surrogateescape")
        self.withheld = len(last) - len(head)
        if head:
            yield self.line(head)

    @property
    def findings(self) -> dict[str, int]:
        """Kind -> how often it was replaced."""
        return dict(sorted(Counter(kind for kind, _, _ in self.replaced).items()))

    def remarks(self, since: int = 0) -> list[Remark]:
        """What is to be noted with the source, of what stands behind its byte `since`: counts per kind, at the first of
        the kind; never a secret, its digest or its length.
        """
        by = said_of(self.redactor)
        new = [found for found in self.replaced if found[2] >= since]
        first = {kind: (line, at) for kind, line, at in reversed(new)}
        remarks = [
            Remark(REDACTED, *first[kind], f"{count} × {kind} replaced (found by {by})")
            for kind, count in sorted(Counter(kind for kind, _, _ in new).items())
        ]
        if not new and not since:
            remarks.append(Remark(LOOKED, 1, 0, f"no secrets (none found by {by})"))
        if self.withheld:
            said = "the last line is cut, and half a secret looks like none: its end is left out until it is whole"
            remarks.append(Remark(WITHHELD, self.number, self.offset, said))
        return remarks


def is_whole(line: bytes) -> bool:
    """Whether nothing of a last line that no line feed ends would be withheld."""
    text = line.decode("utf-8", "surrogateescape")
    return sound_until(text) == len(text)


class _Looker:
    """Asks a redactor, and replaces what it names."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._known: dict[str, tuple[Span, ...]] = {}
        self._where = ""

    def line(self, line: bytes, where: str) -> tuple[bytes, list[Finding]]:
        """See redact_line."""
        self._where = where
        text = line.decode("utf-8", "surrogateescape")
        findings: list[Finding] = []
        pieces: list[bytes] = []
        at = length = 0
        for span in _merged(self._in_line(text)):
            before = text[at : span.start].encode("utf-8", "surrogateescape")
            marker = f"[{REDACTED}:{span.kind}]".encode()
            findings.append(Finding(span.kind, length + len(before)))
            pieces += before, marker
            length += len(before) + len(marker)
            at = span.end
        if not findings:
            return line, findings
        pieces.append(text[at:].encode("utf-8", "surrogateescape"))
        return b"".join(pieces), findings

    def _in_line(self, text: str) -> Iterator[Span]:
        if "\0" in text:  # no text has any: UTF-16 that was split at its line feeds
            places = [n for n, c in enumerate(text) if c != "\0"]
            for start, end, kind in self._in_line(text.replace("\0", "")):
                yield Span(places[start], places[end - 1] + 1, kind)
            return
        lexed = lex(text)
        if not lexed.json:
            yield from self._asked(text)
        yield from self._in_literals(text, lexed, 0, every=lexed.json)

    def _in_literals(self, text: str, lexed: Lexed, depth: int, *, every: bool) -> Iterator[Span]:
        """Spans of a text inside its literals; not `every`: of those that say something else than what stands there."""
        for n, (start, end) in enumerate(lexed.literals):
            raw, key = text[start:end], key_before(text, lexed, n)
            if not every and "\\" not in raw and "\\" not in (key or ""):
                continue
            if key is not None and "\\" in key:
                key = Unescaped(key).text
            literal = Unescaped(raw)
            for span in self._in_string(literal.text, key, depth):
                yield Span(
                    start + literal.raw(span.start), start + literal.raw(span.end), span.kind
                )

    def _in_string(self, text: str, key: str | None, depth: int) -> Iterator[Span]:
        yield from self._asked(text)
        if key is not None and _CREDENTIAL.search(key):
            head = f"{key}="
            for span in self._asked(head + text):
                if span.end > len(head):
                    yield Span(max(span.start - len(head), 0), span.end - len(head), span.kind)
        if depth < DEPTH_MAX and "\\" in text and '"' in text:
            yield from self._in_literals(text, lex(text), depth + 1, every=False)

    def _asked(self, text: str) -> tuple[Span, ...]:
        """What the redactor says of a text, checked."""
        known = self._known.get(text) if len(text) <= KNOWN_CHARS else None
        if known is None:
            if len(text) >= PAYLOAD_CHARS and _PAYLOAD.fullmatch(text):
                return ()
            known = self._checked(text)
            if len(text) <= KNOWN_CHARS:
                if len(self._known) >= KNOWN_MOST:
                    self._known.clear()
                self._known[text] = known
        return known

    def _checked(self, text: str) -> tuple[Span, ...]:
        spans: list[Span] = []
        fault = ""
        try:
            for given in self._redactor(text):
                spans.append(_span(given, len(text)))
        except _BadSpan as wrong:
            fault = wrong.args[0]
        except Exception as wrong:
            fault = f"raised {type(wrong).__name__}"
        if fault:  # outside of the handler: what was raised may hold the text, and must not hang on what we raise
            raise InputRefused(
                where=self._where,
                why=f"the redactor {self._redactor.name} {fault}",
                remedy="Nothing was kept. Mend the redactor, or do without it.",
            )
        return tuple(spans)


class _BadSpan(Exception):
    """What a redactor gave that is no span."""


def _span(given: Any, length: int) -> Span:
    try:
        start, end, kind = given
    except (TypeError, ValueError):
        raise _BadSpan("gave what is no (start, end, kind)") from None
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= length:
        raise _BadSpan("gave a span that is not inside the text")
    if not isinstance(kind, str) or not _KIND.fullmatch(kind):
        raise _BadSpan("gave a kind that is no short name (lower-case letters, digits and . _ / -)")
    return Span(start, end, kind)


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Spans in order, those that overlap as one under the kind that was named first."""
    merged: list[Span] = []
    numbered = sorted((span.start, n, span) for n, span in enumerate(spans))
    for _, _, span in numbered:
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = Span(last.start, max(last.end, span.end), last.kind)
        else:
            merged.append(span)
    return merged
