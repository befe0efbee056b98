"""Whatever is written, the only outcomes are a spec or diagnostics.

Five tests: 500 cases by default, 20,000 with `pytest tests/test_fuzz.py --hypothesis-profile nightly`.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plausible import specs
from strategies import programs
from symdsl.diagnostics import Diagnostic, SpecError, render_github, render_json, render_text
from symdsl.graph.serial import content_hash
from symdsl.language.formatter import format_text
from symdsl.language.printer import print_program
from symdsl.spec import Spec, check, load, parse

SPECS = Path(__file__).parent.parent / "specs"
FIXTURES = Path(__file__).parent / "fixtures"
CORPUS = [path.read_bytes() for folder in (SPECS, FIXTURES) for path in sorted(folder.rglob("*.sym"))]
LINES = sorted({line for content in CORPUS for line in content.splitlines(keepends=True)})
PIECES = [
    *(
        b"",
        b"{",
        b"}",
        b"(",
        b")",
        b"[",
        b"]",
        b'"',
        b"~",
        b"|>",
        b"->",
        b"//",
        b"/",
        b"*",
        b"-",
        b"=",
        b":",
        b",",
        b".",
    ),
    *(
        b"0",
        b"-1",
        b"1e308",
        b"99999999999999999999",
        b"FC",
        b"F-FC",
        b"CONV(3)",
        b"classes",
        b"use ",
        b"block ",
        b"repeat ",
    ),
    *(b"\t", b"\r", b"\n", b"\x00", b"\xff", b"\xc3\xa9", b"\xef\xbb\xbf", "\u0301\u202e\U0001f600".encode(), b" "),
]
KEYS = ["width", "candidates", "data.size", "data.root", "search.epochs", "search.optimizer", "wdith", "a.b", ""]
VALUES = ["3", "[CONV(3)]", "[", '"x"', "adam(lr = 1)", "1/0", "FC, FC", "", "\n", "$", "width"]


@st.composite
def bytes_changed(draw: st.DrawFn) -> bytes:
    """A spec with a few pieces deleted, doubled or replaced."""
    content = draw(st.sampled_from(CORPUS))
    for _ in range(draw(st.integers(1, 5))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(len(content), start + 12)))
        piece = draw(st.one_of(st.sampled_from(PIECES), st.just(content[start:end] * 2), st.binary(max_size=2)))
        content = content[:start] + piece + content[end:]
    return content


@st.composite
def lines_changed(draw: st.DrawFn) -> bytes:
    """A spec with a few lines deleted, doubled, moved, or taken from another spec."""
    lines = draw(st.sampled_from(CORPUS)).splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 5))):
        at, other = draw(st.integers(0, len(lines))), draw(st.integers(0, len(lines)))
        lines[at:at] = draw(
            st.sampled_from([lines[other : other + 1], lines[other : other + 4], [draw(st.sampled_from(LINES))]])
        )
        gone = draw(st.integers(0, len(lines)))
        del lines[gone : gone + draw(st.integers(0, 2))]
    return b"".join(lines)


names = st.text("abFC3-_/* .é", max_size=6).map(str.encode)
pieces = st.lists(st.one_of(st.sampled_from(PIECES), st.sampled_from(LINES), names), max_size=30).map(b" ".join)
overrides = st.one_of(st.just({}), st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=2))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the specs import."""
    path = tmp_path_factory.mktemp("fuzz")
    shutil.copytree(SPECS / "blocks", path / "blocks")
    return path


@given(specs().map(str.encode), overrides)
def test_specs_that_could_be_meant(folder: Path, content: bytes, changes: dict[str, str]) -> None:
    only_a_spec_or_diagnostics(folder, content, changes)


@given(programs.map(print_program).map(str.encode), overrides)
def test_any_tree(folder: Path, content: bytes, changes: dict[str, str]) -> None:
    only_a_spec_or_diagnostics(folder, content, changes)


@given(bytes_changed(), overrides)
def test_changed_bytes(folder: Path, content: bytes, changes: dict[str, str]) -> None:
    only_a_spec_or_diagnostics(folder, content, changes)


@given(lines_changed(), overrides)
def test_changed_lines(folder: Path, content: bytes, changes: dict[str, str]) -> None:
    only_a_spec_or_diagnostics(folder, content, changes)


@given(st.one_of(pieces, st.binary(max_size=60)), overrides)
def test_any_bytes(folder: Path, content: bytes, changes: dict[str, str]) -> None:
    only_a_spec_or_diagnostics(folder, content, changes)


def only_a_spec_or_diagnostics(folder: Path, content: bytes, changes: dict[str, str]) -> None:
    path = folder / "case.sym"
    path.write_bytes(content)
    show(check(path))
    spec = loaded(path, changes)
    if spec is not None:
        graph = content_hash(spec.graph())
        for text in (spec.text(), spec.pruned({}), format_text(spec.text())):
            assert content_hash(parse(text).graph()) == graph


def show(diagnostics: tuple[Diagnostic, ...]) -> None:
    """Every rendering of what is said about a spec; all of it is somewhere."""
    assert bool(diagnostics) is bool(render_text(diagnostics, colour=True)) is bool(render_github(diagnostics))
    assert len(json.loads(render_json(diagnostics))) == len(diagnostics)
    assert all(min(one.span.line, one.span.column) >= 1 for one in diagnostics)


def loaded(path: Path, changes: dict[str, str]) -> Spec | None:
    try:
        return load(path, changes)
    except SpecError as raised:
        error = raised
    assert any(one.severity == "error" for one in error.diagnostics)
    return None
