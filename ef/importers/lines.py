"""Lines of a file: split, located, and cut into the chunks that a source stream keeps. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..codec.limits import SOURCE_CHUNK_BYTES, SOURCE_PIECE_BYTES_MAX
from ..events.quick import quick


@quick
@dataclass(frozen=True, slots=True)
class RawLine:
    """A line without its line feed: number from 1, offset of its first byte, whether a line feed ends it."""

    number: int
    start: int
    data: bytes
    ended: bool


def lines(data: bytes) -> Iterator[RawLine]:
    """The lines of a file. Only a line feed ends a line; the last one may lack it."""
    number, at = 1, 0
    while at < len(data):
        end = data.find(b"\n", at)
        if end < 0:
            yield RawLine(number, at, data[at:], ended=False)
            return
        yield RawLine(number, at, data[at:end], ended=True)
        number, at = number + 1, end + 1


@quick
@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes [start, start + len(data)) of a source; `line` is the number of the line that the first byte is in."""

    start: int
    line: int
    data: bytes

    @property
    def end(self) -> int:
        """Behind its last byte."""
        return self.start + len(self.data)


def chunks(data: bytes, start: int, line: int) -> Iterator[Chunk]:
    """Cut data[start:] into whole lines of some SOURCE_CHUNK_BYTES; a longer line in pieces of bounded size."""
    at = start
    while at < len(data):
        end = len(data) if len(data) - at <= SOURCE_CHUNK_BYTES else _chunk_end(data, at)
        piece = data[at:end]
        yield Chunk(at, line, piece)
        line += piece.count(b"\n")
        at = end


def _chunk_end(data: bytes, at: int) -> int:
    last = data.rfind(b"\n", at, at + SOURCE_CHUNK_BYTES)
    if last >= 0:
        return last + 1
    first = data.find(b"\n", at + SOURCE_CHUNK_BYTES, at + SOURCE_PIECE_BYTES_MAX)
    return first + 1 if first >= 0 else min(len(data), at + SOURCE_PIECE_BYTES_MAX)
