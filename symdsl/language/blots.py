"""Marks that mean nothing in the language, put together and explained; and kinds in lower case."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from lark import Token

from symdsl.diagnostics import shortened

_TO_END_OF_LINE = frozenset('"#')
_ADVICE = {
    "'": 'a text stands between `"`',
    "#": "a comment begins with `//`",
    ";": "the end of a line is enough",
    "|": "write `|>`",
    "&": "kinds are joined by `+`",
}
_MEANT = {"|": ("THEN",), "&": ("PLUS",), ";": ("COMMA",)}
_LOWERED = re.compile(r"[fs]-g?(fc|conv)")
"""Kinds that a text which follows the grammar would have as a difference."""


def blotted(tokens: Iterable[Token]) -> list[Token]:
    """Merge neighbouring unreadable tokens into one, and `f-fc` and the like into a kind.

    A quote or a `#` takes the rest of its line along.
    """
    joined: list[Token] = []
    for token in tokens:
        joined.append(token)
        if len(joined) > 1 and _belongs(joined[-2], token):
            _merge_last(joined, 2, "UNREADABLE")
        elif _LOWERED.fullmatch("".join(joined[-3:])) and _spread(joined[-3:]) == len(token) + 2:
            _merge_last(joined, 3, "KIND")
    return joined


def complaint(token: Token) -> tuple[str, str] | None:
    """Return what is wrong with an unreadable token and how to fix it, or nothing for other tokens."""
    if token.type != "UNREADABLE":
        return None
    if token.startswith('"'):
        return 'this text has no end: expected `"` on the same line', ""
    mark = token[0] if token[0] in _ADVICE else str(token)
    mark = shortened(mark)
    shown = mark if mark.isprintable() else " ".join(f"U+{ord(character):04X}" for character in mark)
    advice = "names are made of the letters A to Z, digits and `_`" if mark.isalpha() else _ADVICE.get(mark, "")
    return f"`{shown}` means nothing here", advice


def is_note(token: Token) -> bool:
    """Return whether a token is a comment in the syntax of another language."""
    return token.type == "UNREADABLE" and token.startswith("#")


def likely(token: Token) -> tuple[str, ...]:
    """Return the terminals that an unreadable token may have been meant as."""
    return ("NAME",) if token.isidentifier() else _MEANT.get(str(token), ())


def _merge_last(tokens: list[Token], number: int, terminal: str) -> None:
    """Replace the last tokens by one of all their text."""
    parts = tokens[-number:]
    first, last = parts[0], parts[-1]
    begin, end = (first.start_pos, first.line, first.column), (last.end_line, last.end_column, last.end_pos)
    tokens[-number:] = [Token(terminal, "".join(parts), *begin, *end)]


def _spread(tokens: Sequence[Token]) -> int:
    """Return the number of characters from the first token to the end of the last."""
    return (tokens[-1].end_pos or 0) - (tokens[0].start_pos or 0)


def _belongs(blot: Token, token: Token) -> bool:
    if blot.type != "UNREADABLE" or blot.line != token.line:
        return False
    return blot[0] in _TO_END_OF_LINE or (token.type == "UNREADABLE" and blot.end_column == token.column)
