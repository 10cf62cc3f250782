"""What is appended through a session that redacts: no file of the store ever holds the secret, no answer, no error, no
metric. Each search has its twin: without a redactor the same search finds it.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ef
from ef.errors import InputRefused, KeyConflict, OriginalRedacted, UsageError
from ef.events import Redacted
from ef.importers.keyfinder import KeyFinder
from ef.importers.redaction import LOOKED, REDACTED, WITHHELD
from ef.integrations.opentelemetry import instrument
from ef.log.items import event_of
from ef.session.secrets import refuse_original
from tests.importing.redaction_corpus import KEYS
from tests.importing.test_redaction_corpus import planted

SECRET = planted(next(key for key in KEYS if key.name == "github token"), "store")[0]
MARK = "[redacted:github-token]"
PADDING = (
    "The kettle is on and the cups are out. " * 60
)  # long enough for a body that is compressed
STREAM = "session/tea"


def holds(folder: Path, secret: str) -> list[str]:
    """The files below a folder that hold a secret, as it is or inside of what zlib made smaller."""
    found: list[str] = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            if any(secret.encode() in piece for piece in (data, *inflated(data))):
                found.append(path.name)
    return found


def inflated(data: bytes) -> Iterator[bytes]:
    for start in re.finditer(rb"\x78[\x01\x5e\x9c\xda]", data):
        try:
            yield zlib.decompressobj().decompress(data[start.start() :], 1 << 20)
        except zlib.error:
            continue


def messages(secret: str) -> list[dict[str, Any]]:
    use = {
        "type": "tool_use",
        "id": "t1",
        "name": "Bash",
        "input": {"command": f"login --token {secret}"},
    }
    result = {"type": "tool_result", "tool_use_id": "t1", "content": f"{PADDING}\nhello {secret}"}
    return [
        {"role": "user", "content": f"My token is {secret}."},
        {"role": "assistant", "content": [{"type": "text", "text": f"I use {secret}"}, use]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "Done, and nothing to hide."},
    ]  # fmt: skip


def fill(path: Path, redact: Any) -> dict[str, Any]:
    """A store with the messages, appended in all three ways; what it answers."""
    with ef.open(path) as store:
        session = store.session("tea", redact=redact)
        first, second, third, fourth = messages(SECRET)
        session.append(first, key="m0")
        session.append_nowait(second, key="m1").result()
        asyncio.run(session.aappend(third, key="m2"))
        session.append(fourth, key="m3")
        session.working()
        return {
            "context": session.context().messages,
            "state": session.state().to_json(),
            "sessions": [repr(s) for s in store.sessions()],
            "verdict": store.verify().verdict,
        }


def test_no_file_of_the_store_holds_what_was_redacted(tmp_path: Path) -> None:
    answers = fill(tmp_path / "s", KeyFinder())
    assert holds(tmp_path, SECRET) == []
    assert SECRET not in json.dumps(answers) and MARK in json.dumps(answers)
    assert answers["verdict"] == "sound"
    with ef.open(tmp_path / "s") as store:
        assert store.session("tea").context().messages == answers["context"]
    assert holds(tmp_path, SECRET) == []


def test_without_a_redactor_the_same_search_finds_it(tmp_path: Path) -> None:
    answers = fill(tmp_path / "s", None)
    assert "data.mdb" in holds(tmp_path, SECRET)
    assert SECRET in json.dumps(answers)


def test_the_log_says_what_was_replaced_and_by_what(tmp_path: Path) -> None:
    fill(tmp_path / "s", KeyFinder())
    with ef.open(tmp_path / "s") as store:
        records = list(store.log.read(STREAM))
        notes = [(r.header, event_of(store.log, r)) for r in records if r.header.kind == "Redacted"]
        items = {r.header.key: r.header.seq for r in records}
    finder = KeyFinder()
    assert [event for _, event in notes] == [
        Redacted(finder.name, finder.version, {"github-token": count}) for count in (1, 2, 1)
    ]
    assert [header.cause and header.cause.seq for header, _ in notes] == [items[f"m{n}"] for n in range(3)]  # fmt: skip
    assert not any(header.required for header, _ in notes)


def test_state_and_surface_are_those_of_the_words_that_were_stored(tmp_path: Path) -> None:
    redacted = fill(tmp_path / "s", KeyFinder())
    with ef.open(tmp_path / "t") as store:
        session = store.session("tea")
        for n, message in enumerate(messages(MARK)):
            session.append(message, key=f"m{n}")
        assert session.context().messages == redacted["context"]
        assert session.state().to_json()["digest"] == redacted["state"]["digest"]


def test_a_retry_is_the_same_event_and_another_message_is_not(tmp_path: Path) -> None:
    with ef.open(tmp_path / "s") as store:
        session = store.session("tea", redact=KeyFinder())
        first = messages(SECRET)[0]
        seq = session.append(first, key="k")
        before = session.seq
        assert session.append(first, key="k") == seq
        assert session.seq == before
        with pytest.raises(KeyConflict) as conflict:
            session.append({"role": "user", "content": f"Another, {SECRET}"}, key="k")
        assert SECRET not in str(conflict.value)


def fails(text: str) -> list[tuple[int, int, str]]:
    if SECRET in text:
        raise RuntimeError(text)
    return []


def test_a_redactor_that_fails_keeps_the_message_out_and_says_nothing_of_it(tmp_path: Path) -> None:
    with ef.open(tmp_path / "s") as store:
        session = store.session("tea", redact=fails)
        session.append({"role": "user", "content": "Hello."})
        before = session.seq
        for append in (session.append, session.append_nowait):
            with pytest.raises(InputRefused) as refused:
                append(messages(SECRET)[0])
            assert "fails" in str(refused.value) and "RuntimeError" in str(refused.value)
            assert SECRET not in f"{refused.value}{refused.value.facts}"
            assert refused.value.__context__ is None
        assert session.seq == before
    assert holds(tmp_path, SECRET) == []


@pytest.mark.parametrize(
    "message",
    [
        {"role": "nobody", "content": SECRET},
        {"role": "user", "content": [{"type": SECRET, "text": 5}]},
        {"role": "user", "content": {SECRET: SECRET}},
        {"role": "user", "content": SECRET, "x": float("nan")},
        {"role": "user", "content": SECRET, "x": {1, 2}},
    ],
)
def test_a_message_that_is_refused_is_not_shown(tmp_path: Path, message: dict[str, Any]) -> None:
    with ef.open(tmp_path / "s") as store:
        session = store.session("tea", redact=KeyFinder())
        said = ""
        try:
            session.append(message)
        except InputRefused as refused:
            said = f"{refused}{refused.facts}"
        assert SECRET not in said
    assert holds(tmp_path, SECRET) == []


def test_metrics_and_spans_hold_nothing_of_it(tmp_path: Path) -> None:
    reader, exported = InMemoryMetricReader(), InMemorySpanExporter()
    meters, tracers = MeterProvider(metric_readers=[reader]), TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exported))
    with ef.open(tmp_path / "s") as store:
        stop = instrument(store, meter_provider=meters, tracer_provider=tracers)
        session = store.session("tea", redact=KeyFinder())
        for message in messages(SECRET):
            session.append(message)
        said = str(reader.get_metrics_data()) + str(
            [s.to_json() for s in exported.get_finished_spans()]
        )
        stop()
    meters.shutdown()
    tracers.shutdown()
    assert "ef.append.duration" in said and "ef.group" in said
    assert SECRET not in said


CHILD = """
import faulthandler, os, signal, sys
import ef
from ef.importers.keyfinder import KeyFinder
from ef.log import points

faulthandler.enable()
path, point, secret, redact = sys.argv[1], sys.argv[2], sys.stdin.read(), sys.argv[3] == "redact"

def at(name):
    if name == point and session.seq:
        faulthandler.dump_traceback(sys.stderr)
        os.kill(os.getpid(), signal.SIGKILL)

with ef.open(path) as store:
    session = store.session("tea", redact=KeyFinder() if redact else None)
    session.append({"role": "user", "content": "first " + secret})
    points.hold(at)
    session.append({"role": "user", "content": "second " + secret})
    print("never")
"""


def killed(path: Path, point: str, redact: str) -> str:
    """What a writer said that was killed at a point of its second append."""
    words = [sys.executable, "-c", CHILD, str(path), point, redact]
    done = subprocess.run(words, input=SECRET, capture_output=True, text=True, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("point", ["append.accepted", "group.put", "group.durable"])
def test_a_writer_that_is_killed_leaves_nothing_of_it(tmp_path: Path, point: str) -> None:
    assert SECRET not in killed(tmp_path / "s", point, "redact")
    assert holds(tmp_path, SECRET) == []
    with ef.open(tmp_path / "s") as store:
        assert store.verify().verdict == "sound"
        assert MARK in str(store.session("tea").context().messages)
    assert holds(tmp_path, SECRET) == []


def test_of_a_writer_without_a_redactor_the_same_search_finds_it(tmp_path: Path) -> None:
    killed(tmp_path / "s", "group.put", "keep")
    assert holds(tmp_path, SECRET)


def test_an_error_that_nobody_catches_shows_nothing_of_it(tmp_path: Path) -> None:
    def said(redact: str) -> str:
        program = (
            "import sys, ef\n"
            "secret = sys.stdin.read()\n"
            "def look(text):\n"
            "    if secret in text:\n"
            "        raise ValueError(text)\n"
            "    return []\n"
            f"with ef.open({str(tmp_path / redact)!r}) as store:\n"
            f"    {redact}\n"
        )
        words = [sys.executable, "-c", program]
        done = subprocess.run(words, input=SECRET, capture_output=True, text=True, timeout=120)
        assert done.returncode == 1
        return done.stderr

    append = "append({'role': 'user', 'content': secret})"
    assert SECRET not in said(f"store.session('tea', redact=look).{append}")
    assert SECRET in said("look(secret)")


def test_what_is_no_redactor_is_refused_before_anything_is_appended(tmp_path: Path) -> None:
    with ef.open(tmp_path / "s") as store:
        for wrong in ("yes", 1, KeyFinder, {}):
            with pytest.raises(UsageError, match="redact"):
                store.session("tea", redact=wrong)  # type: ignore[arg-type]
        assert list(store.session_names()) == []


NOTES: list[dict[str, Any]] = [
    {"kind": "torn", "text": "odd", "line": 1, "offset": 0},
    {"kind": LOOKED, "text": "no secrets (none found by shapes 1)", "line": 1, "offset": 0},
    {"kind": WITHHELD, "text": "the last line is cut", "line": 3, "offset": 50},
]


def test_the_original_of_a_redacted_source_is_refused_and_says_by_what_it_was_redacted() -> None:
    refuse_original("ab" * 16, NOTES, 200)
    with pytest.raises(OriginalRedacted, match="the last line is cut"):
        refuse_original("ab" * 16, NOTES, 50)
    text = "2 × jwt replaced (found by shapes 1)"
    note = {"kind": REDACTED, "text": text, "line": 4, "offset": 90}
    with pytest.raises(OriginalRedacted) as refused:
        refuse_original("ab" * 16, [*NOTES, note], 200)
    assert refused.value.exit_code == 77
    for word in ("abababababab", text, "ef export SOURCE --redacted"):
        assert word in str(refused.value)


def blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the extra were not installed."""
    for name in [name for name in sys.modules if name.startswith("kingfisher_sdk")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kingfisher_sdk", None)


def test_without_the_extra_the_built_in_detector_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ef.session.detecting import detector

    detector.cache_clear()
    blocked(monkeypatch)
    with ef.open(tmp_path / "s") as store:
        with pytest.raises(UsageError, match=r"epistemic-fold\[redact\]"):
            store.session("tea", redact=True)
        assert store.session("tea", redact=KeyFinder()).append(messages(SECRET)[0]) == 2


def test_importing_ef_loads_no_detector() -> None:
    program = (
        "import sys, ef\n"
        "with ef.open(':memory:') as store:\n"
        "    store.session('tea').append({'role': 'user', 'content': 'Hello.'})\n"
        "loaded = [m for m in sys.modules if 'kingfisher' in m or m.startswith('ef.importers.')]\n"
        "print(*loaded)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    assert "ef.importers.names" in done.stdout
    for name in ("kingfisher", "keyshapes", "redaction"):
        assert name not in done.stdout
