"""The bytes that an import reads: a file's own, or what a compressed file or a database holds.

A file's size is taken when it is opened: what is written behind that meanwhile is for the next import. What is unpacked
is bounded, and lies in a nameless file of this process's while it is read.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ..errors import InputRefused
from ..importers.meaning import Remark
from .finding import EVENT

if TYPE_CHECKING:
    from ..importers.redaction import Redaction

FILE_BYTES_MAX = 2 << 30
BLOCK = 1 << 20
IN_MEMORY = 32 << 20
UNPACKED_FREELY, RATIO_MAX = 64 << 20, 200
"""What a compressed file may hold: so many bytes, or so many times its own size."""
GZIP, ZSTD, SQLITE = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"SQLite format 3\0"


@dataclass(slots=True)
class Content:
    """What is imported: `size` bytes, read from the beginning as often as one likes. `remarks` say what it was taken
    from; `tables` are a database's. `redaction` is what its bytes went through before anything of them was kept.
    """

    path: str
    file: IO[bytes]
    size: int
    remarks: list[Remark] = field(default_factory=list[Remark])
    tables: frozenset[str] = frozenset()
    redaction: Redaction | None = None

    def said(self, since: int) -> list[Remark]:
        """What is to be noted with the source, of which the first `since` bytes were stored before."""
        redacted = self.redaction.remarks(since) if self.redaction is not None else []
        return [*self.remarks, *redacted]

    def blocks(self, start: int = 0) -> Iterator[bytes]:
        """The bytes from `start` on, in blocks. Raises InputRefused where the file is shorter than it was."""
        at = start
        while at < self.size:
            self.file.seek(at)
            block = self.file.read(min(BLOCK, self.size - at))
            if not block:
                why = f"it was cut while it was read: {at} of {self.size} bytes are there"
                raise InputRefused(where=self.path, why=why, remedy="Import it again.")
            yield block
            at += len(block)

    def head(self, count: int) -> bytes:
        """The first bytes, and on to the end of their last line."""
        self.file.seek(0)
        held = [self.file.read(min(count, self.size))]
        at = len(held[0])
        while at < self.size and b"\n" not in (held[-1] if len(held) > 1 else held[0][-1:]):
            block = self.file.read(min(BLOCK, self.size - at))
            if not block:
                break
            held.append(block)
            at += len(block)
        if len(held) > 1:
            end = held[-1].find(b"\n")
            held[-1] = held[-1] if end < 0 else held[-1][: end + 1]
        return b"".join(held)

    def close(self) -> None:
        """Let the file go."""
        self.file.close()


def open_file(path: Path) -> IO[bytes]:
    """A regular file, open for reading. Raises InputRefused; never waits on a pipe or a device."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise InputRefused(
            where=str(path), why="there is no such file", remedy="Check the path."
        ) from None
    except (OSError, ValueError) as fault:
        why = getattr(fault, "strerror", None) or str(fault)
        raise InputRefused(
            where=str(path), why=why, remedy="Check the path and its rights."
        ) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InputRefused(
            where=str(path), why="it is not a regular file", remedy="Give a session file."
        )
    return os.fdopen(handle, "rb", buffering=0)


def open_content(path: Path, redaction: Redaction | None = None) -> Content:
    """What a file holds, to be closed by the caller; without what the redaction takes out. Raises InputRefused."""
    if os.path.isdir(path):
        return _joined(path, redaction)
    file = open_file(path)
    try:
        size = os.fstat(file.fileno()).st_size
        if size > FILE_BYTES_MAX:
            raise InputRefused(
                where=str(path),
                why=f"it has {size} bytes, more than {FILE_BYTES_MAX}",
                remedy="Split it between lines.",
            )
        begins = file.read(len(SQLITE))
        file.seek(0)
        plain = Content(str(path), file, size)
        if begins.startswith(GZIP):
            return _unpacked(plain, "gzip", _gunzip(plain), redaction)
        if begins.startswith(ZSTD):
            return _unpacked(plain, "zstd", _unzstd(plain), redaction)
        if begins == SQLITE:
            from .databases import tables_of

            plain.tables = tables_of(path)
            return plain
        return plain if redaction is None else spooled(plain, plain.blocks(), redaction)
    except BaseException:
        file.close()
        raise


def spooled(
    plain: Content, parts: Iterable[bytes], redaction: Redaction | None, *remarks: Remark
) -> Content:
    """Parts, redacted, as a content of its own, in a nameless file; `plain` is closed."""
    file = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115
    try:
        size = 0
        for part in parts if redaction is None else redaction.through(parts):
            size += len(part)
            if size > FILE_BYTES_MAX:
                why = f"it holds more than {FILE_BYTES_MAX} bytes"
                raise InputRefused(where=plain.path, why=why, remedy="Split it between lines.")
            file.write(part)
    except BaseException:
        file.close()
        raise
    plain.close()
    said = [*plain.remarks, *remarks]
    return Content(plain.path, file, size, said, redaction=redaction)


def _joined(folder: Path, redaction: Redaction | None) -> Content:
    """The events of a folder that has each in a file of its own, in order, one a line."""
    numbered = [
        (int(found[1]), name) for name in os.listdir(folder) if (found := EVENT.fullmatch(name))
    ]
    names = [name for _, name in sorted(numbered)]
    if folder.name != "events" or not names:
        raise InputRefused(
            where=str(folder), why="it is not a regular file", remedy="Give a session file."
        )

    def events() -> Iterator[bytes]:
        for name in names:
            with open_file(folder / name) as file:
                # A line feed in JSON stands between tokens: a space says as much.
                yield b"".join(iter(lambda: file.read(BLOCK), b"")).replace(b"\n", b" ") + b"\n"

    text = "the source is a folder that has each event in a file of its own; they stand one a line"
    nothing = Content(str(folder.parent), BytesIO(), 0)
    return spooled(nothing, events(), redaction, Remark("joined", 1, 0, text))


def _unpacked(
    plain: Content, name: str, parts: Iterator[bytes], redaction: Redaction | None
) -> Content:
    text = f"the file is compressed ({name}); the source is what it holds"
    most = max(UNPACKED_FREELY, RATIO_MAX * plain.size)

    def bounded() -> Iterator[bytes]:
        size = 0
        for part in parts:
            size += len(part)
            if size > most:
                why = f"it unpacks to more than {most} bytes, {RATIO_MAX} times its size"
                raise InputRefused(where=plain.path, why=why, remedy="Unpack it, and look at it.")
            yield part

    return spooled(plain, bounded(), redaction, Remark("compressed", 1, 0, text))


def _gunzip(plain: Content) -> Iterator[bytes]:
    """The members of a gzip file, one after another; what is cut short gives what there is."""
    unpack = zlib.decompressobj(wbits=31)
    for block in plain.blocks():
        rest = block
        while rest:
            try:
                yield unpack.decompress(rest, BLOCK)
            except zlib.error as fault:
                raise InputRefused(
                    where=plain.path,
                    why=f"it cannot be unpacked: {fault}",
                    remedy="Check the file with gzip -t.",
                ) from None
            rest = unpack.unconsumed_tail
            if unpack.eof:
                rest = unpack.unused_data.lstrip(b"\0")
                unpack = zlib.decompressobj(wbits=31)


def _unzstd(plain: Content) -> Iterator[bytes]:
    """The frames of a zstd file, one after another; what is cut short gives what there is."""
    zstd = _zstd(plain.path)
    unpack = zstd.ZstdDecompressor()
    for block in plain.blocks():
        rest = block
        while rest or not unpack.needs_input:
            try:
                yield unpack.decompress(rest, BLOCK)
            except zstd.ZstdError as fault:
                raise InputRefused(
                    where=plain.path,
                    why=f"it cannot be unpacked: {fault}",
                    remedy="Check the file with zstd -t.",
                ) from None
            rest = b""
            if unpack.eof:
                rest = unpack.unused_data
                unpack = zstd.ZstdDecompressor()
                if not rest:
                    break


def _zstd(path: str) -> Any:
    with contextlib.suppress(ImportError):
        return import_module("compression.zstd")
    try:
        from backports import zstd as backport
    except ImportError:
        raise InputRefused(
            where=path,
            why="it is compressed with zstd, which needs a package that is not installed",
            remedy='pip install "epistemic-fold[zstd]", or unpack it first.',
        ) from None
    return backport
