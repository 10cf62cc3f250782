"""The cases: list B of what an importer must bear. Each is made from any seed."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from typing import Any

from .hostile import ASK, GONE, IMAGE, KEEP, Case, File, Seed, changed, every, joined, one

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


def nested(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


def bomb(seed: Seed) -> File:
    """Some kilobytes that unpack to more than 64 MiB, a thousand times their size."""
    spaces = gzip.compress(b" " * MB)
    return File(gzip.compress(seed.data, mtime=0) + spaces * 70, None)


CASES = (
    Case("untouched", lambda seed: File(seed.data)),
    Case("depth 65", key(nested(65))),
    Case("depth 500", key(nested(500)), "too-deep"),
    Case("depth 100,000", key(nested(100_000)), "too-deep"),
    Case("a record of 100,000 brackets", row(b"[" * 50_000 + b"]" * 50_000), "too-deep"),
    Case("a bracket that nobody closes", unclosed),
    Case("duplicate keys", duplicated, "duplicate-keys"),
    Case("a second role, type and content", forged_role, "duplicate-keys"),
    Case("NaN", key(b"NaN"), "not-json"),
    Case("Infinity", key(b"Infinity"), "not-json"),
    Case("-Infinity", key(b"-Infinity"), "not-json"),
    Case("1e400", key(b"1e400")),
    Case("an integer of 5,000 digits", key(b"9" * 5000)),
    Case("2^63", key(b"9223372036854775808")),
    Case("2^64", key(b"18446744073709551616")),
    Case("-2^63-1", key(b"-9223372036854775809")),
    Case("every number is 2^63", numbers(2**63)),
    Case("every number is 2^64", numbers(2**64)),
    Case("every number is -2^63-1", numbers(-(2**63) - 1)),
    Case("every number is 1e400", numbers(float("1e308"))),
    Case("every number is -1", numbers(-1)),
    Case("a lone surrogate", said(b"Mend \\ud800 it"), "encoding"),
    Case("reversed surrogates", said(b"Mend \\udc00\\ud800 it"), "encoding"),
    Case("NUL", said(b"Mend \\u0000 it")),
    Case("a raw NUL", said(b"Mend \0 it"), "not-json"),
    Case("C1 controls", said("Mend \x85\x9b31m\x90 it".encode())),
    Case("an escape sequence", said(b"Mend \\u001b]52;c;AAAA\\u0007 it")),
    Case("bidi", said("Mend \u202e\u2066 it".encode())),
    Case("zero width", said("Mend\u200b\u200d\ufeff it".encode())),
    Case("tag characters", said("Mend \U000e0041\U000e0042\U000e007f it".encode())),
    Case("U+2028 in a string", said("Mend \u2028 it".encode())),
    Case("invalid UTF-8", said(b"Mend \xff\xfe\xc0\xaf it"), "encoding"),
    Case("UTF-16", lambda s: File(s.data.decode().encode("utf-16"), None), "refused"),
    Case(
        "UTF-16 without a mark",
        lambda s: File(s.data.decode().encode("utf-16-le"), None),
        "refused",
    ),
    Case("UTF-8 with a mark", lambda s: File(b"\xef\xbb\xbf" + s.data), "encoding"),
    Case("CRLF", lambda s: File(s.data.replace(b"\n", b"\r\n"))),
    Case("CR alone", lambda s: File(s.data.replace(b"\n", b"\r"))),
    Case(
        "U+2028 between the records",
        lambda s: File(s.data.replace(b"\n", "\u2028".encode()), None),
        "either",
    ),
    Case("no final newline", lambda s: File(s.data[:-1])),
    Case("the last record is cut", half, "torn-tail"),
    Case("an empty file", lambda s: File(b"", None), "refused"),
    Case("blank lines alone", lambda s: File(b"\n \n\t\n\r\n", None), "refused"),
    Case("blank lines between", blank_lines),
    Case("a number instead of a record", row(b"42")),
    Case("null instead of a record", row(b"null")),
    Case("a list instead of a record", row(b"[1,[2]]")),
    Case("no JSON instead of a record", row(b"kettle"), "not-json"),
    Case("an array around it", wrapped, "either"),
    Case("no ids", without_ids, "either"),
    Case("ids are numbers", fields(IDS, 5), "either"),
    Case("ids are null", fields(IDS, None), "either"),
    Case("ids are all the same", fields(IDS, "x")),
    Case("ids are paths", fields(IDS, "../../../etc/passwd\x00")),
    Case("ids are long", fields(IDS, "i" * 3000)),
    Case("ids are lone surrogates", fields(IDS, "\ud800")),
    Case("two records with one id", collision),
    Case("phantom parents", fields(PARENTS, "nobody")),
    Case("cyclic parents", cyclic),
    Case("all records twice", replayed),
    Case("records again behind the last", replayed_behind),
    Case("records in another order", shuffled),
    Case("times go backwards", backwards),
    Case("times of the year 0", fields(TIMES, "0000-00-00T00:00:00.000Z")),
    Case("times of the year 9999", fields(TIMES, "9999-12-31T23:59:59.999Z")),
    Case("times are -1", fields(TIMES, -1)),
    Case("times are 1e300", fields(TIMES, 1e300)),
    Case("times are words", fields(TIMES, "yesterday")),
    Case("times are null", fields(TIMES, None)),
    Case(
        "a record of an unknown type",
        row(b'{"type":"zz/unknown","role":"zz","content":"?","kind":"Zz"}'),
    ),
    Case("blocks of unknown types", unknown_blocks),
    Case("results without their calls", orphans),
    Case("calls without results", cut_behind_calls),
    Case("content is a number", holders(5)),
    Case("content is null", holders(None)),
    Case("content is a word", holders("kettle")),
    Case("content is a list of numbers", holders([5, [5], {}])),
    Case("content is a map", holders({"text": {"text": 5}})),
    Case("roles and types are lists", within(KINDS, [])),
    Case("roles and types are maps", within(KINDS, {"type": "user"})),
    Case("roles and types are null", within(KINDS, None)),
    Case("roles and types are long", within(KINDS, "user" * 3000)),
    Case("roles and types are NUL", within(KINDS, "\x00\ud800")),
    Case("arguments are no JSON", within(GIVEN, "{kettle")),
    Case("arguments are JSON in JSON", within(GIVEN, json.dumps(json.dumps({"command": "x"})))),
    Case("arguments are deep", within(GIVEN, "[" * 5000)),
    Case("arguments are a list", within(GIVEN, [1, [2], {"a": None}])),
    Case("ids of calls are lists", within(IDS, ["call_1"])),
    Case("texts are maps", within({"text", "thinking"}, {"text": "kettle"})),
    Case("10,000 keys", many_keys),
    Case("an empty record", row(b"{}")),
    Case("a record of one long key", row(b'{"' + b"k" * 100_000 + b'":1}')),
    Case("keys that are no text", row(b'{"\\ud800":1,"\\u0000":2,"":3}')),
    Case("a call twice", twice_called),
    Case("results twice", answered_twice),
    Case("gzip", lambda s: File(gzip.compress(s.data, mtime=0)), "compressed"),
    Case("gzip, cut", lambda s: File(gzip.compress(s.data, mtime=0)[:-200], None), "either"),
    Case("gzip, damaged", lambda s: File(b"\x1f\x8b\x08" + b"kettle" * 20, None), "refused"),
    Case("a gzip bomb", bomb, "refused"),
    Case("zstd, damaged", lambda s: File(b"\x28\xb5\x2f\xfd" + b"kettle" * 20, None), "refused"),
)
"""Cases of a file that is small enough to be tried for each format in each run."""


def sizes(*, full: bool) -> tuple[Case, ...]:
    """Cases whose size is the point, the longest line last: `full` as the list has them, else a tenth or less."""
    return (
        Case("2^20 records" if full else "many records", many(1 << (20 if full else 11))),
        Case("an image of 20 MB" if full else "a large image", image((20 if full else 2) * MB)),
        Case("a line of 50 MB" if full else "a long line", said(b"w" * ((50 if full else 3) * MB))),
    )


__all__ = ["ASK", "CASES", "sizes"]
