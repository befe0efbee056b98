"""Pairs of text in and text out: specs that are wrong, with all that is said about them, and specs that are right."""

from __future__ import annotations

from pathlib import Path

import pytest

from symdsl.diagnostics import SpecError, render_text
from symdsl.language.formatter import format_text
from symdsl.spec import load

FIXTURES = Path(__file__).parent.parent / "fixtures"
SPECS = Path(__file__).parent.parent.parent / "specs"


def rendered(path: Path) -> str:
    try:
        diagnostics = load(path).warnings
    except SpecError as error:
        diagnostics = error.diagnostics
    return render_text(diagnostics).replace(path.parent.as_posix() + "/", "") + "\n"


@pytest.mark.parametrize("path", sorted((FIXTURES / "bad").glob("*.sym")), ids=lambda path: path.stem)
def test_what_is_said_about_wrong_specs(path: Path) -> None:
    assert rendered(path) == path.with_suffix(".txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted((FIXTURES / "good").glob("*.sym")), ids=lambda path: path.stem)
def test_nothing_is_said_about_right_specs(path: Path) -> None:
    assert rendered(path) == "\n"


@pytest.mark.parametrize("path", sorted(SPECS.rglob("*.sym")), ids=lambda path: path.stem)
def test_shipped_specs_are_in_canonical_layout(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert format_text(text) == text


WHOLE = [path for path in sorted(SPECS.rglob("*.sym")) if path.parent.name != "blocks"]


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: path.stem)
def test_shipped_specs_are_right(path: Path) -> None:
    assert load(path).warnings == ()
