"""A recorded session goes into a log; what held, then and now, is read back out of it: python examples/demo.py

Every figure and every verdict on the screen is read from the log while the demo runs. A check that fails says so, and
the exit code is then not zero. `--transcript PATH` takes another session, `--store PATH` keeps the store.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import demo_crash
from demo_evidence import Transcript, choose, compactions, elsewhere, texts, users_rule
from demo_screen import Screen, cut_middle
from demo_words import brief, cited_stream, evidence, last_line, plural, quoted

import ef
from ef import Store
from ef.audit import Audit, Holds
from ef.render.visible import visible

SHOPCART = Path(__file__).resolve().parent / "shopcart.jsonl"
KILLS = 3
BURST = (60, 160)
RULE_KEY = "session/user/rule"


class Demo:
    """The sections share what they found; `claims` are the verdicts, in order."""

    def __init__(self, screen: Screen, transcript: Path, folder: Path) -> None:
        self.screen, self.path, self.folder = screen, transcript, folder
        self.claims: list[tuple[bool, str]] = []
        self.file = Transcript(transcript)
        self.source = self.session_id = ""
        self.key: str | None = None
        self.then: int | None = None
        self.now = 0
        self.summary: int | None = None

    def run(self) -> bool:
        """All sections; whether every check held."""
        with ef.open(self.folder) as store:
            self.imported(store)
            self.state(store)
            if self.key is not None:
                self.replay(store)
            self.compaction(store)
            if self.key is not None:
                self.audit(store)
            self.users_words(store)
        self.crash()
        with ef.open(self.folder, create=False) as store:
            self.export(store)
        return self.verdict()

    def check(self, good: bool, text: str) -> None:
        """Keep a verdict for the end; one that fails is also said at once."""
        self.claims.append((good, text))
        if not good:
            self.screen.mark(False, text)

    # ------------------------------------------------------------------------------------------------- the sections

    def imported(self, store: Store) -> None:
        s, started = self.screen, time.perf_counter()
        result = store.import_file(self.path)
        took = time.perf_counter() - started
        again = store.import_file(self.path)
        self.source, self.session_id = result.source, result.sessions[0]
        events, new = sum(result.new_events.values()), sum(again.new_events.values())
        s.heading("Import", f"{took:.2f} s")
        lines = self.file.data.count(b"\n")
        s.rows(
            [
                ("file", f"{cut_middle(self.path.name, 40)}, {lines} lines, {len(self.file.data):,} bytes"),
                ("log", f"{events} events: 1 source, {plural(len(result.sessions), 'session')}"),
            ],
            (10, 64),
            ("dim",),
        )  # fmt: skip
        self.check(new == 0, f"importing the same file again added {plural(new, 'event')}")
        sound = store.verify()
        self.check(
            sound.ok,
            f"verify says {sound.verdict}: {sound.events} events chained, "
            f"{plural(sound.anchors, 'anchor')} grounded",
        )

    def state(self, store: Store) -> None:
        s, session = self.screen, store.session(self.session_id)
        state = session.state()
        self.now = state.at
        chosen = choose(store, session)
        s.heading("State: what holds now", f"as of seq {state.at}")
        if chosen is None:
            s.say("Nothing in this transcript grounds a value: the state is empty, not guessed.")
            return
        self.key, self.then = chosen.key, chosen.then
        if not any(k.startswith("test/") for k in state.heads):
            s.say("There is no test run in this transcript; other values stand in for it.")
        shown = self._telling(state.heads)
        widths = (30, 14, 5, 23)
        s.rows([("key", "value", "since", "its evidence, quoted")], widths, ("dim",) * 4)
        table = []
        for key in shown:
            head = state.heads[key]
            quote = quoted(evidence(head)[1], 21)
            table.append((cut_middle(visible(key), 30), brief(head.value), f"{head.seq:>5}", quote))
        s.rows(table, widths, ("key", "value", "", "quote"))
        rest = len(state.heads) - len(shown)
        s.say(f"… and {plural(rest, 'more key')}. A value without a quote is not a value here.")
        held = [q for h in state.heads.values() for q in h.sources]
        there = sum(self.in_file(store, q.ref.stream, q.ref.seq, q.quote) for q in held)
        self.check(
            there == len(held),
            f"{there} of {len(held)} quotes of the state stand in the file, in the lines they name",
        )

    def _telling(self, heads: dict[str, Holds]) -> list[str]:
        """The chosen key and its siblings, then the newest of other kinds."""
        assert self.key is not None
        stem = self.key.rpartition("/")[0]
        shown = [self.key, *(k for k in heads if k.rpartition("/")[0] == stem and k != self.key)]
        seen = {(k.partition("/")[0], k.rpartition("/")[2]) for k in shown}
        for key in sorted(heads, key=lambda k: -heads[k].seq):
            kind = (key.partition("/")[0], key.rpartition("/")[2])
            if kind not in seen and kind[1] != "read" and len(shown) < 6:
                seen.add(kind)
                shown.append(key)
        return shown

    def replay(self, store: Store) -> None:
        s, session, key = self.screen, store.session(self.session_id), self.key
        assert key is not None
        now = session.state(self.now)
        if self.then is None:
            s.heading("Replay")
            s.say(f"{visible(key)} has been {brief(now.heads[key].value)} from its first run on: there is no other moment to go to.")  # fmt: skip
            return
        then = session.state(self.then)
        was, context = (
            then.heads[key].value,
            (session.context(self.then), session.context(self.now)),
        )
        s.heading(
            f"Replay: when it was last {visible(brief(was))}", f"seq {self.then} of {self.now}"
        )
        table = [("", f"at seq {self.then}", f"at seq {self.now}")]
        changed = [
            k for k in now.heads if k in then.heads and now.heads[k].value != then.heads[k].value
        ]
        stem = key.rpartition("/")[0]
        changed.sort(key=lambda k: (k != key, k.rpartition("/")[0] != stem, -now.heads[k].seq))
        table += [
            (cut_middle(visible(k), 28), brief(then.heads[k].value), brief(now.heads[k].value))
            for k in changed[:4]
        ]
        table += [
            ("keys that hold", str(len(then.heads)), str(len(now.heads))),
            ("context, messages", str(len(context[0].messages)), str(len(context[1].messages))),
            ("context, tokens (estimated)", f"{context[0].tokens:,}", f"{context[1].tokens:,}"),
            ("state digest", then.digest[:16], now.digest[:16]),
        ]
        s.rows(table, (28, 23, 23), ("dim",))
        fresh = store.session(self.session_id)
        same = (fresh.state(self.then).digest, fresh.context(self.then).digest) == (
            then.digest,
            context[0].digest,
        )
        became = session.state(self.then + 1).heads[key].value
        said = f"{cut_middle(visible(key), 30)}: {brief(was)} at seq {self.then}, {brief(became)} at {self.then + 1}"
        self.check(same and was != became, f"{said}; twice the same digests")

    def compaction(self, store: Store) -> None:
        s, session = self.screen, store.session(self.session_id)
        found = compactions(store, session)
        if not found:
            s.heading("A summary is not evidence")
            s.say("No other tool compacted this session, so there is no summary to compare with.")
            return
        event = next((c for c in found if c.claim), found[-1])
        upto, self.summary = event.item or event.seq, event.item
        before, after = session.state(event.seq - 1), session.state(upto)
        s.heading("A summary is not evidence", f"seq {event.seq}")
        tokens = "" if event.pre_tokens is None else f" at {event.pre_tokens:,} tokens"
        s.say(f"Another tool compacted it{tokens}. Its summary, and the state:")
        claim = event.claim or "(nothing about tests)"
        s.rows(
            [("summary", quoted(claim, 50), f"item {event.item}")], (10, 52, 12), ("dim", "quote")
        )
        head = after.heads.get(self.key or "")
        if head is not None:
            seq, quote = evidence(head)
            text = f"{brief(head.value)} {quoted(quote, 40)}"
            s.rows([("state", text, f"item {seq}")], (10, 52, 12), ("dim", "value"))
            if event.says_green and head.value == "failed":
                s.say("The summary was wrong. Its channel is importer, which grounds nothing.")
        s.say(f"State digest before {before.digest[:12]}, after {after.digest[:12]}.")
        value = brief(head.value) if head is not None else "as it was"
        self.check(
            before.digest == after.digest,
            f"the summary said {quoted(claim, 24)}; the state at seq {upto} stayed {value}",
        )

    def audit(self, store: Store) -> None:
        s, session, key = self.screen, store.session(self.session_id), self.key
        assert key is not None
        s.heading("Audit: where a value comes from", cut_middle(visible(key), 34))
        moments = [self.then, self.now] if self.then is not None else [self.now]
        audits = [session.audit(key, at) for at in moments]
        columns = [self._told(store, a) for a in audits]
        names = [name for name, _ in columns[0]]
        table = [(n, *(dict(c)[n] for c in columns)) for n in names]
        s.rows(table, (10, *([31] * len(columns))), ("dim",))
        for found in audits:
            head = found.current
            assert head is not None
            quotes = [self.in_file(store, q.ref.stream, q.ref.seq, q.quote) for q in head.sources]
            links = found.chain["links"]
            same = session.state(found.at).heads[key].supersedes_seq == head.supersedes_seq
            said = f"audit at seq {found.at}: {brief(head.value)}, by {quoted(last_line(head), 30)}"
            if not same:
                said += "; it names another superseded value than the state does"
            good = bool(quotes) and all(quotes) and same
            self.check(good, f"{said}, {plural(links, 'link')} hold")

    def _told(self, store: Store, audit: Audit) -> list[tuple[str, str]]:
        head = audit.current
        assert head is not None
        ref = head.sources[0].ref if head.sources else None
        rows = [("as of", f"seq {audit.at}"), ("value", brief(head.value))]
        rows += [("declared", f"seq {head.seq} by {head.to_json()['rule']}")]
        rows += [
            ("standing", f"{head.anchor.authority.value}, channel {head.anchor.channel.value}")
        ]
        if ref is not None:
            origin = store.log.get(ref.stream, ref.seq).header.origin
            where = f"line {origin.line} of the file" if origin else "no file"
            rows += [("source", f"item {ref.seq}, {where}")]
            rows += [("quote", quoted(last_line(head), 29))]
            rows += [("", f"bytes {ref.start} to {ref.end} of part {ref.part}")]
            rows += [("record", ref.digest.hex()[:24] + "…")]
        before = head.supersedes_seq
        rows += [("superseded", "nothing" if before is None else f"seq {before}")]
        chain, history = audit.chain, len(audit.history)
        rows += [("chain", f"{chain['links']} links to seq {chain['head']['seq']} hold")]
        rows += [("history", f"{plural(history, 'value')} declared so far")]
        return rows

    def users_words(self, store: Store) -> None:
        s, session = self.screen, store.session(self.session_id)
        words = users_rule(store, session)
        s.heading("The user's own words, declared by the operator")
        if words is None:
            s.say("The user typed nothing in this session: there is nothing to declare.")
            return
        status = session.state().heads.get(self.key or "")
        seq = session.declare(
            "constraint", key=RULE_KEY, value=words.text, quote=words.text, source=words.seq,
            idempotency_key="demo/rule",
        )  # fmt: skip
        twice = session.declare(
            "constraint", key=RULE_KEY, value=words.text, quote=words.text, source=words.seq,
            idempotency_key="demo/rule",
        )  # fmt: skip
        found = session.audit(RULE_KEY)
        head = found.current
        assert head is not None
        s.rows(
            [
                ("rule", quoted(words.text, 62)),
                ("typed in", f"item {words.seq}, {session.seq - words.seq} events ago"),
                ("declared", f"seq {seq}; once more with the same idempotency key: seq {twice}"),
                ("standing", f"{head.anchor.authority.value}, channel {head.anchor.channel.value}: only the operator supersedes it"),
            ],
            (10, 66), ("dim",),
        )  # fmt: skip
        if self.summary is not None:
            said = "\n".join(texts(store, cited_stream(head), self.summary))
            there = "are" if words.text in said else "are not"
            s.say(
                f"These words {there} in the summary of item {self.summary}. In the state they stay."
            )
        after = session.state().heads.get(self.key or "")
        cited = head.sources[0]
        good = (
            seq == twice
            and self.in_file(store, cited.ref.stream, cited.ref.seq, cited.quote)
            and (status.seq if status else 0) == (after.seq if after else 0)
        )
        self.check(
            good,
            f"the user's rule of item {words.seq} is in the state at seq {seq}, quoted from the file",
        )

    def crash(self) -> None:
        s = self.screen
        s.heading("Crash: a writer killed in a burst of appends", f"{KILLS} times SIGKILL")
        acked = kept = lost = wrong = 0
        table = []
        for n in range(1, KILLS + 1):
            killed = demo_crash.burst(self.folder, f"writer-{n}", random.randrange(*BURST))
            seen = demo_crash.survey(self.folder, killed)
            wrong += killed.ended != -9
            acked, kept, lost = acked + seen.acked, kept + seen.kept, lost + len(seen.lost)
            table.append(
                (
                    f"kill {n}",
                    f"acknowledged {seen.acked}",
                    f"kept {seen.kept}",
                    f"lost {len(seen.lost)}",
                )
            )
        s.rows(table, (10, 20, 12, 12), ("dim", "", "", "value"))
        with ef.open(self.folder, create=False) as store:
            sound = store.verify()
        s.say("A kill is no power cut: docs/log-format.md says what that needs of a disk.")
        self.check(
            lost == 0 and acked > 0 and wrong == 0 and sound.ok,
            f"{plural(KILLS, 'writer')} killed: acknowledged {acked}, lost {lost}, kept {kept}; the store is {sound.verdict}",
        )

    def export(self, store: Store) -> None:
        s = self.screen
        out = store.export_original(self.source)
        on_disk = self.path.read_bytes()
        s.heading("Export: the file, as it was")
        s.rows([("bytes", f"{len(out):,} exported, {len(on_disk):,} on disk")], (10, 60), ("dim",))
        good = out == on_disk
        said = "byte for byte the file on disk" if good else "not the file that is on disk now"
        self.check(good, f"the exported source is {said} ({len(out):,} bytes)")

    def verdict(self) -> bool:
        """The list of what held and what did not."""
        s = self.screen
        failed = sum(not good for good, _ in self.claims)
        s.heading(
            "What this run showed", f"{len(self.claims) - failed} of {len(self.claims)} checks hold"
        )
        for good, text in self.claims:
            s.mark(good, text)
        if failed:
            s.say(f"{plural(failed, 'check')} failed: do not believe the rest of this screen.")
        return not failed

    def in_file(self, store: Store, stream: str, seq: int, quote: bytes | None) -> bool:
        """Whether the transcript's own bytes hold a quote, looked up without the store."""
        origin = store.log.get(stream, seq).header.origin
        if quote is None or origin is None:
            return False
        return self.file.holds(origin.start, origin.end, quote)


def farewell(screen: Screen, demo: Demo, kept: bool) -> None:
    """Where the store is, and what to try next."""
    s = screen
    program = Path(sys.prefix) / "bin" / "ef"
    ef_ = os.path.relpath(program) if program.exists() and sys.prefix != sys.base_prefix else "ef"
    s.heading("Next")
    where = f"The store is in {demo.folder}." if kept else "This store was temporary."
    s.say(f"{where} With a store that stays:")
    claude, codex = elsewhere(Path.home())
    path = "~/.claude/projects" if claude else shlex.quote(os.path.relpath(demo.path))
    store = f" --store {shlex.quote(str(demo.folder))}" if kept else ""
    s.line(f"    {ef_}{store} import {path}")
    s.line(f"    {ef_}{store} sessions")
    name = "SESSION" if claude else demo.session_id[:8]
    s.line(f"    {ef_}{store} state {name}")
    s.line(f"    {ef_}{store} audit {name} {shlex.quote(visible(demo.key or 'KEY'))}")
    if claude:
        s.say("(There are Claude Code transcripts in that folder. Nothing of them was read.)")
    if codex:
        s.say("(There are Codex sessions in ~/.codex/sessions. This version does not read them.)")
    s.line()


@contextlib.contextmanager
def store_folder(given: str | None) -> Iterator[Path]:
    """The folder of the demo's store: a temporary one, or a new one that stays."""
    if given is not None:
        yield Path(given)
        return
    with tempfile.TemporaryDirectory(prefix="ef-demo-") as folder:
        yield Path(folder) / "demo.ef"


def main(arguments: list[str] | None = None, out: TextIO | None = None) -> int:
    """Run the demo; 0 when every check held, 1 when one did not, an error's own exit code otherwise."""
    parser = argparse.ArgumentParser(
        description="Import, state, replay, audit, crash, export: on a recorded session."
    )
    parser.add_argument("--transcript", default=str(SHOPCART), help="another session file")
    parser.add_argument("--store", help="keep the store in this new folder")
    parser.add_argument("--color", choices=["auto", "always", "never"], default="auto")
    given = parser.parse_args(arguments)
    colour = {"auto": None, "always": True, "never": False}[given.color]
    screen = Screen(out or sys.stdout, colour=colour)
    try:
        path = Path(given.transcript).resolve()
        with store_folder(given.store) as folder:
            screen.title(f"Epistemic Fold {ef.__version__}", "what holds, since when, and why")
            screen.say("A recorded session goes into an append-only log; all else is read out of it.")  # fmt: skip
            demo = Demo(screen, path, folder)
            good = demo.run()
            farewell(screen, demo, given.store is not None)
        return 0 if good else 1
    except BrokenPipeError:  # whoever read the screen has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except KeyboardInterrupt:
        return 130
    except ef.EfError as fault:
        print(f"demo: {fault}", file=sys.stderr)
        return fault.exit_code
    except OSError as fault:
        print(f"demo: {fault.filename or given.transcript}: {fault.strerror}", file=sys.stderr)
        return 65


if __name__ == "__main__":
    sys.exit(main())
