"""What a caller gives wrongly is a UsageError that names the argument, and never a bare error of Python's own."""

from __future__ import annotations

import os
import pickle  # noqa: TID251  (an error is copied to another process, nothing is read from a store)
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ef
from ef.errors import CallerError, EfError, InputRefused, NotFound, UsageError
from ef.session import verify_path
from ef.session.doctor import doctor

LONG = "x" * 10_000_000
NO_TEXT: list[Any] = [5, 1.5, True, b"x", [], {}, object(), float("nan"), Path("x")]
NO_NUMBER: list[Any] = [
    "x",
    "5",
    1.5,
    True,
    b"x",
    [],
    {},
    object(),
    float("nan"),
    10**5_000,
    -(10**60),
]
NO_MOMENT: list[Any] = [1.5, True, b"x", [], {}, object(), float("nan"), LONG, 10**5_000]
NO_PATH: list[Any] = [5, None, 1.5, True, b"x", [], {}, object(), "", LONG, "\ud800"]
NO_FUNCTION: list[Any] = [5, "x", True, [], object()]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ef.Store]:
    with ef.open(tmp_path_factory.mktemp("given") / "s") as opened:
        opened.session("one").append({"role": "user", "content": "Hello."})
        opened.session("one").declare("value", key="a/b/c", value=1)
        yield opened


def refuses(what: str, values: list[Any], call: Callable[[Any], object]) -> None:
    for value in values:
        with pytest.raises(UsageError) as caught:
            call(value)
        said = str(caught.value)
        assert (
            said.startswith(what) and ("give" in said or "use 1 to" in said) and len(said) < 5_000
        ), said


def test_a_moment_is_a_seq_a_time_or_nothing(store: ef.Store) -> None:
    session = store.session("one")
    for ask in (session.state, session.context, session.working, session.diff):
        refuses("at", NO_MOMENT, ask)
        ask(1)
        ask("1")
        ask("2090-01-01")
    refuses("at", NO_MOMENT, lambda value: session.audit("a/b/c", value))
    refuses("at", NO_MOMENT, lambda value: session.events(at=value))
    refuses("at", [5, 1.5, b"x", LONG], store.sessions)
    with pytest.raises(NotFound):
        session.state(-1)
    with pytest.raises(NotFound):
        session.state(10**9)


def test_names_are_text_of_bounded_size(store: ef.Store) -> None:
    wrong = [*NO_TEXT, LONG]
    refuses("session id", [None, *wrong, "", "a\0b", "a b"], store.session)
    refuses("session", [None, *wrong], store.find_session)
    refuses("session", wrong, store.rebuild)
    refuses("session", wrong, lambda value: store.verify(session=value))
    refuses("session", [*wrong, ""], lambda value: store.import_file("x", session=value))
    refuses("source", [None, *wrong, ""], store.notes)
    refuses("source", [None, *wrong, ""], store.export_original)
    refuses("key", [None, *wrong, ""], store.session("one").audit)
    refuses("prefix", [None, *wrong], lambda value: store.subscribe(prefix=value))
    for absent in ("a\0b", "\ud800"):
        with pytest.raises(NotFound):
            store.find_session(absent)
    assert store.find_session("o").id == "one"
    assert store.session("one").audit("a/b/c").current.value == 1


def test_numbers_are_whole_and_in_range(store: ef.Store) -> None:
    session = store.session("one")
    refuses("after", [None, *NO_NUMBER, -1], lambda value: session.events(after=value))
    refuses("after", [*NO_NUMBER, -2], lambda value: store.subscribe(after=value))
    refuses("length", [*NO_NUMBER, -1], lambda value: store.export_original("x", length=value))
    assert [e.header.seq for e in session.events(after=2)] == [3]
    store.subscribe(after=-1).stop()


def test_nobody_follows_from_where_the_store_has_not_come_to(store: ef.Store) -> None:
    end = store.log.tip_position()
    store.subscribe(after=end).stop()
    with pytest.raises(NotFound, match=f"0 to {end}"):
        store.subscribe(after=end + 1)


def test_paths_are_paths(store: ef.Store, tmp_path: Path) -> None:
    calls: list[Callable[[Any], object]] = [
        ef.open, verify_path, store.backup, store.import_file, doctor
    ]  # fmt: skip
    for call in calls:
        refuses("path", NO_PATH, call)
    for call in calls[:4]:
        for strange in ("a\0b", *(["x" * 3_000] if call is not verify_path else [])):
            with pytest.raises(EfError):
                call(strange)
    assert doctor("a\0b") and doctor("x" * 3_000)
    with pytest.raises(InputRefused, match="not a regular file"):
        store.import_file(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputRefused, match="not a regular file"):
        store.import_file(tmp_path / "pipe")


def test_progress_is_a_function(store: ef.Store) -> None:
    refuses("progress", NO_FUNCTION, lambda value: store.verify(progress=value))
    refuses("progress", NO_FUNCTION, lambda value: store.rebuild(progress=value))
    seen: list[int] = []
    assert store.verify(progress=seen.append).ok and seen


ODD: list[Any] = [*NO_TEXT, None, -1, "", "a\0b", "\ud800", LONG, 10**30, ["x"], {"x": 1}, "٣"]


def test_whatever_is_appended_or_declared_is_taken_or_refused_by_an_error_of_ours(
    store: ef.Store,
) -> None:
    s = store.session("other")
    declare = s.declare
    one: Any = {"role": "user", "content": "hi"}
    calls: list[Callable[[Any], object]] = [
        s.append, s.append_nowait, lambda v: s.append({**one, "content": v}), lambda v: s.append({**one, "role": v}),
        lambda v: s.append(one, channel=v), lambda v: s.append(one, key=v), lambda v: declare(v, key="a/b/c", value=1),
        lambda v: declare("value", key=v, value=1), lambda v: declare("value", key="a/b/c", value=v),
        *(lambda v, name=name: declare("value", key="a/b/c", value=1, **{name: v}) for name in
          ("quote", "source", "authority", "unit", "because", "idempotency_key")),
    ]  # fmt: skip
    for number, call in enumerate(calls):
        for value in ODD:
            said = ""
            try:
                call(value)
            except CallerError as fault:
                said = str(fault)
            assert len(said) < 5_000, (number, str(value)[:60])
    assert store.verify().ok


def test_a_long_fact_is_whole_in_the_error_and_short_in_its_message() -> None:
    fault = NotFound(what="event", name=LONG, where="here", remedy="Look elsewhere.")
    assert len(str(fault)) < 5_000 and str(fault).endswith("is not in here. Look elsewhere.")
    assert fault.name == LONG
    assert str(pickle.loads(pickle.dumps(fault))) == str(fault)
