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


COLUMNS = """\
let a = [F-FC, CONV(3)]         // far
network n {
  repeat [(2,2), (2, 1)] as (m, s) {
    layer: F-FC + CONV(3) -> m          |> relu
    layer: FC             -> m stride s |> relu  // near
  }
}
prior {
  *.F-FC  ~ normal(1)           // far
}
search {
  epochs    = 60
  optimizer = adam(lr = 0.1)
}
"""


def test_columns_stay() -> None:
    assert format_text(COLUMNS) == COLUMNS


@pytest.mark.parametrize(
    ("messy", "tidy"),
    [
        ("let a   = f(1,2)", "let a = f(1, 2)\n"),
        ("let  a = 1      // far", "let a = 1       // far\n"),
        ("let long = f(1,2)   // near", "let long = f(1, 2)  // near\n"),
        ("let a=1 // near", "let a = 1  // near\n"),
        ('let a = "b   = c"   ', 'let a = "b   = c"\n'),
        ("let a = [1,\n2]       // far", "let a = [1, 2]  // far\n"),
        ("let a = 1\r\nlet b = 2    // far\r\n", "let a = 1\nlet b = 2    // far\n"),
    ],
)
def test_other_gaps_do_not(messy: str, tidy: str) -> None:
    assert format_text(messy) == tidy
    assert format_text(tidy) == tidy


def test_an_empty_text_stays_empty() -> None:
    assert format_text("") == ""


def test_a_wrong_text_is_not_formatted() -> None:
    with pytest.raises(SpecError, match="expected a value"):
        format_text("let a =")


@st.composite
def commented(draw: st.DrawFn) -> str:
    """The text of a tree, with line breaks and comments between some of its tokens."""
    text = re.sub(r'"(\\.|[^"\\])*"', '"t"', print_program(draw(programs)))
    breaks = st.sampled_from([" ", " ", "   ", "\n", "\n\n\n", " // c\n", "     // e\n", "\n// d\n"])
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
