"""From what an importer or a caller says to drafts: observers run, what is known already is left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..codec.digests import anchor_id
from ..events import Anchor, AnchorDeclared, Channel, Event, ItemAppended, Reading, SourceRef
from ..importers.meaning import Meaning
from ..log import Draft, Log
from ..log.base import Assigned, Tip
from ..reducers.observers import Observers, Proposal


def anchor_drafts(item: Draft, proposals: Iterable[Proposal]) -> list[Draft]:
    """Drafts that declare what an item grounds;
    they cite the item's record, which the log will have chained by then.
    """
    drafts: list[Draft] = []
    seen: set[str] = set()
    for proposal in proposals:
        ground = [[item.key, proposal.part, proposal.start, proposal.end]]
        rule = [proposal.rule.name, proposal.rule.version]
        name = anchor_id(item.stream, proposal.kind.value, str(proposal.key), ground, rule)
        if name in seen:
            continue
        seen.add(name)
        drafts.append(
            Draft(
                item.stream,
                name,
                _Declares(name, item, proposal),
                Channel.OBSERVER,
                occurred_at=item.occurred_at,
                basis=item.basis,
                cause_key=item.key,
            )
        )
    return drafts


class _Declares:
    """A late event: an anchor whose reference holds the seq and digest that its item gets."""

    def __init__(self, name: str, item: Draft, proposal: Proposal) -> None:
        self._name, self._item, self._proposal = name, item, proposal

    def __call__(self, assigned: Assigned) -> Event:
        item, p = self._item, self._proposal
        assert item.item is not None
        tip = assigned[item.stream, item.key]
        part = item.item.parts[p.part]
        ref = SourceRef(
            item.stream,
            tip.seq,
            p.part,
            p.start,
            p.end,
            tip.digest,
            part.channel,
            part.kind.value,
            item.key,
        )
        return AnchorDeclared(
            Anchor(
                self._name,
                p.kind,
                p.key,
                p.value,
                p.authority,
                part.channel,
                p.rule,
                unit=p.unit,
                sources=(ref,),
                because=p.because,
            )
        )


def session_drafts(
    log: Log,
    meanings: Iterable[Meaning],
    observers: dict[str, Observers],
    tips: Mapping[str, Tip],
) -> list[Draft]:
    """The drafts of the meanings that the log does not know yet, each item followed by what it grounds.

    Observers (by stream; taken further) see every item, known or new, so that their state is the same whichever part
    was known; they speak for new items only: an improved observer changes no past. `tips` are those of all streams.
    """
    drafts: list[Draft] = []
    for meaning in meanings:
        known = tips[meaning.stream].seq > 0 and log.find(meaning.stream, meaning.key) is not None
        if not known:
            drafts += meaning.drafts
        if meaning.item is None:
            continue
        reading, item = meaning.reading, meaning.drafts[meaning.item]
        if reading is not None:
            drafts += _observed(
                observers.setdefault(meaning.stream, Observers()), reading, item, known=known
            )
    return drafts


def _observed(observers: Observers, reading: Reading, item: Draft, *, known: bool) -> list[Draft]:
    proposals = observers.item(reading, replaces=not isinstance(item.event, ItemAppended))
    return [] if known else anchor_drafts(item, proposals)
