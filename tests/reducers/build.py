"""Recorded events for reducers, and Hypothesis strategies for sequences of them, legal and not."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ef import events as ev
from ef.codec import kinds
from ef.codec.digests import ZERO, event_uuid
from ef.reducers import Reducer
from tests.codec.samples import BARE, FULL

STREAM = "session/a"
CALL, RESULT, TEXT = ev.PartKind.TOOL_CALL, ev.PartKind.TOOL_RESULT, ev.PartKind.TEXT
SPEAKS = {CALL: ev.Channel.ASSISTANT, RESULT: ev.Channel.TOOL, TEXT: ev.Channel.USER_TYPED}


def facts(*parts: tuple[ev.PartKind, str | None]) -> ev.ItemFacts:
    return ev.ItemFacts("r", tuple(ev.PartFacts(k, SPEAKS[k], c) for k, c in parts), 1, "m")


def recorded(
    event: Any,
    seq: int,
    *,
    stream: str = STREAM,
    channel: ev.Channel = ev.Channel.OPERATOR,
    item: ev.ItemFacts | None = None,
    cause: ev.Cause | None = None,
    group: ev.Group | None = None,
    occurred_at: int | None = None,
) -> ev.Recorded:
    """An event as reducers meet it; the header's digests are of no account to them."""
    if isinstance(event, ev.UnknownEvent):
        name, version, required = event.kind, event.version, False
    else:
        spec = kinds.spec_of(event)
        name, version, required = spec.name, spec.version, spec.required
    key = f"k{seq}"
    header = ev.Header(
        name, version, required, stream, seq, event_uuid(stream, key), key, 1_000 + seq, occurred_at,
        ev.Basis.CLAIMED, channel, None, cause, group, item, ZERO, 0, ev.Place.INLINE, None, "none", ZERO, ZERO,
    )  # fmt: skip
    return ev.Recorded(header, bytes([seq % 256] * 32), event)


def appended(seq: int, *parts: tuple[ev.PartKind, str | None], **how: Any) -> ev.Recorded:
    return recorded(ev.ItemAppended(b""), seq, item=facts(*parts), **how)


def replaced(seq: int, of: int, *parts: tuple[ev.PartKind, str | None], **how: Any) -> ev.Recorded:
    return recorded(
        ev.ItemReplaced(b""), seq, item=facts(*parts), cause=ev.Cause(STREAM, of), **how
    )


def closed(seq: int, call: str, of: int, part: int = 0, why: str = "interrupted") -> ev.Recorded:
    return recorded(ev.CallClosed(call, of, part, why), seq)


def ref(seq: int, channel: ev.Channel, start: int = 0, end: int = 5, stream: str = STREAM) -> Any:
    return ev.SourceRef(stream, seq, 0, start, end, bytes(32), channel, "text", f"k{seq}")


def anchor(
    key: str = "a/b/c",
    value: Any = 1,
    *,
    channel: ev.Channel = ev.Channel.USER_TYPED,
    kind: ev.Kind = ev.Kind.VALUE,
    authority: ev.Authority | None = None,
    sources: Any = None,
) -> ev.Anchor:
    parsed = ev.AnchorKey.parse(key)
    assert parsed is not None
    authority = authority or AUTHORITY.get(channel, ev.Authority.HYPOTHESIS)
    if sources is None:
        sources = (ref(1, channel),)
    rule = ev.Rule("test", 1)
    return ev.Anchor(
        f"an:{key}:{value}", kind, parsed, value, authority, channel, rule, sources=sources
    )


AUTHORITY = {
    ev.Channel.OPERATOR: ev.Authority.NORMATIVE,
    ev.Channel.USER_TYPED: ev.Authority.NORMATIVE,
    ev.Channel.SYSTEM: ev.Authority.NORMATIVE,
    ev.Channel.TOOL: ev.Authority.EMPIRICAL,
    ev.Channel.CI: ev.Authority.EMPIRICAL,
    ev.Channel.FILESYSTEM: ev.Authority.EMPIRICAL,
}


def declared(seq: int, what: ev.Anchor, by: ev.Channel = ev.Channel.OBSERVER) -> ev.Recorded:
    if what.channel is ev.Channel.OPERATOR and by is ev.Channel.OBSERVER:
        by = ev.Channel.OPERATOR
    return recorded(ev.AnchorDeclared(what), seq, channel=by)


def run(reducer: Reducer, events: list[ev.Recorded]) -> Any:
    state = reducer.initial()
    for each in events:
        state = reducer.evolve(state, each)
    return state


# -- any sequence -----------------------------------------------------------------------------------------------

IDS = st.sampled_from(["c1", "c2", None, ""])
PARTS = st.lists(st.tuples(st.sampled_from([CALL, RESULT, TEXT]), IDS), max_size=4)
REFS = st.builds(
    ref, st.integers(0, 30), st.sampled_from(ev.Channel), st.integers(-1, 3), st.integers(0, 5),
    st.sampled_from([STREAM, "session/b"]),
)  # fmt: skip
ANCHORS = st.builds(
    anchor,
    st.sampled_from(["a/b/c", "a/b/d", "e/f/g/h"]),
    st.integers(0, 3) | st.sampled_from(["x", None, [1, {"k": True}]]),
    channel=st.sampled_from(ev.Channel),
    kind=st.sampled_from(ev.Kind),
    authority=st.none() | st.sampled_from(ev.Authority),
    sources=st.none() | st.lists(REFS, max_size=2).map(tuple),
)
OTHERS = st.sampled_from([*FULL, *BARE, ev.UnknownEvent("Later", 9)])


@st.composite
def histories(draw: st.DrawFn, most: int = 25) -> list[ev.Recorded]:
    """Events of every kind in seq order; about half of those with a rule break it."""
    found: list[ev.Recorded] = []
    for seq in range(1, draw(st.integers(0, most)) + 1):
        earlier = st.integers(1, max(seq - 1, 1))
        how: dict[str, Any] = {
            "channel": draw(st.sampled_from(ev.Channel)),
            "occurred_at": draw(st.none() | st.integers(0, 100)),
            "group": draw(st.none() | st.builds(ev.Group, st.sampled_from("gh"), st.booleans())),
        }
        match draw(st.integers(0, 9)):
            case 0 | 1 | 2:
                item = draw(
                    st.none() | PARTS.map(lambda p: facts(*p)) | PARTS.map(lambda p: facts(*p))
                )
                found.append(recorded(ev.ItemAppended(b""), seq, item=item, **how))
            case 3:
                cause = draw(
                    st.none() | st.builds(ev.Cause, st.sampled_from([STREAM, STREAM, "t"]), earlier)
                )
                item = draw(
                    st.none() | PARTS.map(lambda p: facts(*p)) | PARTS.map(lambda p: facts(*p))
                )
                found.append(recorded(ev.ItemReplaced(b""), seq, item=item, cause=cause, **how))
            case 4 | 5:
                call = draw(IDS) or ""
                why = draw(st.sampled_from(["not_started", "interrupted", "unknown"]))
                closer = ev.CallClosed(call, draw(earlier), draw(st.integers(0, 3)), why)
                found.append(recorded(closer, seq, **how))
            case 6 | 7 | 8:
                found.append(recorded(ev.AnchorDeclared(draw(ANCHORS)), seq, **how))
            case _:
                found.append(recorded(draw(OTHERS), seq, **how))
    return found
