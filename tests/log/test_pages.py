"""The data file in plain Python: what LMDB says of a sound file, and what is left of one that LMDB must not see."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import lmdb
import pytest

from ef.errors import Damaged, EfError, RolledBack
from ef.log import databytes
from ef.log.base import EMPTY
from ef.log.lmdb_env import LmdbEnv
from ef.log.pages import DataFile, last_position
from ef.log.plain import PlainEnv
from ef.log.rows import SEQ, STREAM, U64, stream_hash
from tests.log.build import DATABASES, checked, filled, in_child, item, opened, raw, says, title

PAGE = 4096


def store_of(path: Path, count: int = 120) -> Path:
    """Branch, leaf and overflow pages, in several commits."""
    with opened(path) as log:
        for n in range(count // 10):
            log.append([item(f"session/{n % 3}", f"{n}.{k}", os.urandom(400)) for k in range(10)])
            log.append([item("session/big", str(n), os.urandom(9_000))])
    return path


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_of(tmp_path_factory.mktemp("pages") / "store")


def test_every_row_is_that_of_lmdb_in_its_order(sound: Path) -> None:
    with raw(sound) as store:
        wanted = {name: store.rows(name) for name in DATABASES}
    with DataFile(sound / "data.mdb") as file:
        roots = file.roots()
        for name in DATABASES:
            found = [entry[:2] for entry in file.entries(roots[name])]
            assert found == list(wanted[name].items())
            for key in list(wanted[name])[::7]:
                assert next(file.entries(roots[name], key))[:2] == (key, wanted[name][key])
            last = file.last(roots[name])
            assert last is not None and last[:2] == found[-1]
        heads = [e for e in file.entries(roots[b"log"], most=100) if len(e.pages) > 1]
        assert {len(e.value) for e in heads} == {100} and all(e.size > 9_000 for e in heads)
        assert file.last(databytes.NO_PAGE) is None
    assert last_position(sound / "data.mdb") == len(wanted[b"log"]) - 1


def test_a_log_over_plain_pages_answers_as_the_one_over_lmdb(sound: Path) -> None:
    def answers(plain: str | None) -> list[object]:
        with opened(sound, create_missing=False, plain=plain) as log:
            assert isinstance(log._env, PlainEnv) is (plain is not None)
            streams = sorted(log.streams())
            return [
                streams,
                [(r.position, r.digest, log.body(r)) for r in log.all()],
                [[r.header.key for r in log.read(stream)] for stream, _ in streams],
                [log.find("session/big", "3"), log.find("session/big", "x"), log.tip("none")],
                log.store_tip(),
                sorted(log.databases()),
            ]

    assert answers("a reason") == answers(None)
    assert checked(sound, plain="a reason") == checked(sound)


def test_nothing_is_written_through_plain_pages(sound: Path) -> None:
    before = (sound / "data.mdb").read_bytes()
    with opened(sound, create_missing=False, plain="a reason") as log:
        with pytest.raises(Damaged, match="a reason"):
            log.append([title("s", "a")])
        with pytest.raises(Damaged, match="a reason"):
            log.copy_to(sound)
        assert in_child(lambda: log.tip("session/big").seq) == 12
    assert (sound / "data.mdb").read_bytes() == before
    assert not LmdbEnv._open


def test_a_store_that_lost_its_first_page_is_read_as_of_the_other_one(tmp_path: Path) -> None:
    for page in (0, 1):
        path = store_of(tmp_path / f"store{page}", 20)
        data = (path / "data.mdb").read_bytes()
        (path / "data.mdb").write_bytes(
            data[: page * PAGE] + bytes(PAGE) + data[(page + 1) * PAGE :]
        )
        with opened(path) as log:
            keys = [r.header.key for r in log.all()][1:]
            assert keys[:10] == [f"0.{k}" for k in range(10)] and len(keys) in (21, 22)
            with pytest.raises((Damaged, RolledBack)):
                log.append([title("s", "a")])
        assert f"meta page {page}: it is not a meta page" in says(checked(path))


def test_a_file_that_was_cut_serves_every_record_that_is_left(tmp_path: Path) -> None:
    path = store_of(tmp_path / "store")
    data = (path / "data.mdb").read_bytes()
    with DataFile(path / "data.mdb") as file:
        pages = {e.key: max(e.pages) for e in file.entries(file.roots()[b"log"])}
    ends = sorted(pages.values())
    for size in (PAGE * ends[60], PAGE * ends[100] + 100, PAGE * ends[-1]):
        (path / "data.mdb").write_bytes(data[:size])

        def served() -> int:
            with opened(path) as log:
                return sum(_reads(log, key) for key in pages)

        left = sum(page < size // PAGE for page in pages.values())
        assert 0 < left < len(pages)
        assert in_child(served) == left


def _reads(log: object, key: bytes) -> bool:
    try:
        record = log.at(U64.unpack(key)[0])  # type: ignore[attr-defined]
    except EfError:
        return False
    return bool(record.digest)


def test_a_meta_page_that_only_lmdb_refuses_does_not_stop_the_others_from_being_read(
    tmp_path: Path,
) -> None:
    path = store_of(tmp_path / "store", 20)
    data = bytearray((path / "data.mdb").read_bytes())
    live = databytes.live(databytes.metas(bytes(data[: databytes.METAS_BYTES])))
    assert live is not None
    data[(live.txnid & 1) * PAGE + 90] ^= 1  # in the description of the main tree
    (path / "data.mdb").write_bytes(data)
    with opened(path) as log:
        assert isinstance(log._env, PlainEnv)
        assert len(list(log.all())) > 20


@pytest.mark.parametrize("name", [b"log", b"seq", b"key", b"stream"])
def test_a_page_that_cannot_be_read_is_raised_or_left_out(tmp_path: Path, name: bytes) -> None:
    path = store_of(tmp_path / "store")
    with DataFile(path / "data.mdb") as file:
        roots = file.roots()
        rows = list(file.entries(roots[name]))
    broken = rows[len(rows) // 2].pages[0]
    data = bytearray((path / "data.mdb").read_bytes())
    for what, form, at, value in (
        ("says that it is page", "<Q", 0, 2**50),
        ("with flags 0x0", "<H", 10, 0),
        ("its nodes end at 9", "<H", 12, 9),
        ("its nodes end at 60000", "<H", 12, 60_000),
        ("its entry at 5000 does not lie in it", "<H", 16, 5_000),
        ("its entry at 0 does not lie in it", "<H", 16, 0),
    ):
        changed = bytearray(data)
        struct.pack_into(form, changed, broken * PAGE + at, value)
        (path / "data.mdb").write_bytes(changed)
        faults: list[Damaged] = []
        with DataFile(path / "data.mdb") as file:
            found = list(file.entries(roots[name], fault=faults.append))
            with pytest.raises(Damaged, match=what):
                list(file.entries(roots[name]))
        assert len(faults) == 1 and what in str(faults[0]), what
        assert {e.key for e in found} < {e.key for e in rows}
        assert all(broken in e.pages for e in rows if e not in found)


def test_a_node_that_says_too_much_is_told(tmp_path: Path) -> None:
    path = store_of(tmp_path / "store")
    with DataFile(path / "data.mdb") as file:
        root = file.roots()[b"log"]
        rows = list(file.entries(root))
    small = next(e for e in rows if len(e.pages) == 1)
    large = next(e for e in rows if len(e.pages) > 1)
    data = (path / "data.mdb").read_bytes()
    for entry, at, form, value, what in (
        (small, 0, "<H", 65_000, "does not lie in it"),
        (small, 6, "<H", 65_000, "does not lie in it"),
        (large, 2, "<H", 60_000, "it is truncated"),
        (large, 16, "<Q", 2**60, "no file has such a page"),
        (large, 16, "<Q", 2**40, "it is truncated"),
        (large, 16, "<Q", small.pages[0], "with flags 0x2"),
    ):
        head = data.index(entry.key, entry.pages[0] * PAGE + 16 + 200) - 8
        while data[head + 6 : head + 8] != b"\x08\x00":  # the key's length stands before it
            head = data.index(entry.key, head + 9) - 8
        changed = bytearray(data)
        struct.pack_into(form, changed, head + at, value)
        (path / "data.mdb").write_bytes(changed)
        faults: list[Damaged] = []
        with DataFile(path / "data.mdb") as file:
            assert len(list(file.entries(root, fault=faults.append))) == len(rows) - 1, what
            with pytest.raises(Damaged, match=what):
                list(file.entries(root))
        assert what in str(faults[0])


def test_a_tree_that_runs_in_a_circle_ends(tmp_path: Path) -> None:
    path = store_of(tmp_path / "store")
    with DataFile(path / "data.mdb") as file:
        root = file.roots()[b"log"]
    data = bytearray((path / "data.mdb").read_bytes())
    (offset,) = struct.unpack_from("<H", data, root * PAGE + 18)
    struct.pack_into("<HHH", data, root * PAGE + offset, root & 0xFFFF, root >> 16, 0)
    (path / "data.mdb").write_bytes(data)
    with DataFile(path / "data.mdb") as file, pytest.raises(Damaged, match="is reached twice"):
        list(file.entries(root))
    assert "is reached twice" in says(checked(path, plain="a circle"))


def test_what_has_no_meta_page_or_no_databases_cannot_be_read_at_all(tmp_path: Path) -> None:
    file = tmp_path / "data.mdb"
    file.write_bytes(bytes(4 * PAGE))
    with pytest.raises(Damaged, match="no meta page"):
        DataFile(file)
    assert last_position(file) is None and databytes.transaction(file) == -1
    path = store_of(tmp_path / "store", 10)
    assert databytes.transaction(path / "data.mdb") > 1
    data = (path / "data.mdb").read_bytes()
    (path / "data.mdb").write_bytes(data[: 2 * PAGE] + bytes(len(data) - 2 * PAGE))
    with pytest.raises(Damaged, match="all pages are gone"):
        opened(path, plain="all pages are gone")
    assert not LmdbEnv._open


def test_records_are_found_on_the_pages_where_no_tree_leads_to_them(tmp_path: Path) -> None:
    path = store_of(tmp_path / "store")
    with opened(path) as log:
        wanted = [(r.position, r.digest) for r in log.all()]
        tip = log.tip("session/big")
    data = bytearray((path / "data.mdb").read_bytes())
    for page in range(2, len(data) // PAGE):
        if struct.unpack_from("<H", data, page * PAGE + 10)[0] == databytes.BRANCH:
            data[page * PAGE : page * PAGE + 16] = bytes(16)
    with DataFile(path / "data.mdb") as file:
        main = file.meta.roots[1]
    for gone in (0, main):
        if gone:
            data[gone * PAGE : gone * PAGE + 16] = bytes(16)
        (path / "data.mdb").write_bytes(data)
        with opened(path, plain="no branches") as log:
            assert [(log.at(n).position, log.at(n).digest) for n, _ in wanted] == wanted
            assert log.get("session/big", tip.seq).digest == tip.digest
            assert log.find("session/big", "3") == 4
            with pytest.raises(Damaged):
                log.at(len(wanted))
            with pytest.raises(Damaged):
                list(log.read("session/big" if gone else "session/1"))
    found = checked(path, plain="no branches")
    assert "database log cannot be found" in says(found)


def two_endings(path: Path) -> tuple[bytes, bytes]:
    """A data file with two records at position 3, of which one was committed; and the tip file of that one."""
    filled(path, 2)
    before = (path / "data.mdb").read_bytes()
    with opened(path) as log:
        log.append([title("s", "never committed", "x" * 300)])
    with DataFile(path / "data.mdb") as file:
        page = next(e.pages[0] for e in file.entries(file.roots()[b"log"]) if e.key == U64.pack(3))
        lost = (path / "data.mdb").read_bytes()[page * PAGE : (page + 1) * PAGE]
    (path / "data.mdb").write_bytes(before)
    (path / "tip").unlink()
    with opened(path) as log:
        log.append([title("s", "committed", "y" * 300)])
        log.append([title("s", "and one more")])
    data = (path / "data.mdb").read_bytes()
    end = len(data) // PAGE
    data = data[: 2 * PAGE] + data[2 * PAGE :] + end.to_bytes(8, "little") + lost[8:]
    with DataFile(path / "data.mdb") as file:
        roots = [file.meta.roots[1], *file.roots().values()]
    kept = bytearray(data)
    for root in roots[:1]:
        kept[root * PAGE : root * PAGE + 16] = bytes(16)
    return bytes(kept), (path / "tip").read_bytes()


def test_of_two_records_at_a_position_the_one_is_taken_that_the_next_one_names(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store"
    data, tip = two_endings(path)
    (path / "data.mdb").write_bytes(data)
    with opened(path, plain="the main tree is gone") as log:
        assert log.at(3).header.key == "committed" and log.at(4).header.key == "and one more"
    (path / "tip").unlink()  # the last one may then be one that never was
    with opened(path, plain="the main tree is gone") as log:
        assert log.at(3).header.key == "committed"
        with pytest.raises(Damaged):
            log.at(4)
    digest = tip.split()[3].decode()
    (path / "tip").write_text(f"ef-tip 1 3 {digest}\n")  # and what is behind the tip may be so too
    with opened(path, plain="the main tree is gone") as log:
        for position in (3, 4):
            with pytest.raises(Damaged):
                log.at(position)
        assert log.at(2).header.key == "k1"


def test_a_database_that_is_gone_is_told(tmp_path: Path) -> None:
    path = store_of(tmp_path / "store", 10)
    with opened(path) as log:
        data = (path / "data.mdb").read_bytes()
        with DataFile(path / "data.mdb") as found:
            main = found.meta.roots[1]
        at = data.index(b"stream", main * PAGE)
        (path / "data.mdb").write_bytes(data[:at] + b"Stream" + data[at + 6 :])
        assert "database stream cannot be found" in _says(log)


def _says(log: object) -> str:
    from ef.log.check import Checker

    return says(Checker(log).run())  # type: ignore[arg-type]


def test_a_tip_row_under_another_name_lists_no_stream_of_that_name(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    with raw(path) as store:
        row = store.rows(STREAM)[stream_hash("session/a")]
        store.put(STREAM, stream_hash("session/a"), row.replace(b"session/a", b"session/b"))
    with opened(path) as log:
        with pytest.raises(Damaged, match="its tip row is that of another stream"):
            list(log.streams())
        assert log.tip("session/b") == EMPTY
    assert "its tip row does not match" in says(checked(path))


def test_an_empty_database_has_no_rows(tmp_path: Path) -> None:
    path = filled(tmp_path / "store", 1)
    with raw(path) as store:
        for key in store.rows(SEQ):
            store.delete(SEQ, key)
    with opened(path, plain="empty") as log:
        assert log.tip("none") == EMPTY
        assert log.get("session/a", 1).header.key == "k0"  # found on its page
    assert "index seq" in says(checked(path, plain="empty"))


def test_a_look_from_behind_and_the_beginnings_of_keys_are_those_of_lmdb(sound: Path) -> None:
    def answers(plain: str | None) -> list[object]:
        with opened(sound, create_missing=False, plain=plain) as log, log._env.read() as txn:
            first, last = stream_hash("session/1"), stream_hash("session/1") + b"\xff" * 9
            keys = [key for key, _ in txn.scan(SEQ, b"\0", 500)]
            return [
                txn.scan_back(SEQ, first, last, 7),
                txn.scan_back(b"log", b"\0", U64.pack(9), 3),
                txn.many(SEQ, [*keys[::9], b"none"]),
                txn.prefixes(SEQ, 16, b"\0", keys[len(keys) // 2][:16]),
                txn.prefixes(SEQ, 16, b"\0", b"\xff" * 17),
            ]

    assert answers("a reason") == answers(None)


def test_databases_of_others_are_walked_too_and_are_no_damage(tmp_path: Path) -> None:
    path = filled(tmp_path / "store")
    with lmdb.open(str(path), max_dbs=8, map_size=1 << 28) as env, env.begin(write=True) as txn:
        theirs = env.open_db(b"theirs", txn, dupsort=True, dupfixed=True)
        for n in range(2_000):
            txn.put(b"k", struct.pack("<I", n), db=theirs)
        with_one_leaf = env.open_db(b"numbers", txn, integerkey=True)
        txn.put(struct.pack("<Q", 1), b"v", db=with_one_leaf)
        txn.put(b"in the main tree", b"v")
    found = checked(path)
    assert says(found) == ""
    assert sum("that is not ef's" in note for note in found.notes) == 3
    with DataFile(path / "data.mdb") as file:
        size = file.page_size
        pages = os.fstat(file.handle).st_size // size
        assert sum(len(list(file.leaf(page, lambda damage: None))) for page in range(pages)) > 20
        flags = [os.pread(file.handle, 2, page * size + 10)[0] for page in range(pages)]
        inner = next(page for page in range(pages) if flags[page] & databytes.LEAF2)
        assert list(file.leaf(inner, lambda damage: None)) == []
        assert list(file.entries(inner)) == []


def test_a_branch_whose_key_does_not_lie_in_it_is_told(tmp_path: Path) -> None:
    path = store_of(tmp_path / "store")
    with DataFile(path / "data.mdb") as file:
        root = file.roots()[b"log"]
        count = len(list(file.entries(root)))
    data = bytearray((path / "data.mdb").read_bytes())
    (offset,) = struct.unpack_from("<H", data, root * PAGE + 18)
    for at, value in ((offset + 6, 5_000), (18, 5_000), (18, 3)):
        changed = bytearray(data)
        struct.pack_into("<H", changed, root * PAGE + at, value)
        (path / "data.mdb").write_bytes(changed)
        faults: list[Damaged] = []
        with DataFile(path / "data.mdb") as file:
            assert len(list(file.entries(root, fault=faults.append))) < count
        assert "does not lie in it" in str(faults[0])


def test_few_blocks_are_kept(sound: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databytes, "_BLOCKS_KEPT", 1)
    monkeypatch.setattr(databytes, "_BLOCK_BYTES", 2 * PAGE)
    assert databytes.check(sound / "data.mdb") == []
    assert says(checked(sound)) == ""


def test_a_page_that_lmdb_cannot_find_ends_no_copy(tmp_path: Path) -> None:
    path = store_of(tmp_path / "store")
    (tmp_path / "copy").mkdir()
    with DataFile(path / "data.mdb") as file:
        root = file.roots()[b"log"]
    data = bytearray((path / "data.mdb").read_bytes())
    (offset,) = struct.unpack_from("<H", data, root * PAGE + 18)
    struct.pack_into("<HHH", data, root * PAGE + offset, 0, 0, 1)
    (path / "data.mdb").write_bytes(data)

    def copied() -> str:
        with opened(path) as log:
            try:
                log.copy_to(tmp_path / "copy")
            except Damaged as fault:
                return str(fault)
            return ""

    assert "PAGE_NOTFOUND" in in_child(copied)
    with opened(sound_copy(tmp_path)) as log, pytest.raises(OSError):
        log.copy_to(tmp_path / "nowhere" / "at all")


def sound_copy(tmp_path: Path) -> Path:
    return filled(tmp_path / "twin")
