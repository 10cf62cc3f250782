"""What each reading command answers: text made to be read, and JSON with the contract's fields."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ef as library
from ef.cli.show_lists import prefixes
from ef.testing.damage import delete_record

from .conftest import SESSION, SHOPCART, Run, python

KEY = "test/pytest/status"
SESSION_ID = "589f58b8-922e-5750-af8c-bd89dedff1f4"
ANCHOR = "id kind key value authority channel lifecycle seq rule sources".split()
SOURCE = "stream seq part span digest quote".split()


def has(found: dict[str, Any], names: str) -> bool:
    return set(names.split()) <= set(found)


def test_sessions_is_a_table_with_short_ids(ef: Run) -> None:
    lines = ef("sessions").text.splitlines()
    assert lines[0].split()[:3] == ["session", "last", "(UTC)"]
    assert lines[1].startswith(
        "589f58b8  2026-03-14 11:52       186     345       1  Some customers"
    )
    assert lines[-1] == "1 session, and 1 sub-agent (--all lists them)"


def test_sessions_all_gives_sub_agents_an_id_that_works(ef: Run) -> None:
    row = ef("sessions", "--all").text.splitlines()[2]
    name = row.split()[0]
    assert ".agent-" in name
    assert ef("context", name, "--json").json["session"].startswith(name)


def test_sessions_in_json_has_them_all(ef: Run) -> None:
    found = ef("sessions", "--json").json["sessions"]
    assert len(found) == 2
    assert has(found[0], "session title format messages events folds first last")


def test_short_ids_are_the_shortest_that_still_name_one_session() -> None:
    names = ["aaaaaaaa-1", "aaaaaaaa-2", "b", "b.agent-12345678-9", "b.agent-12345679-9"]
    found = prefixes(names)
    assert found["aaaaaaaa-1"] == "aaaaaaaa-1"
    assert found["b"] == "b"
    assert found["b.agent-12345678-9"] == "b.agent-12345678"
    assert prefixes(["aaaaaaaaaa-1", "bbbbbbbbbbb"])["aaaaaaaaaa-1"] == "aaaaaaaa"


def test_sources_tells_what_was_imported(ef: Run) -> None:
    assert "219  292.4 kB" in ef("sources").text
    (found,) = ef("sources", "--json").json["sources"]
    assert has(found, "source path format sessions lines bytes digest notes")
    assert (found["lines"], found["bytes"]) == (219, SHOPCART.stat().st_size)


def test_export_gives_the_bytes_back(ef: Run) -> None:
    (found,) = ef("sources", "--json").json["sources"]
    for name in (found["source"], found["source"][:6], found["sessions"][0]):
        assert ef("export", name, "--original").out == SHOPCART.read_bytes()
    length = str(found["bytes"])
    assert ef("export", SESSION, "--original", "--length", length).out == SHOPCART.read_bytes()
    assert ef("export", SESSION, "--original", "--length", "5").code == 66


def test_context_lists_the_nodes_and_calls_its_tokens_estimated(ef: Run) -> None:
    lines = ef("context", SESSION).text.splitlines()
    assert "186 nodes" in lines[0]
    assert lines[0].endswith("tokens (estimated)")
    assert lines[3].split()[:4] == ["seq", "role", "channels", "tokens"]
    assert lines[7].split()[:4] == ["5", "user", "user_typed", "58"]
    assert max(len(line) for line in lines[3:]) <= 100


def test_context_in_json_holds_what_the_model_would_see(ef: Run) -> None:
    found = ef("context", SESSION, "--json").json
    assert has(found, "session at tokens nodes frontier messages digest")
    assert found["tokens"]["basis"] == "estimated"
    assert found["messages"][0]["role"] == "user"
    assert all(has(node, "node seq tokens") for node in found["nodes"])


def test_reading_writes_nothing(ef: Run, imported: Path) -> None:
    before = ef("verify", "--json").json["tip"]
    for words in (["context", SESSION], ["state", SESSION], ["audit", SESSION, KEY], ["sessions"]):
        assert ef(*words).code == 0
    assert ef("verify", "--json").json["tip"] == before


def test_state_tells_what_fails_before_what_passed_and_quotes_both(ef: Run) -> None:
    said = ef("state", SESSION).text
    places = [
        said.index(f"\n{title}") for title in ("Declared", "Failing as last seen", "Tests", "Files")
    ]
    assert places == sorted(places)
    at = said.index(f"  {KEY} = passed: 31 passed")
    assert said[at:].splitlines()[0].endswith("seq 341")
    assert said[at:].splitlines()[1] == '      "31 passed in 0.06s" (seq 340, tool)'
    failing = said[places[1] : places[2]]
    assert "rounding.py/outcome = exit unknown, outcome error" in failing
    assert KEY not in failing


def test_a_failing_run_names_its_tests(ef: Run) -> None:
    said = ef("state", SESSION, "--at", "294").text
    at = said.index(f"  {KEY} = failed: 2 failed, 29 passed")
    assert "      tests/test_timeout.py::test_configured_timeout" in said[at:].splitlines()


def test_what_a_later_whole_run_covers_is_counted_and_shown_when_asked_for(ef: Run) -> None:
    narrow = "test/pytest:-k=cap/status"
    said, everything = ef("state", SESSION).text, ef("state", SESSION, "--all").text
    assert narrow not in said
    assert "15 keys overtaken by a later run of the whole suite (--all)" in said
    assert narrow in everything
    assert ef("audit", SESSION, narrow, "--json").json["current"]["lifecycle"] == "stale"
    assert narrow in ef("state", SESSION, "--at", "225").text.split("Failing as last seen")[1]


def test_a_key_is_never_cut(ef: Run) -> None:
    keys = ef("state", SESSION, "--json").json["heads"]
    said = ef("state", SESSION, "--all").text
    assert all(key in said for key in keys)


def test_state_in_json_has_the_contracts_fields(ef: Run) -> None:
    found = ef("state", SESSION, "--json").json
    assert has(
        found, "session at digest heads constraints failures obligations decisions objective"
    )
    anchor = found["heads"][KEY]
    assert all(name in anchor for name in ANCHOR)
    assert all(name in anchor["sources"][0] for name in SOURCE)
    assert anchor["sources"][0]["quote"] == "31 passed in 0.06s"


def test_a_past_moment_is_chosen_by_seq_or_by_time_and_named(ef: Run) -> None:
    assert "as of seq 280" in ef("state", SESSION, "--at", "280").text
    assert ef("context", SESSION, "--at", "2026-03-14T09:30:00Z", "--json").json["at"] == 152
    # Recorded here only now: by that clock nothing was known then.
    words = ("state", SESSION, "--at", "2026-03-14T09:30:00Z", "--recorded", "--json")
    assert ef(*words).json["at"] == 0
    assert ef("audit", SESSION, KEY, "--at", "280", "--json").json["current"]["value"] == "failed"
    assert ef("state", SESSION, "--at", "346").code == 66


def test_replay_shows_a_moment_and_how_it_differs_from_now(ef: Run) -> None:
    said = ef("replay", SESSION, "--to", "280").text
    assert "to seq 280 of 345" in said
    then, since = said.split("Since then, up to seq 345")
    assert f"{KEY} = failed" in then
    assert f"~ {KEY}: failed -> passed" in since
    assert "seq 279 -> 341" in since
    # Of two maps what differs only.
    assert "test/pytest/counts: failed 2, passed 29 -> failed 0, passed 31 " in since
    assert "nothing: this is now" in ef("replay", SESSION, "--at", "345").text


def test_replay_in_json_holds_both_digests_with_context_and_state(ef: Run) -> None:
    found = ef("replay", SESSION, "--to", "280", "--json").json
    assert has(found, "session at context_digest state_digest context state since")
    assert found["context_digest"] == ef("context", SESSION, "--at", "280", "--json").json["digest"]
    assert found["state_digest"] == ef("state", SESSION, "--at", "280", "--json").json["digest"]


def test_the_difference_of_two_moments_names_old_and_new(ef: Run) -> None:
    said = ef("replay", SESSION, "--diff", "260", "300").text
    assert "0 appeared, 5 changed, 0 gone" in said
    assert f"~ {KEY}: passed -> failed" in said
    assert all(len(line) <= 100 for line in said.splitlines()[1:])
    assert ef("replay", SESSION, "--diff", "300", "260").text == said
    found = ef("replay", SESSION, "--diff", "260", "300", "--json").json
    assert has(found, "at context_digest state_digest from to appeared changed gone nodes")
    assert found["changed"][KEY]["from"]["value"] == "passed"


def test_audit_goes_down_to_the_bytes_and_along_the_chain(ef: Run) -> None:
    said = ef("audit", SESSION, KEY).text
    assert said.startswith(f"{KEY} = passed  as of seq 345\n")
    assert "rule observe/test-runs/1" in said
    assert "\n    | 31 passed in 0.06s\n" in said
    rows = [line.split() for line in said.splitlines() if "superseded by" in line]
    assert [row[1] for row in rows][:3] == ["323", "292", "279"]
    # Each was superseded by the next one, and by no other.
    assert [row[-1] for row in rows][:3] == ["341", "323", "292"]
    assert "verified 5 links" in said
    assert "-> tip seq 345" in said


def test_audit_in_json_has_the_contracts_fields_and_takes_an_anchors_id(ef: Run) -> None:
    found = ef("audit", SESSION, KEY, "--json").json
    assert has(found, "current sources history losers rule chain")
    assert has(found["chain"], "seq digest head")
    assert has(found["sources"][0], "seq digest role quote span")
    assert ef("audit", SESSION, found["current"]["id"], "--json").json == found


def test_audit_shows_a_quote_line_by_line_and_of_the_exact_bytes(ef: Run) -> None:
    found = ef("audit", SESSION, "test/pytest:-k=cap/status")
    lines = [line for line in found.text.splitlines() if line.startswith("    | ")]
    assert len(lines) == 3
    quote = ef("audit", SESSION, "test/pytest:-k=cap/status", "--json").json["sources"][0]["quote"]
    assert "\n".join(line[6:] for line in lines) == quote


@pytest.mark.parametrize(
    ("value", "stored", "shown"),
    [
        ("45", 45, "45"),
        ('"45"', "45", '"45"'),
        ("fast and loose", "fast and loose", "fast and loose"),
        ("true", True, "true"),
        ('{"a": [], "b": null}', {"a": [], "b": None}, "a none, b unknown"),
        ("NaN", "NaN", '"NaN"'),
        ("-5", -5, "-5"),
        ("[1, 2", "[1, 2", None),
        ('{"a": 1, "a": 2', '{"a": 1, "a": 2', None),
        ('"[[NaN]]"', "[[NaN]]", None),
        ("[" * 50, "[" * 50, None),
        ('{"a": "[[[[", "b": {"a": 1}}', {"a": "[[[[", "b": {"a": 1}}, None),
        ("-Infinity", "-Infinity", None),
    ],
)
def test_declare_takes_json_or_text(
    value: str, stored: Any, shown: str | None, ef: Run, copied: Path
) -> None:
    done = ef("declare", SESSION, "decision", "a/b/c", "--json", "--", value, store=copied)
    assert done.code == 0, done.err
    assert has(done.json, "anchor seq")
    assert done.json["anchor"]["value"] == stored
    if shown is not None:
        said = ef("state", SESSION, store=copied).text
        assert f"a/b/c = {shown}" in said.split("\nDeclared")[1].split("\nFailing")[0]


def test_declare_can_cite_and_say_why(ef: Run, copied: Path) -> None:
    words = ["declare", SESSION, "constraint", "api/cart/stable", "true", "--because", "released"]
    quote = ["--quote", "Do not change the public API", "--source", "5"]
    assert "declared at seq 346" in ef(*words, *quote, store=copied).text
    said = ef("audit", SESSION, "api/cart/stable", store=copied).text
    assert "because released" in said
    assert "    | Do not change the public API\n" in said
    assert "seq 5 (line 6 of source 814d1cdf01b9), user_typed" in said


def test_verify_tells_its_verdict_and_what_was_counted(ef: Run) -> None:
    done = ef("verify")
    assert done.code == 0
    assert done.text.startswith("sound\n  362 events, tip at position 361 (")
    assert "2 sessions, 1 source, 93 anchors" in done.text
    found = ef("verify", SESSION + "-922e-5750-af8c-bd89dedff1f4.agent", "--json").json
    assert has(found, "verdict ok events tip problems")
    # The chain is checked whole, the references of the one session only: this one has none.
    assert (found["verdict"], found["events"], found["anchors"]) == ("sound", 362, 0)


def test_verify_quick_says_what_it_left_out(ef: Run) -> None:
    assert "were not looked at" in ef("verify", "--quick").text
    assert "were not looked at" not in ef("verify").text


def test_an_empty_store_says_what_to_do(ef: Run, tmp_path: Path) -> None:
    store = tmp_path / "store"
    python(["-c", f"import ef; ef.open({str(store)!r}).close()"])
    for command in ("sessions", "sources"):
        assert "`ef import PATH` brings some in" in ef(command, store=store).text
        assert ef(command, "--json", store=store).json == {command: []}


HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202etxt\u2066 \u200b\x9b31m\r\nnext"


def hostile_session(path: Path) -> Path:
    """A transcript whose texts, tool names and paths try to speak to the terminal."""
    base = {"sessionId": "hostile", "timestamp": "2026-03-14T09:00:00.000Z", "version": "1"}
    call = {"type": "tool_use", "id": "c1", "name": "Read", "input": {"file_path": f"/x{HOSTILE}"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": f"1→{HOSTILE}"}
    records: list[dict[str, Any]] = [
        {"type": "user", "message": {"role": "user", "content": HOSTILE + "\ud800"}},
        {"type": "assistant", "message": {"role": "assistant", "id": "m1", "content": [call]}},
        {"type": "user", "message": {"role": "user", "content": [result]}},
    ]
    parent = None
    lines = []
    for n, record in enumerate(records):
        lines.append(json.dumps({**base, "uuid": f"u{n}", "parentUuid": parent, **record}))
        parent = f"u{n}"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_no_text_of_a_transcript_reaches_the_terminal_as_a_command(ef: Run, tmp_path: Path) -> None:
    store, path = tmp_path / "store", hostile_session(tmp_path / "hostile.jsonl")
    brought = ef("import", str(path), store=store)
    assert brought.code == 0, brought.err
    keys = list(ef("state", "hostile", "--json", store=store).json["heads"])
    assert any("\u202e" in key for key in keys), keys
    commands = [["sessions"], ["sources"], ["context", "hostile"], ["state", "hostile"]]
    commands += [["replay", "hostile", "--to", "2"], ["replay", "hostile", "--diff", "1", "9"]]
    commands += [["audit", "hostile", key] for key in keys]
    commands += [["audit", "hostile", HOSTILE], ["state", HOSTILE]]
    for words in commands:
        done = ef(*words, store=store)
        said = done.text + done.err
        assert said
        hidden = [c for c in said if c in HOSTILE + "\ud800" and not c.isprintable() and c != "\n"]
        assert not hidden, (words, hidden)
    assert "\\x1b]0;owned\\x07" in ef("context", "hostile", store=store).text
    assert "\\u202e" in ef("state", "hostile", store=store).text
    # The exact text is in the JSON, and that is ASCII.
    assert "\x1b[2J" in json.dumps(
        ef("context", "hostile", "--json", store=store).json, ensure_ascii=False
    ).replace("\\u001b", "\x1b")


def test_sessions_as_of_a_time_are_those_that_had_begun(ef: Run) -> None:
    none = ef("sessions", "--at", "2026-03-14T09:00:00Z", "--json").json["sessions"]
    some = ef("sessions", "--at", "2026-03-14T09:30:00Z", "--json").json["sessions"]
    assert none == []
    events = {s["session"]: s["events"] for s in some}
    assert 0 < events[SESSION_ID] < 345
    assert ef("sessions", "--at", "yesterday").code == 64


def test_a_damaged_session_is_listed_with_its_problem_beside_the_others(
    ef: Run, copied: Path
) -> None:
    sound = ef("sessions", "--json", store=copied).json["sessions"]
    assert all("problem" not in s for s in sound)
    with library.open(copied) as store:
        position = store.log.get(f"session/{SESSION_ID}", 100).position
    delete_record(copied, position)
    found = {s["session"]: s for s in ef("sessions", "--json", store=copied).json["sessions"]}
    assert "seq 100" in found[SESSION_ID]["problem"]
    assert len(found) == len(sound)
