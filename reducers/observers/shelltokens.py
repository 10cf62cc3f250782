"""The words, operators and redirections of a shell command line.

Rule: quotes, escapes, comments, substitutions and here-documents as a POSIX-like shell reads them. Invariants: pure;
linear in the text; never raises anything but `Refused`. Refuses: an unclosed quote or bracket, a string that ends
nobody knows where, more than `TOKENS_MAX` words and operators.
"""

import re

TOKENS_MAX = 5_000
_LEXEME = re.compile(
    r"(?P<blank>(?:[ \t\r]|\\\n)+)|(?P<newline>\n)|(?P<comment>#[^\n]*)"
    r"|(?P<subst>[$<>]\()"
    r"|(?P<operator>&&|\|\||;;|\|&|&>>|&>|<<<|<<-|<<|>>|>&|<&|>\||<>|[;&|()<>])"
    r"|(?P<single>'[^']*+'|\$'(?:[^'\\]|\\.)*+')"
    r'|(?P<double>"(?:[^"\\]|\\.)*+")'
    r"|(?P<raw>`[^`]*+`|\$\{[^}]*+(?:\}|\Z))"
    r"|(?P<escape>\\.)"
    r"|(?P<plain>[^\s\\'\"`$;&|()<>]+|\$|[^\S \t\r\n])",
    re.DOTALL,
)
_BRACKET = re.compile(r"'[^']*+'|\\.|[()]", re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\$`\n])')


class Refused(Exception):
    """The text cannot be followed with certainty."""


Tokens = list[
    tuple[str, str]
]  # ("w", word), ("o", operator) or ("r", redirection with its descriptor)


def _closing(text: str, start: int) -> int:
    """The index after the bracket that closes the one at `start`; quotes inside do not count."""
    depth = 0
    for match in _BRACKET.finditer(text, start):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    raise Refused


def _unquoted(text: str) -> str:
    """The value of a double-quoted string."""
    if "$(" in text and text.count("(") != text.count(")"):
        raise Refused  # a quote inside a substitution: where the string ends is not known
    return _ESCAPED.sub(lambda m: "" if m[1] == "\n" else m[1], text[1:-1])


def _after_heredoc(text: str, i: int, mark: str) -> int:
    """The index after the here-document that starts at `i`; without its mark it runs to the end."""
    while i < len(text):
        end = text.find("\n", i)
        line, i = (text[i:end], end + 1) if end >= 0 else (text[i:], len(text))
        if line.lstrip("\t") == mark:
            break
    return i


def tokens_of(text: str) -> Tokens:
    """The tokens of a command line; a here-document's text is none of them. Raises Refused."""
    out: Tokens = []
    parts: list[str] = []
    marks: list[str] = []

    def flush() -> None:
        if parts:
            out.append(("w", "".join(parts)))
            parts.clear()
            if len(out) > 1 and out[-2] in (("r", "<<"), ("r", "<<-")):
                marks.append(out[-1][1])

    i = 0
    while i < len(text):
        match = _LEXEME.match(text, i)
        if match is None or len(out) > TOKENS_MAX:
            raise Refused  # a quote that is not closed, or too much
        kind, piece, i = match.lastgroup, match[0], match.end()
        if kind == "comment" and parts:
            kind, piece, i = "plain", "#", match.start() + 1
        if kind == "blank":
            flush()
        elif kind == "newline":
            flush()
            out.append(("o", ";"))
            for mark in marks:
                i = _after_heredoc(text, i, mark)
            marks.clear()
        elif kind == "operator":
            redirects = "<" in piece or ">" in piece
            number = "".join(parts) if redirects and "".join(parts).isdigit() else ""
            if number:
                parts.clear()
            flush()
            out.append(("r" if redirects else "o", number + piece))
        elif kind == "subst":
            i = _closing(text, match.start() + 1)
            parts.append(text[match.start() : i])
        elif kind == "double":
            parts.append(_unquoted(piece))
        elif kind == "single":
            parts.append(piece[2:-1] if piece.startswith("$") else piece[1:-1])
        elif kind != "comment":
            parts.append(piece[1:] if kind == "escape" else piece)
    flush()
    return out
