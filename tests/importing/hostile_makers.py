"""What is done to a seed to make a hostile file of it: functions from a seed, or functions that make such functions."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .hostile import ASK, GONE, IMAGE, KEEP, File, Seed, changed, every, joined, one

IDS = {
    "uuid", "id", "call_id", "callID", "callId", "toolCallId", "tool_use_id", "tool_call_id", "messageId", "messageID",
    "sessionId", "sessionID", "session_id", "interactionId", "llm_response_id", "turn_id", "spanId", "traceId",
}  # fmt: skip
PARENTS = {
    "parentUuid",
    "parentId",
    "parentID",
    "logicalParentUuid",
    "cause",
    "action_id",
    "parentSession",
}
TIMES = {
    "timestamp", "created", "createdAt", "ts", "startTime", "startTimeUnixNano", "endTimeUnixNano", "start", "end",
    "created_at",
}  # fmt: skip
KINDS = {
    "role",
    "type",
    "kind",
    "source",
    "status",
    "name",
    "toolName",
    "tool",
    "action",
    "function_name",
}
GIVEN = {
    "arguments",
    "input",
    "args",
    "command",
    "cmd",
    "function",
    "state",
    "toolCall",
    "toolRequests",
}
HOLDERS = {
    "content", "parts", "message", "data", "payload", "history", "toolCalls", "tool_calls", "args", "observation",
}  # fmt: skip
MB = 1 << 20


def key(value: bytes) -> Callable[[Seed], File]:
    """One key more in the record that the user speaks in."""
    return lambda seed: one(seed, seed.with_key(seed.asked, value), seed.asked)


def said(text: bytes) -> Callable[[Seed], File]:
    """Other words of the user."""
    return lambda seed: one(seed, seed.said(text), seed.asked)


def row(record: bytes) -> Callable[[Seed], File]:
    """One record more, before the one that calls."""
    return lambda seed: one(seed, seed.inserted(seed.called, record))


def fields(names: set[str], value: Any) -> Callable[[Seed], File]:
    """These keys have another value in all records."""

    def make(seed: Seed) -> File:
        def change(name: str, old: Any, _: int) -> Any:
            return value if name in names and not isinstance(old, (dict, list)) else KEEP

        return every(seed.edited(change))

    return make


def holders(value: Any) -> Callable[[Seed], File]:
    """What holds the words of the record that calls holds a value of another type."""
    return within(HOLDERS, value)


def within(names: set[str], value: Any) -> Callable[[Seed], File]:
    """These keys have another value in the record that calls, wherever in it they stand."""

    def make(seed: Seed) -> File:
        record = json.loads(seed.record(seed.called))
        other = changed(record, lambda name, _, __: value if name in names else KEEP)
        return one(seed, seed.put(seed.called, json.dumps(other).encode()), seed.called)

    return make


def numbers(value: Any) -> Callable[[Seed], File]:
    """Every number is another one."""

    def make(seed: Seed) -> File:
        def change(_: str, old: Any, __: int) -> Any:
            return value if isinstance(old, (int, float)) and not isinstance(old, bool) else KEEP

        return every(seed.edited(change))

    return make


def duplicated(seed: Seed) -> File:
    record = seed.record(seed.asked)
    names = list(json.loads(record))
    more = b",".join(json.dumps(name).encode() + b':"I never said that."' for name in names)
    return one(seed, seed.put(seed.asked, record[:-1] + b"," + more + b"}"), seed.asked)


def forged_role(seed: Seed) -> File:
    """A second role, type and content: the first ones count."""
    record = seed.record(seed.called)
    forged = b',"role":"user","type":"user","content":"I never said that.","zz":1,"zz":2}'
    return one(seed, seed.put(seed.called, record[:-1] + forged), seed.called)


def without_ids(seed: Seed) -> File:
    return every(seed.edited(lambda name, _, __: GONE if name in IDS else KEEP))


def collision(seed: Seed) -> File:
    """The last record has the id of the one that the user speaks in."""
    ids = {k: v for k, v in json.loads(seed.record(seed.asked)).items() if k in IDS}
    last = json.loads(seed.record(seed.last)) | ids
    return one(seed, seed.put(seed.last, json.dumps(last).encode()), seed.last)


def cyclic(seed: Seed) -> File:
    def turn(record: dict[str, Any]) -> dict[str, Any]:
        own = next((record[name] for name in ("uuid", "id") if name in record), "x")
        return record | {name: own for name in PARENTS if name in record}

    rows = list(seed.rows)
    for n in seed.records:
        rows[n] = (
            json.dumps(turn(json.loads(seed.record(n)))).encode()
            + seed.rows[n][len(seed.record(n)) :]
        )
    return every(rows)


def replayed(seed: Seed) -> File:
    """All records stand twice."""
    first, last = seed.records[0], seed.last
    again = [seed.record(n) + (b"," if seed.is_document else b"") for n in seed.records]
    return one(
        seed, [*seed.rows[:first], *again, *seed.rows[first : last + 1], *seed.rows[last + 1 :]]
    )


def replayed_behind(seed: Seed) -> File:
    """The records from the user's words on stand again behind the last, as after a second compaction."""
    comma = b"," if seed.is_document else b""
    again = [seed.record(n) + comma for n in seed.records if n >= seed.asked]
    again[-1] = again[-1].removesuffix(b",")
    last = seed.rows[seed.last] + comma
    return one(seed, [*seed.rows[: seed.last], last, *again, *seed.rows[seed.last + 1 :]])


def backwards(seed: Seed) -> File:
    stamps = iter(range(59, 0, -1))

    def change(name: str, old: Any, _: int) -> Any:
        if name not in TIMES or isinstance(old, (dict, list)):
            return KEEP
        at = next(stamps, 0)
        return f"2026-03-02T08:00:{at:02}.000Z" if isinstance(old, str) else 1772442000 + at

    return every(seed.edited(change))


def unknown_blocks(seed: Seed) -> File:
    def change(name: str, old: Any, depth: int) -> Any:
        return "zz_unknown" if name in ("type", "kind") and depth and isinstance(old, str) else KEEP

    other = changed(json.loads(seed.record(seed.called)), change)
    return one(seed, seed.put(seed.called, json.dumps(other).encode()), seed.called)


def many_keys(seed: Seed) -> File:
    more = b",".join(b'"k%d":%d' % (n, n) for n in range(10_000))
    record = seed.record(seed.called)
    return one(seed, seed.put(seed.called, record[:-1] + b"," + more + b"}"), seed.called)


def twice_called(seed: Seed) -> File:
    """The record that calls stands twice, the second one a little other."""
    again = seed.record(seed.called).replace(b"kettle.txt", b"kettle.md")
    return one(seed, seed.inserted(seed.called, again))


def answered_twice(seed: Seed) -> File:
    """The records behind the call stand twice."""
    n = seed.records[seed.records.index(seed.called) + 1]
    return one(seed, seed.inserted(n, seed.record(n)))


def orphans(seed: Seed) -> File:
    return one(seed, seed.without({seed.called}), seed.called)


def cut_behind_calls(seed: Seed) -> File:
    gone = {n for n in seed.records if n > seed.called}
    return one(seed, seed.without(gone), *gone)


def unclosed(seed: Seed) -> File:
    """Of a document, what stands behind it is inside of it."""
    gone = [n for n in seed.records if n >= seed.called] if seed.is_document else []
    return one(seed, seed.inserted(seed.called, b"[" * 9), *gone)


def half(seed: Seed) -> File:
    """The file ends in the middle of its last record."""
    data = joined(list(seed.rows[: seed.last + 1]))
    return File(data[: -len(seed.rows[seed.last]) // 2], frozenset({seed.last}))


def blank_lines(seed: Seed) -> File:
    return File(b"\n \n\t\n" + b"\n\n\r\n".join(seed.rows) + b"\n\n\n")


def wrapped(seed: Seed) -> File:
    """Records of lines as one array; a document as the one element of an array."""
    comma = b"" if seed.is_document else b","
    broken = None if seed.is_document else frozenset({seed.records[0]})  # it is behind a bracket
    return File(b"[" + (comma + b"\n").join(seed.rows) + b"]", broken)


def shuffled(seed: Seed) -> File:
    """Records in another order; the first stays."""
    order = list(seed.records[1:])
    random.Random(seed.name).shuffle(order)
    rows = list(seed.rows)
    for n, other in zip(seed.records[1:], order, strict=True):
        rows[n] = seed.record(other) + seed.rows[n][len(seed.record(n)) :]
    return File(joined(rows))


def image(size: int) -> Callable[[Seed], File]:
    def make(seed: Seed) -> File:
        n = next((n for n in seed.records if IMAGE in seed.rows[n]), seed.asked)
        old = IMAGE if IMAGE in seed.rows[n] else ASK
        return one(seed, seed.put(n, seed.record(n).replace(old, b"QUJD" * (size // 4))), n)

    return make


def many(count: int) -> Callable[[Seed], File]:
    """So many records more, in front of the last one."""
    more = [b"{}"] * count

    def make(seed: Seed) -> File:
        rows = [row + b"," for row in more] if seed.is_document else more
        return one(seed, [*seed.rows[: seed.last], *rows, *seed.rows[seed.last :]])

    return make


def gzipped(seed: Seed) -> File:
    return File(gzip.compress(seed.data, mtime=0), holds=seed.data)


def gzipped_twice(seed: Seed) -> File:
    """Two members, one behind the other, as a tool that appends writes them."""
    half = len(seed.data) // 2
    parts = seed.data[:half], seed.data[half:]
    return File(b"".join(gzip.compress(part, mtime=0) for part in parts), holds=seed.data)


def zstd_packed(seed: Seed) -> File:
    return File(zstd().compress(seed.data), holds=seed.data)


def zstd() -> Any:
    """The module that packs: the standard library's, or the one of the extra."""
    with contextlib.suppress(ImportError):
        return import_module("compression.zstd")
    return import_module("backports.zstd")


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


def bomb(seed: Seed) -> File:
    """Some kilobytes that unpack to more than 64 MiB, a thousand times their size."""
    spaces = gzip.compress(b" " * MB)
    return File(gzip.compress(seed.data, mtime=0) + spaces * 70, None)
