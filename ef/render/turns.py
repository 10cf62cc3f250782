"""Surface nodes -> turns: what an assistant said, the results of what it called, and what came then. Pure.

Rules, for every provider format: the items of one model response become one turn; results follow it, before other
text, in the order of the calls; responses that nothing of the user's parts are one turn. Calls and results are a
bijection in what is handed out: a call without a result is closed by a stand-in when an event closed it, else it is
pending and not handed out; a late result is shown once, as text, where it came; a result whose call is not in sight
becomes text that says so. System items before all others are the head; a later one keeps its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ..events import Part, PartKind
from ..events.shapes import is_map

Place = tuple[int, int]
"""(seq of the item, part number)."""
ASSISTANT, USER, SYSTEM = "assistant", "user", "system"


@dataclass(frozen=True, slots=True)
class Shown:
    """A node with its parts: what the renderers need of an item. `dialect`: whose blocks its parts hold."""

    seq: int
    role: str
    group: str | None
    parts: tuple[Part, ...]
    dialect: str = ""


@dataclass(frozen=True, slots=True)
class Links:
    """Which call has which result and the other way round; what is closed, and late (see reducers.surface)."""

    results: Mapping[Place, Place]
    answered: Mapping[Place, Place]
    closed: Mapping[Place, str]
    late: Mapping[Place, Place]


@dataclass(frozen=True, slots=True)
class Piece:
    """One part in a turn, or the `note` that stands for it; `kind` is what it was."""

    role: str
    kind: PartKind
    place: Place
    part: Part | None = None
    dialect: str = ""
    note: str = ""
    beside: tuple[str, ...] = ()
    """Data and addresses of the images that are parts of the same item."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A call that is handed out and its result; without one, `outcome` is how the call was closed."""

    call: Piece
    result: Piece | None
    outcome: str | None

    @property
    def text(self) -> str:
        """The result's text, or what stands in for it."""
        if self.result is not None and self.result.part is not None:
            return self.result.part.text
        said = self.outcome or "outcome unknown"
        return f"[closed as {said}: no result had come when the next response began]"

    @property
    def is_error(self) -> bool:
        """Whether the tool failed, or no result came."""
        part = self.result.part if self.result else None
        return part is None or (part.result is not None and part.result.is_error)


@dataclass(slots=True)
class Turn:
    """What the assistant said, calls among it, in order; their answers in the same order; what the others said then."""

    assistant: list[Piece] = field(default_factory=list[Piece])
    answers: list[Answer] = field(default_factory=list[Answer])
    user: list[Piece] = field(default_factory=list[Piece])


@dataclass(slots=True)
class Told:
    """The head (system pieces), the turns, and how many calls are pending: not handed out."""

    system: list[Piece]
    turns: list[Turn]
    pending: int


@dataclass(slots=True)
class _Open:
    """A turn that grows: its calls in order, and the results that came for them."""

    group: str | None = None
    assistant: list[Piece] = field(default_factory=list[Piece])
    calls: dict[Place, str] = field(default_factory=dict[Place, str])
    results: dict[Place, Piece] = field(default_factory=dict[Place, Piece])
    user: list[Piece] = field(default_factory=list[Piece])


def told(nodes: Iterable[Shown], links: Links, *, once: bool = False) -> Told:
    """The turns of the nodes. `once`: of calls that share an id in one turn only one is handed out, the others become
    text, and responses whose calls were all closed are one turn; else each call is handed out, whoever writes it names
    it apart, and what closed it stands before the next response."""
    out = Told([], [], 0)
    turn = _Open()
    begun = False
    for node in nodes:
        begun = begun or (node.role != SYSTEM and bool(node.parts))
        if node.role == ASSISTANT:
            other = node.group is None or node.group != turn.group
            closed = turn.calls and not once and all(place in links.closed for place in turn.calls)
            if other and (turn.user or turn.results or closed):
                out.turns += _done(turn, links, once=once)
                turn = _Open()
            turn.group = node.group
        beside = tuple(_images(node))
        for n, part in enumerate(node.parts):
            place = (node.seq, n)
            piece = Piece(node.role, part.kind, place, part, node.dialect, beside=beside)
            if part.kind is PartKind.TOOL_RESULT:
                _result(turn, piece, part, links)
            elif node.role != ASSISTANT:
                (turn.user if begun else out.system).append(_said(piece, part))
            elif part.kind is not PartKind.TOOL_CALL:
                turn.assistant.append(piece)
            elif place in links.results or place in links.closed:
                turn.calls[place] = part.call_id or ""
                turn.assistant.append(piece)
            else:
                out.pending += 1
    out.turns += _done(turn, links, once=once)
    return out


def _images(node: Shown) -> Iterator[str]:
    for media in (part.media for part in node.parts if part.kind is PartKind.IMAGE):
        if media is not None:
            yield from (each for each in (media.data, media.url) if each)


def _said(piece: Piece, part: Part) -> Piece:
    role = SYSTEM if piece.role == SYSTEM else USER
    if part.kind is PartKind.TOOL_CALL:  # nobody but an assistant calls
        return _note(piece, f"[call {part.call_id} of a tool, by no assistant]", role)
    return Piece(role, piece.kind, piece.place, part, piece.dialect)


def _result(turn: _Open, piece: Piece, part: Part, links: Links) -> None:
    call = links.answered.get(piece.place)
    if call is not None and call in turn.calls:
        turn.results[call] = piece
    elif piece.place in links.late:
        turn.user.append(_unpaired(piece, part, "which was closed before it came"))
    else:
        turn.user.append(_unpaired(piece, part))


def _done(turn: _Open, links: Links, *, once: bool) -> list[Turn]:
    shown = _shown_calls(turn) if once else set(turn.calls)
    done, aside = Turn(), list[Piece]()
    for piece in turn.assistant:
        place = piece.place
        if place not in turn.calls:
            done.assistant.append(piece)
            continue
        result = turn.results.get(place)
        if place in shown:
            done.assistant.append(piece)
            done.answers.append(Answer(piece, result, links.closed.get(place)))
            continue
        note = f"[another call with the id {_id(piece)} in one response; it is kept as it came]"
        done.assistant.append(_note(piece, note, ASSISTANT))
        if result is not None and result.part is not None:
            aside.append(_unpaired(result, result.part))
    done.user = [*aside, *turn.user]
    return [done] if done.assistant or done.user else []


def _shown_calls(turn: _Open) -> set[Place]:
    """One call of each id: of those that share one, the first that has its result here."""
    chosen: dict[str, Place] = {}
    for place, call_id in turn.calls.items():
        held = chosen.setdefault(call_id, place)
        if held not in turn.results and place in turn.results:
            chosen[call_id] = place
    return set(chosen.values())


def _id(piece: Piece) -> str:
    part = piece.part
    given = part.block.get("id") if part and is_map(part.block) else None
    return given if isinstance(given, str) else (part.call_id or "") if part else ""


def _unpaired(piece: Piece, part: Part, why: str = "which is not in sight") -> Piece:
    return _note(piece, f"[result of call {part.call_id}, {why}]\n{part.text}", USER)


def _note(piece: Piece, note: str, role: str) -> Piece:
    return Piece(role, piece.kind, piece.place, note=note)
