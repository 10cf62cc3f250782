"""Made-up transcripts in Claude Code's form: valid, seeded, as long as a test wants them."""

from __future__ import annotations

import json
import random
from typing import Any

_WORDS = "cup kettle leaf lid pot rose salt spoon steam sugar tea tray water".split()


def transcript(turns: int, *, session: str = "made-up", seed: int = 0) -> bytes:
    """Lines of `turns` turns: words typed, a call, its result (some are errors), an answer. A prefix is a prefix."""
    chosen = random.Random(f"{session}/{seed}")
    lines: list[dict[str, Any]] = []
    for turn in range(turns):
        call = f"toolu_{seed}_{turn}"
        said = " ".join(chosen.choices(_WORDS, k=chosen.randint(3, 60)))
        output = "\n".join(
            " ".join(chosen.choices(_WORDS, k=8)) for _ in range(chosen.randint(1, 60))
        )
        failed = chosen.random() < 0.2
        use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": f"brew {turn}"}}
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": call, "content": output}
        if failed:
            result |= {"is_error": True, "content": f"Exit code 1\n{output}"}
        contents: list[tuple[str, str | None, Any]] = [
            ("user", None, said),
            ("assistant", f"msg_{turn}_a", [use]),
            ("user", None, [result]),
            ("assistant", f"msg_{turn}_b", [{"type": "text", "text": f"Turn {turn} is done."}]),
        ]
        lines += [
            _line(session, 4 * turn + n, role, group, content)
            for n, (role, group, content) in enumerate(contents)
        ]
    return b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)


def _line(session: str, n: int, role: str, group: str | None, content: Any) -> dict[str, Any]:
    message: dict[str, Any] = {"role": role, "content": content}
    if group is not None:
        message |= {
            "id": group,
            "model": "claude-made-up",
            "usage": {"input_tokens": n, "output_tokens": 1},
        }
    return {
        "type": role,
        "sessionId": session,
        "uuid": f"{session}-{n}",
        "parentUuid": f"{session}-{n - 1}" if n else None,
        "isSidechain": False,
        "timestamp": f"2026-03-02T{9 + n // 3600 % 14:02}:{n // 60 % 60:02}:{n % 60:02}.000Z",
        "message": message,
    }
