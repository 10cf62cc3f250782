"""What a store needs of its log beyond base.Log: so that a store may stand on a folder, or on memory alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from .base import Appended, Draft, Log, Record, Tip

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .ahead import Ahead
    from .committer import Committer, Request

T = TypeVar("T")


class StoreLog(Log, Protocol):
    """A log with an order of all its records, whose appends are grouped by a committer."""

    path: Path
    """The folder; for a log in memory a name for messages."""

    store_id: str
    committer: Committer

    @property
    def on_disk(self) -> bool:
        """Whether it lies in a folder, with room for what is kept beside it."""
        ...

    @property
    def closed(self) -> bool:
        """Whether this handle was closed."""
        ...

    def close(self) -> None:
        """Write what waits, and let it go."""
        ...

    def request(
        self,
        make: Callable[[Ahead], Sequence[Draft]],
        settle: Callable[[list[Appended]], T],
        *,
        size: int,
        expect: Mapping[str, Tip] | None = None,
    ) -> Request[T]:
        """See requests.Requests.request."""
        ...

    def tip_position(self) -> int:
        """The position of the newest record; the genesis has position 0."""
        ...

    def all(self, *, after: int = -1) -> Iterator[Record]:
        """Records of all streams in the store's order, from position after + 1."""
        ...

    def on_commit(self, notify: Callable[[], None]) -> Callable[[], None]:
        """Call `notify` after each commit of this process; returns what ends that."""
        ...
