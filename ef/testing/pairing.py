"""An independent validator of messages in Anthropic's form: it reads the rendered messages and nothing else.

The rules are those that the provider's API enforces: roles alternate; a message has content; each tool_use of an
assistant message has exactly one tool_result in the user message right behind it; the results stand first there; no
tool_result without its tool_use; ids inside one message are distinct; no tool_use in a user message, no tool_result in
an assistant's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard


def violations(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is wrong with the messages, in plain words; an empty list when a provider would take them."""
    found: list[str] = []
    before: list[Any] = []
    last_role = None
    for n, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role not in ("user", "assistant"):
            found.append(f"message {n}: role {role!r}")
        if role == last_role:
            found.append(f"message {n}: the role {role} stands twice in a row")
        last_role = role
        if not _is_list(content) or not content:
            found.append(f"message {n}: it has no content")
            continue
        blocks: list[Any] = [*content]
        found += [f"message {n}: {what}" for what in _blocks(str(role), blocks, before)]
        before = _ids(blocks, "tool_use", "id") if role == "assistant" else []
    if before:
        found.append(f"the last message leaves calls without results: {before}")
    return found


def _blocks(role: str, blocks: list[Any], calls: list[Any]) -> list[str]:
    found = [
        f"block {k} is no block: {block!r:.60}"
        for k, block in enumerate(blocks)
        if not _is_map(block) or not isinstance(block.get("type"), str)
    ]
    uses, results = _ids(blocks, "tool_use", "id"), _ids(blocks, "tool_result", "tool_use_id")
    if any(not isinstance(name, str) or not name for name in uses + results):
        found.append(f"an id is no text: {uses + results}")
        return found
    if role == "user":
        if uses:
            found.append(f"a user message holds calls: {uses}")
        if Counter(results) != Counter(calls):
            found.append(f"results {results} do not answer the calls {calls}")
        kinds = [block.get("type") for block in blocks if _is_map(block)]
        if "tool_result" in kinds[len(results) :]:
            found.append("a result stands behind other blocks")
    else:
        if results:
            found.append(f"an assistant message holds results: {results}")
        if calls:
            found.append(f"the calls {calls} before it have no results")
        if len(set(uses)) != len(uses):
            found.append(f"a call id stands twice: {uses}")
    return found


def _ids(blocks: list[Any], kind: str, name: str) -> list[Any]:
    return [b.get(name) for b in blocks if _is_map(b) and b.get("type") == kind]


def _is_map(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)
