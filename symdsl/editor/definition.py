"""Where the name at a place is defined."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from lark import Token

from symdsl.analysis.priors import matches
from symdsl.diagnostics import Span
from symdsl.editor.cursor import Cursor
from symdsl.editor.reading import Reading
from symdsl.editor.symbols import Symbol, imported_file

_PATTERN = frozenset({"NAME", "WILD", "KIND", "STAR", "SLASH", "MINUS", "NUMBER"})
_BEFORE_WORDS = frozenset({"DATA", "THEN", "INPUT", "LIFT", "PROJECT", "POOL", "PROFILE"})
"""What comes before a word of the language, or a name that is declared there, whatever else has that name."""


def define(reading: Reading, offset: int) -> list[Span]:
    """Return the places that define what stands at an offset: one for a name, several for a pattern with `*`."""
    index = reading.index_at(offset)
    if index is None:
        return []
    token = reading.tokens[index]
    if token.type == "TEXT":
        imports = index > 0 and reading.tokens[index - 1].type == "IMPORT"
        path = imported_file(token, reading.path) if imports else None
        return [Span(str(path), 1, 1, 1, 1)] if path is not None and path.is_file() else []
    cursor = reading.cursor(token.end_pos or 0)
    if cursor.untouched:
        return []
    pattern = selector(index, cursor, reading)
    if pattern:
        built = [layer.span for layer in reading.layers if matches(pattern, layer.name)]
        named = [one.span for one in reading.symbols if one.what == "layer" and matches(pattern, one.name)]
        return list(dict.fromkeys(built or named))
    return [one.span for one in meant(index, cursor, reading)][:1]


def meant(index: int, cursor: Cursor, reading: Reading) -> list[Symbol]:
    """Return what a name may stand for, likeliest first: itself where it is defined, a parameter, what is visible."""
    token, following = reading.tokens[index], reading.tokens[index + 1 : index + 2]
    start, named = token.start_pos or 0, bool(following) and following[0].type == "EQUAL"
    own = [one for one in reading.symbols if reading.covers(one.span, start)]
    if own:
        return own
    if cursor.previous in _BEFORE_WORDS or (named and cursor.block == "SEARCH" and not cursor.before):
        return []
    known = reading.visible(start)
    if named and cursor.brackets:
        known = reading.template(cursor.brackets[-1].called)
    elif named and cursor.block == "PROFILE" and not cursor.before:
        known += [one for name in reading.instantiated for one in reading.template(name)]
    return [one for one in known if one.name == token]


def selector(index: int, cursor: Cursor, reading: Reading) -> str:
    """Return the first part of a selector that a token belongs to, as written; the empty text elsewhere."""
    if cursor.block != "PRIOR" or any(one.type not in _PATTERN for one in cursor.before):
        return ""
    token = reading.tokens[index]
    before = _run(reversed(reading.tokens[:index]), token)
    after = _run(reading.tokens[index + 1 :], token)
    return "".join([*reversed(before), token, *after])


def _run(tokens: Iterable[Token], beside: Token) -> list[Token]:
    return list(takewhile(lambda one: one.type in _PATTERN and one.line == beside.line, tokens))
