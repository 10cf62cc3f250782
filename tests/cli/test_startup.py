"""Parsing is light and has no effect; mistakes in the words end with 64 and one message."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import ef as package
from ef.cli.commands import BY_NAME, COMMANDS, LATER
from ef.errors import EfError

from .conftest import Run, python

HEAVY = ("lmdb", "pydantic", "eventsourcing", "cbor2", "blake3", "ef.session", "asyncio")


@pytest.mark.parametrize("words", [[], ["--help"], ["state", "--help"], ["--version"], ["state"]])
def test_parsing_imports_nothing_heavy(words: list[str], ef: Run) -> None:
    script = (
        "import sys\nfrom ef.cli import main\nmain(sys.argv[1:])\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    assert python(["-c", script, *words]).err.endswith("[]\n")


def test_the_parent_of_a_worker_imports_nothing_heavy_either(imported: Path) -> None:
    script = (
        "import sys\nfrom ef.cli import main\ncode = main(sys.argv[1:])\n"
        f"print(code, [m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    assert python(["-c", script, "--store", str(imported), "sessions"]).err.endswith("0 []\n")


def test_a_heavy_import_would_be_seen() -> None:
    script = f"import sys, ef.session\nprint([m for m in {HEAVY!r} if m in sys.modules])"
    assert b"lmdb" in python(["-c", script]).out


def test_ef_alone_shows_where_to_begin(ef: Run) -> None:
    done = ef(store=None, env={"EF_STORE": "/some/where"})
    assert done.code == 0
    for words in ("ef import", "ef state SESSION", "ef audit", "ef replay", "ef verify", "--help"):
        assert words in done.text
    assert "/some/where" in done.text


def test_help_names_every_command_and_every_exit_code(ef: Run) -> None:
    said = ef("--help").text
    assert all(f"    {command.name} " in said for command in COMMANDS)
    assert all(f"{code}  " in said for code in _exit_codes(EfError))


def _exit_codes(kind: type[EfError]) -> set[int]:
    below = [_exit_codes(child) for child in kind.__subclasses__() if "ef." in child.__module__]
    return {kind.exit_code}.union(*below)


def test_each_command_explains_itself(ef: Run) -> None:
    for command in COMMANDS:
        done = ef(command.name, "--help")
        assert done.code == 0
        assert done.text.startswith(f"usage: ef {command.name}")
        assert command.examples[0] in done.text


def test_the_version_is_the_packages(ef: Run) -> None:
    assert ef("--version").text == f"ef {package.__version__}\n"
    assert ef("--version", "--json").json == {"version": package.__version__}


@pytest.mark.parametrize("name", sorted(LATER))
def test_a_command_of_a_later_version_is_named_as_such(name: str, ef: Run) -> None:
    assert name not in BY_NAME
    done = ef(name, "589f58b8", "--window", "9", "--json")
    assert done.code == 64
    assert done.err == f"ef: {name}: not in this version. `ef --help` lists what is\n"
    assert done.json["error"]["kind"] == "UsageError"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["stat"], "Did you mean `ef state`?"),
        (["zzz"], "there is no command 'zzz'"),
        (["--frob", "state"], "there is no option '--frob'"),
        (["state"], "required: SESSION"),
        (["state", "589f58b8", "more"], "unrecognized arguments: more"),
        (["state", "589f58b8", "--record"], "unrecognized arguments: --record"),
        (["replay", "589f58b8"], "--to/--at --diff is required"),
        (["replay", "589f58b8", "--to", "3", "--diff", "1", "2"], "not allowed with"),
        (["replay", "589f58b8", "--diff", "1"], "expected 2 arguments"),
        (["export", "x", "--length", "many"], "invalid int value"),
        (["export", "589f58b8"], "say --original"),
        (["import", "x", "--format", "zzz"], "invalid choice"),
        (["state", "589f58b8", "--at", "soon"], "neither a seq nor a time"),
        (["state", "589f58b8", "--at", "-3"], "neither a seq nor a time"),
        (["--store", "", "sessions"], "give the path of a folder"),
        (["--store"], "expected one argument"),
    ],
)
def test_wrong_use_ends_with_64_and_one_message(words: list[str], said: str, ef: Run) -> None:
    done = ef(*words)
    assert done.code == 64
    assert said in done.err
    assert done.err.count("\n") == 1
    assert not done.out
    in_json = ef(*words, "--json") if words != ["--store"] else ef("--json", *words)
    assert in_json.code == 64
    assert in_json.json["exit"] == 64
    assert in_json.json["error"]["message"] in in_json.err


def test_options_of_ef_stand_before_or_behind_the_command(ef: Run, imported: Path) -> None:
    store = ["--store", str(imported)]
    ways = (
        ["--json", *store, "sessions"],
        ["sessions", "--json", *store],
        ["--json", "sessions", f"--store={imported}"],
        [*store, "--json", "--", "sessions"],
    )
    answers = [ef(*words, store=None).json for words in ways]
    assert all(answer == answers[0] for answer in answers)
    # The later one of two stores counts, as with every option.
    assert ef("sessions", *store, store="/nowhere").code == 0


def test_the_store_is_that_of_the_environment_then_the_platforms(ef: Run, tmp_path: Path) -> None:
    for how in ({"store": None, "env": {"EF_STORE": ":memory:"}}, {"store": ":memory:"}):
        assert "would end with this command" in ef("sessions", **how).err
    given = ef("sessions", store=None, env={"EF_STORE": str(tmp_path / "mine")})
    assert str(tmp_path / "mine") in given.err
    if os.name == "posix":
        home = {"HOME": str(tmp_path)}
        share = {**home, "XDG_DATA_HOME": str(tmp_path / "share")}
        assert str(tmp_path / "share/epistemic-fold") in ef("sessions", store=None, env=share).err
        assert f"{tmp_path}/" in ef("sessions", store=None, env=home).err
        assert "epistemic-fold" in ef("sessions", store=None, env=home).err
    assert not list(tmp_path.iterdir())


def test_a_store_by_url_is_not_in_this_version(ef: Run) -> None:
    for command in ("sessions", "verify"):
        done = ef(command, store="postgresql://localhost/ef")
        assert done.code == 69
        assert "not in this version" in done.err
