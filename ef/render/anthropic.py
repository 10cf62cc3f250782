"""Surface nodes -> messages in Anthropic's form. Pure.

Rules: the items of one model response become one assistant message; results follow it in one user message, before other
text, in the order of the calls; responses that nothing of the user's parts are one message. Calls and results are a
bijection in what is handed out: a call without a result is closed by a stand-in when an event closed it, else it is
pending and not handed out; a late result is shown once, as text, where it came; a result whose call is not in sight
becomes text that says so; so does an opaque block that would be taken for a call or a result, or for no block at all.
Other blocks are the provider's own, byte for byte as JSON values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..events import Part, PartKind
from ..events.shapes import is_map

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Shown:
    """A node with its parts: what the renderer needs of an item."""

    seq: int
    role: str
    group: str | None
    parts: tuple[Part, ...]


@dataclass(slots=True)
class _Turn:
    group: str | None = None
    calls: list[Place] = field(default_factory=list[Place])
    assistant: list[Any] = field(default_factory=list[Any])
    results: dict[Place, Part] = field(default_factory=dict[Place, Part])
    user: list[Any] = field(default_factory=list[Any])


def messages(
    nodes: Iterable[Shown],
    *,
    results: Mapping[Place, Place],
    answered: Mapping[Place, Place],
    closed: Mapping[Place, str],
    late: Mapping[Place, Place],
) -> list[dict[str, Any]]:
    """The messages; the mappings say which call has which result, and what is closed or late (see reducers.surface)."""
    out: list[dict[str, Any]] = []
    turn = _Turn()
    for node in nodes:
        if node.role == "assistant":
            other = node.group is None or node.group != turn.group
            if other and (turn.user or turn.results):
                _flush(turn, out, closed)
                turn = _Turn()
            turn.group = node.group
            _assistant(node, turn, results, closed)
        else:
            _user(node, turn, answered, late)
    _flush(turn, out, closed)
    return out


def _assistant(
    node: Shown, turn: _Turn, results: Mapping[Place, Place], closed: Mapping[Place, str]
) -> None:
    for n, part in enumerate(node.parts):
        place = (node.seq, n)
        if part.kind is PartKind.TOOL_CALL:
            if place not in results and place not in closed:
                continue
            turn.calls.append(place)
        turn.assistant.append(_block(part))


def _user(
    node: Shown, turn: _Turn, answered: Mapping[Place, Place], late: Mapping[Place, Place]
) -> None:
    for n, part in enumerate(node.parts):
        place = (node.seq, n)
        if part.kind is not PartKind.TOOL_RESULT:
            turn.user.append(_block(part))
        elif place in answered and answered[place] in turn.calls:
            turn.results[answered[place]] = part
        elif place in late:
            turn.user.append(_unpaired(part, "which was closed before it came"))
        else:
            turn.user.append(_unpaired(part))


def _flush(turn: _Turn, out: list[dict[str, Any]], closed: Mapping[Place, str]) -> None:
    assistant: list[Any] = []
    blocks: list[Any] = []
    aside: list[Any] = []
    places = iter(turn.calls)
    shown = _shown_calls(turn)
    for block in turn.assistant:
        if not (is_map(block) and block.get("type") == "tool_use"):
            assistant.append(block)
            continue
        place = next(places)
        result = turn.results.get(place)
        if place in shown:
            assistant.append(block)
            blocks.append(_block(result) if result else _closing(block, closed.get(place)))
        else:
            note = f"[another call with the id {block.get('id')} in one response; it is kept as it came]"
            assistant.append({"type": "text", "text": note})
            aside += [_unpaired(result)] if result else []
    _add(out, "assistant", assistant)
    _add(out, "user", [*blocks, *aside, *turn.user])


def _shown_calls(turn: _Turn) -> set[Place]:
    """One call of each id, as a provider demands: of those that share one, the first that has its result here."""
    chosen: dict[Any, Place] = {}
    calls = [b for b in turn.assistant if is_map(b) and b.get("type") == "tool_use"]
    for place, block in zip(turn.calls, calls, strict=True):
        held = chosen.setdefault(block.get("id"), place)
        if held not in turn.results and place in turn.results:
            chosen[block.get("id")] = place
    return set(chosen.values())


def _unpaired(result: Part, why: str = "which is not in sight") -> dict[str, Any]:
    note = f"[result of call {result.call_id}, {why}]"
    return {"type": "text", "text": f"{note}\n{result.text}"}


def _closing(call: Any, outcome: str | None) -> dict[str, Any]:
    text = f"[closed as {outcome or 'outcome unknown'}: no result had come when the next response began]"
    return {"type": "tool_result", "tool_use_id": call.get("id"), "content": text, "is_error": True}


def _add(out: list[dict[str, Any]], role: str, blocks: list[Any]) -> None:
    if blocks:
        if out and out[-1]["role"] == role:
            out[-1]["content"] += blocks
        else:
            out.append({"role": role, "content": list(blocks)})


def _block(part: Part) -> Any:
    if part.kind is PartKind.OPAQUE and not _harmless(part.block):
        return {"type": "text", "text": "[a block that cannot be read; it is kept as it came]"}
    return part.block if part.block is not None else {"type": "text", "text": part.text}


def _harmless(block: Any) -> bool:
    """Whether an unread block can be handed back: it has a kind, and not one that pairing depends on."""
    kind = block.get("type") if is_map(block) else None
    return isinstance(kind, str) and kind not in ("text", "tool_use", "tool_result")
