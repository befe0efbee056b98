"""Text to tree."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from lark import Lark, Token
from lark.exceptions import UnexpectedInput
from lark.parsers.lalr_interactive_parser import InteractiveParser

from symdsl.diagnostics import Collector, Span
from symdsl.language import ast
from symdsl.language.builder import MalformedError, build, token_span
from symdsl.language.expectations import expected_words
from symdsl.resources import read_shipped

_MOST_ERRORS = 20

_STATEMENTS = frozenset({"LET", "IMPORT", "DATA", "NETWORK", "PRIOR", "SEARCH"})
_ITEMS = frozenset({"INPUT", "LIFT", "LAYER", "REPEAT", "PROJECT", "POOL", "FLATTEN"})
_FRESH_STARTS = _STATEMENTS | _ITEMS | {"RBRACE"}


def parse_program(text: str, source: str, collector: Collector) -> ast.Program | None:
    """Parse a file.

    Args:
        text: the file's text.
        source: its name in spans.
        collector: receives every syntax error; the text must be known to it.

    Returns:
        The tree, or nothing if there was an error.
    """
    tree = _parse(text, "program", source, collector)
    if not isinstance(tree, ast.Program):
        return None
    return ast.Program(tree.statements, _comments(text, source), tree.span)


def parse_expression(text: str, source: str, collector: Collector) -> ast.Expression | None:
    """Parse one value, as `parse_program` does a file."""
    tree = _parse(text, "expression", source, collector)
    assert not isinstance(tree, ast.Program), "an expression is not a program"
    return tree


def _parse(text: str, start: str, source: str, collector: Collector) -> ast.Program | ast.Expression | None:
    try:
        tree = _grammar().parse(text, start=start)
    except UnexpectedInput:
        _report_syntax_errors(text, start, source, collector)
        return None
    try:
        built: ast.Program | ast.Expression = build(tree, source)
    except MalformedError as error:
        collector.report(error.code, error.span, str(error), help=error.help)
        return None
    return built


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


# ---------------------------------------------------------------- syntax errors


def _report_syntax_errors(text: str, start: str, source: str, collector: Collector) -> None:
    """Find every syntax error: after one, go on where the next statement, item or line fits."""
    tokens = list(_grammar().lex(text))
    reader = _Reader(_grammar().parse_interactive(start=start), tokens, text, source)
    for _ in range(_MOST_ERRORS):
        error = reader.read_to_error()
        if error is None:
            return
        span, message = error
        collector.report("E104", span, message)
        if not reader.recover():
            return


class _Reader:
    """Feeds tokens to the parser one by one and remembers where it could start afresh."""

    def __init__(self, parser: InteractiveParser, tokens: list[Token], text: str, source: str) -> None:
        self._parser = parser
        self._tokens = tokens
        self._text = text
        self._source = source
        self._next = 0
        self._starts: list[tuple[int, InteractiveParser]] = [(0, parser.copy(deepcopy_values=False))]

    def read_to_error(self) -> tuple[Span, str] | None:
        """Go on until a token does not fit; its place and what was expected there."""
        while self._next < len(self._tokens):
            if not self._feed(self._next):
                return self._unexpected(self._tokens[self._next])
            self._next += 1
        try:
            self._parser.feed_eof()
        except UnexpectedInput:
            return self._unexpected_end()
        return None

    def _feed(self, index: int) -> bool:
        token = self._tokens[index]
        before = self._parser.copy(deepcopy_values=False) if self._may_start(index) else None
        state = self._parser.copy(deepcopy_values=False)
        try:
            self._parser.feed_token(token)
        except UnexpectedInput:
            self._parser = state
            return False
        if before is not None:
            self._starts.append((index, before))
        return True

    def _may_start(self, index: int) -> bool:
        first = index == 0 or self._tokens[index - 1].line != self._tokens[index].line
        return first or self._tokens[index].type in _FRESH_STARTS

    def recover(self) -> bool:
        """Drop the statement, item or line at fault and stand before the next that fits; false if none does."""
        failed = self._next
        while self._starts:
            begun, parser = self._starts[-1]
            found = self._fitting(parser, begun, failed)
            if found is not None:
                self._parser, self._next = parser.copy(deepcopy_values=False), found
                return True
            self._starts.pop()
        return False

    def _fitting(self, parser: InteractiveParser, begun: int, failed: int) -> int | None:
        """The first later token, outside the braces opened since `begun`, at which this state could go on."""
        accepted = parser.accepts()
        depth = sum(_BRACES.get(token.type, 0) for token in self._tokens[begun:failed])
        for index in range(failed, len(self._tokens)):
            kind = self._tokens[index].type
            outside = depth <= 0 or kind in _STATEMENTS
            fresh = index > failed or kind in _FRESH_STARTS
            if index > begun and outside and fresh and kind in accepted and self._may_start(index):
                return index
            depth += _BRACES.get(kind, 0)
        return None

    def _unexpected(self, token: Token) -> tuple[Span, str]:
        span = token_span(token, self._source)
        if token.type == "UNREADABLE":
            return span, _unreadable(token)
        return span, f"expected {self._expected()}, found `{token}`"

    def _unexpected_end(self) -> tuple[Span, str]:
        return _end_of(self._text, self._source), f"expected {self._expected()}, found the end of the text"

    def _expected(self) -> str:
        previous = self._tokens[self._next - 1].type if self._next else ""
        return expected_words(previous, self._parser.accepts())


_BRACES = {"LBRACE": 1, "RBRACE": -1}


def _unreadable(token: Token) -> str:
    if token == '"':
        return 'this text has no end: expected `"` on the same line'
    shown = str(token) if token.isprintable() else f"U+{ord(token):04X}"
    return f"`{shown}` means nothing here"


def _end_of(text: str, source: str) -> Span:
    lines = text.rstrip().split("\n")
    column = len(lines[-1]) + 1
    return Span(source, len(lines), column, len(lines), column + 1)
