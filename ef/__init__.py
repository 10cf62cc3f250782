"""Epistemic Fold: context and state for agents that run for days.

    import ef
    with ef.open("agent.ef") as store:
        store.import_file("session.jsonl")
        session = store.session("build-42")
        session.append({"role": "user", "content": "Keep the public API as it is."})
        print(session.state().heads, session.context().messages)

Importing `ef` has no effect and is cheap: everything else is loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import EfError as EfError
    from .events import Authority as Authority
    from .events import Channel as Channel
    from .events import Kind as Kind
    from .session import Session as Session
    from .session import Store as Store
    from .session.store import open_store as open

__version__ = "0.1.0"
__all__ = ["Authority", "Channel", "EfError", "Kind", "Session", "Store", "__version__", "open"]

_PLACES = {
    "open": ("session.store", "open_store"),
    "Store": ("session", "Store"),
    "Session": ("session", "Session"),
    "EfError": ("errors", "EfError"),
    "Authority": ("events", "Authority"),
    "Channel": ("events", "Channel"),
    "Kind": ("events", "Kind"),
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'ef' has no attribute {name!r}")
    from importlib import import_module

    module, attribute = _PLACES[name]
    found = getattr(import_module(f"ef.{module}"), attribute)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
