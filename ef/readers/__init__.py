"""Floor 2: provider bytes -> parts. One pure, versioned reader per format; a record names the one that read it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from ..events import Reading

Reader = Callable[[bytes], Reading]
READERS: dict[tuple[str, int], tuple[str, str]] = {
    ("claude-code", 1): ("claude_code", "read"),
    ("anthropic", 1): ("anthropic", "read"),
    ("opencode/user", 1): ("opencode", "read_user"),
    ("opencode/assistant", 1): ("opencode", "read_assistant"),
    ("opencode/results", 1): ("opencode", "read_results"),
    ("pi", 1): ("pi", "read"),
    ("copilot-cli", 1): ("copilot_cli", "read"),
    ("gemini-cli", 1): ("gemini_cli", "read"),
    ("gemini-cli/results", 1): ("gemini_cli", "read_results"),
    ("cline", 1): ("cline", "read"),
    ("cline/user", 1): ("cline", "read_user"),
    ("cline/assistant", 1): ("cline", "read_assistant"),
    ("roo/user", 1): ("cline", "read_user"),
    ("roo/assistant", 1): ("cline", "read_assistant"),
    ("goose/user", 1): ("goose", "read_user"),
    ("goose/assistant", 1): ("goose", "read_assistant"),
    ("openai-responses", 1): ("openai_responses", "read"),
    ("openai-responses/results", 1): ("openai_responses", "read_results"),
    ("codex", 1): ("codex", "read"),
    ("codex/summary", 1): ("codex", "read_summary"),
    ("codex/results", 1): ("codex", "read_results"),
    ("openai-chat", 1): ("openai_chat", "read"),
    ("gemini", 1): ("gemini", "read"),
    ("tau-bench", 1): ("tau_bench", "read"),
    ("system-text", 1): ("texts", "read_system"),
    ("user-text", 1): ("texts", "read_user"),
    ("mini-swe-agent", 1): ("mini_swe_agent", "read"),
    ("mini-swe-agent/results", 1): ("mini_swe_agent", "read_results"),
    ("swe-agent", 1): ("swe_agent", "read"),
    ("swe-agent/results", 1): ("swe_agent", "read_results"),
    ("swe-agent/observation", 1): ("swe_agent", "read_observation"),
    ("openhands-v0", 1): ("openhands_v0", "read"),
    ("openhands-v0/more", 1): ("openhands_v0", "read_more"),
    ("openhands-v0/answer", 1): ("openhands_v0", "read_answer"),
    ("openhands-v0/told", 1): ("openhands_v0", "read_told"),
    ("openhands-v1", 1): ("openhands_v1", "read"),
    ("openhands-v1/results", 1): ("openhands_v1", "read_results"),
    ("deepseek-harness", 1): ("deepseek_harness", "read"),
    ("langgraph", 1): ("langgraph", "read"),
    ("otel-genai", 1): ("otel_genai", "read"),
    ("otel-genai/system", 1): ("otel_genai", "read_system"),
}
"""Every reader of every version that a store may name: its module here, and the function. The table is closed."""

DIALECTS: dict[str, str] = {
    "claude-code": "anthropic",
    "anthropic": "anthropic",
    "openai-responses": "responses",
    "openai-responses/results": "responses",
    "openai-chat": "openai",
    "gemini": "gemini",
    "codex": "responses",
    "codex/summary": "responses",
    "codex/results": "responses",
}
"""Reader -> the provider whose blocks its parts hold: anthropic, openai, responses or gemini. Others have their own."""

_found: dict[tuple[str, int], Reader] = {}


def reader_of(reader: tuple[str, int]) -> Reader | None:
    """The function that reads items which name this reader; its module is imported with the first."""
    found = _found.get(reader)
    if found is None and reader in READERS:
        module, function = READERS[reader]
        found = _found[reader] = getattr(import_module(f".{module}", __package__), function)
    return found


def read_item(reader: tuple[str, int] | None, data: bytes) -> Reading:
    """Read an item's bytes with the reader that its record names; one opaque reading when it is not known."""
    found = reader_of(reader) if reader else None
    return found(data) if found else Reading("opaque", ())
