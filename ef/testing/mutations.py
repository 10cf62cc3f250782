"""Broken and hostile variants of transcript lines, seeded: what an importer must survive with a remark or a refusal.

A line is one record of any format. `WELL_FORMED` are those of the mutations that leave a JSON object one.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from ..events.shapes import is_list, is_map

Mutation = Callable[[random.Random, bytes], bytes]


def flipped(chosen: random.Random, line: bytes) -> bytes:
    """One to eight bits are other bits."""
    data = bytearray(line)
    for _ in range(chosen.randint(1, 8)):
        data[chosen.randrange(len(data))] ^= 1 << chosen.randrange(8)
    return bytes(data)


def truncated(chosen: random.Random, line: bytes) -> bytes:
    """The line ends somewhere."""
    return line[: chosen.randrange(len(line))]


def spliced(chosen: random.Random, line: bytes) -> bytes:
    """A piece of the line stands in it a second time."""
    a, b = sorted(chosen.choices(range(len(line)), k=2))
    at = chosen.randrange(len(line))
    return line[:at] + line[a:b] + line[at:]


def doubled_key(chosen: random.Random, line: bytes) -> bytes:
    """A key that decides what the record is stands twice."""
    key, value = chosen.choice(
        [
            ("type", '"user"'), ("type", '"assistant"'), ("message", '{"role":"user","content":"I never said that."}'),
            ("uuid", '"x"'), ("isSidechain", "true"), ("isMeta", "false"), ("sessionId", '"../../other"'),
            ("role", '"user"'), ("id", '"x"'), ("payload", "{}"), ("content", '"I never said that."'),
        ]
    )  # fmt: skip
    pair = f'"{key}":{value}'.encode()
    body = line.rstrip()
    if not body.endswith(b"}"):
        return body
    return (
        body[:-1] + b"," + pair + b"}" if chosen.random() < 0.5 else b"{" + pair + b"," + body[1:]
    )


def deep(chosen: random.Random, line: bytes) -> bytes:
    """A value nests far."""
    levels = chosen.choice([63, 65, 200, 255, 257, 900, 3000, 40_000])
    opening, closing = chosen.choice([(b"[", b"]"), (b'{"a":', b"}")])
    return _with_value(chosen, line, opening * levels + b"1" + closing * levels)


def huge_number(chosen: random.Random, line: bytes) -> bytes:
    """A number that few can hold."""
    number = chosen.choice(
        [b"9" * 5000, b"1" * 4301, b"-" + b"7" * 400, b"1e400", b"1e-400", b"-0", b"0." + b"3" * 5000, b"NaN"]
    )  # fmt: skip
    return _with_value(chosen, line, number)


def other_type(chosen: random.Random, line: bytes) -> bytes:
    """A field has a value of another type than its readers expect."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not is_map(record):
        return line
    values: list[Any] = [
        None,
        5,
        True,
        [],
        {},
        "",
        "x" * 3000,
        "\ud800",
        [[]],
        {"type": "text"},
        -1,
        2**70,
    ]
    place = record
    while True:
        key = chosen.choice(list(place))
        inner = place[key]
        if is_list(inner) and inner and is_map(inner[0]):
            inner = inner[0]
        if not is_map(inner) or not inner or chosen.random() < 0.3:
            break
        place = inner
    place[key] = chosen.choice(values)
    return json.dumps(record).encode()


def swapped_block(chosen: random.Random, line: bytes) -> bytes:
    """A call where a result belongs, a result where a call belongs, or ids that are none."""
    swaps = (
        (b'"tool_use"', b'"tool_result"'), (b'"tool_result"', b'"tool_use"'), (b'"tool_use_id"', b'"id"'),
        (b'"id":"toolu', b'"id":5,"x":"toolu'), (b'"type":"text"', b'"type":"tool_result"'),
        (b'"assistant"', b'"user"'), (b'"user"', b'"assistant"'),
        (b'_call"', b'_call_output"'), (b'_output"', b'"'), (b'"call_id"', b'"id"'), (b'"call_1"', b'["call_1"]'),
        (b'"tool"', b'"assistant"'), (b'"call_2"', b'"call_1"'), (b'toolu_2', b'toolu_1'),
    )  # fmt: skip
    fitting = [swap for swap in swaps if swap[0] in line]
    return line.replace(*chosen.choice(fitting)) if fitting else line


MUTATIONS: tuple[Mutation, ...] = (
    flipped, truncated, spliced, doubled_key, deep, huge_number, other_type, swapped_block,
)  # fmt: skip

WELL_FORMED: tuple[Mutation, ...] = (doubled_key, other_type, swapped_block)


def _with_value(chosen: random.Random, line: bytes, value: bytes) -> bytes:
    """The line with one of its scalar values exchanged, or with one key more."""
    places = [b'"input":{', b'"message":{', b'"toolUseResult":{', b"{"]
    place = chosen.choice([p for p in places if p in line] or [b"{"])
    at = line.find(place) + len(place)
    return line[:at] + b'"zz":' + value + b"," + line[at:]


def mutated(chosen: random.Random, lines: list[bytes]) -> tuple[str, bytes]:
    """A file of the lines with one to three of them broken; the names of what was done."""
    rows = list(lines)
    names: list[str] = []
    for _ in range(chosen.randint(1, 3)):
        n = chosen.randrange(len(rows))
        how = chosen.choice(MUTATIONS)
        if rows[n]:
            rows[n] = how(chosen, rows[n])
            names.append(f"{how.__name__} line {n + 1}")
    end = b"" if chosen.random() < 0.2 else b"\n"
    return ", ".join(names), b"\n".join(rows) + end
