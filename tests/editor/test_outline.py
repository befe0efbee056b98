"""The outline of a text by its tokens: right for what can be parsed, and useful for what cannot."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from strategies import programs
from symdsl.editor.outline import Entry, Outline
from symdsl.language import ast
from symdsl.language.parser import tokens
from symdsl.language.printer import print_program


def heads(entries: list[Entry]) -> list[object]:
    """What the entries begin with, those with others inside as pairs."""
    return [(str(one.tokens[0]), heads(one.inside)) if one.inside else str(one.tokens[0]) for one in entries]


def outlined(text: str) -> list[object]:
    return heads(Outline.of(tokens(text)).file.inside)


@given(programs)
def test_it_finds_the_statements_and_items_that_the_parser_finds(program: ast.Program) -> None:
    found = Outline.of(tokens(print_program(program))).file.inside
    assert [one.head for one in found] == [_TERMINALS[type(one)] for one in program.statements]
    assert [count(one) for one in found] == [below(one) for one in program.statements]


def count(entry: Entry) -> int:
    return sum(1 + count(one) for one in entry.inside)


def below(node: object) -> int:
    inside = getattr(node, "items", None) or getattr(node, "rules", None) or getattr(node, "settings", None) or ()
    return sum(1 + below(one) for one in inside)


_TERMINALS = {
    ast.Let: "LET",
    ast.Import: "IMPORT",
    ast.Data: "DATA",
    ast.Block: "BLOCK",
    ast.Block: "BLOCK",
    ast.Network: "NETWORK",
    ast.Instance: "NETWORK",
    ast.Priors: "PRIOR",
    ast.Search: "SEARCH",
    ast.Profile: "PROFILE",
}


@given(st.text(st.sampled_from('{}()[]\n ~=.,:+*|> abF-"/')), st.text(st.sampled_from("layer let prior{}( \n")))
def test_no_text_is_too_odd(one: str, other: str) -> None:
    for entry, around in Outline.of(tokens(one + other)).file.walk():
        start, end = entry.reach
        assert start < end
        assert all(outer.reach[0] <= start and end <= outer.reach[1] for outer in around)


def test_an_item_that_is_not_finished_ends_at_the_next() -> None:
    text = "network net {\n  layer l1: CONV(3, \n  layer l2: \n  flatten\n}\nlet a = 1"
    assert outlined(text) == [("network", ["layer", "layer", "flatten"]), "let"]


def test_braces_that_are_not_closed_end_at_the_next_statement() -> None:
    assert outlined("network net {\n layer l1: FC\nprior {\n a.b ~\nsearch { }") == [
        ("network", ["layer"]),
        ("prior", ["a"]),
        "search",
    ]


def test_rules_and_settings_begin_on_lines_of_their_own() -> None:
    text = (
        "prior {\n *.FC ~ normal(\n 1)\n l1.\n CONV ~ normal(2)\n}\nsearch {\n a = 1 +\n 2\n b =\n c\n d = [1,\n 2]\n}"
    )
    assert outlined(text) == [("prior", ["*", "l1"]), ("search", ["a", "b", "d"])]


def test_a_type_of_a_parameter_begins_no_statement() -> None:
    assert outlined("network net(a: prior) {\n flatten\n}") == [("network", ["flatten"])]


def test_items_nested_too_deep_to_read_are_not_opened() -> None:
    text = "network n {\n" + "repeat x as y {\n" * 2000
    assert len(list(Outline.of(tokens(text)).file.walk())) < 200
