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

_PATTERN = frozenset({"NAME", "KIND", "STAR", "SLASH", "MINUS", "NUMBER"})


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
    if cursor.block == "PRIOR" and all(one.type in _PATTERN for one in cursor.before):
        return _selected(index, reading)
    return [one.span for one in _named(index, cursor, reading)][:1]


def _named(index: int, cursor: Cursor, reading: Reading) -> list[Symbol]:
    """Return what a name may stand for, likeliest first: the parameter of an argument, then what is visible."""
    token, following = reading.tokens[index], reading.tokens[index + 1 : index + 2]
    called = cursor.brackets[-1].called if cursor.brackets and following and following[0].type == "EQUAL" else ""
    start = token.start_pos or 0
    known = [*reading.template(called), *reading.visible(start)]
    named = (one for one in reading.symbols if one.what in ("layer", "use", "parameter"))
    owned = [one for one in named if reading.covers(one.span, start)]
    return [one for one in (*known, *owned) if one.name == token]


# ---------------------------------------------------------------- selectors


def _selected(index: int, reading: Reading) -> list[Span]:
    """Where the layers that the first part of a selector matches are, any token of which is given.

    They are those of the network that is built, else any of that name.
    """
    token = reading.tokens[index]
    before = _run(reversed(reading.tokens[:index]), token)
    after = _run(reading.tokens[index + 1 :], token)
    pattern = "".join([*reversed(before), token, *after])
    built = [layer.span for layer in reading.layers if matches(pattern, layer.name)]
    named = [one.span for one in reading.symbols if one.what == "layer" and matches(pattern, one.name)]
    return list(dict.fromkeys(built or named))


def _run(tokens: Iterable[Token], beside: Token) -> list[Token]:
    return list(takewhile(lambda one: one.type in _PATTERN and one.line == beside.line, tokens))
