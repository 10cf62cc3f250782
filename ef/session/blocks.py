"""Whether a file that grows is still what was read of it, without reading it all each time.

Of each block of what was read a digest is kept, of the last one, which is not full yet, its bytes. A look compares the
first block, the last ones and a few others, in turn: so what a look costs does not grow with the file, and no block
stays unseen for long.
"""

from __future__ import annotations

from typing import IO

from blake3 import blake3

BLOCK = 64 << 10
LOOKED_AT = 6
"""Blocks in a look, besides the first and the last ones."""


class Blocks:
    """The bytes of a file, up to `length`, by their digests."""

    def __init__(self) -> None:
        self.length = 0
        self._digests: list[bytes] = []
        self._rest = b""
        self._next = 0

    def add(self, data: bytes) -> None:
        """The next bytes."""
        self.length += len(data)
        at, held = 0, self._rest + data if len(self._rest) + len(data) >= BLOCK else b""
        if not held:
            self._rest += data
            return
        while len(held) - at >= BLOCK:
            self._digests.append(blake3(held[at : at + BLOCK]).digest(16))
            at += BLOCK
        self._rest = held[at:]

    def stand(self, file: IO[bytes], *, all_of_them: bool = False) -> bool:
        """Whether a file (unbuffered) still has them, as far as a look tells."""
        count = len(self._digests)
        numbers = list(range(count))
        if not all_of_them and count > LOOKED_AT + 2:
            turn = [(self._next + n) % count for n in range(LOOKED_AT)]
            self._next = (self._next + LOOKED_AT) % count
            numbers = [*turn, 0, count - 1]
        for number in numbers:
            file.seek(number * BLOCK)
            if blake3(file.read(BLOCK)).digest(16) != self._digests[number]:
                return False
        file.seek(count * BLOCK)
        return file.read(len(self._rest)) == self._rest
