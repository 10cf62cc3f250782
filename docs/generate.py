"""Write the pages that are made from the code: python docs/generate.py [--check]

    docs/events.md   from ef.codec.kinds, the closed table of event kinds
    docs/errors.md   from ef.errors: the docstring of a class is its message
    docs/cli.md      from ef.cli.reference, where that is there
    docs/formats.md  from ef.importers.formats, the table of formats
    docs/hostile-input.md   from the committed outcomes of hostile files, which a test holds

With --check nothing is written; a page that is out of step is named and the exit code is 1.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

from ef import errors, events  # noqa: E402
from ef.codec.kinds import KINDS, KindSpec  # noqa: E402

MADE = "<!-- Made by docs/generate.py from the code. Edit there. -->\n"
BRANCHES = (
    (errors.CallerError, "The caller's", "What was asked for cannot be done as it was asked."),
    (errors.StoreError, "The store's", "The store, its disk or another process is in the way."),
    (errors.DamageError, "Damage", "The bytes are not what was written."),
)


# -------------------------------------------------------------------------------------------------------------- events


def first_line(thing: type) -> str:
    """A docstring's first sentence or line, on one line."""
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def type_name(hint: object) -> str:
    """A field's type in the words of the format: text, bytes, integer, or the name of a type of ef.events."""
    text = hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint))
    for word, plain in (
        (r"\bstr\b", "text"),
        (r"\bint\b", "integer"),
        (r"\bbool\b", "boolean"),
        (r"tuple\[(.+), \.\.\.\]", r"list of \1"),
        (r"dict\[text, Any\]", "map"),
        (r"\bAny\b", "any value"),
        (r" \| None", " or null"),
        (r" \| ", " or "),
    ):
        text = re.sub(word, plain, text)
    return text


def fields_table(kind: type) -> Iterator[str]:
    """The fields of a frozen type as table rows."""
    yield "| field | type |\n|---|---|\n"
    for field in dataclasses.fields(kind):
        yield f"| `{field.name}` | {type_name(field.type)} |\n"


def event_section(spec: KindSpec) -> Iterator[str]:
    """One kind of event."""
    yield f"### {spec.name}\n\n{first_line(spec.type)}\n\n"
    required = "required" if spec.required else "not required"
    yield f"Version {spec.version}, {required}, body: "
    if spec.raw:
        yield "the bytes as they came, and nothing else.\n\n"
        return
    yield "a canonical CBOR map.\n\n"
    yield from fields_table(spec.type)
    yield "\n"


def events_page() -> Iterator[str]:
    """The event catalogue."""
    yield f"# Events\n\n{MADE}\n"
    yield (
        "The kinds of event that this version writes and reads. The record around them is described in\n"
        "[log-format.md](log-format.md). A kind that is *required* and unknown to a reader makes the stream readable\n"
        "and exportable, but not projectable; one that is not required is passed over.\n\n"
    )
    yield "| kind | version | required | body | what it says |\n|---|---|---|---|---|\n"
    for spec in KINDS:
        required, body = "yes" if spec.required else "no", "raw" if spec.raw else "CBOR"
        name = f"[{spec.name}](#{spec.name.lower()})"
        yield f"| {name} | {spec.version} | {required} | {body} | {first_line(spec.type)} |\n"
    yield "\n## The kinds\n\n"
    for spec in KINDS:
        yield from event_section(spec)
    yield "## Types in fields\n\n"
    for kind in (events.Anchor, events.AnchorKey, events.Rule, events.SourceRef):
        yield f"### {kind.__name__}\n\n{first_line(kind)}\n\n"
        if kind is events.AnchorKey:
            yield "Stored as a list of three texts: namespace, entity, property.\n\n"
        yield from fields_table(kind)
        yield "\n"
    for names in (events.Kind, events.Authority, events.Channel):
        yield f"### {names.__name__}\n\n{first_line(names)}\n\n"
        yield ", ".join(f"`{each.value}`" for each in names) + ".\n\n"


# -------------------------------------------------------------------------------------------------------------- errors


def message(kind: type[errors.EfError]) -> str:
    """An error's message; the names in braces are the facts that it is raised with."""
    return " ".join((kind.__doc__ or "").split())


def below(kind: type[errors.EfError]) -> Iterator[type[errors.EfError]]:
    """The classes of a branch, in the order of the file."""
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield child
            yield from below(child)


def errors_page() -> Iterator[str]:
    """The errors, by whose fault they are."""
    yield f"# Errors\n\n{MADE}\n"
    yield (
        "Every error that a user can meet is an `ef.EfError`. The words in braces are the facts that it is raised\n"
        "with; each is an attribute of the error. The command line ends with the exit code, and `exit_code` holds it\n"
        "in Python.\n\n"
    )
    for branch, name, said in BRANCHES:
        yield f"## {name}\n\n{said}\n\n| class | exit code | message |\n|---|---|---|\n"
        for kind in below(branch):
            text = message(kind).replace("|", "\\|")
            yield f"| `{kind.__name__}` | {kind.exit_code} | {text} |\n"
        yield "\n"
    yield "## Others\n\n| class | exit code | message |\n|---|---|---|\n"
    branches = [branch for branch, _, _ in BRANCHES]
    alone = [kind for kind in errors.EfError.__subclasses__() if kind not in branches]
    for kind in (errors.EfError, *alone):
        yield f"| `{kind.__name__}` | {kind.exit_code} | {message(kind)} |\n"
    yield "\n"
    yield "## Exit codes\n\n`ef verify` ends with 0 (sound), 1 (damaged), 2 (unreadable) or 3 (rolled back).\n\n"
    codes: dict[int, list[str]] = {}
    for kind in (errors.EfError, *below(errors.EfError)):
        if kind not in branches:
            codes.setdefault(kind.exit_code, []).append(f"`{kind.__name__}`")
    yield "| exit code | classes |\n|---|---|\n"
    for code in sorted(codes):
        yield f"| {code} | {', '.join(codes[code])} |\n"


# ------------------------------------------------------------------------------------------------------- hostile input


HOSTILE = DOCS.parent / "tests" / "golden" / "formats" / "hostile.json"


def hostile_page() -> Iterator[str]:
    """How each hostile file ends, by case; formats with the same end stand together."""
    table: dict[str, dict[str, str]] = json.loads(HOSTILE.read_text(encoding="utf-8"))
    seeds = sorted({seed for ends in table.values() for seed in ends})
    ends = [end for case in table.values() for end in case.values()]
    refused = sum(not end.startswith("imported") for end in ends)
    yield f"# Hostile input\n\n{MADE}\n"
    yield (
        "A session file is a stranger's: it may be cut, forged, or made to break its reader. For each case a small\n"
        "valid session of each format is spoilt and imported; a test holds every outcome to this table. An import\n"
        "keeps all bytes exactly, takes in every record that is whole, notes what is odd with its line and byte\n"
        "offset, and adds nothing when it is done again. A refusal says why, and keeps nothing.\n\n"
        f"{len(table)} cases, {len(seeds)} samples ({', '.join(seeds)}): {len(ends) - refused} imports,\n"
        f"{refused} refusals. Where a note stands behind an import, it is the note's kind.\n\n"
        "| case | outcome |\n|---|---|\n"
    )
    for case, outcomes in table.items():
        by_end: dict[str, list[str]] = {}
        for seed, end in sorted(outcomes.items()):
            by_end.setdefault(end, []).append(seed)
        common = max(by_end, key=lambda end: len(by_end[end]))
        said = [common] + [
            f"{', '.join(seeds)}: {end}" for end, seeds in by_end.items() if end != common
        ]
        yield f"| {case} | {'<br>'.join(said)} |\n"


# ------------------------------------------------------------------------------------------------------------ all pages


# ------------------------------------------------------------------------------------------------------------- formats


def formats_page() -> Iterator[str]:
    """What each format can and cannot tell."""
    from ef.importers.formats import UNSUPPORTED, Tells, format_of, names

    found = [form for form in map(format_of, names()) if form is not None]
    yield f"# Formats\n\n{MADE}\n"
    yield (
        "What is read, and what each format can tell. A file's format is found from its first records; `--format`\n"
        "says it where that fails. What a format does not tell is unknown, and shown so.\n\n"
    )
    yield "| format | what it is | a file is |\n|---|---|---|\n"
    for form in found:
        if form.name not in UNSUPPORTED:
            yield f"| `{form.name}` | {form.title} | {_FORMS[form.form]} |\n"
    yield "\n## What each tells\n\n"
    fields = Tells._fields
    yield f"| format | {' | '.join(fields)} |\n|{'---|' * (len(fields) + 1)}\n"
    for form in found:
        yield f"| `{form.name}` | {' | '.join(form.tells)} |\n"
    yield (
        "\n## Not supported\n\nRead as their programs' source code says, and tried on no file that such a program\n"
        "wrote: tell us what yours shows.\n\n| format | what it is |\n|---|---|\n"
    )
    for form in found:
        if form.name in UNSUPPORTED:
            yield f"| `{form.name}` | {form.title} |\n"


_FORMS = {"lines": "JSON lines", "document": "one JSON document", "database": "a SQLite database"}


def pages() -> dict[str, str]:
    """Name -> text of each page that is made from the code."""
    made = {"events.md": "".join(events_page()), "errors.md": "".join(errors_page())}
    made["formats.md"] = "".join(formats_page())
    if HOSTILE.is_file():
        made["hostile-input.md"] = "".join(hostile_page())
    if importlib.util.find_spec("ef.cli.reference"):
        reference = importlib.import_module("ef.cli.reference").reference()
        made["cli.md"] = reference
    return {name: text.rstrip("\n") + "\n" for name, text in made.items()}


def main(arguments: list[str]) -> int:
    """Write the pages, or with --check say which are out of step."""
    stale = [
        name
        for name, text in pages().items()
        if not (DOCS / name).is_file() or (DOCS / name).read_text(encoding="utf-8") != text
    ]
    if arguments == ["--check"]:
        for name in stale:
            print(f"docs/{name} is out of step: run python docs/generate.py", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        (DOCS / name).write_text(pages()[name], encoding="utf-8")
        print(f"docs/{name} written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
