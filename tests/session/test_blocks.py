"""A file that is followed is looked at in parts: each change is seen, at once or within a few looks."""

from __future__ import annotations

import io

import pytest

from ef.session.blocks import BLOCK, LOOKED_AT, Blocks


def read(data: bytes, *sizes: int) -> Blocks:
    blocks, at = Blocks(), 0
    for size in sizes:
        blocks.add(data[at : at + size])
        at += size
    blocks.add(data[at:])
    assert blocks.length == len(data)
    return blocks


def stands(blocks: Blocks, data: bytes, *, all_of_them: bool = False) -> bool:
    return blocks.stand(io.BytesIO(data), all_of_them=all_of_them)


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 40 * BLOCK + 7])
def test_what_is_as_it_was_stands_however_it_was_cut(size: int) -> None:
    data = bytes(n % 251 for n in range(size))
    for cuts in ((), (1,), (BLOCK,), (BLOCK - 1, 2), (5, 3 * BLOCK)):
        blocks = read(data, *cuts)
        assert all(stands(blocks, data + b"more") for _ in range(20))
        assert stands(blocks, data, all_of_them=True)


@pytest.mark.parametrize("count", [1, 8, 9, 40])
def test_a_byte_that_changed_anywhere_is_seen(count: int) -> None:
    data = bytes(count * BLOCK + 100)
    looks = -(-count // LOOKED_AT)
    for at in [*range(0, len(data), BLOCK), *range(BLOCK - 1, len(data), BLOCK), len(data) - 1]:
        other = bytearray(data)
        other[at] = 1
        assert not stands(read(data), bytes(other), all_of_them=True)
        blocks = read(data)
        assert not all(stands(blocks, bytes(other)) for _ in range(looks))


def test_what_was_cut_does_not_stand() -> None:
    data = bytes(3 * BLOCK + 5)
    for size in (0, BLOCK, 3 * BLOCK, len(data) - 1):
        assert not stands(read(data), data[:size])


def test_a_look_reads_as_much_of_a_long_file_as_of_a_longer_one() -> None:
    def cost(count: int) -> int:
        class Counted(io.BytesIO):
            got = 0

            def read(self, size: int | None = -1, /) -> bytes:
                found = super().read(size)
                self.got += len(found)
                return found

        file = Counted(bytes(count * BLOCK))
        assert read(bytes(count * BLOCK)).stand(file)
        return file.got

    assert cost(20) == cost(200) <= (LOOKED_AT + 3) * BLOCK
