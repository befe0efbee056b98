"""Printing is the inverse of parsing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from strategies import expressions, programs
from symdsl.diagnostics import Collector, render_text
from symdsl.language import ast
from symdsl.language.parser import parse_expression, parse_program
from symdsl.language.printer import expression, print_program, statement_lines


def parsed(text: str) -> ast.Program:
    collector = Collector()
    collector.add_source("t", text)
    program = parse_program(text, "t", collector)
    assert program is not None, f"{text}\n{render_text(collector.diagnostics)}"
    return program


@settings(max_examples=200, deadline=None, derandomize=True)
@given(programs)
def test_parsing_undoes_printing(program: ast.Program) -> None:
    assert parsed(print_program(program)) == program


@settings(max_examples=200, deadline=None, derandomize=True)
@given(expressions)
def test_parsing_undoes_printing_of_values(value: ast.Expression) -> None:
    assert parse_expression(expression(value), "t", Collector()) == value


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("2 * width", "2*width"),
        ("(1 + 2) * 3", "(1 + 2)*3"),
        ("1 + (2 * 3)", "1 + 2*3"),
        ("1 - (2 - 3)", "1 - (2 - 3)"),
        ("(1 < 2) == 3", "(1 < 2) == 3"),
        ("-(1 + a)", "-(1 + a)"),
        ("F - FC", "F - FC"),
        ("F-FC", "F-FC"),
        ("(1,)", "(1,)"),
        ("((1))", "1"),
        ("f()", "f()"),
        ("1e-5", "1e-05"),
        (r'"a\"b\\c\n"', r'"a\"b\\c\n"'),
    ],
)
def test_values_have_one_spelling(written: str, printed: str) -> None:
    value = parse_expression(written, "t", Collector())
    assert value is not None
    assert expression(value) == printed


def test_spans_take_no_part_in_equality() -> None:
    assert parsed("let a = 1") == parsed("\n\n  let   a =\n1")
    assert parsed("let a = 1") != parsed("let a = 2")


def test_spans_say_where_a_node_was_written() -> None:
    (let,) = parsed("\n  let a = 1 + 23\n").statements
    assert (let.span.line, let.span.column, let.span.end_line, let.span.end_column) == (2, 3, 2, 17)


def test_what_is_no_node_cannot_be_printed() -> None:
    with pytest.raises(TypeError, match=r"`node` \(=3\) must be a node of the tree"):
        statement_lines(3)
