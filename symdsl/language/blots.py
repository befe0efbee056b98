"""Marks that mean nothing in the language: put together, and explained."""

from __future__ import annotations

from collections.abc import Iterable, Set

from lark import Token

from symdsl.diagnostics import shortened
from symdsl.language.spans import merged

_TO_END_OF_LINE = frozenset('"#')
QUOTES = "'‘’“”„«»"
"""Marks that begin and end a text elsewhere."""

TYPESET = {
    "→": ("ARROW", "->"),
    "×": ("STAR", "*"),
    "·": ("STAR", "*"),
    "−": ("MINUS", "-"),
    "–": ("MINUS", "-"),
    "≤": ("COMPARE", "<="),
    "≥": ("COMPARE", ">="),
    "≠": ("COMPARE", "!="),
}
"""Marks of typeset text, the terminal that each stands for, and how it is written."""

_MEANT = {"|": (("THEN", "|>"), ("PLUS", "+")), "&": (("PLUS", "+"),), ";": (("COMMA", ","),)}
_ADVICE = {
    **dict.fromkeys(QUOTES, 'a text stands between `"`'),
    "#": "a comment begins with `//`",
    ";": "the end of a line is enough",
    "|": "write `|>`",
    "&": "kinds are joined by `+`",
    "°": "a number has no unit",
    "^": "write a power as a product, such as `2 * 2`",
}


def blotted(tokens: Iterable[Token]) -> list[Token]:
    """Merge neighbouring unreadable tokens into one; a quote or a `#` takes the rest of its line along."""
    joined: list[Token] = []
    for token in tokens:
        if joined and _belongs(joined[-1], token):
            joined[-1] = merged((joined[-1], token), "UNREADABLE", f"{joined[-1]}{token}")
        else:
            joined.append(token)
    return joined


def complaint(token: Token, accepted: Set[str]) -> tuple[str, str] | None:
    """Return what is wrong with an unreadable token and how to fix it, or nothing for other tokens.

    Args:
        token: any token.
        accepted: terminals that would have fitted.
    """
    if token.type != "UNREADABLE":
        return None
    if token.startswith('"'):
        return 'this text has no end: expected `"` on the same line', ""
    mark = token[0] if token[0] in _ADVICE else str(token)
    if mark == "|" and "ARROW" in accepted:
        return "`|` means nothing here", _ADVICE["&"]
    mark = shortened(mark)
    if mark == ";" and "COMMA" in accepted:
        return "`;` means nothing here", "write `,`"
    if not mark.isprintable():
        shown = " ".join(f"U+{ord(character):04X}" for character in mark)
        return f"`{shown}` means nothing here", "an editor does not show it: write a blank instead"
    advice = "names are made of the letters A to Z, digits and `_`" if mark.isalpha() else _ADVICE.get(mark, "")
    return f"`{mark}` means nothing here", advice


def is_note(token: Token) -> bool:
    """Return whether a token is a comment in the syntax of another language."""
    return token.type == "UNREADABLE" and token.startswith("#")


def likely(token: Token) -> tuple[tuple[str, str], ...]:
    """Return the terminals that an unreadable token may have been meant as, and how each is written."""
    return (("NAME", str(token)),) if token.isidentifier() else _MEANT.get(str(token), ())


def _belongs(blot: Token, token: Token) -> bool:
    if blot.type != "UNREADABLE" or blot.line != token.line:
        return False
    return blot[0] in _TO_END_OF_LINE or (token.type == "UNREADABLE" and blot.end_column == token.column)
