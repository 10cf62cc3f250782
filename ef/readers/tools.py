"""What is common to tool calls of all formats: their neutral view. Pure."""

from __future__ import annotations

from dataclasses import replace

from ..events import Part


def named(part: Part, call_id: str) -> Part:
    """The part of a call or a result under another call id."""
    call = replace(part.call, call_id=call_id) if part.call else None
    result = replace(part.result, call_id=call_id) if part.result else None
    return replace(part, call_id=call_id, call=call, result=result)
