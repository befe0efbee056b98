"""The spans of tokens in a text."""

from __future__ import annotations

from lark import Token

from symdsl.diagnostics import Span


def token_span(token: Token, source: str) -> Span:
    """Return the span of a token."""
    line, column = token.line or 1, token.column or 1
    return Span(source, line, column, token.end_line or line, token.end_column or column + len(token))
