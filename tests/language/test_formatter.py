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
let b = [
  1,  // inside
  2,
]  // two
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
profile cpu {                     // far
  a             = 60
  // alone
  search.epochs = 3               // far
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


LONG = "(a, b, " + "c" * 80 + ")"


@pytest.mark.parametrize(
    ("messy", "tidy"),
    [
        (
            f"network n {{\n  layer a/b: F-FC ~ normal(1)+CONV(3)+f{LONG} -> 2*width stride 2 |> relu |> tanh\n}}\n",
            "network n {\n  layer a/b: F-FC ~ normal(1)\n    + CONV(3)\n"
            f"    + f{LONG}\n    -> 2*width stride 2\n    |> relu\n    |> tanh\n}}\n",
        ),
        (f"data digits |> f{LONG} |> standardize", f"data digits\n  |> f{LONG}\n  |> standardize\n"),
        (f"let a = [1, f{LONG}, (2,)]", f"let a = [\n  1,\n  f{LONG},\n  (2,),\n]\n"),
        (f"search {{ a = f(1, b = g{LONG}) }}", f"search {{\n  a = f(\n    1,\n    b = g{LONG},\n  )\n}}\n"),
        (
            f"block a(b: kinds, c = f{LONG}) {{ flatten }}",
            f"block a(\n  b: kinds,\n  c = f{LONG},\n) {{\n  flatten\n}}\n",
        ),
        (f"profile p {{ data.a = f(1, g{LONG}) }}", f"profile p {{\n  data.a = f(\n    1,\n    g{LONG},\n  )\n}}\n"),
        (f"network n(a = f{LONG}) {{ }}", f"network n(\n  a = f{LONG},\n) {{\n}}\n"),
        (f"let a = b{'*c' * 60}", f"let a = b{'*c' * 60}\n"),
    ],
)
def test_what_is_long_is_broken_into_its_parts(messy: str, tidy: str) -> None:
    assert format_text(messy) == tidy
    assert format_text(tidy) == tidy


@pytest.mark.parametrize(("letters", "lines"), [(82, 3), (83, 4)])
def test_a_line_may_be_as_long_as_the_width(letters: int, lines: int) -> None:
    text = format_text(f"network n {{ layer: {'F' * letters} -> 12345 }}")
    assert text.count("\n") == lines
    assert max(map(len, text.split("\n"))) <= 100


BETWEEN = """\
let a = [
  // before
  1,  // one

  // two
  2,
  // after
]  // closed
block s(
  a: whole,  // width of it
  // both
  b = 2,
) {  // opens
  layer l1: F-FC ~ normal(1)  // free
    // shared
    + CONV(3)
    -> 8 stride 2             // fewer
    |> relu  // last
}
data digits
  // as large as a network wants it
  |> resize(16)
"""


def test_comments_stay_between_the_parts_of_what_is_broken() -> None:
    assert format_text(BETWEEN) == BETWEEN


@pytest.mark.parametrize("text", ["let a = [1, 2]// c\n", "search {\n  optimizer = adam(lr = 1)// c\n}\n"])
def test_a_comment_may_touch_what_it_follows(text: str) -> None:
    assert format_text(text) == text.replace("//", "  //")


def test_a_comment_inside_a_part_moves_out_of_it() -> None:
    assert (
        format_text("network n {\nlayer: FC -> f( // inside\n1) }")
        == "network n {\n  // inside\n  layer: FC -> f(1)\n}\n"
    )
    assert format_text("let a // inside\n = 1") == "// inside\nlet a = 1\n"


def test_a_part_between_two_comments_leaves_no_blank_line() -> None:
    messy = "network n {\nlayer a: CONV(3) -> 2 stride // one\n2\n|> // two\nrelu }"
    assert "    // one\n    // two\n" in format_text(messy)


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


@settings(max_examples=200, deadline=None, derandomize=True)
@given(programs)
def test_what_is_printed_is_formatted(program: ast.Program) -> None:
    text = print_program(program)
    assert format_text(text) == text


def tree(text: str) -> ast.Program | None:
    return parse_program(text, "t", Collector())
