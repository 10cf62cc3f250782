"""Random histories of items of several dialects: parallel, reused, unanswered, closed and late calls, results without a
call, images, reasoning, empty texts, system items. Each is what its seed says, on any machine."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

from ef import events as ev
from ef.events import Media, Part, PartKind
from ef.reducers.surface import REDUCER, Surface
from ef.render.turns import Links, Shown
from tests.reducers.build import recorded
from tests.render import blocks

IDS = (
    "toolu_01", "call_a", "call_a", "file_editor:0", "x" * 90, "call ä\n", "c1", "c2", "c2_2", "", "y" * 64 + ":",
)  # fmt: skip
NAMES = ("Bash", "apply_patch", "mcp__a__b", "functions.exec", "n" * 90, "", "ünï", "a b")
INPUTS: tuple[Any, ...] = (
    {}, {"command": "ls"}, {"deep": [{"a": None}]}, "*** Begin Patch\n*** End Patch", "", [1, 2], 7, {"s": "\ud800"},
)  # fmt: skip
TEXTS = ("words", "wörds \U0001f600", "", "  \n", "ends with space \n", "\ud800 lone", "{}")
MEDIA = (
    Media("image/png", blocks.PNG), Media(None, None, blocks.URL), Media("image/tiff", "AAAA"),
    Media("image/png", "no base64!"), Media(), Media(None, None, f"data:image/png;base64,{blocks.PNG}"),
)  # fmt: skip


class History(NamedTuple):
    """What the renderers are given, and the state of the surface that it came from."""

    nodes: list[Shown]
    links: Links
    surface: Surface


class _Maker:
    def __init__(self, seed: int, dialects: tuple[str, ...]) -> None:
        self.random = random.Random(seed)
        self.dialects = dialects
        self.events: list[ev.Recorded] = []
        self.items: dict[int, tuple[str, tuple[Part, ...], str]] = {}
        self.state = REDUCER.initial()

    def put(self, event: Any, **how: Any) -> int:
        seq = len(self.events) + 1
        self.events.append(recorded(event, seq, **how))
        self.state = REDUCER.evolve(self.state, self.events[-1])
        return seq

    def item(self, role: str, parts: list[Part], dialect: str, group: str | None = None) -> None:
        facts = ev.ItemFacts(role, tuple(part.facts() for part in parts))
        seq = self.put(ev.ItemAppended(b""), item=facts, group=ev.Group(group) if group else None)
        self.items[seq] = role, tuple(parts), dialect

    def some(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def chance(self, odds: float) -> bool:
        return self.random.random() < odds

    def user(self, role: str = "user") -> None:
        dialect = self.some(*self.dialects)
        parts: list[Part] = []
        for _ in range(self.random.randint(1, 3)):
            made = self.random.random()
            if made < 0.6:
                parts.append(blocks.text(dialect, role, self.some(*TEXTS)))
            elif made < 0.8 and role == "user":
                own = MEDIA[:2] if dialect else MEDIA
                parts.append(blocks.image(dialect, role, self.some(*own)))
            elif made < 0.9 and role == "user":
                parts.append(blocks.opaque(dialect, role))
            else:
                parts.append(blocks.text(dialect, role, "more"))
        self.item(role, parts, dialect)

    def respond(self) -> None:
        """One model response, in one item or in several of its group."""
        dialect = self.some(*self.dialects)
        group = self.some(None, f"g{len(self.events)}", f"g{len(self.events)}")
        parts: list[Part] = []
        if self.chance(0.5):
            parts.append(blocks.reasoning(dialect, self.some("c2VhbGVk", "MTIzNDU2Nzg=")))
        if self.chance(0.6):
            parts.append(blocks.text(dialect, "assistant", self.some(*TEXTS)))
        for _ in range(self.random.choice((0, 0, 1, 1, 2, 3))):
            made = self.some(*NAMES), self.some(*INPUTS)
            parts.append(blocks.call(dialect, self.some(*IDS), *made))
        if self.chance(0.1):
            parts.append(blocks.reasoning(dialect, "bGF0ZXI="))
        if self.chance(0.1):
            parts.append(blocks.opaque(dialect, "assistant"))
        cut = self.random.randint(0, len(parts)) if group else 0
        for some in (parts[:cut], parts[cut:]):
            if some:
                self.item("assistant", some, dialect, group)
                if group and self.chance(0.2):
                    self.results()

    def results(self) -> None:
        """Results of some open calls in any order, and now and then one that nobody asked for."""
        wanted = [
            (call_id, place) for call_id, places in self.state.open.items() for place in places
        ]
        self.random.shuffle(wanted)
        given = wanted[: self.random.randint(0, len(wanted) + 1)]
        if self.chance(0.1):
            given.append((self.some("nobody", "toolu_01"), (0, 0)))
        parts: list[Part] = []
        dialect = self.some(*self.dialects)
        for call_id, (seq, n) in given:
            _, asked, spoken = self.items.get(seq, ("", (), dialect))
            call = asked[n].call if asked else None
            dialect = dialect if parts or self.chance(0.1) else spoken
            parts.append(
                blocks.result(
                    dialect,
                    call_id,
                    self.some(*TEXTS),
                    image=self.chance(0.2),
                    error=self.chance(0.2),
                    free=bool(call and isinstance(call.input, str)),
                    name=call.name if call else "Bash",
                )
            )
            if self.chance(0.5):
                self.item("user", parts, dialect)
                parts = []
        if parts and self.chance(0.3):
            parts.append(blocks.text(dialect, "user", "beside"))
        if parts:
            self.item("user", parts, dialect)

    def close(self) -> None:
        for call_id, places in [(c, list(p)) for c, p in self.state.open.items()]:
            for seq, n in places:
                if self.chance(0.95):
                    self.put(
                        ev.CallClosed(call_id, seq, n, self.some("interrupted", "not started"))
                    )


def history(seed: int, dialects: tuple[str, ...] = blocks.DIALECTS) -> History:
    """The history of a seed: some 5 to 60 items."""
    maker = _Maker(seed, dialects)
    if maker.chance(0.4):
        maker.user("system")
    for _ in range(maker.random.randint(1, 9)):
        if maker.chance(0.6):
            maker.user()
        maker.close()
        maker.respond()
        maker.results()
        if maker.chance(0.1):
            maker.user("system")
        if maker.chance(0.2):
            maker.close()
            maker.results()
    state = maker.state
    nodes = []
    for node in state.nodes.values():
        role, parts, dialect = maker.items[node.seq]
        nodes.append(Shown(node.seq, role, node.group, parts, dialect))
    return History(nodes, Links(state.results, state.answered, state.closed, state.late), state)


__all__ = ["History", "PartKind", "history"]
