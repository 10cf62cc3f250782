"""Events of every kind, and Hypothesis strategies for events and headers, for the tests of several floors."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from hypothesis import strategies as st

from ef import events as ev

REF = ev.SourceRef(
    "session/a", 2, 0, 3, 9, bytes(range(32)), ev.Channel.USER_TYPED, "text", "item-key"
)
ANCHOR = ev.Anchor(
    "an:0123456789abcdef01234567",
    ev.Kind.VALUE,
    ev.AnchorKey("config", "server/eu", "timeout"),
    {"n": [30, None, True, "s", -1]},
    ev.Authority.NORMATIVE,
    ev.Channel.USER_TYPED,
    ev.Rule("declare", 1),
    unit="s",
    sources=(REF,),
    because="he said so",
    valid_while="the server is v2",
    depends_on=("an:1", "an:2"),
    owner="me",
    supersedes="an:3",
    fingerprint="make test",
    recurs="an:4",
)
FULL: tuple[Any, ...] = (
    ev.StoreOpened("ab" * 16, "ef 0"),
    ev.SourceOpened("s1", "claude_code", "/x/é.jsonl"),
    ev.SourceLines(b'{"a":1}\n\xff\x00'),
    ev.SourceNote("torn", "the last line is cut", 7, 1234),
    ev.SourceGrew(10, 20, "/x"),
    ev.SourceRewritten("s0", "/x"),
    ev.ImportCompleted(20, 2, bytes(32), ("one", "two")),
    ev.SessionOpened(
        "ab" * 16, "fork", "claude_code", "session/p", 4, bytes([7] * 32), {"tail": 8000}
    ),
    ev.SessionDescribed("A title"),
    ev.RouteChanged("anthropic", "opus", 200_000, 8_000, bytes([1] * 32), "session/a@1"),
    ev.ItemAppended(b'{"role":"user"}'),
    ev.ItemReplaced(b'{"role":"assistant"}'),
    ev.CallClosed("call-1", 3, 0, "interrupted"),
    ev.ForeignCompaction("claude-code", "compact", "auto", 150_000, ("u1", "u2")),
    ev.UsageReported("msg-1", 10, 20, 30, 40),
    ev.AnchorDeclared(ANCHOR),
    ev.StoredEvent("topic", b"\x00state", True),
    ev.ImportProgressed(20, 2, bytes(32), ("one", "two"), ("two",)),
    ev.Redacted("shapes", "1", {"github-token": 2, "jwt": 1}),
)
"""One event of each kind in the order of the table, every field set."""

BARE: tuple[Any, ...] = (
    ev.SourceNote("odd", "", None, None),
    ev.ImportCompleted(0, 0, bytes(32), ()),
    ev.SessionOpened("", "root", ""),
    ev.RouteChanged(None, None),
    ev.ForeignCompaction("t", "micro", None, None),
    ev.UsageReported("m", None, None, None, None),
    ev.AnchorDeclared(
        ev.Anchor("an:x", ev.Kind.DECISION, ev.AnchorKey("a", "b", "c"), None, ev.Authority.DECISION,
                  ev.Channel.OPERATOR, ev.Rule("r", 0))
    ),
)  # fmt: skip
"""The same with everything that may be absent absent."""

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
COUNT = st.integers(0, 2**63)
DIGEST = st.binary(min_size=32, max_size=32)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | TEXT | st.binary(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
"""All that may be stored: what `cbor.encode` takes and gives back equal."""


def _maybe(what: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | what


ORIGINS = st.builds(ev.Origin, TEXT, COUNT, COUNT, COUNT)
ITEMS = st.builds(
    ev.ItemFacts,
    TEXT,
    st.lists(
        st.builds(
            ev.PartFacts, st.sampled_from(ev.PartKind), st.sampled_from(ev.Channel), _maybe(TEXT)
        ),
        max_size=3,
    ).map(tuple),
    _maybe(COUNT),
    _maybe(TEXT),
)
HEADERS = st.builds(
    ev.Header,
    kind=TEXT,
    version=COUNT,
    required=st.booleans(),
    stream=TEXT,
    seq=COUNT,
    uuid=st.binary(min_size=16, max_size=16),
    key=TEXT,
    recorded_at=COUNT,
    occurred_at=_maybe(st.integers(-(2**63), 2**63)),
    basis=st.sampled_from(ev.Basis),
    channel=st.sampled_from(ev.Channel),
    origin=_maybe(ORIGINS),
    cause=_maybe(st.builds(ev.Cause, TEXT, COUNT)),
    group=_maybe(st.builds(ev.Group, TEXT, st.booleans())),
    item=_maybe(ITEMS),
    commitment=DIGEST,
    body_size=COUNT,
    place=st.sampled_from(ev.Place),
    reader=_maybe(st.tuples(TEXT, COUNT)),
    encoding=TEXT,
    prev_stream=DIGEST,
    prev_store=DIGEST,
)
assert len(fields(ev.Header)) == 22

HEADER = ev.Header(
    "ItemAppended", 1, True, "session/a", 3, bytes(range(16)), "key-3", 1_700_000_000_000_000, 1_600_000_000_000_000,
    ev.Basis.CLAIMED, ev.Channel.USER_TYPED, ev.Origin("src", 4, 100, 200), ev.Cause("session/a", 2),
    ev.Group("g1", True),
    ev.ItemFacts("user", (ev.PartFacts(ev.PartKind.TEXT, ev.Channel.USER_TYPED),
                          ev.PartFacts(ev.PartKind.TOOL_RESULT, ev.Channel.TOOL, "c1")), 12, "meter/1"),
    bytes([1] * 32), 100, ev.Place.INLINE, ("claude_code", 1), "none", bytes([2] * 32), bytes([3] * 32),
)  # fmt: skip
"""A header with every field set."""
