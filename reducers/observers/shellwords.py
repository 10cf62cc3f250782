"""What a shell command line runs, in which order, and what its exit status can tell.

Rule: `steps` gives the simple commands of a POSIX-like command line in the order in which they are written, each
with the filters that its output flows through, the directory it runs in, and two facts on the status of the whole
line: does 0 say that this command succeeded (`zero`), and is another status this command's own (`last`).

Invariants: pure; linear in the text; never raises on any `str`; a step is given only for text that would be run
(quotes, comments, here-documents and substitutions are no commands).

Refuses (no steps at all) what it cannot follow with certainty: loops, conditionals, functions, unclosed quotes,
groups nested deeper than `_DEPTH`, more than `TOKENS_MAX` words and operators.
"""

import re
from dataclasses import dataclass, replace

from ...events.quick import quick
from .shelltokens import Refused, Tokens, tokens_of

_DEPTH = 20
_END = ("o", "")
_CONTROL = frozenset(
    "if for while until case function select do then else elif fi done esac [[ eval trap".split()
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_SHOW_TO_FILE = frozenset((">", "1>", ">|", ">>", "1>>", "&>", "&>>"))


@quick
@dataclass(frozen=True, slots=True)
class Command:
    """The words of a simple command, and where its output goes (None: shown, or piped on)."""

    words: tuple[str, ...]
    out: str | None = None


@quick
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
    env: tuple[str, ...] = ()  # the assignments that earlier commands of its shell made


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
    env: tuple[str, ...] = ()
    pipefail: bool = False
    errexit: bool = False


def steps(text: str, around: Step | None = None) -> tuple[Step, ...]:
    """The simple commands of `text` in written order; `around` is the step of a shell that was given `text`."""
    found: list[Step] = []
    try:
        start = around or Step()
        _walk(_parse(text), start, _State(start.directory, start.env), found)
    except Refused:
        return ()
    return tuple(found)


# -- grammar ----------------------------------------------------------------------------------------------------


def _parse(text: str) -> list[_Item]:
    return _items([*tokens_of(text), _END], 0, _END, 0)[0]


def _items(tokens: Tokens, i: int, closer: tuple[str, str], depth: int) -> tuple[list[_Item], int]:
    """Read a list of pipelines up to its closing token."""
    items: list[_Item] = []
    before = ""
    while tokens[i] != closer:
        if tokens[i] == _END:
            raise Refused
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


def _pipeline(tokens: Tokens, i: int, item: _Item, depth: int) -> int:
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


def _stage(tokens: Tokens, i: int, depth: int) -> tuple[Command | _Group, int]:
    """Read a group in brackets or a simple command, with its redirections."""
    group: _Group | None = None
    if tokens[i] in (("o", "("), ("w", "{")):
        closer = ("o", ")") if tokens[i][1] == "(" else ("w", "}")
        if depth >= _DEPTH:
            raise Refused
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
                raise Refused
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
        raise Refused
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
        found.append(replace(inner, words=stage.words, directory=shell.directory, env=shell.env))
        sets = tuple(filter(_ASSIGNMENT.match, stage.words))
        if stage.words[:1] == ("export",) or sets == stage.words:
            shell.env += sets


def _set(words: tuple[str, ...], state: _State) -> None:
    """`set -e`, `set -euo pipefail`, `set +e`, and the same options of `bash`."""
    for i, word in enumerate(words):
        flags = word[1:] if re.fullmatch("[-+][a-z]+", word) else ""
        if "e" in flags:
            state.errexit = word[0] == "-"
        if "o" in flags and words[i + 1 : i + 2] == ("pipefail",):
            state.pipefail = word[0] == "-"
