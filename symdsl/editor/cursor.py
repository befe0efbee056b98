"""Where a place stands in a text: in which statements, after which words, in which parentheses."""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs
from lark import Token

from symdsl.editor.outline import Entry, Outline
from symdsl.language.words import BRACKETS

_WORD = re.compile(
    r"(?<![A-Za-z0-9_])(?:[FS]-[A-Z]*|(?:data|search)\.(?:[A-Za-z_][A-Za-z0-9_]*)?)$|[A-Za-z_][A-Za-z0-9_]*$"
)
_UNTOUCHED = re.compile(r'//[^\n]*|"(?:\\.|[^"\\\n])*"?')


@attrs.define
class Bracket:
    """An open parenthesis or bracket around a place.

    Attributes:
        called: the word before them; the empty text for a list and for plain parentheses.
        index: how many arguments are complete.
        named: arguments that are given by name so far.
        argument: the name of the one that is being written, if it has one.
    """

    called: str
    index: int = 0
    named: tuple[str, ...] = ()
    argument: str = ""


@attrs.frozen
class Cursor:
    """A place in a text, described by the statements, words and brackets around it.

    Attributes:
        word: offsets of the word that stands or is being written there.
        around: the entries around it, the outermost first; without the file, and without the one it may begin.
        before: tokens of the entry it belongs to, up to the word.
        fresh: whether a new entry may begin there: it is the first on its line, or after a brace.
        brackets: open ones, the innermost last.
        untouched: what it is in the middle of, a comment or a text, as far as it is written; else the empty text.
    """

    word: tuple[int, int]
    around: tuple[Entry, ...]
    before: tuple[Token, ...]
    fresh: bool
    brackets: tuple[Bracket, ...]
    untouched: str

    @property
    def head(self) -> str:
        """The first terminal of the innermost entry around it."""
        return self.before[0].type if self.before else ""

    @property
    def block(self) -> str:
        """The first terminal of the innermost braces around it; empty outside of all braces."""
        return next((entry.head for entry in reversed(self.around) if entry.opened), "")

    @property
    def previous(self) -> str:
        """The terminal before the word."""
        return self.before[-1].type if self.before else ""

    def since(self, *terminals: str) -> str:
        """Return which of some terminals was last before the word, outside of brackets; empty if none."""
        last, depth = "", 0
        for token in self.before:
            depth += BRACKETS.get(token.type, 0)
            if depth == 0 and token.type in terminals:
                last = token.type
        return last


def cursor_at(text: str, tokens: Sequence[Token], offset: int) -> Cursor:
    """Return the description of a place in a text.

    Args:
        text: the text.
        tokens: all of it.
        offset: the place.
    """
    line = text.rfind("\n", 0, offset) + 1
    begun = _WORD.search(text, line, offset)
    start = begun.start() if begun else offset
    word = next((token for token in tokens if begun and (token.start_pos or 0) <= start < (token.end_pos or 0)), None)
    outline = Outline.of(token for token in tokens if (token.end_pos or 0) <= start)
    inner = outline.open[-1]
    fresh = inner.opened or (inner.depth == 0 and not text[line:start].strip())
    around = tuple(entry for entry in outline.open[1:] if entry.opened)
    if word is not None:
        outline.read(word)
    begins = inner.opened or (outline.open[-1] is not inner and word is not None)
    before = () if begins else tuple(token for token in inner.tokens if token is not word)
    end = offset if word is None else max(word.end_pos or 0, offset)
    return Cursor((start, end), around, before, fresh, _brackets(before), _untouched(text, line, offset))


def _untouched(text: str, line: int, offset: int) -> str:
    for match in _UNTOUCHED.finditer(text, line):
        closed = len(match[0]) > 1 and match[0].startswith('"') and match[0].endswith('"')
        if match.start() < offset < match.end() + (not closed):
            return text[match.start() : offset]
    return ""


def _brackets(before: Sequence[Token]) -> tuple[Bracket, ...]:
    found: list[Bracket] = []
    for index, token in enumerate(before):
        previous = before[index - 1] if index else None
        match token.type:
            case "LPAR":
                found.append(Bracket(str(previous) if previous and previous.type in ("NAME", "KIND") else ""))
            case "LSQB":
                found.append(Bracket(""))
            case "RPAR" | "RSQB" if found:
                found.pop()
            case "COMMA" if found:
                found[-1].index += 1
                found[-1].argument = ""
            case "EQUAL" if found and previous is not None:
                found[-1].argument = str(previous)
                found[-1].named = (*found[-1].named, str(previous))
    return tuple(found)
