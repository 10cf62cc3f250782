"""Floor 2: provider bytes -> parts. One pure, versioned reader per format; a record names the one that read it."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

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
        found = _found[reader] = getattr(_module(module), function)
    return found


def read_item(reader: tuple[str, int] | None, data: bytes) -> Reading:
    """Read an item's bytes with the reader that its record names; one opaque reading when it is not known."""
    found = reader_of(reader) if reader else None
    return found(data) if found else Reading("opaque", ())


def _module(name: str) -> ModuleType:
    """A reader's module. All are named here, so that nothing is imported that this file does not say."""
    match name:
        case "anthropic":
            from . import anthropic

            return anthropic
        case "claude_code":
            from . import claude_code

            return claude_code
        case "cline":
            from . import cline

            return cline
        case "codex":
            from . import codex

            return codex
        case "copilot_cli":
            from . import copilot_cli

            return copilot_cli
        case "deepseek_harness":
            from . import deepseek_harness

            return deepseek_harness
        case "gemini":
            from . import gemini

            return gemini
        case "gemini_cli":
            from . import gemini_cli

            return gemini_cli
        case "goose":
            from . import goose

            return goose
        case "langgraph":
            from . import langgraph

            return langgraph
        case _:
            return _further(name)


def _further(name: str) -> ModuleType:
    """The rest of them."""
    match name:
        case "mini_swe_agent":
            from . import mini_swe_agent

            return mini_swe_agent
        case "openai_chat":
            from . import openai_chat

            return openai_chat
        case "openai_responses":
            from . import openai_responses

            return openai_responses
        case "opencode":
            from . import opencode

            return opencode
        case "openhands_v0":
            from . import openhands_v0

            return openhands_v0
        case "openhands_v1":
            from . import openhands_v1

            return openhands_v1
        case "otel_genai":
            from . import otel_genai

            return otel_genai
        case "pi":
            from . import pi

            return pi
        case "swe_agent":
            from . import swe_agent

            return swe_agent
        case "tau_bench":
            from . import tau_bench

            return tau_bench
        case _:
            from . import texts

            return texts
