"""All that is known of one state of a text."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import attrs
from lark import Token

from symdsl.analysis.analyse import Findings, explore
from symdsl.analysis.facts import Layer, Node
from symdsl.analysis.overrides import keys_of
from symdsl.catalog.signatures import Parameter
from symdsl.diagnostics import Collector, Diagnostic, Place, RunError, Span
from symdsl.editor.cursor import Cursor, cursor_at
from symdsl.editor.outline import Entry, Outline
from symdsl.editor.places import Places
from symdsl.editor.symbols import GLOBAL, LOCAL, Imported, Symbol, imported, symbols
from symdsl.language import ast
from symdsl.language.imports import inline, read_text
from symdsl.language.parser import tokens
from symdsl.spec import check_text


@attrs.frozen(slots=False)
class Reading:
    """A text in its current state; each property is computed when it is first used.

    Attributes:
        text: what the editor holds.
        path: the file, which need not exist; without one the text cannot import.
        encoding: of the editor's columns.
        unsaved: what the editor holds of other files, by resolved path.
    """

    text: str
    path: Path | None = None
    encoding: str = "utf-16"
    unsaved: Mapping[Path, str] = attrs.field(factory=dict, hash=False)

    @property
    def source(self) -> str:
        """The name of the text in diagnostics."""
        return "<text>" if self.path is None else str(self.path)

    @cached_property
    def places(self) -> Places:
        """The conversion of places in the text."""
        return Places(self.text, self.encoding)

    @cached_property
    def tokens(self) -> list[Token]:
        """The tokens of the text."""
        return tokens(self.text)

    @cached_property
    def file(self) -> Entry:
        """The outline of its statements."""
        return Outline.of(self.tokens).file

    @cached_property
    def symbols(self) -> list[Symbol]:
        """The names that the text and its imports define."""
        return symbols(self.file, self.places, self.source, self.imported)

    @cached_property
    def imported(self) -> tuple[Imported, ...]:
        """The files that it imports, itself or by way of others."""
        return tuple(imported(self.file, self.path, self.read))

    def import_of(self, path: Path) -> Token | None:
        """Return the path after the `import` by which a file comes in, itself or by way of others."""
        return next((token for token, target, _ in self.imported if target.resolve() == path.resolve()), None)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The diagnostics that `symdsl check` would report, and its error where a kind of a package cannot be used."""
        try:
            return check_text(self.text, self.source, self.path, self.unsaved)
        except RunError as error:
            named = (one for one in self.tokens if f"`{one}`" in str(error))
            token = next(named, self.tokens[0])
            span = self.places.span(self.source, token.start_pos or 0, token.end_pos or 0)
            return (Diagnostic("E302", str(error), Place(span, "")),)

    @cached_property
    def program(self) -> ast.Program | None:
        """The tree, with imports inlined, as far as the text can be parsed."""
        return inline(self.text, self.source, self.path, Collector(), self.unsaved)

    @cached_property
    def keys(self) -> dict[str, Parameter | None]:
        """The keys that a profile can set, with descriptions."""
        return {} if self.program is None else keys_of(self.program)

    @cached_property
    def findings(self) -> Findings | None:
        """The facts about the spec, as far as they can be determined."""
        with contextlib.suppress(RunError):
            return None if self.program is None else explore(self.program)
        return None

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The items of its network whose shapes are known."""
        with contextlib.suppress(RunError):
            return () if self.findings is None else self.findings.nodes()
        return ()

    @property
    def layers(self) -> list[Layer]:
        """The layers of the network whose shapes are known."""
        return [node for node in self.nodes if isinstance(node, Layer)]

    def read(self, path: Path) -> str | None:
        """Return the text of another file, as the editor holds it or else as it is saved, if it can be read."""
        text = self.unsaved.get(path.resolve())
        return read_text(path, str(path), Collector()) if text is None else text

    def cursor(self, offset: int) -> Cursor:
        """Return the description of a place."""
        return cursor_at(self.text, self.tokens, offset)

    def index_at(self, offset: int) -> int | None:
        """Return the index of the token at an offset; of two that touch there, the word."""
        touching = [
            index for index, one in enumerate(self.tokens) if (one.start_pos or 0) <= offset <= (one.end_pos or 0)
        ]
        return max(reversed(touching), key=lambda index: _is_word(self.tokens[index]), default=None)

    def reach(self, span: Span) -> tuple[int, int] | None:
        """Return the offsets of a span in this text, or nothing for another file."""
        return self.places.reach(span) if span.source == self.source else None

    def covers(self, span: Span, offset: int) -> bool:
        """Return whether a place of this text is within a span."""
        place = self.reach(span)
        return place is not None and place[0] <= offset < place[1]

    def visible(self, offset: int) -> list[Symbol]:
        """Return the names that are defined at a place, nearest first."""
        inner = [one for one in self.symbols if one.what in LOCAL and one.path is None]
        near = [one for one in inner if one.since <= offset <= one.whole[1]]
        return [*reversed(near), *(one for one in self.symbols if one.what in GLOBAL)]

    @property
    def instantiated(self) -> list[str]:
        """The names of networks that have parameters here, or that a network is made from."""
        networks = [entry.tokens for entry in self.file.inside if entry.head == "NETWORK"]
        return [
            str(found[3] if [one.type for one in found[2:4]] == ["EQUAL", "NAME"] else found[1])
            for found in networks
            if len(found) > 1
        ]

    def template(self, name: str) -> list[Symbol]:
        """Return the parameters of a network or block."""
        return [one for one in self.symbols if one.what == "parameter" and one.owner == name]


def _is_word(token: Token) -> bool:
    return token[0].isalpha() or token[0] == "_"
