"""Makes the recorded bytes of format 1: python tests/golden/v1/make.py [--force].

They guard the format, so they are made once. Without --force nothing that is there is written over; with it the format
has changed, and so has its version.

kinds.json    one frame of each kind with the digests and values that it must give
bodies.json   frames whose bodies are compressed (by the zlib of the day: only their decoding is guarded)
session.json  the frames of a log, and the digests of state, context and projection that it must give
damaged.json  frames that must be refused, each with what is wrong and its sound twin
store/        a store as LMDB wrote it, with what it must say in store.json
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from dataclasses import asdict, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent.parent))

import lmdb  # noqa: E402
from blake3 import blake3  # noqa: E402

from ef import events as ev  # noqa: E402
from ef.codec import cbor, kinds, record  # noqa: E402
from ef.codec.digests import commitment, event_uuid, record_digest  # noqa: E402
from ef.codec.kinds import encode_body  # noqa: E402
from ef.log.items import recorded  # noqa: E402
from ef.log.lmdb_log import LmdbLog  # noqa: E402
from ef.projections.working import Working  # noqa: E402
from ef.session.importing import import_bytes  # noqa: E402
from ef.session.session import Session  # noqa: E402
from tests.codec.samples import BARE, FULL, HEADER  # noqa: E402
from tests.golden.v1 import history  # noqa: E402

FILES = ("kinds.json", "bodies.json", "session.json", "damaged.json", "store.json", "store/data.mdb")
SALT = bytes(range(100, 116))
TRANSCRIPT = [
    {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "imported", "cwd": "/work dir",
     "timestamp": "2026-01-02T03:04:05.678Z", "message": {"role": "user", "content": "Run the tests, please. Grüße"}},
    {"type": "assistant", "uuid": "a1", "parentUuid": "u1", "sessionId": "imported",
     "timestamp": "2026-01-02T03:04:06.000Z",
     "message": {"id": "msg_1", "role": "assistant", "model": "opus",
                 "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "pytest -q"}}],
                 "usage": {"input_tokens": 10, "output_tokens": 5}}},
    {"type": "user", "uuid": "u2", "parentUuid": "a1", "sessionId": "imported",
     "timestamp": "2026-01-02T03:04:09.000Z",
     "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "is_error": True,
      "content": "Exit code 1\n..F\nFAILED tests/a.py::test_x - no\n1 failed, 2 passed in 0.12s\n"}]}},
]  # fmt: skip


def shown(value: Any) -> Any:
    """A value as JSON: bytes become {"hex": ...}."""
    if is_dataclass(value) and not isinstance(value, type):
        return {name: shown(each) for name, each in asdict(value).items()}
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (list, tuple)):
        return [shown(each) for each in value]
    if isinstance(value, dict):
        return {key: shown(each) for key, each in value.items()}
    return value


def header_of(event: ev.Event, body: bytes, encoding: str, plain: int, seq: int) -> ev.Header:
    from dataclasses import replace

    spec = kinds.spec_of(event)
    key = f"golden-{seq}"
    return replace(
        HEADER, kind=spec.name, version=spec.version, required=spec.required, seq=seq, key=key,
        uuid=event_uuid(HEADER.stream, key), commitment=commitment(SALT, body), body_size=plain, encoding=encoding,
    )  # fmt: skip


def frame_of(event: ev.Event, seq: int, body: bytes, encoding: str, plain: int) -> dict[str, Any]:
    header = header_of(event, body, encoding, plain, seq)
    data = record.encode_header(header)
    return {
        "kind": header.kind,
        "frame": record.encode_frame(data, SALT, body).hex(),
        "digest": record_digest(data).hex(),
        "commitment": header.commitment.hex(),
        "header": shown(header),
        "event": shown(event),
    }


def make_kinds() -> list[dict[str, Any]]:
    found = []
    for seq, event in enumerate((*FULL, *BARE), 1):
        plain = encode_body(event)
        found.append({**frame_of(event, seq, plain, "none", len(plain)), "body": plain.hex()})
    return found


def make_bodies() -> list[dict[str, Any]]:
    found = []
    texts = (b"all work and no play " * 60, "Grüße 🜂 ".encode() * 200, bytes(5_000))
    for seq, plain in enumerate(texts, 1):
        encoding, body = record.pack_body(plain, where="golden")
        assert encoding == "zlib"
        event = ev.ItemAppended(plain)
        found.append({
            **frame_of(event, seq, body, encoding, len(plain)),
            "event": None, "plain_digest": blake3(plain).hexdigest(), "plain_bytes": len(plain),
        })  # fmt: skip
    return found


def expectations(log: LmdbLog, stream: str) -> dict[str, Any]:
    working = Working(stream).apply(recorded(log, stream))
    session = Session(log, stream.removeprefix("session/"), lambda: "k")
    return {
        "events": working.seq,
        "tip": log.tip(stream).digest.hex(),
        "state_digest": working.state_digest().hex(),
        "context_digest": session.context().digest,
        "canonical_digest": blake3(working.canonical()).hexdigest(),
        "refused": [list(each) for each in working.refused],
    }


def make_session(folder: Path) -> dict[str, Any]:
    with history.opened(folder / "session") as log:
        history.append_all(log)
        return {
            "frames": [
                record.encode_frame(r.frame.header_bytes, r.frame.salt, r.frame.body).hex() for r in log.all()
            ],
            "store_digest": log.store_tip()[1].hex(),
            "streams": {name: expectations(log, name) for name in (history.SESSION, "session/fork")},
        }


def make_damaged() -> list[dict[str, str]]:
    plain = b"a body"
    sound = frame_of(ev.ItemAppended(plain), 1, plain, "none", len(plain))["frame"]
    data = bytes.fromhex(sound)
    head_size = len(data) - 60 - len(plain)
    header = data[60 : 60 + head_size]
    values = cbor.decode(header)

    def flip(at: int) -> bytes:
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]

    def other(index: int, value: Any) -> bytes:
        return record.encode_frame(cbor.encode([*values[:index], value, *values[index + 1 :]]), SALT, plain)

    longer = header.replace(b"\x97\x01", b"\x98\x17\x01", 1)
    made = {
        "the magic is another one": flip(0),
        "a bit of the header length is flipped": flip(7),
        "a bit of the body length is flipped": flip(11),
        "a bit of the salt is flipped": flip(12),
        "a bit of the record digest is flipped": flip(28),
        "a bit of the header is flipped": flip(70),
        "a bit of the body is flipped": flip(len(data) - 1),
        "it is cut off": data[:-1],
        "something follows it": data + b"\0",
        "it is of format 2": other(0, 2),
        "its seq is text": other(5, "1"),
        "its channel is not in the list": other(11, "nobody"),
        "its digest of the stream is too short": other(21, bytes(31)),
        "its origin has three values": other(12, ["src", 4, 100]),
        "its header has a field more": record.encode_frame(cbor.encode([*values, 0]), SALT, plain),
        "its header is not canonical": record.encode_frame(longer, SALT, plain),
        "its header holds a tag": record.encode_frame(b"\xc1" + header, SALT, plain),
        "its body is shorter than it says": other(17, 7),
        "its body encoding is not known": other(20, "rot13"),
        "its body is said to be compressed": other(20, "zlib"),
    }
    return [{"why": why, "damaged": bad.hex(), "sound": sound} for why, bad in made.items()]


def make_store(folder: Path) -> dict[str, Any]:
    path = folder / "store"
    with history.opened(path) as log:
        history.append_all(log)
        lines = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in TRANSCRIPT)
        import_bytes(log, lines.encode(), "/golden/imported.jsonl")
        position, digest = log.store_tip()
        sessions = [name for name, _ in log.streams("session/")]
        found = {
            "store": log.store_id,
            "position": position,
            "digest": digest.hex(),
            "original": lines,
            "streams": {name: tip.seq for name, tip in sorted(log.streams())},
            "sessions": {name: expectations(log, name) for name in sorted(sessions)},
        }
    with lmdb.open(str(path), max_dbs=8, map_size=1 << 30) as env:
        (folder / "compact").mkdir()
        env.copy(str(folder / "compact"), compact=True)
    shutil.copy(folder / "compact" / "data.mdb", HERE / "store" / "data.mdb")
    shutil.copy(path / "tip", HERE / "store" / "tip")
    return found


def main() -> int:
    there = [name for name in FILES if (HERE / name).exists()]
    if there and "--force" not in sys.argv[1:]:
        print(f"not made: {', '.join(there)} are there. They guard the format; --force writes them over.")
        return 1
    (HERE / "store").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        made: dict[str, Any] = {
            "kinds.json": make_kinds(),
            "bodies.json": make_bodies(),
            "session.json": make_session(Path(folder)),
            "damaged.json": make_damaged(),
            "store.json": make_store(Path(folder)),
        }
    for name, value in made.items():
        (HERE / name).write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
