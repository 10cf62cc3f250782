"""Record ``shopcart.jsonl``: a coding session with a scripted assistant and real tools.

There is no model here.  What the user types, what the assistant thinks and says and
which tools it calls stands in ``script_turns.py``.  The tools (``session_tools.py``) are
real: this file makes a git repository at /tmp/shopcart from ``script_seed.py``, runs
every call there and writes down what came back, in the record shapes of Claude Code's
JSONL transcripts.  Times, ids and token usage are scripted too,
so that a second recording differs only in what the tools print.

    python -m pip install pytest        # the recorded session runs `python -m pytest`
    python examples/record_session.py   # with the Python that has pytest
"""

import base64
import json
import random
import shutil
import subprocess
import sys
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from check_session import check
from script_seed import SEED
from script_turns import TURNS
from script_words import ROOT
from session_tools import REPO, Record, Result, Tools

OUT = Path(__file__).parent / "shopcart.jsonl"
MARK = REPO / ".git" / "made-by-record-session"
MODEL = "scripted-assistant"
START = datetime(2026, 3, 14, 9, 2, 11, 208000, tzinfo=UTC)


class Recorder:
    """Plays the script and collects the records."""

    def __init__(self) -> None:
        self.tools = Tools(START)
        self.chance = random.Random(314)
        self.records: list[Record] = []
        self.count = self.messages = self.called = 0
        self.last: str | None = None  # uuid of the last record in the main chain
        self.branch = "main"
        self.seen = 0  # characters the assistant has before it, for the usage
        self.turn_start = START
        self.backups: dict[str, Record] = {}
        self.snapshot: Record = {}
        self.session = self.new_id()

    def new_id(self) -> str:
        self.count += 1
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"https://example.org/shopcart/{self.count}"))

    def clock(self, low: float, high: float) -> str:
        self.tools.now += timedelta(milliseconds=round(1000 * self.chance.uniform(low, high)))
        return self.stamp()

    def stamp(self) -> str:
        return (
            self.tools.now.strftime("%Y-%m-%dT%H:%M:%S.")
            + f"{self.tools.now.microsecond // 1000:03d}Z"
        )

    def add(
        self, kind: str, parent: str | None, timestamp: str, side: bool = False, **fields: Any
    ) -> str:
        """Write one record with the common envelope and return its uuid."""
        key = self.new_id()
        record = {
            "parentUuid": parent, "isSidechain": side, "userType": "external", "cwd": ROOT,
            "sessionId": self.session, "version": "2.1.7", "gitBranch": self.branch, "type": kind,
            **fields, "uuid": key, "timestamp": timestamp,
        }  # fmt: skip
        self.records.append(record)
        if not side:
            self.last = key
        return key

    def tokens(self) -> int:
        return 12000 + self.seen // 400 * 100

    # ------------------------------------------------------------ entries

    def play(self) -> list[Record]:
        title: Record = {
            "type": "summary",
            "summary": "Shopping cart: wrong cents, a timeout, a red suite",
            "leafUuid": "",
        }
        self.records.append(title)
        for entry in TURNS:
            getattr(self, f"play_{entry['kind']}")(entry)
        title["leafUuid"] = self.last
        return self.records

    def play_command(self, entry: Record) -> None:
        name = entry["name"]
        text = (
            f"<command-name>{name}</command-name>\n<command-message>{name[1:]}</command-message>\n"
        )
        text += "<command-args></command-args>"
        caveat = "Caveat: the next records come from a local command, not from a request."
        caveat = f"<local-command-caveat>{caveat}</local-command-caveat>"
        said: list[tuple[str, Record]] = [
            (caveat, {"isMeta": True}), (text, {}), ("<local-command-stdout></local-command-stdout>", {}),
        ]  # fmt: skip
        for content, extra in said:
            self.add(
                "user",
                self.last,
                self.clock(0, 0.01),
                message={"role": "user", "content": content},
                **extra,
            )

    def play_queue(self, entry: Record) -> None:
        self.queue("enqueue", self.clock(1, 3), content=entry["text"])

    def queue(self, operation: str, timestamp: str, **fields: Any) -> None:
        self.records.append(
            {
                "type": "queue-operation",
                "operation": operation,
                "timestamp": timestamp,
                "sessionId": self.session,
                **fields,
            }
        )

    def play_user(self, entry: Record) -> None:
        stamp = self.clock(60 * entry["minutes"], 60 * entry["minutes"] + 20)
        if entry["queued"]:
            self.queue("remove", stamp)
        else:
            self.turn_start = self.tools.now
        self.seen += len(entry["text"])
        message = {"role": "user", "content": entry["text"]}
        key = self.add("user", self.last, stamp, message=message, todos=self.tools.todos)
        self.snapshot = {
            "messageId": key,
            "trackedFileBackups": dict(self.backups),
            "timestamp": stamp,
        }
        shot = {
            "type": "file-history-snapshot",
            "messageId": key,
            "snapshot": self.snapshot,
            "isSnapshotUpdate": False,
        }
        self.records.insert(len(self.records) - 1, shot)

    def play_end(self, _: Record) -> None:
        stamp = self.clock(0.2, 0.9)
        self.add(
            "system", self.last, stamp, subtype="stop_hook_summary", hookCount=1, hookInfos=[{"command": "true"}],
            hookErrors=[], preventedContinuation=False, stopReason="", hasOutput=False,
            level="suggestion", toolUseID=self.new_id(),
        )  # fmt: skip
        spent = round((self.tools.now - self.turn_start).total_seconds() * 1000)
        self.add(
            "system",
            self.last,
            self.clock(0, 0.01),
            subtype="turn_duration",
            durationMs=spent,
            isMeta=False,
        )

    def play_compact(self, entry: Record) -> None:
        fields: Record = {
            "logicalParentUuid": self.last,
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
        }
        meta = {"trigger": "auto", "preTokens": self.tokens()}
        self.add(
            "system",
            None,
            self.clock(20, 40),
            **fields,
            isMeta=False,
            level="info",
            compactMetadata=meta,
        )
        message = {"role": "user", "content": entry["summary"]}
        self.add(
            "user",
            self.last,
            self.clock(0, 0.01),
            message=message,
            isVisibleInTranscriptOnly=True,
            isCompactSummary=True,
        )
        self.seen = len(entry["summary"])

    def play_step(self, entry: Record, side_parent: str | None = None) -> str:
        """One assistant message, one record for each block, then the results. Returns the last uuid."""
        self.messages += 1
        self.clock(entry["seconds"], entry["seconds"] + 1)
        calls = [{**call, "id": self.call_id()} for call in entry["calls"]]
        blocks: list[Record] = []
        if entry["think"]:
            signature = base64.b64encode(
                f"made up, signature {self.messages:04d}".encode()
            ).decode()
            blocks.append({"type": "thinking", "thinking": entry["think"], "signature": signature})
        if entry["say"]:
            blocks.append({"type": "text", "text": entry["say"]})
        blocks += [
            {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["input"]}
            for call in calls
        ]
        size = len(json.dumps(blocks))
        usage = {
            "input_tokens": 8, "cache_creation_input_tokens": 400, "output_tokens": size // 4,
            "cache_read_input_tokens": self.tokens(), "service_tier": "standard",
        }  # fmt: skip
        self.seen += size
        message = {
            "model": MODEL,
            "id": f"msg_scripted_{self.messages:04d}",
            "type": "message",
            "role": "assistant",
        }
        request, parent, order = (
            f"req_scripted_{self.messages:04d}",
            side_parent or self.last,
            len(blocks),
        )
        sent: list[tuple[Record, str]] = []  # calls that wait for a result
        for number, block in enumerate(blocks, 1):
            stop = None if number < order else "tool_use" if calls else "end_turn"
            body = {
                **message,
                "content": [block],
                "stop_reason": stop,
                "stop_sequence": None,
                "usage": usage,
            }
            parent = last = self.add(
                "assistant",
                parent,
                self.clock(1, 6),
                bool(side_parent),
                message=body,
                requestId=request,
            )
            if block["type"] == "tool_use":
                sent.append((next(call for call in calls if call["id"] == block["id"]), last))
            if len(calls) == 3 and len(sent) == 2 and number == order - 1:
                # Three at once: the result of the second is there before the third is sent.
                self.result(*sent.pop(1), bool(side_parent))
        for call, source in sent:
            last = self.result(call, source, bool(side_parent))
        return last

    def call_id(self) -> str:
        self.called += 1
        return f"toolu_scripted_{self.called:04d}"

    def result(self, call: Record, source: str, side: bool) -> str:
        """Run one call and write its result."""
        if call["name"] == "Task":
            text, detail, failed = self.task(call)
        else:
            text, detail, failed = getattr(self.tools, call["name"].lower())(**call["input"])
        if call["expect"] not in text:
            raise SystemExit(
                f"{call['input']}: expected {call['expect']!r} in the output, which is\n{text}"
            )
        if call["reminder"]:
            text += f"\n\n<system-reminder>\n{call['reminder']}\n</system-reminder>\n"
        self.branch = self.tools.run("git branch --show-current").stdout.strip()
        self.seen += len(text)
        block = {"tool_use_id": call["id"], "type": "tool_result", "content": text}
        if failed or call["name"] == "Bash":
            block["is_error"] = failed
        stamp = self.clock(0.1, 2.5)
        key = self.add(
            "user",
            source,
            stamp,
            side,
            message={"role": "user", "content": [block]},
            toolUseResult=detail,
            sourceToolAssistantUUID=source,
        )
        if call["name"] in ("Edit", "Write") and not failed:
            self.track(call["input"]["file_path"], source, stamp)
        return key

    def track(self, file_path: str, source: str, stamp: str) -> None:
        name = str(Path(file_path).relative_to(REPO))
        if name in self.snapshot["trackedFileBackups"]:
            return
        backup = f"scripted-{len(self.backups) + 1:02d}@v1"
        self.backups[name] = {"backupFileName": backup, "version": 1, "backupTime": stamp}
        self.snapshot = {**self.snapshot, "trackedFileBackups": dict(self.backups)}
        self.records.append(
            {
                "type": "file-history-snapshot",
                "messageId": source,
                "snapshot": self.snapshot,
                "isSnapshotUpdate": True,
            }
        )

    def task(self, call: Record) -> Result:
        """A sub-agent whose records stand in the same file, with isSidechain."""
        prompt, answer, began = call["input"]["prompt"], call["answer"], self.tools.now
        last = self.add(
            "user", None, self.clock(0, 0.01), True, message={"role": "user", "content": prompt}
        )
        for entry in [*call["sub"], {"calls": (), "think": "", "say": answer, "seconds": 2}]:
            last = self.play_step(entry, last)
        spent = round((self.tools.now - began).total_seconds() * 1000)
        detail = {
            "status": "completed", "prompt": prompt, "content": [{"type": "text", "text": answer}],
            "totalDurationMs": spent, "totalTokens": self.tokens(), "totalToolUseCount": len(call["sub"]),
        }  # fmt: skip
        return answer, detail, False


def seed(tools: Tools) -> None:
    """Make the throw-away repository, in its first, faulty state."""
    if REPO.exists():
        if not MARK.exists():
            raise SystemExit(f"{REPO} exists and was not made by this script; remove it first")
        shutil.rmtree(REPO)
    for name, text in SEED.items():
        path = REPO / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for command in (
        "git init -q -b main",
        "git add -A",
        'git commit -q -m "Cart, pricing, receipts, price client"',
    ):
        tools.run(command).check_returncode()
    MARK.touch()


def main() -> None:
    recorder = Recorder()
    if subprocess.run(
        [sys.executable, "-c", "import pytest"], capture_output=True, check=False
    ).returncode:
        raise SystemExit(
            "This Python has no pytest. Recording runs `python -m pytest`: python -m pip install pytest"
        )
    seed(recorder.tools)
    records = recorder.play()
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    new = OUT.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    check(new)
    new.replace(OUT)
    print(f"{OUT.name}: {len(records)} records, {len(text.encode())} bytes")


if __name__ == "__main__":
    main()
