"""Text to tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from symdsl.diagnostics import Collector
from symdsl.language import ast
from symdsl.language.builder import build
from symdsl.language.recovery import mend
from symdsl.language.spans import token_span
from symdsl.resources import read_shipped


def parse_program(text: str, source: str, collector: Collector) -> ast.Program | None:
    """Parse a file.

    Args:
        text: the file's text.
        source: its name in spans.
        collector: receives every syntax error; the text must be known to it.

    Returns:
        The tree, with an `Unread` in place of what could not be read, which is reported; or nothing if there was
        nothing to make of the text.
    """
    tree = _parse(text, "program", source, collector)
    if not isinstance(tree, ast.Program):
        return None
    return ast.Program(tree.statements, _comments(text, source), tree.span)


def parse_expression(text: str, source: str, collector: Collector) -> ast.Expression:
    """Parse one value, as `parse_program` does a file; an `Unread` if there is any error in it."""
    before = len(collector.diagnostics)
    tree = _parse(text, "expression", source, collector)
    assert not isinstance(tree, ast.Program), "an expression is not a program"
    return ast.Unread() if tree is None or len(collector.diagnostics) > before else tree


def tokens(text: str) -> list[Token]:
    """Every token of a text, comments and blanks aside; what means nothing is `UNREADABLE`, so no text fails."""
    return list(_grammar().lex(text))


def _parse(text: str, start: str, source: str, collector: Collector) -> ast.Program | ast.Expression | None:
    tree = _tree(text, start, source, collector)
    if tree is None:
        return None
    built: ast.Program | ast.Expression = build(tree, source, collector)
    return built


def _tree(text: str, start: str, source: str, collector: Collector) -> Tree[Token] | None:
    try:
        return _grammar().parse(text, start=start)
    except UnexpectedInput:
        tokens = mend(_grammar(), text, start, source, collector)
        return None if tokens is None else _parsed(tokens, start)


def _parsed(tokens: Iterable[Token], start: str) -> Tree[Token]:
    parser = _grammar().parse_interactive(start=start)
    for token in tokens:
        parser.feed_token(token)
    tree: Tree[Token] = parser.feed_eof()
    return tree


@cache
def _grammar() -> Lark:
    return Lark(
        read_shipped("grammars/sym.lark"),
        parser="lalr",
        lexer="basic",
        start=["program", "expression", "unreadable"],
        maybe_placeholders=False,
    )


_COMMENTS = r"""
start: (COMMENT | TEXT | OTHER)*
COMMENT.1: /\/\/[^\n]*/
TEXT.1: /"(\\.|[^"\\\n])*"/
OTHER: /[^"\/]+|./s
"""


@cache
def _comment_lexer() -> Lark:
    return Lark(_COMMENTS, parser="lalr", lexer="basic")


def _comments(text: str, source: str) -> tuple[ast.Comment, ...]:
    if "//" not in text:
        return ()
    lines = text.split("\n")
    tokens = (token for token in _comment_lexer().lex(text) if token.type == "COMMENT")
    return tuple(_comment(token, lines, source) for token in tokens)


def _comment(token: Token, lines: Sequence[str], source: str) -> ast.Comment:
    span = token_span(token, source)
    before = lines[span.line - 1][: span.column - 1]
    return ast.Comment(token.rstrip(), not before.strip(), span)
