"""Syntax errors: in the words of the language, several a run, and never anything but diagnostics."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from strategies import programs
from symdsl.diagnostics import Collector, SpecError
from symdsl.language import ast
from symdsl.language.keywords import FLAGS, keywords
from symdsl.language.parser import parse_expression, parse_program, tokens
from symdsl.language.printer import print_program
from symdsl.resources import read_shipped
from symdsl.spec import parse

SPECS = [read_shipped(f"specs/{name}.sym") for name in ("digits", "rotated_mnist", "starter", "paper/network")]


def errors(text: str) -> list[tuple[int, str]]:
    collector = Collector()
    collector.add_source("t", text)
    parse_program(text, "t", collector)
    assert collector.failed
    return [(one.span.line, one.message) for one in collector.diagnostics]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("let", "expected a name, found the end of the text"),
        ("let a 3", "expected `=` and a value, found `3`"),
        ("let a = ", "expected a value, found the end of the text"),
        ("let a = [1, 2", "expected `,` or `]`, found the end of the text"),
        ("let a = f(1", "expected `,` or `)`, found the end of the text"),
        ("let layer = 3", "expected a name, found `layer`"),
        ("import blocks", 'expected the path of a file, such as `"blocks/pyramid.sym"`, found `blocks`'),
        ("data |> x", "expected a data source, such as `digits`, found `|>`"),
        ("data digits |>", "expected a transform or an activation, such as `standardize` or `relu`, found the end"),
        (
            "wide = 3",
            "expected a statement: `let`, `import`, `data`, `block`, `network`, `prior`, `search` or `profile`, "
            "found `wide`",
        ),
        ("network n", "expected `=` or `{`, found the end of the text"),
        ("network n { lay }", "expected an item of a network, such as `layer`, or `}`, found `lay`"),
        ("network n { layer l1 FC }", "expected `:` and the kinds the layer may take, found `FC`"),
        ("network n { layer l1: }", "expected a kind, such as `CONV(3)`, found `}`"),
        ("network n { layer: F-FC CONV(3) -> 4 }", "expected `->` and the number of channels, found `CONV`"),
        ("network n { layer: FC -> }", "expected a value, found `}`"),
        ("network n { layer: FC ~ -> 3 }", "expected a prior, such as `normal(precision = 1)`, found `->`"),
        ("network n { lift }", "expected the name of a group, such as `p4`, found `}`"),
        ("network n { project }", "expected `max` or `mean`, found `}`"),
        ("network n { input }", "expected `image(channels, height, width)` or `signal(channels, length)`, found `}`"),
        ("network n { repeat [1] { } }", "expected `as` and a name for the value, found `{`"),
        ("network n { repeat [1] as { } }", "expected a name, or several in parentheses, found `{`"),
        ("network n(a {", "expected `,` or `)`, found `{`"),
        ("block", "expected the name of the block, found the end of the text"),
        ("network n { use }", "expected the name of a block, found `}`"),
        ("network n { use a\n3 }", "expected `as` and a name, or the next item of the network, found `3`"),
        ("prior { l1 ~ normal }", "expected `.` and a kind, as in `l1.CONV`, found `~`"),
        ("prior { l1.FC = 3 }", "expected `~` and a prior, found `=`"),
        ("prior { ~ }", "expected a selector, such as `l1.CONV`, found `~`"),
        ("search { 3 }", "expected `key = value` or `}`, found `3`"),
        ("search 3", "expected `{`, found `3`"),
        ('let a = "open', 'this text has no end: expected `"` on the same line'),
        ("let a = $", "`$` means nothing here"),
        ("let a = 1 < 2 < 3", "expected the end of the line, found `<`"),
        ("let a = b.c", "expected the end of the line, found `.`"),
        ("network n {\nflatten()\n}", "expected the end of the line, found `(`"),
        ("let a = 3 $$ $", "`$$` means nothing here"),
        ("let a = " + "\u00bd" * 60, "`" + "\u00bd" * 37 + "...` means nothing here"),
        ("let " + "a" * 60 + " 3 4", "expected `=` and a value, found `3`"),
        ("data digits(3 4 5 " + "b" * 60, "expected `,` or `)`, found `4`"),
        (
            "let a = 3\n" + "b" * 60,
            "expected a statement: `let`, `import`, `data`, `block`, `network`, `prior`, `search` or `profile`, found `"
            + "b" * 37
            + "...`",
        ),
        ("prior { a.b(1) }", "expected `~` and a prior, found `}`"),
        ("prior { *.FC normal ~ normal }", "expected `.` or `~`, found `normal`"),
        ("let a = \x00", "`U+0000` means nothing here"),
        (r'let a = "\d"', r"`\d` stands for nothing in a text"),
        ("let a = " + "9" * 50, "a number of 50 digits is too long to read"),
        ("let a = 9999999999999999999999", "`9999999999999999999999` overflows"),
        ("let a = 1e999", "`1e999` overflows"),
        ("let a = " + "-" * 400 + "1", "this is nested too deep to read"),
        ("let a = " + "1 + " * 400 + "1", "this is nested too deep to read"),
    ],
)
def test_the_message_says_what_was_expected(text: str, message: str) -> None:
    assert errors(text)[0][1].startswith(message)


def test_all_errors_of_a_file_are_found() -> None:
    text = """\
let a =
let b = 2
network n {
  layer l1: F-FC CONV(3) -> 4
  layer l2: FC -> 3
  layer l3 FC -> 3
  repeat as i {
    layer: FC -> 3
  }
  layer l4: FC
}
search {
  epochs 3
  every = 3
  seed = = 4
}
data
"""
    assert [line for line, _ in errors(text)] == [2, 4, 6, 7, 11, 13, 15, 17]


def tree(text: str) -> ast.Program | None:
    collector = Collector()
    collector.add_source("t", text)
    return parse_program(text, "t", collector)


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("lte a = 3", "let a = 3"),
        ("Let a = 3", "let a = 3"),
        ("a = 3", "let a = 3"),
        ("let a 3", "let a = 3"),
        ("let a = 0x1F", "let a = 31"),
        ("let a = 45deg", "let a = 45"),
        ("let deg = 2 let a = 45deg", "let deg = 2 let a = 45 * deg"),
        ("let a = 2 × 3 − 1", "let a = 2 * 3 - 1"),
        ("let a = [1, 2] /* why [1, 2] */ let b = 3 /* end */", "let a = [1, 2] let b = 3"),
        ("let a = f[3]", "let a = f(3)"),
        ("let a = f(b 3)", "let a = f(b = 3)"),
        ("let a = f(b = 3 c = 4)", "let a = f(b = 3, c = 4)"),
        ("data arrays('my digits.npz')", 'data arrays("my digits.npz")'),
        ("network n { layer: F - FC -> 3 }", "network n { layer: F-FC -> 3 }"),
        ("network n { layer: CONV 3 -> 3 }", "network n { layer: CONV(3) -> 3 }"),
        ("network n { layer: CONV[3] → 3 }", "network n { layer: CONV(3) -> 3 }"),
        ("prior { l1.FC normal(1) }", "prior { l1.FC ~ normal(1) }"),
        ("prior { l1.FC, l2/*.FC ~ normal(1) }", "prior { l1.FC ~ normal(1) l2/*.FC ~ normal(1) }"),
        ("l1.FC ~ normal(1)\n*.FC ~ normal(2)\nsearch { }", "prior { l1.FC ~ normal(1) *.FC ~ normal(2) } search { }"),
        ("profile p { search { a = b(c = 1) } data.n = 3 }", "profile p { search.a = b(c = 1) data.n = 3 }"),
        ("let a == 3", "let a = 3"),
        ("let a: 3", "let a = 3"),
        ("let a = = 3", "let a = 3"),
        ("let a = 3;", "let a = 3"),
        ("let a = [1 2]", "let a = [1, 2]"),
        ("let a = [1; 2", "let a = [1, 2]"),
        ("let a = f(1, [2, 3)", "let a = f(1, [2, 3])"),
        ("# a comment\nlet a = 3 # another\n# last", "let a = 3"),
        ("data digits |> pad(8 |> standardize", "data digits |> pad(8) |> standardize"),
        ("data digits standardize", "data digits |> standardize"),
        ("data digits | standardize", "data digits |> standardize"),
        ("network n {\n flatten", "network n { flatten }"),
        ("network n {\n repeat [1] as i {\n flatten\nsearch {", "network n { repeat [1] as i { flatten } } search { }"),
        ("network n {\n flatten }\n}\nlet a = 3", "network n { flatten } let a = 3"),
        ("network n { layer l1 FC -> 3 }", "network n { layer l1: FC -> 3 }"),
        ("network n { layer l1 = FC -> 3 }", "network n { layer l1: FC -> 3 }"),
        ("network n { layer: FC 3 }", "network n { layer: FC -> 3 }"),
        ("network n { layer: FC CONV(3) -> 3 }", "network n { layer: FC + CONV(3) -> 3 }"),
        ("network n { layer: FC & CONV(3) -> 3 }", "network n { layer: FC + CONV(3) -> 3 }"),
        ("network n { layer: FC, CONV(3) -> 3 }", "network n { layer: FC + CONV(3) -> 3 }"),
        ("network n { layer: FC normal(1) -> 3 }", "network n { layer: FC ~ normal(1) -> 3 }"),
        ("network n { layer: FC -> 3 -> relu }", "network n { layer: FC -> 3 |> relu }"),
        ("network n { layer: FC -> 3 strides 2 }", "network n { layer: FC -> 3 stride 2 }"),
        ("network n { repeat xs i { flatten } }", "network n { repeat xs as i { flatten } }"),
        ("prior { l1.FC = normal(1) }", "prior { l1.FC ~ normal(1) }"),
        ("search epochs = 3 }", "search { epochs = 3 }"),
        ("search { epochs: 3 }", "search { epochs = 3 }"),
    ],
)
def test_a_small_mistake_is_read_as_it_was_meant(wrong: str, right: str) -> None:
    assert 1 <= len(errors(wrong)) <= 3
    assert tree(wrong) == tree(right)


@pytest.mark.parametrize(
    ("text", "gap"),
    [
        ("let a = ", ast.Let(ast.Word("a"), ast.Unread())),
        ("let a = 1e999", ast.Let(ast.Word("a"), ast.Unread())),
        ('let a = "\\q"', ast.Let(ast.Word("a"), ast.Unread())),
        ("let a = (((3 +) 4", ast.Let(ast.Word("a"), ast.Unread("let", ast.Word("a")))),
        ("let a = " + "-" * 400 + "1", ast.Let(ast.Word("a"), ast.Unread("let", ast.Word("a")))),
        ("data |> 3", ast.Unread("data")),
        ('import "\\q"', ast.Unread("import")),
        ("network n = 3", ast.Unread("network", ast.Word("n"))),
        ("epochs = 3", ast.Unread()),
        ("network n { layer a: ~ 3 }", ast.Network(ast.Word("n"), None, (ast.Unread("layer", ast.Word("a")),))),
        ("prior { a . b . c . d ~ e }", ast.Priors(())),
        ("prior { a b.c ~ d }", ast.Priors(())),
    ],
)
def test_what_cannot_be_read_leaves_a_gap_with_its_name(text: str, gap: ast.Statement) -> None:
    read = tree(f"{text}\nlet last = 1")
    assert read is not None
    assert read.statements == (gap, ast.Let(ast.Word("last"), ast.Number(1)))


def test_a_gap_cannot_be_printed() -> None:
    with pytest.raises(TypeError, match="must have been read"):
        print_program(ast.Program((ast.Let(ast.Word("a"), ast.Unread()),)))


def test_a_repair_comes_with_an_edit() -> None:
    collector = Collector()
    collector.add_source("t", "lte a = f(3")
    parse_program("lte a = f(3", "t", collector)
    fixes = [one.fix for one in collector.diagnostics]
    assert [(fix.message, str(fix.span), fix.content) for fix in fixes if fix is not None] == [
        ("replace by `let`", "t:1:1", "let"),
        ("insert `)`", "t:1:12", ")"),
    ]


def test_errors_do_not_run_on_for_ever() -> None:
    found = errors("let a = \n" * 200)
    assert len(found) == 100
    assert found[-1] == (101, "more than 99 syntax errors: the rest of the text was not read")


def test_comments_are_kept_beside_the_tree() -> None:
    collector = Collector()
    program = parse_program('let a = "//no"  // yes\n  // alone \n', "t", collector)
    assert program is not None
    assert [(one.text, one.alone, one.span.line) for one in program.comments] == [
        ("// yes", False, 1),
        ("// alone", True, 2),
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_comment_ends_with_its_line(end: str) -> None:
    program = parse_program(f"let a = 1 // one{end}let b = 2{end}", "t", Collector())
    assert program is not None
    assert [one.text for one in program.comments] == ["// one"]
    assert len(program.statements) == 2


def test_an_expression_ends_where_it_ends() -> None:
    collector = Collector()
    assert parse_expression("1 2", "t", collector) == ast.Unread()
    assert [one.message for one in collector.diagnostics] == ["expected the end of the text, found `2`"]


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """A shipped spec with a few pieces deleted, doubled, or replaced."""
    text = draw(st.sampled_from(SPECS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 12)))
        piece = draw(
            st.sampled_from(
                ["", text[start:end] * 2, "{", "}", "(", '"', "~", "0", "-1", "1e308", "FC", "\t", "é", "\r"]
            )
        )
        text = text[:start] + piece + text[end:]
    return text


@settings(max_examples=300, deadline=None, derandomize=True)
@given(mutations())
def test_mutated_specs_end_in_diagnostics(text: str) -> None:
    check(text)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(max_size=60))
@example("\x00")
@example('"')
@example("//")
@example("\ud800")
def test_any_text_ends_in_diagnostics(text: str) -> None:
    check(text)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(programs)
def test_any_tree_ends_in_diagnostics(program: ast.Program) -> None:
    check(print_program(program))


def check(text: str) -> None:
    try:
        parse(text)
    except SpecError as error:
        found = error.diagnostics
    else:
        return
    assert any(one.severity == "error" for one in found)
    assert all(one.span.line >= 1 and one.span.column >= 1 for one in found)


def test_a_byte_order_mark_is_no_word() -> None:
    assert tokens("\ufefflet a = 1") == tokens("let a = 1")
    assert tokens("let a = \ufeff1")[-2].type == "UNREADABLE"


@pytest.mark.parametrize("word", sorted({*keywords().values()} - FLAGS))
def test_a_reserved_word_beside_a_star_is_part_of_a_pattern(word: str) -> None:
    text = f"prior {{\n  {word}*.CONV ~ fixed\n  a/*{word}.*{word}* ~ fixed\n  *{word}.FC ~ fixed\n}}\n"
    collector = Collector()
    program = parse_program(text, "t", collector)
    assert program is not None
    assert not collector.diagnostics
    rules = [rule for one in program.statements if isinstance(one, ast.Priors) for rule in one.rules]
    assert [[part.text for part in rule.selector] for rule in rules] == [
        [f"{word}*", "CONV"],
        [f"a/*{word}", f"*{word}*"],
        [f"*{word}", "FC"],
    ]
    assert errors(f"prior {{ {word} * .CONV ~ fixed }}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("let* a = 3", "expected a name, found `*`"),
        ("network n {\n  layer* h: FC -> 3\n}", "expected `:` and the kinds the layer may take, found `*`"),
        ("network n {\n  flatten*\n}", "expected the end of the line, found `*`"),
        ("let a = 2*stride", "expected a value, found `stride`"),
        ("prior { layer*.FC ~ normal(1) }\nlet* a = 3", "expected a name, found `*`"),
    ],
)
def test_outside_of_a_prior_it_is_a_reserved_word(text: str, message: str) -> None:
    assert [found for _, found in errors(text)] == [message]
