"""Text to tree."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import islice

import attrs
from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from symdsl.diagnostics import Collector, shortened
from symdsl.language import ast
from symdsl.language.builder import build
from symdsl.language.tables import stored
from symdsl.language.words import MOST_WORDS, Allowance, MalformedError, read_comments, read_words


def parse_program(
    text: str, source: str, collector: Collector, allowance: Allowance | None = None
) -> ast.Program | None:
    """Parse the text of a file into a tree.

    Args:
        text: the file's text.
        source: its name in spans.
        collector: receives every syntax error; the text must be known to it.
        allowance: how many words it may have, if other files have a part in that.

    Returns:
        The tree, with an `Unread` in place of what could not be read, which is reported; or nothing if there was
        nothing to make of the text.
    """
    tree = _parse(text, "program", source, collector, allowance or Allowance())
    assert tree is None or isinstance(tree, ast.Program), "a program is not an expression"
    return tree


def parse_expression(text: str, source: str, collector: Collector) -> ast.Expression:
    """Parse the text of one value, which has no comments, into a tree; an `Unread` if it has an error."""
    before = collector.reports
    tree = _parse(text, "expression", source, collector, Allowance())
    assert not isinstance(tree, ast.Program), "an expression is not a program"
    return ast.Unread() if tree is None or collector.reports > before else tree


def tokens(text: str) -> list[Token]:
    """Return the tokens of a text, up to the limit, without comments and blanks; invalid ones are `UNREADABLE`."""
    return list(islice(_grammar().lex(text), MOST_WORDS))


def _parse(
    text: str, start: str, source: str, collector: Collector, allowance: Allowance
) -> ast.Program | ast.Expression | None:
    try:
        comments = read_comments(text, source, allowance)
        words = read_words(_grammar(), text, source, allowance)
    except MalformedError as error:
        collector.report(error.code, error.span, str(error), help=error.help)
        return None
    if comments and start == "expression":
        message = f"a value has no comments, found `{shortened(comments[0].text)}`"
        help = "drop it, or write `floor(a / b)` for a whole-number division"
        collector.report("E104", comments[0].span, message, help=help)
        return None
    tree = _tree(words, text, start, source, collector)
    if tree is None:
        return None
    built: ast.Program | ast.Expression = build(tree, source, collector)
    return attrs.evolve(built, comments=comments) if isinstance(built, ast.Program) else built


def _tree(tokens: list[Token], text: str, start: str, source: str, collector: Collector) -> Tree[Token] | None:
    try:
        return _parsed(tokens, start)
    except UnexpectedInput:
        from symdsl.language.recovery import mend  # what is right needs no mending

        mended = mend(_grammar(), tokens, text, start, source, collector)
        return None if mended is None else _parsed(mended, start)


def _parsed(tokens: Iterable[Token], start: str) -> Tree[Token]:
    parser = _grammar().parse_interactive(start=start)
    for token in tokens:
        parser.feed_token(token)
    tree: Tree[Token] = parser.feed_eof()
    return tree


@cache
def _grammar() -> Lark:
    return stored()
