"""The closed table of kinds: each is written and read, and nothing that is not in it is made from a store."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ef import events as ev
from ef.codec import cbor, kinds
from ef.errors import Damaged, InputRefused
from tests.codec.samples import ANCHOR, BARE, FULL, REF, VALUES

MAPS = [event for event in (*FULL, *BARE) if not kinds.spec_of(event).raw]


def read(event: Any, plain: bytes) -> Any:
    spec = kinds.spec_of(event)
    return kinds.decode_body(spec.name, spec.version, plain, where="here")


def test_the_table_holds_every_event_type_but_the_one_for_unknown_ones() -> None:
    assert {spec.type for spec in kinds.KINDS} == set(get_args(ev.Event)) - {ev.UnknownEvent}
    assert [spec.type for spec in kinds.KINDS] == [type(event) for event in FULL]
    assert len(kinds.BY_NAME) == len(kinds.BY_TYPE) == len(kinds.KINDS)


def test_names_versions_and_flags_stand_as_they_are_in_the_format() -> None:
    assert [(s.name, s.version, s.required, s.raw) for s in kinds.KINDS] == [
        ("StoreOpened", 1, True, False),
        ("SourceOpened", 1, True, False),
        ("SourceLines", 1, True, True),
        ("SourceNote", 1, False, False),
        ("SourceGrew", 1, True, False),
        ("SourceRewritten", 1, True, False),
        ("ImportCompleted", 1, True, False),
        ("SessionOpened", 1, True, False),
        ("SessionDescribed", 1, False, False),
        ("RouteChanged", 1, True, False),
        ("ItemAppended", 1, True, True),
        ("ItemReplaced", 1, True, True),
        ("CallClosed", 1, True, False),
        ("ForeignCompaction", 1, True, False),
        ("UsageReported", 1, False, False),
        ("AnchorDeclared", 1, True, False),
        ("StoredEvent", 1, False, False),
        ("ImportProgressed", 1, True, False),
        ("Redacted", 1, False, False),
    ]


@pytest.mark.parametrize("event", [*FULL, *BARE], ids=lambda e: type(e).__name__)
def test_each_kind_is_read_as_it_was_written(event: Any) -> None:
    plain = kinds.encode_body(event)
    assert read(event, plain) == event
    assert kinds.encode_body(read(event, plain)) == plain


@pytest.mark.parametrize("event", FULL, ids=lambda e: type(e).__name__)
def test_a_raw_kind_is_its_bytes_and_every_other_one_a_map_of_all_fields(event: Any) -> None:
    plain = kinds.encode_body(event)
    if kinds.spec_of(event).raw:
        assert plain == event.data
        assert read(event, b"not cbor \xff") == type(event)(b"not cbor \xff")
    else:
        assert sorted(cbor.decode(plain)) == sorted(f.name for f in fields(event))


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("ItemAppended", 2),
        ("ItemAppended", 0),
        ("Item", 1),
        ("os.system", 1),
        ("", 1),
        ("Event", 1),
    ],
)
def test_an_unknown_kind_or_version_is_an_unknown_event_whatever_its_body(
    name: str, version: int
) -> None:
    for plain in (b"", b"\xff", cbor.encode({"a": 1})):
        found = kinds.decode_body(name, version, plain, where="here")
        assert found == ev.UnknownEvent(name, version)


@pytest.mark.parametrize("event", MAPS, ids=lambda e: type(e).__name__)
def test_a_missing_an_added_or_a_renamed_field_is_damage(event: Any) -> None:
    value = cbor.decode(kinds.encode_body(event))
    name = next(iter(value))
    rest = {k: v for k, v in value.items() if k != name}
    for other in (rest, {**value, "more": 1}, {**rest, name + "x": value[name]}, [], None, 3, ""):
        with pytest.raises(Damaged, match=f"here: the body of {type(event).__name__} cannot"):
            read(event, cbor.encode(other))


WRONG: list[Any] = [None, 1, True, "x", b"x", [1], [None], {"a": 1}, [["x"]]]


def wrong_for(hint: str, value: Any, other: Any) -> bool:
    """Whether `other` may not stand where `value` of the annotation `hint` stands."""
    if hint == "Any" or (other is None and "None" in hint):
        return False
    if isinstance(value, dict) or hint.startswith("dict"):
        return type(other) is not dict
    if hint.startswith("tuple[str"):
        return type(other) is not list or other != [str(x) for x in other]
    if hint.startswith("tuple"):
        return True
    return hint.split(" ")[0] != {int: "int", bool: "bool", str: "str", bytes: "bytes"}.get(
        type(other), "?"
    )


@pytest.mark.parametrize("event", FULL, ids=lambda e: type(e).__name__)
def test_a_field_of_a_wrong_type_is_damage_and_one_of_the_right_type_is_not(event: Any) -> None:
    spec = kinds.spec_of(event)
    if spec.raw or spec.type is ev.AnchorDeclared:
        return
    value = cbor.decode(kinds.encode_body(event))
    for field in fields(event):
        for other in WRONG:
            plain = cbor.encode({**value, field.name: other})
            if wrong_for(str(field.type), getattr(event, field.name), other):
                with pytest.raises(Damaged):
                    read(event, plain)
            else:
                assert kinds.encode_body(read(event, plain)) == plain


@pytest.mark.parametrize(
    ("path", "bad"),
    [
        (("key",), ["a", "b"]),
        (("key",), ["a", "b", "c", "d"]),
        (("key",), ["a", "b", 3]),
        (("key",), "a/b/c"),
        (("kind",), "fact"),
        (("kind",), None),
        (("kind",), ["value"]),
        (("authority",), "divine"),
        (("channel",), ""),
        (("rule",), ["r", 1]),
        (("rule", "version"), "1"),
        (("rule", "version"), True),
        (("sources",), {}),
        (("sources", 0), []),
        (("sources", 0, "channel"), "nobody"),
        (("sources", 0, "digest"), "x"),
        (("sources", 0, "seq"), None),
        (("depends_on",), ["a", 1]),
        (("unit",), 1),
        (("id",), None),
    ],
)
def test_an_anchor_of_a_wrong_form_is_damage(path: tuple[Any, ...], bad: Any) -> None:
    whole = cbor.decode(kinds.encode_body(ev.AnchorDeclared(ANCHOR)))
    at = whole["anchor"]
    for step in path[:-1]:
        at = at[step]
    assert kinds.encode_body(read(ev.AnchorDeclared(ANCHOR), cbor.encode(whole)))
    at[path[-1]] = bad
    with pytest.raises(Damaged, match="AnchorDeclared"):
        read(ev.AnchorDeclared(ANCHOR), cbor.encode(whole))


@given(VALUES)
def test_any_storable_value_of_an_anchor_is_kept(value: Any) -> None:
    event = ev.AnchorDeclared(replace(ANCHOR, value=value))
    assert read(event, kinds.encode_body(event)) == event


def test_words_and_tuples_inside_a_value_are_stored_as_text_and_lists_in_canonical_order() -> None:
    given = {"bb": (ev.Kind.VALUE, {"d": 1, "c": 2}), "a": [ev.Channel.TOOL]}
    event = ev.AnchorDeclared(replace(ANCHOR, value=given))
    found = read(event, kinds.encode_body(event))
    assert found.anchor.value == {"a": ["tool"], "bb": ["value", {"c": 2, "d": 1}]}
    assert list(found.anchor.value) == ["a", "bb"] and list(found.anchor.value["bb"][1]) == [
        "c",
        "d",
    ]


def test_a_key_that_is_no_text_is_refused_inside_a_value_too() -> None:
    event = ev.SessionOpened("s", "root", "f", policy={1: 2, "a": 3})  # type: ignore[dict-item]
    with pytest.raises(
        InputRefused, match="SessionOpened: it cannot be stored: a map key of type int"
    ):
        kinds.encode_body(event)


def test_only_bytes_that_are_trusted_are_read_in_another_form() -> None:
    event = ev.SessionDescribed("A title")
    plain = kinds.encode_body(event)
    longer = plain.replace(b"\x67A title", b"\x78\x07A title")
    assert len(longer) == len(plain) + 1
    assert kinds.decode_body("SessionDescribed", 1, longer, where="here", trusted=True) == event
    with pytest.raises(Damaged, match="not canonical"):
        read(event, longer)
    for bad in (plain[:-1], cbor.encode({"title": 7}), cbor.encode({"titel": "x"})):
        with pytest.raises(Damaged, match="here: the body of SessionDescribed"):
            kinds.decode_body("SessionDescribed", 1, bad, where="here", trusted=True)


@given(st.sampled_from(MAPS), st.binary(max_size=60))
def test_hostile_bytes_are_damage_or_an_event_that_writes_them(event: Any, plain: bytes) -> None:
    try:
        found = read(event, plain)
    except Damaged:
        return
    assert kinds.encode_body(found) == plain


@given(st.sampled_from(MAPS), VALUES)
def test_any_value_as_a_body_is_damage_or_an_event_that_writes_it(event: Any, value: Any) -> None:
    plain = cbor.encode(value)
    try:
        found = read(event, plain)
    except Damaged:
        return
    assert kinds.encode_body(found) == plain


@pytest.mark.parametrize(
    "event",
    [
        ev.ItemAppended("text"),  # type: ignore[arg-type]
        ev.SourceLines(bytearray(b"x")),  # type: ignore[arg-type]
        ev.SessionDescribed(7),  # type: ignore[arg-type]
        ev.CallClosed("c", True, 0, "interrupted"),
        ev.UsageReported("m", "1", None, None, None),  # type: ignore[arg-type]
        ev.ForeignCompaction("t", "f", None, None, (1,)),  # type: ignore[arg-type]
        ev.AnchorDeclared(replace(ANCHOR, kind="fact")),  # type: ignore[arg-type]
        ev.AnchorDeclared(replace(ANCHOR, sources=(replace(REF, seq="2"),))),  # type: ignore[arg-type]
    ],
)
def test_what_could_not_be_read_again_is_refused_before_it_is_written(event: Any) -> None:
    with pytest.raises(InputRefused, match=type(event).__name__):
        kinds.encode_body(event)


def test_a_float_inside_an_event_is_refused_by_the_name_of_its_kind() -> None:
    with pytest.raises(
        InputRefused, match="SessionOpened: it cannot be stored: a value of type float"
    ):
        kinds.encode_body(ev.SessionOpened("s", "root", "f", policy={"share": 0.5}))
