"""The structure of the data file, read without LMDB: sound files are sound, broken ones are told, none raises."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import lmdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ef.log import databytes
from tests.log.build import filled, item, opened


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The data file of a store with branch, leaf and overflow pages."""
    path = filled(tmp_path_factory.mktemp("sound") / "store", 200)
    with opened(path) as log:
        log.append([item("session/b", str(n), os.urandom(9_000)) for n in range(4)])
    return (path / "data.mdb").read_bytes()


def told(tmp_path: Path, data: bytes) -> list[str]:
    (tmp_path / "data.mdb").write_bytes(data)
    short = databytes.unsafe(tmp_path / "data.mdb")
    found = databytes.check(tmp_path / "data.mdb")
    assert short is None or found
    return found


def put(data: bytes, at: int, form: str, *values: int) -> bytes:
    return data[:at] + struct.pack(form, *values) + data[at + struct.calcsize(form) :]


def live(data: bytes) -> int:
    """Where the live meta page lies."""
    one, two = databytes.metas(data)
    assert isinstance(one, databytes.Meta) and isinstance(two, databytes.Meta)
    return 0 if one.txnid > two.txnid else 4096


def pages(data: bytes, flag: int) -> list[int]:
    return [
        at
        for at in range(8192, len(data), 4096)
        if struct.unpack_from("<H", data, at + 10)[0] == flag
    ]


# -- sound ------------------------------------------------------------------------------------------------------


def test_a_sound_store_is_sound(store: bytes, tmp_path: Path) -> None:
    assert told(tmp_path, store) == []
    assert pages(store, databytes.BRANCH) and pages(store, databytes.OVERFLOW)


def test_every_page_that_the_trees_reach_is_visited(store: bytes, tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(store)
    meta = databytes.live(databytes.metas(store[: databytes.METAS_BYTES]))
    assert meta is not None
    with (tmp_path / "data.mdb").open("rb") as file:
        walk = databytes._Walk(file.fileno(), meta, len(store) // 4096)
        assert walk.trees(meta.roots) == []
    assert {at // 4096 for at in pages(store, databytes.BRANCH)} & walk.seen
    assert len(walk.seen) > 5 and max(walk.seen) <= meta.last_page


def test_a_store_that_holds_only_its_genesis_and_an_empty_environment_are_sound(
    tmp_path: Path,
) -> None:
    opened(tmp_path / "store").close()
    assert databytes.check(tmp_path / "store" / "data.mdb") == []
    lmdb.open(str(tmp_path / "empty")).close()
    assert databytes.check(tmp_path / "empty" / "data.mdb") == []
    with lmdb.open(str(tmp_path / "dups"), max_dbs=1) as env, env.begin(write=True) as txn:
        db = env.open_db(b"d", txn, dupsort=True, dupfixed=True)
        for n in range(2_000):
            txn.put(b"k", struct.pack("<I", n), db=db)
    assert databytes.check(tmp_path / "dups" / "data.mdb") == []


def test_a_file_with_pages_of_another_size_is_read_by_its_own_size(tmp_path: Path) -> None:
    for size in (512, 16_384, 65_536):
        data = bytearray(4 * size)
        for index in (0, 1):
            base = index * size
            struct.pack_into("<QHHHH", data, base, index, 0, databytes.META, 0, 0)
            struct.pack_into("<IIQQ", data, base + 16, databytes.META_MAGIC, 1, 0, 1 << 30)
            struct.pack_into(
                "<IHHQQQQQ", data, base + 40, size, 0, 0, 0, 0, 0, 0, databytes.NO_PAGE
            )
            struct.pack_into("<IHHQQQQQ", data, base + 88, 0, 0, 1, 0, 1, 0, 0, 2 + index)
            struct.pack_into("<QQ", data, base + 136, 3, 4 + index)
        for page in (2, 3):
            struct.pack_into(
                "<QHHHH", data, page * size, page, 0, databytes.LEAF, 16, size % 65_536
            )
        one, two = databytes.metas(bytes(data))
        assert isinstance(one, databytes.Meta) and isinstance(two, databytes.Meta)
        assert (one.page_size, two.page_size, one.txnid, two.txnid) == (size, size, 4, 5)
        assert told(tmp_path, bytes(data)) == []
        assert "truncated" in " ".join(told(tmp_path, bytes(data[: 3 * size])))


# -- broken -----------------------------------------------------------------------------------------------------


def test_a_file_that_was_cut_anywhere_is_told_unless_nothing_that_lives_is_missing(
    store: bytes, tmp_path: Path
) -> None:
    whole = len(store)
    for size in [*range(0, whole, 4096), 1, 151, 152, 4095, 4097, whole - 1, whole - 4097]:
        found = told(tmp_path, store[:size])
        assert found, size
    assert told(tmp_path, store[: whole - 1])[0].endswith("is not a multiple of 4096")
    assert "truncated" in " ".join(told(tmp_path, store[: whole // 2 // 4096 * 4096]))


@pytest.mark.parametrize(
    ("offset", "form", "values", "why"),
    [
        (16, "<I", (0,), "not a meta page"),
        (20, "<I", (999,), "not a meta page"),
        (10, "<H", (0,), "not a meta page"),
        (40, "<I", (0,), "its page size 0 is none"),
        (40, "<I", (4097,), "its page size 4097 is none"),
        (88 + 40, "<Q", (10**9,), "page 1000000000 lies beyond the end"),
        (88 + 40, "<Q", (0,), "page 0 says that it is page 0 with flags 0x8"),
        (144, "<Q", (10**6,), "do not follow each other"),
    ],
)
def test_a_meta_page_that_says_something_else_is_told(
    store: bytes, tmp_path: Path, offset: int, form: str, values: tuple[int, ...], why: str
) -> None:
    found = told(tmp_path, put(store, live(store) + offset, form, *values))
    assert why in "\n".join(found)


def test_two_meta_pages_that_cannot_be_read_leave_nothing_to_read(
    store: bytes, tmp_path: Path
) -> None:
    data = put(put(store, 16, "<I", 0), 4096 + 16, "<I", 0)
    assert len(told(tmp_path, data)) == 2
    assert databytes.unsafe(tmp_path / "data.mdb") == "no meta page of the data file can be read"


@pytest.mark.parametrize(
    ("flag", "offset", "form", "value", "why"),
    [
        (databytes.BRANCH, 0, "<Q", 7, "says that it is page 7"),
        (databytes.BRANCH, 10, "<H", 0, "with flags 0x0"),
        (databytes.BRANCH, 16, "<H", 5_000, "a node at 5000"),
        (databytes.OVERFLOW, 10, "<H", 2, "is not the overflow page"),
        (databytes.OVERFLOW, 0, "<Q", 1, "is not the overflow page"),
    ],
)
def test_a_page_that_says_something_else_is_told(
    store: bytes, tmp_path: Path, flag: int, offset: int, form: str, value: int, why: str
) -> None:
    found = [
        what
        for at in pages(store, flag)
        for what in told(tmp_path, put(store, at + offset, form, value))
    ]
    assert why in "\n".join(found)


def test_a_child_that_is_named_twice_is_told(store: bytes, tmp_path: Path) -> None:
    found = []
    for at in pages(store, databytes.BRANCH):
        first, second = struct.unpack_from("<HH", store, at + 16)
        node = store[at + first : at + first + 6]
        found += told(tmp_path, store[: at + second] + node + store[at + second + 6 :])
    assert any("is reached twice" in what for what in found)


def test_no_more_is_told_than_somebody_reads(store: bytes, tmp_path: Path) -> None:
    assert len(told(tmp_path, store[: 4096 * 3] + bytes(len(store) - 4096 * 3))) <= 25


@settings(max_examples=300)
@given(st.data())
def test_no_change_of_a_byte_makes_it_raise_or_run_on(
    store: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    changed = bytearray(store)
    for _ in range(data.draw(st.integers(1, 4))):
        near = data.draw(st.sampled_from([0, 4096, *range(8192, len(store), 4096)]))
        at = near + data.draw(st.integers(0, 160))
        changed[min(at, len(store) - 1)] = data.draw(st.integers(0, 255))
    found = databytes.check(_kept(tmp_path_factory, bytes(changed)))
    assert all(isinstance(what, str) for what in found)


def test_every_bit_of_both_meta_pages_can_flip_without_a_traceback(
    store: bytes, tmp_path: Path
) -> None:
    for page in (0, 4096):
        for at in range(page, page + databytes.META_BYTES):
            for bit in range(8):
                told(tmp_path, put(store, at, "<B", store[at] ^ 1 << bit))


@settings(max_examples=200)
@given(st.binary(max_size=9_000))
def test_hostile_bytes_are_no_data_file(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = _kept(tmp_path_factory, data)
    assert databytes.unsafe(path)
    assert databytes.check(path)


def _kept(factory: pytest.TempPathFactory, data: bytes) -> Path:
    path = factory.getbasetemp() / "databytes.mdb"
    path.write_bytes(data)
    return path
