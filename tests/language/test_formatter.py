"""Formatting keeps comments and meaning, and settles at once."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import programs
from symdsl.diagnostics import Collector, SpecError
from symdsl.language import ast
from symdsl.language.formatter import format_text
from symdsl.language.parser import parse_program
from symdsl.language.printer import print_program

MESSY = """\
// first


let   a=1 // one
let b = [1, // inside
  2]  // two
network n {// opens
// alone
  input image(1,8,8)

  repeat [1] as i { layer: FC->i } // closes
  // last inside
}
// very last"""

TIDY = """\
// first

let a = 1  // one
// inside
let b = [1, 2]  // two
network n {  // opens
  // alone
  input image(1, 8, 8)

  repeat [1] as i {
    layer: FC -> i
  }  // closes
  // last inside
}
// very last
"""


def test_a_messy_text_becomes_tidy() -> None:
    assert format_text(MESSY) == TIDY


def test_an_empty_text_stays_empty() -> None:
    assert format_text("") == ""


def test_a_wrong_text_is_not_formatted() -> None:
    with pytest.raises(SpecError, match="expected a value"):
        format_text("let a =")


@st.composite
def commented(draw: st.DrawFn) -> str:
    """The text of a tree, with line breaks and comments between some of its tokens."""
    text = re.sub(r'"(\\.|[^"\\])*"', '"t"', print_program(draw(programs)))
    breaks = st.sampled_from([" ", " ", " ", "\n", "\n\n\n", " // c\n", "\n// d\n"])
    return "".join(draw(breaks) if piece.isspace() and piece != "" else piece for piece in re.split(r"(\s+)", text))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(commented())
def test_formatting_settles_keeps_meaning_and_comments(text: str) -> None:
    tidy = format_text(text)
    assert format_text(tidy) == tidy
    assert tree(tidy) == tree(text)
    assert re.findall(r"// .", tidy) == re.findall(r"// .", text)


def tree(text: str) -> ast.Program | None:
    return parse_program(text, "t", Collector())
