"""What a walk over all pages passes by and a look for one key does not: a full check names it.

The incident: one bit of a key in a branch page, and of what lay on the page below it nothing was found any more.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from ef.errors import Damaged, EfError
from ef.log import databytes
from ef.log.pages import DataFile, Leaf
from tests.log.build import DATABASES, checked, in_child, item, opened, says

PAGE = 4096


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Enough records that each database but `stream` has a branch page."""
    path = tmp_path / "store"
    with opened(path) as log:
        for n in range(6):
            log.append([item(f"session/{n}", f"{n}.{k}", bytes(300)) for k in range(70)])
    return path


def leaves(path: Path, name: bytes) -> list[Leaf]:
    with DataFile(path / "data.mdb") as file:
        return list(file.leaves(file.roots()[name], fault=lambda damage: None))


def root(path: Path, name: bytes) -> int:
    with DataFile(path / "data.mdb") as file:
        return file.roots()[name]


def nodes(data: bytearray, page: int) -> Iterator[int]:
    """Where the nodes of a page begin in the file."""
    (lower,) = struct.unpack_from("<H", data, page * PAGE + 12)
    for n in range((lower - 16) // 2):
        yield page * PAGE + struct.unpack_from("<H", data, page * PAGE + 16 + 2 * n)[0]


def refused(path: Path) -> int:
    """How many records a reader that looks each of them up is refused."""
    with opened(path) as log:
        count = 0
        for n in range(6):
            for seq in range(1, 71):
                try:
                    log.get(f"session/{n}", seq)
                except EfError:
                    count += 1
        return count


def test_a_sound_store_leads_to_all_that_it_holds(store: Path) -> None:
    assert checked(store).problems == [] and in_child(lambda: refused(store)) == 0
    with DataFile(store / "data.mdb") as file:
        for name in DATABASES:
            found = file.entries(file.roots(strict=DATABASES)[name], strict=True)
            assert len(list(found)) == {b"log": 421, b"stream": 7}.get(name, 421)


@pytest.mark.parametrize("name", [b"log", b"seq", b"key"])
def test_a_branch_page_that_leads_elsewhere_is_named(store: Path, name: bytes) -> None:
    data = bytearray((store / "data.mdb").read_bytes())
    node = list(nodes(data, root(store, name)))[1]
    data[node + 8 + (5 if name == b"log" else 0)] ^= 0x80
    (store / "data.mdb").write_bytes(data)
    found = checked(store)
    assert "the way to it is not that of its keys" in says(found)
    assert found.events == 421  # a walk over all of them passes it by
    assert (in_child(lambda: refused(store)) > 0) is (name != b"key")
    assert "the way to it" not in says(checked(store, quick=True))


@pytest.mark.parametrize("name", DATABASES)
def test_flags_of_a_database_are_named(store: Path, name: bytes) -> None:
    data = bytearray((store / "data.mdb").read_bytes())
    with DataFile(store / "data.mdb") as file:
        rows = {e.key: e for e in file.entries(file.meta.roots[1])}
    place = data.index(name + rows[name].value, rows[name].pages[0] * PAGE) + len(name) + 4
    data[place] |= 0x08
    (store / "data.mdb").write_bytes(data)
    with DataFile(store / "data.mdb") as file:
        said: list[Damaged] = []
        assert set(file.roots(said.append, None, DATABASES)) == set(DATABASES)
        assert [f"the database {name.decode()} has flags 0800" in str(each) for each in said] == [
            True
        ]
        with pytest.raises(Damaged, match="has flags 0800"):
            file.roots(strict=DATABASES)
        assert set(file.roots()) == set(DATABASES)


@pytest.mark.parametrize("name", DATABASES)
def test_a_flag_of_an_entry_is_named(store: Path, name: bytes) -> None:
    page = leaves(store, name)[0].number
    data = bytearray((store / "data.mdb").read_bytes())
    data[next(nodes(data, page)) + 4] |= 0x08
    (store / "data.mdb").write_bytes(data)
    assert databytes.check(store / "data.mdb") == []  # the form of the pages is sound
    assert "has flags 0x8" in says(checked(store, plain="a reason"))
    assert checked(store, plain="a reason").events == 421


@pytest.mark.parametrize("name", [b"seq", b"key", b"stream"])
def test_entries_out_of_order_are_named(store: Path, name: bytes) -> None:
    page = leaves(store, name)[0].number
    data = bytearray((store / "data.mdb").read_bytes())
    second = page * PAGE + 16 + 2 * 1
    data[second : second + 4] = data[second + 2 : second + 4] + data[second : second + 2]
    (store / "data.mdb").write_bytes(data)
    assert "its keys are out of order" in says(checked(store, plain="a reason"))


def test_a_leaf_whose_end_cannot_be_read_is_damage_and_no_more(store: Path) -> None:
    page = leaves(store, b"log")[-1].number
    data = bytearray((store / "data.mdb").read_bytes())
    (lower,) = struct.unpack_from("<H", data, page * PAGE + 12)
    struct.pack_into("<H", data, page * PAGE + lower - 2, 65_000)
    (store / "data.mdb").write_bytes(data)
    found = checked(store, plain="a reason")
    assert "its entry at 65000 does not lie in it" in says(found)
    assert "the way to it" not in says(found)
    assert "its entry at 65000" in says(checked(store, plain="a reason", quick=True))
