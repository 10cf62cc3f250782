"""From words to a namespace. Mistakes raise UsageError; nothing here ends the process or looks at a store."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Protocol

from ..errors import UsageError
from .commands import BY_NAME, COMMANDS, EXITS, JSON, LATER, STORE, Argument, Command

SHORT = """\
ef: what an agent saw and did, what holds now, and why.

  ef import session.jsonl      bring a session in (or a folder of them)
  ef sessions                  what the store holds
  ef state SESSION             what holds now, each value with its evidence
  ef audit SESSION KEY         where a value comes from, down to the bytes
  ef replay SESSION --to 120   that moment (--diff A B: what changed)
  ef verify                    that nothing was lost or altered

SESSION may be the beginning of an id. `ef --help` lists all commands and
`ef COMMAND --help` explains one. The store is {store}
(--store or $EF_STORE choose another).
"""


GLOBAL = ("--json", "--version", "-h", "--help")


class _Parser(argparse.ArgumentParser):
    """argparse that raises UsageError instead of ending the process, and prints help by the one way out."""

    say: Callable[[str], None]

    def error(self, message: str) -> NoReturn:
        command = self.prog.removeprefix("ef").strip()
        where = f"{command}: " if command else ""
        raise UsageError(detail=f"{where}{message}. `{self.prog} --help` shows its use")

    def print_help(self, file: Any = None) -> None:
        type(self).say(self.format_help())


def command_word(words: Sequence[str]) -> str | None:
    """The first word that is no option of ef itself: the command, looked at before argparse can misread it."""
    rest = iter(words)
    for word in rest:
        if word == "--store":
            next(rest, None)
        elif word == "--":
            return next(rest, None)
        elif word not in GLOBAL and not word.startswith("--store="):
            return word
    return None


def _without_leading_dashes(words: Sequence[str]) -> list[str]:
    """A -- before the command says nothing, and argparse would take it for the command."""
    given = list(words)
    if "--" in given and command_word(given[: given.index("--")]) is None:
        given.remove("--")
    return given


def wants_json(words: Sequence[str]) -> bool:
    """Whether --json stands anywhere before a bare --: also errors of parsing answer in JSON then."""
    before = list(words)[: list(words).index("--")] if "--" in words else words
    return "--json" in before


def parse(words: Sequence[str], say: Callable[[str], None]) -> argparse.Namespace:
    """The namespace of a command line. Raises UsageError; SystemExit(0) after a help text went to `say`."""
    name = command_word(words)
    if name is not None and name.startswith("-"):
        raise UsageError(detail=f"there is no option {name!r}. `ef --help` lists them")
    if name in LATER:
        raise UsageError(detail=f"{name}: not in this version. `ef --help` lists what is")
    if name is not None and name not in BY_NAME:
        import difflib

        near = difflib.get_close_matches(name, BY_NAME, 1)
        meant = f" Did you mean `ef {near[0]}`?" if near else ""
        raise UsageError(detail=f"there is no command {name!r}.{meant} `ef --help` lists them")
    _Parser.say = say
    return build().parse_args(_without_leading_dashes(words))


def build() -> argparse.ArgumentParser:
    """The parser of all commands."""
    common = _Parser(add_help=False)
    for argument in (STORE, JSON):
        # SUPPRESS: what was said before the command stays when it is not said again behind it.
        _add(common, argument, default=argparse.SUPPRESS)
    parser = _Parser(
        prog="ef",
        description="What an agent saw and did, what holds now, and why.",
        epilog="exit codes:\n"
        + "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXITS)
        + "\n\n`ef` alone shows where to begin.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[common],
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="show the version")
    below = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for command in COMMANDS:
        child = below.add_parser(
            command.name,
            help=command.does,
            description=describe(command),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            epilog="examples:\n" + "\n".join(f"  {line}" for line in command.examples),
            parents=[common],
            allow_abbrev=False,
        )
        for argument in command.arguments:
            _add(child, argument)
        if command.one_of:
            group = child.add_mutually_exclusive_group(required=True)
            for argument in command.one_of:
                _add(group, argument)
    return parser


def describe(command: Command) -> str:
    """What a command does as a sentence, and what else there is to know, wrapped."""
    import textwrap

    first = command.does[0].upper() + command.does[1:] + "."
    return "\n\n".join(textwrap.fill(text, 78) for text in (first, command.more) if text)


class _Takes(Protocol):
    """A parser, or a group of one."""

    def add_argument(self, *flags: str, **options: Any) -> argparse.Action: ...


def _add(parser: _Takes, argument: Argument, **more: Any) -> None:
    # argparse formats help with %: nothing in the table means that.
    text = argument.help.replace("%", "%%")
    parser.add_argument(*argument.flags, help=text, **{**argument.options, **more})
