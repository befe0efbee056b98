"""The Pygments lexer: what it says of specs, and that whoever installs the package has it."""

from __future__ import annotations

import re
import tomllib
from html import unescape
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.lexer import Lexer
from pygments.token import Comment, Error, Keyword, Name, Number, Operator, Punctuation, String

from shipped import ROOT, SPECS, name_of
from strategies import programs
from symdsl import highlight
from symdsl.highlight.lexer import SymLexer
from symdsl.highlight.rules import callables, constants
from symdsl.language import ast
from symdsl.language.keywords import FLAGS, keywords
from symdsl.language.parser import tokens
from symdsl.language.printer import print_program


def lexer() -> SymLexer:
    return SymLexer(stripnl=False, ensurenl=False)


def lexed(text: str) -> list[tuple[object, str]]:
    """Tokens and their texts, blanks aside."""
    return [(token, value) for token, value in lexer().get_tokens(text) if value.strip()]


@pytest.mark.parametrize("path", SPECS, ids=name_of)
def test_specs_have_no_error_tokens_and_come_back_whole(path: Path) -> None:
    text = path.read_text()
    found = list(lexer().get_tokens(text))
    assert [value for token, value in found if token in Error] == []
    assert "".join(value for _, value in found) == text


@given(programs)
def test_whatever_can_be_parsed_has_no_error_tokens(program: ast.Program) -> None:
    text = print_program(program)
    assert [value for token, value in lexed(text) if token in Error] == []


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])))
def test_any_text_comes_back_whole(text: str) -> None:
    assert "".join(value for _, value in lexer().get_tokens(text)) == text


@pytest.mark.parametrize("path", SPECS, ids=name_of)
def test_it_reads_the_words_as_the_parser_does(path: Path) -> None:
    text = path.read_text()
    words = [value for token, value in lexed(text) if token not in Comment]
    assert words == [str(token) for token in tokens(text)]


def test_each_word_is_what_the_tables_say() -> None:
    assert {token for word in keywords().values() for token, _ in lexed(word)} == {Keyword, Keyword.Constant}
    assert [token for word in sorted(FLAGS) for token, _ in lexed(word)] == [Keyword.Constant, Keyword.Constant]
    assert {token for word in callables() for token, _ in lexed(word)} == {Name.Function}
    assert {token for word in constants() for token, _ in lexed(word)} == {Name.Builtin}
    assert {"digits", "standardize", "affine", "normal", "floor", "mackay"} <= set(callables())
    assert {"relu", "p4", "max", "classes", "cosine", "fixed", "pointwise"} <= set(constants())


def test_a_line_with_one_of_each() -> None:
    assert lexed('layer l1: F-FC(init_scale = 1e-2) -> letter "x" true // on') == [
        (Keyword, "layer"),
        (Name.Variable, "l1"),
        (Punctuation, ":"),
        (Name.Class, "F-FC"),
        (Punctuation, "("),
        (Name.Attribute, "init_scale"),
        (Operator, "="),
        (Number, "1e-2"),
        (Punctuation, ")"),
        (Operator, "->"),
        (Name, "letter"),
        (String, '"x"'),
        (Keyword.Constant, "true"),
        (Comment.Single, "// on"),
    ]


def test_types_of_parameters_are_types_and_a_name_after_a_colon_is_none() -> None:
    assert [value for token, value in lexed("block b(a: kinds, m: whole = 1) {") if token is Keyword.Type] == [
        "kinds",
        "whole",
    ]
    assert (Name, "list") in lexed("layer l1: list -> 3")


@pytest.mark.parametrize("blank", [" ", "\t", "\n", "\f", "\v", "\x1c", "\x85", "\N{NO-BREAK SPACE}", "\N{EM SPACE}"])
def test_blanks_are_those_of_the_parser(blank: str) -> None:
    unreadable = [str(token) for token in tokens(f"let{blank}a") if token.type == "UNREADABLE"]
    assert [value for token, value in lexer().get_tokens(f"let{blank}a") if token in Error] == unreadable


def test_what_means_nothing_is_an_error_token() -> None:
    assert [value for token, value in lexed('let a = $3 "open') if token in Error] == ["$", '"']


def test_a_kind_of_tomorrow_is_a_kind() -> None:
    assert lexed("S-GCONV") == [(Name.Class, "S-GCONV")]


def test_a_keyword_after_a_keyword_declares_nothing() -> None:
    assert lexed("layer let") == [(Keyword, "layer"), (Keyword, "let")]


def test_the_entry_point_leads_to_the_lexer() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module, _, name = project["entry-points"]["pygments.lexers"]["sym"].partition(":")
    found = getattr(import_module(module), name)
    assert issubclass(found, Lexer)
    assert "sym" in found.aliases
    assert found.filenames == ("*.sym",)


def test_html_is_the_text_in_colour() -> None:
    shown = highlight.html('let a = "<b>"\n')
    assert unescape(re.sub(r"<[^>]*>", "", shown)).strip() == 'let a = "<b>"'
    assert "color:" in shown


def test_ansi_is_the_text_in_colour() -> None:
    text = SPECS[0].read_text()
    shown = highlight.ansi(text)
    assert shown != text
    assert re.sub(r"\x1b\[[0-9;]*m", "", shown) == text


def test_only_the_indented_lines_of_a_text_are_specs() -> None:
    text = "let it be:\n\n    let a = 1\n\n    let b = 2\n\nlet go"
    first, spec, last = text.partition("    let a = 1\n\n    let b = 2")
    assert highlight.indented(text) == first + highlight.ansi(spec) + last
