"""Text to words: tokens and comments, within limits that bound what every later stage can be asked to do."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate, islice

import attrs
from lark import Lark, Token

from symdsl.diagnostics import Span
from symdsl.language import ast
from symdsl.language.spans import token_span

MOST_WORDS = 40_000
"""Words and comments of a spec, all its files together."""

DEEPEST = 150
"""How deep a statement can be nested, in nodes of its tree."""

_DEEPEST_WRITTEN = 1000
"""How deep brackets and signs can be, for a text to be read at all."""

TOO_DEEP = "this is nested too deep to read"

BRACKETS = {"LPAR": 1, "LSQB": 1, "RPAR": -1, "RSQB": -1}
"""By how much a terminal changes the depth of parentheses and square brackets."""

BRACES = {"LBRACE": 1, "RBRACE": -1}
"""By how much a terminal changes the depth of braces."""

NESTING = BRACKETS | BRACES


_LONGEST = {"NAME": 200, "KIND": 200, "TEXT": 4096 + 2}  # a text and its quotes
_COMMENT = re.compile(r'//[^\r\n]*|"[^"\\\n]*(?:\\.[^"\\\n]*)*"')


@attrs.define
class Allowance:
    """The number of words that may still be read."""

    left: int = MOST_WORDS


class MalformedError(Exception):
    """A text is not parsed at all, because it exceeds a limit or contains invalid characters."""

    def __init__(self, code: str, span: Span, message: str, help: str = "") -> None:
        self.code, self.span, self.help = code, span, help
        super().__init__(message)


def read_words(grammar: Lark, text: str, source: str, allowance: Allowance) -> list[Token]:
    """Split a text into tokens.

    Args:
        grammar: how to tell them apart.
        text: what to read.
        source: its name in spans.
        allowance: how many there may be; what is read is taken from it.

    Raises:
        MalformedError: where there are too many, or one is too long, or they are nested too deep.
    """
    tokens = list(islice(grammar.lex(text), max(0, allowance.left) + 1))
    allowance.left -= len(tokens)
    if tokens and allowance.left < 0:
        raise _too_many(token_span(tokens[-1], source))
    for token in tokens:
        if len(token) > _LONGEST.get(token.type, len(token)):
            message = f"a word of {len(token):,} characters is too long; the limit is {_LONGEST[token.type]:,}"
            raise MalformedError("E103", token_span(token, source), message)
    depth = signs = 0
    for token in tokens:
        depth += NESTING.get(token.type, 0)
        signs = signs + 1 if token.type == "MINUS" else 0
        if depth > _DEEPEST_WRITTEN or signs > _DEEPEST_WRITTEN:
            raise MalformedError("E105", token_span(token, source), TOO_DEEP, "name a part of it with `let`")
    return tokens


def _too_many(span: Span) -> MalformedError:
    help = "say what is alike once, with `repeat` or a `block`"
    return MalformedError("E103", span, f"a spec of more than {MOST_WORDS:,} words is too long", help)


def read_comments(text: str, source: str, allowance: Allowance) -> tuple[ast.Comment, ...]:
    """Return the comments of a text, in order.

    Raises:
        MalformedError: if there are too many.
    """
    if "//" not in text:
        return ()
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    found = tuple(islice(_comments(text, starts, source), max(0, allowance.left) + 1))
    allowance.left -= len(found)
    if found and allowance.left < 0:
        raise _too_many(found[-1].span)
    return found


def _comments(text: str, starts: list[int], source: str) -> Iterator[ast.Comment]:
    for match in _COMMENT.finditer(text):
        if match[0].startswith("//"):
            line = bisect_right(starts, match.start())
            first = starts[line - 1]
            span = Span(source, line, match.start() - first + 1, line, match.end() - first + 1)
            alone = not text[first : match.start()].strip()
            yield ast.Comment(match[0].rstrip(), alone, span)
