"""The pages keep in step with the code: numbers, names, examples, links, the demo's lines and the picture."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as Xml
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ef import errors, events
from ef.cli.parser import parse
from ef.codec import record
from ef.codec.digests import DIGEST_BYTES, SALT_BYTES
from ef.codec.kinds import KINDS
from ef.log.lmdb_env import DATABASES

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
FORMAT = (DOCS / "log-format.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md")), ROOT / "examples" / "README.md"]
WITH_EXAMPLES = [
    ROOT / "README.md",
    DOCS / "getting-started.md",
    DOCS / "log-format.md",
    DOCS / "observability.md",
]


def section(title: str) -> str:
    """The text below a heading of the format page."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", FORMAT, re.S | re.M)
    assert found, title
    return found[1]


def rows(title: str) -> list[list[str]]:
    """The cells of a section's first table, without its head."""
    lines = re.search(r"(?:^\|.*\n)+", section(title), re.M)[0].splitlines()  # type: ignore[index]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def words_in_code(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


# ---------------------------------------------------------------------------------------------------- the format page


def test_its_sections_stand_in_their_order() -> None:
    assert re.findall(r"^## (.+)$", FORMAT, re.M) == [
        "Overview", "The frame", "The header", "Bodies", "Encodings", "Digests and chains", "Databases and keys",
        "The tip file", "Definitions", "Invariants", "Versions and compatibility", "Limits",
        "Reading a store without ef", "Assumptions about the disk",
    ]  # fmt: skip


def test_the_frame_has_the_offsets_of_the_code() -> None:
    table = rows("The frame")
    fixed, at = table[:5], 0
    for offset, size, *_ in fixed:
        assert int(offset) == at
        at += int(size)
    assert at == record.FRAME.size
    assert [int(row[1]) for row in fixed] == [len(record.MAGIC), 4, 4, SALT_BYTES, DIGEST_BYTES]
    assert f"`{record.MAGIC.decode()}`" in table[0][3]
    assert record.FRAME.format == f">4sII{SALT_BYTES}s{DIGEST_BYTES}s"
    assert table[5][0] == str(at) and table[6][0] == f"{at} + header length"
    frame = record.FRAME.pack(record.MAGIC, 1, 2, b"s" * SALT_BYTES, b"d" * DIGEST_BYTES)
    places = {row[2]: int(row[0]) for row in fixed}
    assert frame[places["salt"]] == ord("s") and frame[places["record digest"]] == ord("d")


def test_the_header_has_the_fields_of_the_code_in_their_order() -> None:
    table = rows("The header")
    names = ["format", *(field.name for field in dataclasses.fields(events.Header))]
    assert [row[0] for row in table] == [str(n) for n in range(len(names))]
    assert [words_in_code(row[1])[0] for row in table] == names
    assert f"A CBOR array of {len(names)} values" in section("The header")
    assert f"{record.FORMAT}, the version" in table[0][3]


def test_the_header_s_types_are_those_of_a_real_header() -> None:
    import cbor2

    kinds = {
        "integer": int,
        "text": str,
        "bytes": bytes,
        "boolean": bool,
        "list": list,
        "null": type(None),
    }
    for header in (_header(full=True), _header(full=False)):
        values = cbor2.loads(record.encode_header(header))
        for row, value in zip(rows("The header"), values, strict=True):
            assert type(value) in [kinds[word] for word in row[2].split(" or ")], row[1]


def _header(*, full: bool) -> events.Header:
    digest = bytes(DIGEST_BYTES)
    fact = events.ItemFacts(
        "user", (events.PartFacts(events.PartKind.TEXT, events.Channel.TOOL, "c"),)
    )
    return events.Header(
        "ItemAppended", 1, True, "session/a", 1, bytes(16), "k", 1, 1 if full else None,
        events.Basis.CLAIMED, events.Channel.IMPORTER, events.Origin("s", 1, 0, 1) if full else None,
        events.Cause("session/a", 1) if full else None, events.Group("g") if full else None,
        fact if full else None, digest, 0, events.Place.SOURCE, ("r", 1) if full else None, "none", digest, digest,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("names", "where"),
    [
        (events.Basis, "The header"),
        (events.Place, "The header"),
        (events.Channel, "The header"),
        (events.PartKind, "The header"),
    ],
)
def test_every_word_of_the_header_is_named(names: Any, where: str) -> None:
    assert {each.value for each in names} <= set(words_in_code(section(where)))


def test_the_encodings_are_those_that_are_written() -> None:
    big, small = b"a" * record.COMPRESS_FROM, b"a" * (record.COMPRESS_FROM - 1)
    assert (
        record.pack_body(big, where="")[0] == "zlib"
        and record.pack_body(small, where="")[0] == "none"
    )
    assert {"none", "zlib"} <= set(words_in_code(rows("The header")[20][3]))
    assert f"{record.COMPRESS_FROM} bytes and more" in section("Encodings")


def test_the_databases_are_those_of_the_store() -> None:
    assert [words_in_code(row[0])[0].encode() for row in rows("Databases and keys")] == list(
        DATABASES
    )


def test_the_tip_file_is_what_the_page_says(tmp_path: Path) -> None:
    import ef

    with ef.open(tmp_path / "s.ef") as store:
        store.session("a").append({"role": "user", "content": "hello"})
        position, digest = store.log.store_tip()
        line = f"ef-tip 1 {position} {digest.hex()} {store.log.store_id}\n"
    assert (tmp_path / "s.ef" / "tip").read_text() == line
    assert "`ef-tip 1 POSITION DIGEST STORE`" in section("The tip file")
    names = {words_in_code(row[0])[0] for row in rows("Overview")}
    assert {path.name for path in (tmp_path / "s.ef").iterdir()} == names


@pytest.mark.parametrize("row", rows("Limits"), ids=lambda row: str(row[0]))
def test_every_limit_is_the_code_s(row: list[str]) -> None:
    module, _, name = words_in_code(row[2])[0].rpartition(".")
    value = getattr(importlib.import_module(module), name)
    said = row[1].removesuffix(" bytes").removesuffix(" s").replace(",", "")
    assert float(said) == float(value) and (isinstance(value, float) or int(said) == value)


def test_every_limit_of_the_format_is_on_the_page() -> None:
    named = {words_in_code(row[2])[0].rpartition(".")[2] for row in rows("Limits")}
    limits = importlib.import_module("ef.codec.limits")
    assert {name for name in vars(limits) if name.isupper()} <= named


# -------------------------------------------------------------------------------------------------------- made pages


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_made_pages_are_in_step() -> None:
    done = subprocess.run(
        [sys.executable, str(DOCS / "generate.py"), "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_page_out_of_step_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = load("generate")
    for name in made.pages():
        shutil.copy(DOCS / name, tmp_path / name)
    monkeypatch.setattr(made, "DOCS", tmp_path)
    assert made.main(["--check"]) == 0
    page = tmp_path / "events.md"
    page.write_text(
        page.read_text(encoding="utf-8").replace("ItemAppended", "ItemAdded"), encoding="utf-8"
    )
    (tmp_path / "errors.md").unlink()
    assert made.main(["--check"]) == 1
    said = capsys.readouterr().err
    assert "docs/events.md is out of step" in said and "docs/errors.md is out of step" in said
    assert made.main([]) == 0 and made.main(["--check"]) == 0


def test_every_kind_and_every_error_is_on_its_page() -> None:
    page = (DOCS / "events.md").read_text(encoding="utf-8")
    for spec in KINDS:
        assert f"\n### {spec.name}\n" in page
        for field in () if spec.raw else dataclasses.fields(spec.type):
            assert (
                f"| `{field.name}` |"
                in page.partition(f"\n### {spec.name}\n")[2].partition("\n### ")[0]
            )
    page = (DOCS / "errors.md").read_text(encoding="utf-8")
    classes = [each for each in vars(errors).values() if isinstance(each, type)]
    branches = (errors.CallerError, errors.StoreError, errors.DamageError)
    for kind in classes:
        if issubclass(kind, errors.EfError) and kind not in branches:
            assert f"| `{kind.__name__}` | {kind.exit_code} |" in page


# ---------------------------------------------------------------------------------------------------------- examples


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run_one_after_the_other(page: Path, tmp_path: Path) -> None:
    code = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.S | re.M)
    assert code
    shutil.copy(ROOT / "examples" / "shopcart.jsonl", tmp_path / "session.jsonl")
    if page.name == "log-format.md":
        code.insert(
            0,
            'import ef\nwith ef.open("agent.ef") as store:\n    store.import_file("session.jsonl")\n',
        )
        code.append("assert position == 361")
    program = tmp_path / "page.py"
    program.write_text("\n".join(code), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    if page.name == "README.md":
        assert "test/pytest/status failed" in done.stdout and "links" in done.stdout


@pytest.mark.parametrize(
    "page", [PAGES[0], DOCS / "getting-started.md"], ids=lambda page: page.name
)
def test_every_command_on_a_page_is_one_of_the_command_line(page: Path) -> None:
    lines = re.findall(r"^    ef ([^#>\n]+)", page.read_text(encoding="utf-8"), re.M)
    assert len(lines) >= 5
    for line in lines:
        parse(line.split(), lambda _: None)
    with pytest.raises(errors.UsageError):
        parse(["fold", "x"], lambda _: None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, heading = target.partition("#")
        found = (page.parent / name).resolve() if name else page
        assert found.exists(), target
        if heading:
            text = found.read_text(encoding="utf-8")
            titles = re.findall(r"^#+ (.+)$", text, re.M)
            assert heading in [
                re.sub(r"[^\w -]", "", t.lower()).replace(" ", "-") for t in titles
            ], target


def test_the_readme_opens_with_the_two_commands() -> None:
    first = [
        line.split("#")[0].strip() for line in (ROOT / "README.md").read_text().splitlines()[2:4]
    ]
    assert first == ["make demo", "make test"]


# ------------------------------------------------------------------------------------------------ the demo on the pages


def sameness(line: str) -> str:
    """A line without what differs from run to run: numbers, digests, runs of rules and spaces."""
    line = re.sub(r"\b[0-9a-f]{12,}\b|[\d,.]*\d", "0", line.replace("\u00a0", " "))
    return re.sub(r"(?<=0)\w+", "", re.sub(r"─+", "─", " ".join(line.split())))


@pytest.fixture(scope="module")
def printed() -> set[str]:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "demo.py")],
        capture_output=True, text=True, encoding="utf-8", cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return {sameness(line) for line in done.stdout.splitlines()}


def test_the_excerpt_in_the_readme_is_what_the_demo_prints(printed: set[str]) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    excerpts = re.findall(r"<!-- demo:.*?-->\n```text\n(.*?)```", text, re.S)
    assert excerpts
    for line in "".join(excerpts).splitlines():
        assert sameness(line) in printed, line


def test_the_picture_shows_what_the_demo_prints(printed: set[str]) -> None:
    picture = DOCS / "images" / "demo.svg"
    lines: dict[str, str] = {}
    for text in Xml.parse(picture).iter("{http://www.w3.org/2000/svg}text"):
        if text.get("text-anchor") is None:
            lines[text.attrib["y"]] = f"{lines.get(text.attrib['y'], '')} {text.text}"
    assert len(lines) > 30
    wrong = [line for line in lines.values() if sameness(line) not in printed]
    assert not wrong, "run python docs/make_picture.py"
    fetched = re.sub(r'xmlns="[^"]+"', "", picture.read_text(encoding="utf-8"))
    assert "http" not in fetched and "url(" not in fetched


# ---------------------------------------------------------------------------------------------------------- benchmarks


def test_the_benchmarks_run_at_all() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--quick"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    for title in (
        "Append one at a time",
        "in batches",
        "with history",
        "Import of",
        "Replay of",
        "Verify of",
    ):
        assert re.search(rf"^{title}|^\S.*{title}", done.stdout, re.M), title
    assert "Python" in done.stdout and "lmdb" in done.stdout and "CPUs" in done.stdout
