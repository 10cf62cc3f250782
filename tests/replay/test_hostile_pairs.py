"""Blocks that would break the pairing of calls and results are handed out as text; their twins as they are."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.testing.pairing import violations


def use(name: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {}, **more}


def result(name: Any, text: str = "out") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": name, "content": text}


def line(n: int, role: str, *blocks: Any, group: str | None = None) -> bytes:
    message: dict[str, Any] = {"role": role, "content": list(blocks)}
    if role == "assistant":
        message["id"] = group or f"msg_{n}"
    record = {"type": role, "uuid": f"u{n}", "sessionId": "hostile", "message": message}
    return json.dumps(record).encode() + b"\n"


def shown(home: Path, *lines: bytes) -> list[dict[str, Any]]:
    """The messages at the end; at every moment before it they are pairs."""
    file = home / "f.jsonl"
    file.write_bytes(b"".join(lines))
    with ef.open(home / "s.ef") as store:
        store.import_file(file)
        session = store.session("hostile")
        for p in range(session.seq + 1):
            assert violations(session.context(at=p).messages) == [], p
        checked = store.verify()
        assert (checked.problems, checked.notes) == ([], [])
        return session.context().messages


SAY = {"type": "text", "text": "words"}


@pytest.mark.parametrize(
    "lines",
    [
        [line(1, "user", SAY), line(2, "assistant", result("a")), line(3, "user", SAY)],
        [line(1, "user", SAY, use("a")), line(2, "assistant", SAY)],
        [
            line(1, "assistant", use(5), use(None), use("")),
            line(2, "user", result(5), result(None)),
        ],
        [line(1, "assistant", "bare", 7, None, [], {"no": "type"}), line(2, "user", 7, None, "x")],
        [line(1, "assistant", {"type": "text", "text": 5}), line(2, "user", {"type": "text"})],
        [line(1, "assistant", use("a"), use("a")), line(2, "user", result("a"))],
        [
            line(1, "assistant", use("a"), use("a")),
            line(2, "user", result("a", "1"), result("a", "2")),
        ],
        [
            line(1, "assistant", use("a")),
            line(2, "assistant", use("a")),
            line(3, "user", result("a")),
        ],
        [line(1, "assistant", use("a")), line(2, "user", result("a"), result("a"))],
        [line(1, "user", result("a")), line(2, "assistant", use("a")), line(3, "assistant", SAY)],
    ],
)
def test_what_would_break_pairs_is_never_handed_out(lines: list[bytes], tmp_path: Path) -> None:
    shown(tmp_path, *lines)


def test_of_calls_that_share_an_id_the_answered_one_is_shown_with_its_result(
    tmp_path: Path,
) -> None:
    got = shown(
        tmp_path,
        line(1, "assistant", use("a", x=1), use("a", x=2)),
        line(2, "user", result("a", "the answer")),
        line(3, "assistant", SAY),
    )
    calls = [b for m in got for b in m["content"] if b["type"] == "tool_use"]
    results = [b for m in got for b in m["content"] if b["type"] == "tool_result"]
    assert [(c["id"], c["x"]) for c in calls] == [("a", 1)]
    assert [r["content"] for r in results] == ["the answer"]


def test_calls_with_ids_of_their_own_and_blocks_of_a_new_kind_are_handed_out_as_they_came(
    tmp_path: Path,
) -> None:
    new = {"type": "holographic", "data": [1, {"x": None}]}
    got = shown(
        tmp_path,
        line(1, "assistant", new, use("a"), use("b")),
        line(2, "user", result("b"), result("a"), SAY),
    )
    assert got == [
        {"role": "assistant", "content": [new, use("a"), use("b")]},
        {"role": "user", "content": [result("a"), result("b"), SAY]},
    ]


def test_a_record_as_deep_as_is_read_is_the_same_from_any_depth_of_the_stack(
    tmp_path: Path,
) -> None:
    """What is read depends on the bytes alone: one level more is kept and not read, wherever it is asked."""

    def nested(levels: int) -> bytes:
        deep: Any = []
        for _ in range(levels - 1):
            deep = [deep]
        return line(1, "assistant", use("a", input=deep)) + line(2, "user", result("a"))

    def from_depth(frames: int, store: ef.Store) -> str:
        if frames:
            return from_depth(frames - 1, store)
        return store.session("hostile").context().digest

    found = dict[int, bool]()
    for levels in (200, 252, 253, 300):
        (tmp_path / f"{levels}.jsonl").write_bytes(nested(levels))
        with ef.open(tmp_path / f"{levels}.ef") as store:
            store.import_file(tmp_path / f"{levels}.jsonl")
            assert from_depth(0, store) == from_depth(500, store)
            for frames in (
                700,
                800,
                900,
            ):  # a stack that cannot bear it is the caller's fault, never another answer
                with contextlib.suppress(RecursionError):
                    assert from_depth(frames, store) == from_depth(0, store)
            shows = json.dumps(store.session("hostile").context().messages)
            found[levels] = '"tool_use"' in shows
    assert found == {200: True, 252: True, 253: False, 300: False}
