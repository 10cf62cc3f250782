"""The forms of what a caller gives. The only module that imports pydantic: see borders.py."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic import ValidationError as ValidationError

from ..events import Authority, Kind


class Message(BaseModel):
    """An Anthropic-shaped message; other fields are kept with it as they are."""

    model_config = ConfigDict(extra="allow", strict=True)

    role: Literal["user", "assistant"]
    content: str | Annotated[list[dict[str, Any]], Field(min_length=1)]


class Declaration(BaseModel):
    """What an operator declares."""

    model_config = ConfigDict(extra="forbid", strict=True)

    kind: Kind
    key: Annotated[str, Field(max_length=400)]
    quote: Annotated[str, Field(min_length=1)] | None = None
    source: Annotated[int, Field(ge=1)] | None = None
    authority: Authority | None = None
    unit: Annotated[str, Field(max_length=60)] | None = None
    because: Annotated[str, Field(max_length=4000)] | None = None
    idempotency_key: str | None = None
