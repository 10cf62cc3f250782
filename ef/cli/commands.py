"""The commands as a table: the parsers and the reference are both made from it.

A NamedTuple and not a dataclass: `dataclasses` alone would double the time that `ef --help` takes.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Argument(NamedTuple):
    """One argument: its flags (one name without dashes for a positional), its help, argparse's own options."""

    flags: tuple[str, ...]
    help: str
    options: dict[str, Any] = {}  # noqa: RUF012  (a NamedTuple's default; nobody writes to it)


class Command(NamedTuple):
    """One command. `run` is module:function below ef.cli; `one_of` are arguments of which exactly one is given."""

    name: str
    does: str
    run: str
    arguments: tuple[Argument, ...] = ()
    one_of: tuple[Argument, ...] = ()
    more: str = ""
    fields: str = ""
    examples: tuple[str, ...] = ()


STORE = Argument(
    ("--store",),
    "the store: a folder (default: $EF_STORE, else the platform's data folder)",
    {"metavar": "PATH"},
)
JSON = Argument(("--json",), "exactly one JSON object on stdout", {"action": "store_true"})
SESSION = Argument(("SESSION",), "a session's id, or the beginning of it if only one begins so")
AT = Argument(
    ("--at",),
    "as of this event (a seq), or as of this time (ISO 8601, UTC unless it says otherwise)",
    {"metavar": "SEQ|TIME"},
)
EVERYTHING = Argument(
    ("--all",), "every key with its quote (JSON always has all)", {"action": "store_true"}
)
RECORDED = Argument(
    ("--recorded",),
    "a TIME counts by when events were recorded here, not by when they are said to have occurred",
    {"action": "store_true"},
)
FORMAT = Argument(
    ("--format",),
    "the files' format (it is found out without this; `ef formats` lists them)",
    {"metavar": "FORMAT"},
)
REDACT = Argument(
    ("--redact",),
    "replace secrets before anything is stored (needs the extra `redact`)",
    {"action": "store_true"},
)
PROVIDERS = ("anthropic", "openai", "responses", "gemini")
KINDS = "objective constraint decision value artifact evidence failure obligation".split()

COMMANDS = (
    Command(
        "import",
        "bring session files in; again: only what is new",
        "do_import:run",
        (
            Argument(("PATH",), "a session file, or a folder to look through", {"nargs": "+"}),
            Argument(
                ("--session",), "the id to give the session, instead of its own", {"metavar": "ID"}
            ),
            FORMAT,
            REDACT,
        ),
        more="In a folder every file below it that may hold a session is tried, those of sub-agents after the "
        "sessions that began them; what is no session is counted and passed over. Of a folder that agents worked in "
        "the sessions that Claude Code keeps are imported. An import that was ended goes on where it was. "
        "A file that you named and that is refused ends the command with 65; the others are imported all the same.",
        fields="sessions[]{session, format, source, messages, events, new_events, notes[]{line, offset, kind, text}}, "
        "sources[]{source, path, format, relation, sessions[], records, new_events, notes[]}, "
        "refused[]{source, reason, named}",
        examples=("ef import session.jsonl", "ef import ~/.claude ~/.codex"),
    ),
    Command(
        "watch",
        "follow sessions as they grow",
        "do_watch:run",
        (
            Argument(("PATH",), "a session file, or a folder of them", {"nargs": "+"}),
            FORMAT,
            REDACT,
            Argument(
                ("--for",),
                "end after so many seconds (default: with Ctrl-C)",
                {"metavar": "SECONDS", "type": float, "dest": "seconds"},
            ),
        ),
        more="What is added to a file is in the log, and so in `ef state` and all else, within a second. Files that "
        "are rotated, cut, rewritten or new are seen; started again it goes on with what came meanwhile. With --json "
        "each change is one JSON object on a line of its own.",
        fields="path, source, format, relation, sessions[], new_events, error (of each change)",
        examples=("ef watch ~/.claude/projects", "ef watch session.jsonl --json"),
    ),
    Command(
        "formats",
        "the formats that are read",
        "do_watch:formats",
        fields="formats[]{format, title, form, supported, "
        "tells{ids, groups, order, usage, errors, compaction, subagents, images}}",
        examples=("ef formats",),
    ),
    Command(
        "sources",
        "what was imported",
        "do_store:sources",
        fields="sources[]{source, path, format, sessions[], lines, bytes, digest, complete, notes[]}",
        examples=("ef sources",),
    ),
    Command(
        "export",
        "a session in a provider's format, or a source byte for byte",
        "do_export:run",
        (
            Argument(
                ("SOURCE",),
                "with --format a session, else a source's id or its beginning, or the session of only one",
            ),
            Argument(
                ("--format",),
                "the context as this provider takes it: " + ", ".join(PROVIDERS),
                {"choices": PROVIDERS, "metavar": "FORMAT"},
            ),
            Argument(
                ("--all",), "the whole history, and not the context", {"action": "store_true"}
            ),
            AT,
            RECORDED,
            Argument(
                ("--original",), "the raw bytes as they were imported", {"action": "store_true"}
            ),
            Argument(
                ("--redacted",),
                "of a source that was redacted: the bytes as they were stored",
                {"action": "store_true"},
            ),
            Argument(
                ("--length",),
                "as it was when it had N bytes (each import of a grown file is kept)",
                {"metavar": "N", "type": int},
            ),
        ),
        more="With --format one JSON object is written, with or without --json; its messages alone are valid in a "
        "request, and what could not be carried is counted (docs/exports.md). With --original nothing is written "
        "before all of it was read and its digest verified; the bytes stay raw, and with --json an error is one JSON "
        "object.",
        fields="with --format: format, session, at, all, system, messages[], left_out{kind: n}, as_text{kind: n}, "
        "renamed{kind: n}; with --original: (raw bytes)",
        examples=(
            "ef export 589f58b8 --format anthropic > request.json",
            "ef export 814d1cdf --original > session.jsonl",
        ),
    ),
    Command(
        "sessions",
        "what the store holds",
        "do_store:sessions",
        (
            Argument(
                ("--all",),
                "sub-agents too, each with its id (JSON always has all)",
                {"action": "store_true"},
            ),
            Argument(("--at",), "as of then: those that had begun", {"metavar": "TIME"}),
            RECORDED,
        ),
        fields="sessions[]{session, title, format, relation, messages, events, folds, first, last}",
        examples=("ef sessions",),
    ),
    Command(
        "context",
        "what the model would see; never writes",
        "do_session:context",
        (SESSION, AT, RECORDED),
        fields="session, at, tokens{value, basis}, nodes[]{node, seq, tokens, role, channels[]}, frontier, "
        "compactions, system, messages[], left_out{kind: n}, digest",
        examples=("ef context 589f58b8", "ef context 589f58b8 --at 120 --json"),
    ),
    Command(
        "state",
        "what holds, each value with its evidence",
        "do_session:state",
        (SESSION, AT, RECORDED, EVERYTHING),
        fields="session, at, digest, heads{key: anchor}, contested{key: anchor}, constraints[], failures[], "
        "obligations[], decisions[], objective; anchor: id, kind, key, value, unit, authority, channel, lifecycle, "
        "seq, rule, because, supersedes, superseded_by, sources[]{stream, seq, part, span, digest, role, kind, quote}",
        examples=("ef state 589f58b8", "ef state 589f58b8 --at 2026-03-14T10:00:00Z"),
    ),
    Command(
        "replay",
        "a past moment, or what changed between two",
        "do_session:replay",
        (SESSION, RECORDED, EVERYTHING),
        one_of=(
            Argument(
                ("--to", "--at"),
                "that moment: its context and state, and how they differ from now",
                {"metavar": "SEQ|TIME"},
            ),
            Argument(
                ("--diff",),
                "what changed from moment A to moment B (they are put in order)",
                {"nargs": 2, "metavar": ("A", "B")},
            ),
        ),
        fields="session, at, context_digest, state_digest; with --to: context, state, since; "
        "with --diff: from, to, appeared, changed, gone, nodes[], digests",
        examples=("ef replay 589f58b8 --to 120", "ef replay 589f58b8 --diff 120 345"),
    ),
    Command(
        "audit",
        "where a value comes from, all the way down",
        "do_session:audit",
        (
            SESSION,
            Argument(("KEY",), "namespace/entity/property, or an anchor's id (an:…)"),
            AT,
            RECORDED,
        ),
        fields="session, key, at, current, sources[]{seq, digest, role, quote, span}, history[], losers[], rule, "
        "chain{seq, digest, from, links, head{seq, digest}}",
        examples=("ef audit 589f58b8 test/pytest/status",),
    ),
    Command(
        "declare",
        "state a norm or a decision, as the operator",
        "do_session:declare",
        (
            SESSION,
            Argument(("KIND",), "what it is: " + ", ".join(KINDS), {"metavar": "KIND"}),
            Argument(("KEY",), "namespace/entity/property, e.g. config/server/timeout"),
            Argument(("VALUE",), "JSON where it parses as JSON, else text"),
            Argument(("--quote",), "the exact words that ground it", {"metavar": "TEXT"}),
            Argument(
                ("--source",), "the event that holds the quote", {"metavar": "SEQ", "type": int}
            ),
            Argument(("--because",), "why", {"metavar": "TEXT"}),
        ),
        more="A value that begins with a dash goes behind --, and so does whatever follows it. JSON that has no one "
        "meaning is refused: a key twice in a map, NaN inside a list or map, nesting deeper than 32.",
        fields="session, seq, anchor{id, kind, key, value, …}",
        examples=(
            "ef declare 589f58b8 value config/server/timeout 45",
            'ef declare 589f58b8 constraint api/cart/stable true --quote "Do not change the public API" --source 5',
        ),
    ),
    Command(
        "verify",
        "bytes, chain, references, projections, tip",
        "do_store:verify",
        (
            Argument(
                ("SESSION",),
                "check the references of this session only (the chain is always checked whole)",
                {"nargs": "?"},
            ),
            Argument(("--quick",), "digests and chain only", {"action": "store_true"}),
        ),
        more="Works on any state of the folder. Ends with 0 sound, 1 damaged, 2 unreadable, 3 rolled back.",
        fields="verdict, ok, events, tip{position, seq, digest}, sessions, sources, anchors, "
        "problems[]{what, where, stream, first_bad_seq}, notes[]",
        examples=("ef verify", "ef verify --quick"),
    ),
    Command(
        "rebuild",
        "projections from the log anew",
        "do_rebuild:run",
        (
            Argument(
                ("SESSION",),
                "the projections of this session only (default: of all)",
                {"nargs": "?"},
            ),
        ),
        more="Snapshots of projections lie beside the log and only save time. Each is compared with what the log "
        "says, then all are made anew. Nothing is appended. A session that cannot be projected is named with its "
        "problem, and its snapshots end before it.",
        fields="projections[]{session, name, events, seconds, digest, compared, differed[], kept}",
        examples=("ef rebuild", "ef rebuild 589f58b8 --json"),
    ),
    Command(
        "backup",
        "a consistent, verified copy while others write",
        "do_care:backup",
        (
            Argument(
                ("--out",),
                "the new folder of the copy; what is there already is never touched",
                {"metavar": "PATH", "required": True},
            ),
        ),
        more="The copy is compact and as of one moment. It is verified in full before it appears at its place, and a "
        "copy that could not be made leaves nothing behind. It is a store like any other: put it in the place of "
        "the old one, or use it with --store. Snapshots of projections are left out and made anew.",
        fields="path, events, tip{position, seq, digest}, bytes",
        examples=("ef backup --out /mnt/disk/agent.ef",),
    ),
    Command(
        "doctor",
        "versions, files, space, users, configuration",
        "do_care:doctor",
        more="Changes nothing and waits for nothing: a writer that is stopped or hangs is named. Ends with 0 when no "
        "finding is an error, else with 69.",
        fields="findings[]{level ok|note|warning|error, what, remedy}",
        examples=("ef doctor", "ef doctor --json"),
    ),
)
BY_NAME = {command.name: command for command in COMMANDS}

LATER = frozenset(
    """
    fold simulate search recall status line mode transition retire observe report proof bundle salvage
    fork crashtest
    """.split()
)
"""Commands that the design names and this version does not have: one message for all of them."""

EXITS = (
    (0, "done; verify: sound"),
    (1, "damaged"),
    (2, "unreadable"),
    (3, "rolled back"),
    (64, "the command was used wrongly, or is not in this version"),
    (65, "input refused"),
    (66, "not found"),
    (69, "the store is unavailable"),
    (70, "our own fault"),
    (73, "cannot write"),
    (75, "busy, or the outcome is unknown: try again"),
    (77, "not allowed"),
    (130, "interrupted"),
)
