"""What a shell command line runs, in which order, and what its exit status can tell.

Rule: `steps` gives the simple commands of a POSIX-like command line in the order in which they are written, each
with the filters that its output flows through, the directory it runs in, and two facts on the status of the whole
line: does 0 say that this command succeeded (`zero`), and is another status this command's own (`last`).

Invariants: pure; linear in the text; never raises on any `str`; a step is given only for text that would be run
(quotes, comments, here-documents and substitutions are no commands).

Refuses (no steps at all) what it cannot follow with certainty: loops, conditionals, functions, unclosed quotes,
groups nested deeper than `_DEPTH`, more than `_TOKENS` words and operators.
"""

import re
from dataclasses import dataclass, replace

_DEPTH = 20
_TOKENS = 5_000
_END = ("o", "")
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
_CONTROL = frozenset(
    "if for while until case function select do then else elif fi done esac [[ eval trap".split()
)
_SHOW_TO_FILE = frozenset((">", "1>", ">|", ">>", "1>>", "&>", "&>>"))


class _Refused(Exception):
    """The text cannot be followed with certainty."""


@dataclass(frozen=True, slots=True)
class Command:
    """The words of a simple command, and where its output goes (None: shown, or piped on)."""

    words: tuple[str, ...]
    out: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One simple command in its place; `out` and `filters` say where what it prints goes."""

    words: tuple[str, ...] = ()
    out: str | None = None
    filters: tuple[Command, ...] = ()
    directory: tuple[str, ...] = ()
    before: str = ""  # what joins it to the step before: "", "&&", "||" or ";"
    zero: bool = True
    last: bool = True
    alone: bool = True  # no earlier command of its chain (but `cd`) could have failed in its place
    background: bool = False
    piped: bool = False  # reads the output of another command


@dataclass(slots=True)
class _Group:
    items: "list[_Item]"
    subshell: bool
    out: str | None = None


@dataclass(slots=True)
class _Item:
    before: str
    stages: list[Command | _Group]
    negated: bool = False
    background: bool = False


@dataclass(slots=True)
class _State:
    """What earlier commands of one shell change for the later ones."""

    directory: tuple[str, ...] = ()
    pipefail: bool = False
    errexit: bool = False


def steps(text: str, around: Step | None = None) -> tuple[Step, ...]:
    """The simple commands of `text` in written order; `around` is the step of a shell that was given `text`."""
    found: list[Step] = []
    try:
        start = around or Step()
        _walk(_parse(text), start, _State(start.directory), found)
    except _Refused:
        return ()
    return tuple(found)


# -- words ------------------------------------------------------------------------------------------------------

_Tokens = list[
    tuple[str, str]
]  # ("w", word), ("o", operator) or ("r", redirection with its descriptor)


def _closing(text: str, start: int) -> int:
    """The index after the bracket that closes the one at `start`; quotes inside do not count."""
    depth = 0
    for match in _BRACKET.finditer(text, start):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return match.end()
    raise _Refused


def _unquoted(text: str) -> str:
    """The value of a double-quoted string."""
    if "$(" in text and text.count("(") != text.count(")"):
        raise _Refused  # a quote inside a substitution: where the string ends is not known
    return _ESCAPED.sub(lambda m: "" if m[1] == "\n" else m[1], text[1:-1])


def _after_heredoc(text: str, i: int, mark: str) -> int:
    """The index after the here-document that starts at `i`; without its mark it runs to the end."""
    while i < len(text):
        end = text.find("\n", i)
        line, i = (text[i:end], end + 1) if end >= 0 else (text[i:], len(text))
        if line.lstrip("\t") == mark:
            break
    return i


def _tokens(text: str) -> _Tokens:
    out: _Tokens = []
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
        if match is None or len(out) > _TOKENS:
            raise _Refused  # a quote that is not closed, or too much
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


# -- grammar ----------------------------------------------------------------------------------------------------


def _parse(text: str) -> list[_Item]:
    return _items([*_tokens(text), _END], 0, _END, 0)[0]


def _items(tokens: _Tokens, i: int, closer: tuple[str, str], depth: int) -> tuple[list[_Item], int]:
    """Read a list of pipelines up to its closing token."""
    items: list[_Item] = []
    before = ""
    while tokens[i] != closer:
        if tokens[i] == _END:
            raise _Refused
        text = tokens[i][1] if tokens[i][0] == "o" else ""
        if text in ("&&", "||"):
            before = text
        elif text in (";", "&"):
            for item in reversed(
                items if text == "&" else []
            ):  # the whole chain goes to the background
                item.background = True
                if item.before not in ("&&", "||"):
                    break
            before = (
                before if before in ("&&", "||") else ";"
            )  # a newline after `&&` changes nothing
        else:
            items.append(_Item(before if items else "", []))
            i = _pipeline(tokens, i, items[-1], depth)
            before = ""
            continue
        i += 1
    return items, i + 1


def _pipeline(tokens: _Tokens, i: int, item: _Item, depth: int) -> int:
    while tokens[i] == ("w", "!"):
        item.negated = not item.negated
        i += 1
    while True:
        stage, i = _stage(tokens, i, depth)
        item.stages.append(stage)
        if tokens[i] not in (("o", "|"), ("o", "|&")):
            return i
        i += 1
        while tokens[i] == ("o", ";"):  # a newline after `|`
            i += 1


def _stage(tokens: _Tokens, i: int, depth: int) -> tuple[Command | _Group, int]:
    """Read a group in brackets or a simple command, with its redirections."""
    group: _Group | None = None
    if tokens[i] in (("o", "("), ("w", "{")):
        closer = ("o", ")") if tokens[i][1] == "(" else ("w", "}")
        if depth >= _DEPTH:
            raise _Refused
        items, i = _items(tokens, i + 1, closer, depth + 1)
        group = _Group(items, closer[1] == ")")
    words: list[str] = []
    out: str | None = None
    start = i
    while tokens[i][0] != "o":
        kind, text = tokens[i]
        if kind == "w":
            words.append(text)
        else:
            i += 1
            target = tokens[i][1]
            if tokens[i][0] != "w":
                raise _Refused
            if text in _SHOW_TO_FILE or (text in (">&", "1>&") and target != "1"):
                out = (
                    target if text in (">", "1>", "&>", ">|") else "&" + target
                )  # "&": no plain, whole file
        i += 1
    if group is not None and not words:
        group.out = out
        return group, i
    if (
        group is not None
        or i == start
        or tokens[i] == ("o", "(")
        or (words[:1] and words[0] in _CONTROL)
    ):
        raise _Refused
    return Command(tuple(words), out), i


# -- order and status -------------------------------------------------------------------------------------------


def _walk(items: list[_Item], context: Step, state: _State, found: list[Step]) -> None:
    alone = context.alone
    for index, item in enumerate(items):
        later = items[index + 1 :]
        joined = all(x.before == "&&" or (x.before == ";" and state.errexit) for x in later)
        own = not item.negated and not item.background
        alone = context.alone if item.before not in ("&&", "||") else alone and item.before == "&&"
        inner = replace(
            context,
            before=item.before if index else context.before,
            zero=context.zero and own and joined,
            last=context.last and own and not later,
            alone=alone,
            background=context.background or item.background,
        )
        _stages(item, inner, state, found)
        alone = (
            alone and isinstance(item.stages[0], Command) and item.stages[0].words[:1] == ("cd",)
        )


def _stages(item: _Item, context: Step, state: _State, found: list[Step]) -> None:
    single = len(item.stages) == 1
    for index, stage in enumerate(item.stages):
        after = tuple(
            x if isinstance(x, Command) else Command(("?",)) for x in item.stages[index + 1 :]
        )
        # Under `pipefail` a filter that never fails leaves the status to the command before it.
        tame = state.pipefail and all(x.words[:1] in (("tail",), ("tee",), ("cat",)) for x in after)
        inner = replace(
            context,
            filters=after + context.filters,
            zero=context.zero and (not after or state.pipefail),
            last=context.last and (not after or tame),
            piped=context.piped or index > 0,
            out=stage.out or context.out,
        )
        # A subshell or a stage of a pipeline changes nothing in the shell around it.
        shell = (
            state
            if single and not (isinstance(stage, _Group) and stage.subshell)
            else replace(state)
        )
        if isinstance(stage, _Group):
            _walk(stage.items, inner, shell, found)
            continue
        if stage.words[:1] in (("cd",), ("pushd",)):
            shell.directory += stage.words[1:2] or ("~",)
        elif stage.words[:1] == ("set",):
            _set(stage.words[1:], shell)
        found.append(replace(inner, words=stage.words, directory=shell.directory))


def _set(words: tuple[str, ...], state: _State) -> None:
    """`set -e`, `set -euo pipefail`, `set +e`, and the same options of `bash`."""
    for i, word in enumerate(words):
        flags = word[1:] if re.fullmatch("[-+][a-z]+", word) else ""
        if "e" in flags:
            state.errexit = word[0] == "-"
        if "o" in flags and words[i + 1 : i + 2] == ("pipefail",):
            state.pipefail = word[0] == "-"
