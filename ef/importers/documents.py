"""Formats whose file is one JSON document: its values in order are the records."""

from __future__ import annotations

from typing import Any, ClassVar

from ..events.shapes import is_map
from ..readers.jsoncuts import Cut, Path, Paths, cuts
from .translator import REMARKS, Spot, Translator


class DocumentTranslator(Translator):
    """One file that holds one JSON document."""

    DESCEND: ClassVar[Paths]
    """The containers whose values are records: () is the top, "*" stands for any key or index."""

    def cut(self, path: Path, value: Any, spot: Spot) -> None:
        """One value and where it stands in the document."""
        raise NotImplementedError

    def document(self, data: bytes) -> None:
        """Translate the whole file."""
        for cut in cuts(data, self.DESCEND):
            self.found(cut, data)

    def found(self, cut: Cut, data: bytes) -> None:
        """Translate one value of the document, or remark what is wrong with it."""
        if cut.remarks:
            for kind in sorted(cut.remarks):
                self._remark(kind, cut.line, cut.start, REMARKS[kind])
        if cut.fault is not None:
            self._remark(cut.fault, cut.line, cut.start, _FAULTS[cut.fault])
            return
        self.out.records += 1
        held = cut.value if is_map(cut.value) else {}
        spot = self.spot(held, data[cut.start : cut.end], cut.line, cut.start)
        self.cut(cut.path, cut.value, spot)


_FAULTS = {
    "duplicate-keys": REMARKS["duplicate-keys"],
    "not-json": REMARKS["not-json"],
    "too-deep": REMARKS["too-deep"],
    "torn-tail": "the document ends before it is complete; what is before is read",
}
