"""The spans of tokens in a text, and tokens that span several."""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token

from symdsl.diagnostics import Span


def token_span(token: Token, source: str) -> Span:
    """Return the span of a token."""
    line, column = token.line or 1, token.column or 1
    return Span(source, line, column, token.end_line or line, token.end_column or column + len(token))


def behind(token: Token, source: str) -> Span:
    """Return the place after a token, where something may be missing."""
    return token_span(token, source).end


def merged(tokens: Sequence[Token], terminal: str, text: str) -> Token:
    """Return one token of a text in the place of several."""
    first, last = tokens[0], tokens[-1]
    begin, end = (first.start_pos, first.line, first.column), (last.end_line, last.end_column, last.end_pos)
    return Token(terminal, text, *begin, *end)
