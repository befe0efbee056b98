"""The statements and items of a text by its tokens alone, so that no error in one hides another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs
from lark import Token

from symdsl.language.repairs import ITEMS, STATEMENTS
from symdsl.language.words import BRACKETS, DEEPEST

_OF_LINES = frozenset({"PRIOR", "SEARCH", "PROFILE"})
_UNFINISHED = frozenset({"EQUAL", "TILDE", "DOT", "PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "COMPARE"})


@attrs.define(eq=False)
class Entry:
    """A statement, an item, a rule or a setting.

    Attributes:
        tokens: its own, without those of the entries inside; the brace that ends it is the last.
        inside: the entries in its braces.
        opened: whether it has its opening brace.
        depth: parentheses and brackets that are open at its last token.
    """

    tokens: list[Token] = attrs.field(factory=list)
    inside: list[Entry] = attrs.field(factory=list)
    opened: bool = False
    depth: int = 0

    @property
    def head(self) -> str:
        """The first terminal; empty for the whole file."""
        return self.tokens[0].type if self.tokens else ""

    @property
    def reach(self) -> tuple[int, int]:
        """The start and end offsets."""
        ends = [self.tokens[-1].end_pos or 0, *(one.reach[1] for one in self.inside)]
        return self.tokens[0].start_pos or 0, max(ends)

    def walk(self) -> Iterator[tuple[Entry, tuple[Entry, ...]]]:
        """Yield every entry inside it with the entries around, outermost first."""
        return self._walk(())

    def _walk(self, around: tuple[Entry, ...]) -> Iterator[tuple[Entry, tuple[Entry, ...]]]:
        for entry in self.inside:
            yield entry, around
            yield from entry._walk((*around, entry))

    def add(self, token: Token) -> None:
        """Append a token."""
        self.tokens.append(token)
        self.depth = max(0, self.depth + BRACKETS.get(token.type, 0))
        self.opened = self.opened or token.type == "LBRACE"


@attrs.define
class Outline:
    """A tree of entries that grows token by token.

    Attributes:
        file: the whole, whose entries are the statements.
        open: the entries that the next token may belong to, the file first and the innermost last.
    """

    file: Entry = attrs.field(factory=lambda: Entry(opened=True))
    open: list[Entry] = attrs.field(init=False)

    @open.default
    def _(self) -> list[Entry]:
        return [self.file]

    @classmethod
    def of(cls, tokens: Iterable[Token]) -> Outline:
        """Return the outline of some tokens."""
        outline = cls()
        for token in tokens:
            outline.read(token)
        return outline

    @property
    def previous(self) -> Token | None:
        """The last token, if it belongs to an open entry."""
        return self.open[-1].tokens[-1] if self.open[-1].tokens else None

    def read(self, token: Token) -> None:
        """Add the next token of the text."""
        if token.type == "RBRACE":
            self._leave()
            if len(self.open) > 1:
                self.open.pop().add(token)
            return
        typed = self.previous is not None and self.previous.type == "COLON"  # `prior` is a type of parameters too
        if token.type in STATEMENTS and not typed:
            del self.open[1:]
        elif token.type in ITEMS or self._begins_line(token):
            self._leave()
        if self.open[-1].opened and len(self.open) < DEEPEST:
            entry = Entry()
            self.open[-1].inside.append(entry)
            self.open.append(entry)
        self.open[-1].add(token)

    def _begins_line(self, token: Token) -> bool:
        """Whether a token begins a new rule or setting: the first of its line after one that is complete."""
        if len(self.open) < 3 or self.open[-2].head not in _OF_LINES or self.previous is None:
            return False
        complete = self.open[-1].depth == 0 and self.previous.type not in _UNFINISHED
        return complete and token.line != self.previous.line and token.type not in _UNFINISHED - {"STAR"}

    def _leave(self) -> None:
        """Leave what has no braces."""
        while not self.open[-1].opened:
            self.open.pop()
