"""The writing side that all logs have in common: from drafts to requests for the committer; and how a body is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from ..codec.digests import SALT_BYTES
from ..codec.record import unpack_body
from ..errors import Damaged, UsageError
from ..events import Place
from .base import Appended, Draft, Prepared, Record, Tip, prepare
from .committer import Committer, Request

if TYPE_CHECKING:
    from .ahead import Ahead
    from .sources import SourceBytes

Clock = Callable[[], int]
Entropy = Callable[[int], bytes]
T = TypeVar("T")


def held_by(draft: Draft) -> int:
    """What a draft holds in memory, roughly: the bytes of an item or of source lines, and a little."""
    data = getattr(draft.event, "data", b"")
    return 1024 + (len(data) if isinstance(data, bytes) else 0)


class Requests:
    """Appends of a log. `now` gives microseconds since 1970 UTC."""

    path: Path
    _now: Clock
    _entropy: Entropy
    _sources: SourceBytes
    committer: Committer
    """Where requests are run."""

    def append(
        self, drafts: Sequence[Draft], *, expect: Mapping[str, Tip] | None = None
    ) -> list[Appended]:
        """See base.Log.append. Raises TipConflict, KeyConflict, CannotWrite, OutcomeUnknown, InputRefused, Busy."""
        return self.committer.run(self._request(drafts, expect))

    def append_nowait(
        self, drafts: Sequence[Draft], *, expect: Mapping[str, Tip] | None = None
    ) -> Future[list[Appended]]:
        """See base.Log.append_nowait. It waits only while too many bytes are in flight."""
        return self.committer.submit(self._request(drafts, expect))

    async def aappend(
        self, drafts: Sequence[Draft], *, expect: Mapping[str, Tip] | None = None
    ) -> list[Appended]:
        """See base.Log.aappend."""
        return await self.committer.awaited(self._request(drafts, expect))

    def _request(
        self, drafts: Sequence[Draft], expect: Mapping[str, Tip] | None
    ) -> Request[list[Appended]]:
        try:
            size = sum(map(held_by, drafts)) if len(drafts) else 0
        except (TypeError, AttributeError):
            raise UsageError(
                detail=f"drafts ({type(drafts).__name__}): give a sequence of Draft"
            ) from None
        return self.request(lambda view: drafts, _as_they_are, size=size, expect=expect)

    def request(
        self,
        make: Callable[[Ahead], Sequence[Draft]],
        settle: Callable[[list[Appended]], T],
        *,
        size: int,
        expect: Mapping[str, Tip] | None = None,
    ) -> Request[T]:
        """A request for `run`, `submit` and `awaited`: drafts that rest on how the store is when their turn comes.

        `make` gives them from a view of the store; it may run again, so it must have no effects but its result.
        `settle` makes the caller's result once they are durable. `size` is what they hold in memory, in bytes.
        """
        self._must_take_appends()
        work = _Work(self, make, settle, expect or {})
        return Request(self.path, work.build, work.settled, size)

    def _must_take_appends(self) -> None:
        """Raises what says why nothing may be appended here."""

    def now(self) -> int:
        """The log's clock, in microseconds since 1970 UTC."""
        return self._now()

    def salt(self) -> bytes:
        """Fresh bytes that keep a body's commitment from being guessed."""
        return self._entropy(SALT_BYTES)

    def body(self, record: Record) -> bytes:
        """See base.Log.body."""
        h, frame = record.header, record.frame
        where = f"stream {h.stream}, seq {h.seq}"
        stored = frame.body
        if h.place is not Place.INLINE:
            if h.origin is None or h.place is not Place.SOURCE:
                raise Damaged(where=where, what="its body's place cannot be read")
            stored = self._sources.read(h.origin.source, h.origin.start, h.origin.end)
        return unpack_body(h, frame.salt, stored, where=where)


def _as_they_are(results: list[Appended]) -> list[Appended]:
    return results


class _Work(Generic[T]):
    """The drafts of one request: made and prepared on a view, and what came of them. There may be thousands at once."""

    __slots__ = ("_expect", "_log", "_make", "_results", "_settle")

    def __init__(
        self,
        log: Requests,
        make: Callable[[Ahead], Sequence[Draft]],
        settle: Callable[[list[Appended]], T],
        expect: Mapping[str, Tip],
    ) -> None:
        self._log, self._make, self._settle, self._expect = log, make, settle, expect
        self._results: list[Appended] = []

    def build(self, view: Ahead) -> list[Prepared]:
        """See committer.Build."""
        log = self._log
        self._results, new = prepare(
            self._make(view),
            view,
            store_digest=view.store_tip()[1],
            recorded_at=log.now(),
            salt=log.salt,
            expect=self._expect,
        )
        return new

    def settled(self, first: int) -> T:
        """See committer.Request."""
        return self._settle(self._results)
