"""The watched worker: deaths, signals, pipes. The signals and the broken pages are real."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import ROOT, SESSION, Ran, Run, environment, python, staged

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")

# It waits in short steps: Python itself runs no handler for a signal that comes just before a sleep begins.
WAITING = """
import os, signal, sys, time
def state(request):
    print("working", os.getpid(), file=sys.stderr, flush=True)
    while True: time.sleep(0.01)
"""
# It cuts the file short under an open store, as another program or a failing disk could.
CUT_SHORT = """
import contextlib
import os
import ef
def state(request):
    with ef.open(request.settings.store) as store:
        os.truncate(request.settings.store + "/data.mdb", 8192)
        store.sessions()
"""


def damaged(done: Ran, signal_name: str) -> None:
    assert done.code == 1
    assert done.err.startswith("ef: damaged: store ")
    assert f"ended the worker process by {signal_name}. Run `ef verify`.\n" in done.err
    assert done.json["error"]["kind"] == "Damaged"
    assert done.json["exit"] == 1


@pytest.mark.parametrize("name", ["SIGBUS", "SIGSEGV", "SIGABRT"])
def test_a_death_of_the_engine_becomes_damaged_and_one_json_object(
    name: str, scripted: Run
) -> None:
    script = f"import os, signal\ndef state(request):\n    os.kill(os.getpid(), signal.{name})"
    damaged(scripted(script, "state", "x", "--json"), name)
    assert "Run `ef verify`" in scripted(script, "state", "x").err


def test_a_store_cut_short_under_the_worker_is_damage_and_no_silence(
    scripted: Run, copied: Path
) -> None:
    done = scripted(CUT_SHORT, "--store", str(copied), "state", "x", "--json")
    assert done.code == 1
    assert done.json["error"]["kind"] == "Damaged"
    assert "Run `ef verify`" in done.err


def test_a_worker_that_lives_answers(scripted: Run) -> None:
    script = (
        "from ef.cli.output import Answer\n"
        "def state(request): return Answer({'at': 1}, lambda: 'an answer\\n', exit=0)"
    )
    assert scripted(script, "state", "x", "--json").json == {"at": 1}
    assert scripted(script, "state", "x").text == "an answer\n"


def test_a_worker_that_was_killed_is_not_called_damage(scripted: Run) -> None:
    script = "import os, signal\ndef state(r): os.kill(os.getpid(), signal.SIGKILL)"
    done = scripted(script, "state", "x", "--json")
    assert done.code == 70
    assert "SIGKILL" in done.json["error"]["message"]


def test_supervise_tells_an_exit_code_from_a_signal() -> None:
    script = (
        "import os, signal\nfrom ef.cli.worker import supervise\n"
        "print(tuple(supervise(lambda: 3)))\n"
        "print(tuple(supervise(lambda: os.kill(os.getpid(), signal.SIGBUS))))\n"
        "def interrupted(): raise KeyboardInterrupt\n"
        "print(tuple(supervise(interrupted)))\n"
        "def leaves(): raise SystemExit(5)\n"
        "print(tuple(supervise(leaves)))\n"
    )
    lines = python(["-c", script]).text.splitlines()
    bus = 128 + signal.SIGBUS
    assert lines == ["(3, None)", f"({bus}, 'SIGBUS')", "(130, None)", "(70, None)"]


def test_no_signal_is_lost_on_the_way_to_waiting() -> None:
    """The worker interrupts its parent as soon as it lives: the parent may not wait for the worker instead."""
    script = (
        "import os, signal, time\nfrom ef.cli.worker import supervise\n"
        "def early():\n"
        "    os.kill(os.getppid(), signal.SIGINT)\n"
        "    while True: time.sleep(0.01)\n"
        "print({tuple(supervise(early)) for _ in range(300)})\n"
    )
    assert python(["-c", script]).text == "{(130, None)}\n"


RUNNING: list[subprocess.Popen[bytes]] = []


@pytest.fixture(autouse=True)
def none_left_running() -> Iterator[None]:
    """A failed test leaves no process behind that fails another one."""
    yield
    while RUNNING:
        process = RUNNING.pop()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


class Running:
    """An `ef` whose worker waits, in a process group of its own."""

    def __init__(self, script: str = WAITING) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", staged(script), "state", "x", "--json"],
            cwd=ROOT,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stderr is not None
        RUNNING.append(self.process)
        word, pid = self.process.stderr.readline().split()
        assert word == b"working"
        self.worker = int(pid)

    def ended(self) -> tuple[int, bytes, bytes]:
        out, err = self.process.communicate(timeout=20)
        with pytest.raises(ProcessLookupError):
            os.kill(self.worker, 0)
        return self.process.returncode, out, err


def test_ctrl_c_ends_quietly_with_130() -> None:
    running = Running()
    assert running.worker != running.process.pid
    os.killpg(running.process.pid, signal.SIGINT)  # a terminal sends it to both
    assert running.ended() == (130, b"", b"")


def test_an_interrupt_of_the_parent_alone_reaches_the_worker() -> None:
    running = Running()
    running.process.send_signal(signal.SIGINT)
    assert running.ended() == (130, b"", b"")


def test_a_worker_that_is_tidying_up_is_not_interrupted_again() -> None:
    # The whole stage stands in the `try`: the interrupt may come as soon as the worker has spoken.
    tidy = (
        WAITING.replace("    print", "    try:\n     print").replace("    while", "     while")
        + "    finally:\n"
        + "        print('tidying', file=sys.stderr, flush=True)\n"
        + "        time.sleep(0.5)\n"
        + "        print('tidy', file=sys.stderr, flush=True)\n"
    )
    running = Running(tidy)
    assert running.process.stderr is not None
    os.kill(running.worker, signal.SIGINT)
    # Where SIGINT is ignored, as in a shell's background job, the worker ignores it too: then nothing ever comes.
    ready, _, _ = select.select([running.process.stderr], [], [], 30)
    if not ready:
        pytest.fail("the worker did not begin to tidy up")
    assert running.process.stderr.readline() == b"tidying\n"
    os.kill(running.worker, signal.SIGINT)
    assert running.ended() == (130, b"", b"tidy\n")


def test_a_second_ctrl_c_ends_a_worker_that_does_not_listen() -> None:
    deaf = WAITING.replace(
        "    print", "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n    print"
    )
    running = Running(deaf)
    running.process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        running.process.wait(timeout=0.5)
    running.process.send_signal(signal.SIGINT)
    assert running.ended() == (130, b"", b"")


def test_a_request_to_end_reaches_the_worker() -> None:
    running = Running()
    running.process.send_signal(signal.SIGTERM)
    assert running.ended() == (128 + signal.SIGTERM, b"", b"")


def test_a_reader_that_leaves_early_is_no_error(imported: Path) -> None:
    command = [sys.executable, "-m", "ef", "--store", str(imported), "context", SESSION]
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert (process.wait(20), said) == (128 + signal.SIGPIPE, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this platform has no /dev/full")
@pytest.mark.parametrize("words", [["state", SESSION], ["state", SESSION, "--json"], ["--help"]])
def test_a_full_disk_behind_stdout_ends_with_73(words: list[str], ef: Run) -> None:
    with open("/dev/full", "wb") as full:
        done = ef(*words, stdout=full)
    assert done.code == 73
    assert "cannot write to stdout: No space left on device" in done.err
    assert done.err.count("\n") == 1


OPENS = """
import contextlib
import os
from ef.cli.output import Answer
from ef.errors import NotAllowed
def state(request):
    number = os.open("/dev/zero", os.O_RDONLY)
    if number < 3:
        raise NotAllowed(what="number", why=str(number))
    return Answer({}, lambda: "")
"""


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)])
def test_a_closed_descriptors_number_is_never_given_to_a_file(closed: tuple[int, ...]) -> None:
    """A file that is opened takes the lowest free number: what is said would go into the store."""
    redirect = "".join(f" {fd}>&-" for fd in closed)
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -c "$1" state x --json{redirect}', sys.executable, staged(OPENS)],
        cwd=ROOT, env=environment(), capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == (73 if 1 in closed else 0)


def test_what_was_done_stays_done_when_stdout_is_closed(copied: Path) -> None:
    command = f'"$0" -m ef --store "$1" declare {SESSION} value a/b/c 1 >&-'
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, str(copied)],
        cwd=ROOT, env=environment(), capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 73
    assert b"The command itself was carried out" in done.stderr
    verdict = python(["-m", "ef", "--store", str(copied), "verify", "--json"]).json
    assert (verdict["verdict"], verdict["events"]) == ("sound", 363)
