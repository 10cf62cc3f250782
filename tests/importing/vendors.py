"""What the tests of other vendors' importers share: a file translated in memory, a store that took a file in."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ef
from ef.events import ForeignCompaction, ItemAppended, ItemReplaced, Part, Reading
from ef.events.types import Event
from ef.importers.documents import DocumentTranslator
from ef.importers.formats import Head, format_of, names
from ef.importers.lines import lines
from ef.importers.meaning import Meaning, Remark
from ef.importers.names import session_stream
from ef.importers.translator import Given
from ef.log.items import event_of, reading_of
from ef.readers import read_item
from ef.session.importing import ImportResult

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
SEEDS = FIXTURES / "seeds"


def seed(form: str) -> Path:
    """The small session of a format."""
    return next(p for p in sorted(SEEDS.iterdir()) if p.name.rpartition(".")[0] == form)


def taken_by(data: bytes, path: str) -> list[str]:
    """The formats of files that say that bytes are theirs."""
    head = Head(data[: 1 << 20], path, len(data) <= 1 << 20)
    forms = [form for name in names() if (form := format_of(name)) is not None]
    return [form.name for form in forms if form.form != "database" and form.recognises(head)]


def translated(form: str, data: bytes, path: str = "") -> tuple[list[Meaning], list[Remark]]:
    """What a format's importer says of a file."""
    found = format_of(form)
    assert found is not None
    translator = found.translator(Given("s" * 32, "store", path=path))
    if isinstance(translator, DocumentTranslator):
        translator.document(data)
    else:
        for line in lines(data):
            translator.line(line)
    translator.ended()
    return translator.out.take()


def agreed(meanings: list[Meaning]) -> int:
    """Check that a reader makes the parts that the header of each item says of its bytes; the number of items."""
    count = 0
    for meaning in meanings:
        for draft in meaning.drafts:
            if not isinstance(draft.event, (ItemAppended, ItemReplaced)):
                continue
            count += 1
            assert draft.item is not None
            found = read_item(draft.reader, draft.event.data)
            assert found.role == draft.item.role
            assert [p.kind for p in found.parts] == [p.kind for p in draft.item.parts]
    return count


@dataclass
class Taken:
    """A store that took a file in: what it did, and the items of each session as they are read back."""

    store: ef.Store
    done: ImportResult
    items: dict[str, list[Reading]] = field(default_factory=dict[str, list[Reading]])

    @property
    def main(self) -> list[Reading]:
        """The items of the file's own session."""
        return self.items[self.done.sessions[0]]

    def parts(self, session: str | None = None) -> list[Part]:
        """All parts of a session in order."""
        return [p for r in self.items[session or self.done.sessions[0]] for p in r.parts]

    def said(self, session: str | None = None) -> list[tuple[str, str]]:
        """(channel, text) of the texts of a session."""
        return [(p.channel.value, p.text) for p in self.parts(session) if p.kind.value == "text"]

    def events(self, kind: type[Event], session: str | None = None) -> list[Any]:
        """The events of a kind of a session."""
        stream = session_stream(session or self.done.sessions[0])
        found = [r for r in self.store.log.read(stream) if r.header.kind == kind.__name__]
        return [event_of(self.store.log, record) for record in found]

    def compactions(self, session: str | None = None) -> list[ForeignCompaction]:
        """The compactions of a session."""
        return self.events(ForeignCompaction, session)

    def kinds(self) -> list[str]:
        """The kinds of the records of the file's own session, in order."""
        stream = session_stream(self.done.sessions[0])
        return [r.header.kind for r in self.store.log.read(stream)]


def took(store: ef.Store, path: Path) -> Taken:
    """Import a file, check that the store is sound and that all is paired as it must be, and read the items back."""
    found = Taken(store, store.import_file(path))
    for name in found.done.sessions:
        found.items[name] = [
            reading_of(store.log, record)
            for record in store.log.read(session_stream(name))
            if record.header.kind in (ItemAppended.__name__, ItemReplaced.__name__)
        ]
    checked = store.verify()
    assert (checked.verdict, checked.problems, checked.notes) == ("sound", [], [])
    return found


@contextmanager
def store_of(path: Path, folder: Path) -> Generator[Taken]:
    """A store of its own that took a file in."""
    with ef.open(folder / "s.ef") as store:
        yield took(store, path)


def written(path: Path, value: Any) -> Path:
    """A file of JSON: a document, or of a list the lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(each) + "\n" for each in value), "utf-8")
    else:
        path.write_text(json.dumps(value), "utf-8")
    return path
