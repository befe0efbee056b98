"""The table of contents of a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile

import attrs
from lark import Token

from symdsl.editor.outline import Entry
from symdsl.language.repairs import ITEMS


@attrs.frozen
class Heading:
    """An entry of the table of contents.

    Attributes:
        name: the name that it defines, or how it begins.
        detail: a few words beside it.
        what: `let`, `import`, `data`, `network`, `block`, `search`, `setting`, `item` or `layer`.
        reach: offsets of the whole.
        title: offsets of the words that name it.
        inside: the entries in its braces.
    """

    name: str
    detail: str
    what: str
    reach: tuple[int, int]
    title: tuple[int, int]
    inside: tuple[Heading, ...]


def contents(entries: Sequence[Entry], text: str) -> tuple[Heading, ...]:
    """Return the table of contents of a text."""
    return tuple(_heading(entry, text) for entry in entries)


def _heading(entry: Entry, text: str) -> Heading:
    what, title = _WHAT.get(entry.head, ("setting", _before_sign))
    named = title(entry.tokens) or entry.tokens[:1]
    start, end = named[0].start_pos or 0, named[-1].end_pos or 0
    rest = list(takewhile(lambda token: token.type != "LBRACE", entry.tokens[len(named) :]))
    detail = " ".join(text[end : rest[-1].end_pos if rest else end].split()).lstrip("=:~ ")
    return Heading(text[start:end], detail, what, entry.reach, (start, end), contents(entry.inside, text))


_Title = Callable[[list[Token]], list[Token]]


def _first(tokens: list[Token]) -> list[Token]:
    return tokens[:1]


def _second(tokens: list[Token]) -> list[Token]:
    return tokens[1:2]


def _path(tokens: list[Token]) -> list[Token]:
    return list(takewhile(lambda token: token.type in ("NAME", "SLASH"), tokens[1:]))


def _before_sign(tokens: list[Token]) -> list[Token]:
    return list(takewhile(lambda token: token.type not in ("TILDE", "EQUAL"), tokens))


_WHAT: dict[str, tuple[str, _Title]] = {
    "LET": ("let", _second),
    "IMPORT": ("import", _second),
    "DATA": ("data", _first),
    "BLOCK": ("block", _second),
    "NETWORK": ("network", _second),
    "PRIOR": ("search", _first),
    "SEARCH": ("search", _first),
    "PROFILE": ("search", _second),
    "LAYER": ("layer", _path),
    **dict.fromkeys(ITEMS - {"LAYER"}, ("item", _first)),
}
"""The sort of an entry and the tokens that name it, by the word that it begins with."""
