"""The reference of the command line as Markdown, from the same table as the parsers."""

from __future__ import annotations

from collections.abc import Iterator

from .commands import COMMANDS, EXITS, JSON, LATER, STORE, Argument, Command

MADE = "<!-- Made by docs/generate.py from ef/cli/commands.py. Edit there. -->"
BEGIN = """\
`ef [--store PATH] [--json] COMMAND …`; `--store` and `--json` may also stand behind the command. `ef` alone shows where
to begin, `ef COMMAND --help` explains one command.

Without `--json` the answer is text for people: colours on a terminal only (and not with `NO_COLOR`), as wide as the
terminal, progress on stderr for what takes over a second. What a transcript holds is shown with control characters,
direction overrides and characters without width as visible escapes such as `\\x1b` and `\\u202e`.

With `--json` exactly one JSON object in ASCII goes to stdout. An error is a message on stderr; with `--json` it is also
the object `{"error": {"kind", "message", "facts"}, "exit"}`.

The store is `--store`, else `$EF_STORE`, else `epistemic-fold` in the platform's data folder (`$XDG_DATA_HOME` or
`~/.local/share`; `~/Library/Application Support` on macOS). `EF_DEBUG=1` shows tracebacks of unexpected errors.

`SESSION` may be the beginning of an id, if only one begins so; a session wins over its own sub-agents. A moment is
a seq or a time in ISO 8601, UTC unless it says otherwise. A time means the events up to the last one that had
occurred by then; with `--recorded`, that had been recorded here by then. The answer says which seq that was.

A value that begins with a dash goes behind `--`, and options go before it."""


def reference() -> str:
    """The whole page."""
    return "\n".join(_lines()).rstrip("\n") + "\n"


def usage(command: Command) -> str:
    """How a command is written: positionals in their order, options in brackets."""
    words = [_usage(argument) for argument in command.arguments]
    if command.one_of:
        words.append("(" + " | ".join(_spelled(a, a.flags[0]) for a in command.one_of) + ")")
    return " ".join([f"ef {command.name}", *words])


def _lines() -> Iterator[str]:
    yield from ("# The command line", "", MADE, "", BEGIN, "")
    yield from ("| command | does |", "|---|---|")
    for command in COMMANDS:
        yield f"| [`{command.name}`](#ef-{command.name}) | {_cell(command.does)} |"
    yield from ("", "Everywhere:", "")
    yield from _table((STORE, JSON))
    for command in COMMANDS:
        yield from _command(command)
    yield from ("## Exit codes", "", "| code | meaning |", "|---|---|")
    for code, meaning in EXITS:
        yield f"| {code} | {meaning} |"
    yield from (
        "",
        "Each error and its code: [errors.md](errors.md).",
        "",
        "## Not in this version",
        "",
    )
    yield ", ".join(f"`{name}`" for name in sorted(LATER)) + ": one message, exit code 64."


def _command(command: Command) -> Iterator[str]:
    yield from (f"## ef {command.name}", "", f"    {usage(command)}", "")
    yield command.does[0].upper() + command.does[1:] + "."
    if command.more:
        yield from ("", command.more)
    yield ""
    arguments = (*command.arguments, *command.one_of)
    if arguments:
        yield from _table(arguments)
    json = command.fields if command.fields.startswith("(") else f"`{command.fields}`"
    yield from (f"JSON: {json}", "")
    yield from (*(f"    {line}" for line in command.examples), "")


def _table(arguments: tuple[Argument, ...]) -> Iterator[str]:
    yield from ("| argument | meaning |", "|---|---|")
    for argument in arguments:
        spelled = ", ".join(f"`{_spelled(argument, flag)}`" for flag in argument.flags)
        choices = argument.options.get("choices")
        known = f" ({', '.join(choices)})" if choices else ""
        yield f"| {spelled.replace('|', chr(92) + '|')} | {_cell(argument.help)}{known} |"
    yield ""


def _usage(argument: Argument) -> str:
    name = argument.flags[0]
    if name.startswith("-"):
        return f"[{_spelled(argument, name)}]"
    many = argument.options.get("nargs")
    return {"+": f"{name}…", "?": f"[{name}]"}.get(str(many), name)


def _spelled(argument: Argument, flag: str) -> str:
    named = argument.options.get("metavar")
    if not flag.startswith("-") or named is None:
        return flag
    names: tuple[str, ...] = (named,) if isinstance(named, str) else named
    return " ".join((flag, *names))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
