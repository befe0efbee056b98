"""Names that a text and the files it imports define, by their tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import dropwhile, pairwise, takewhile
from pathlib import Path

import attrs
from lark import Token

from symdsl.diagnostics import Span
from symdsl.editor.outline import Entry, Outline
from symdsl.editor.places import Places
from symdsl.language.parser import tokens
from symdsl.language.words import BRACKETS

GLOBAL = frozenset({"let", "block", "network"})
LOCAL = frozenset({"parameter", "value"})

Imported = tuple[Token, Path, str]
"""The path after an `import` of a text, a file that came in by it, itself or by way of others, and that file's text."""


@attrs.frozen
class Symbol:
    """A name and where it is defined.

    Attributes:
        name: as written.
        what: `let`, `block`, `network`, `layer`, `use`, or, where the name holds in braces only, `parameter` of a
            network or block and `value` of a `repeat`.
        path: the file; nothing for the text itself.
        span: where the name is.
        whole: offsets of the statement or item that defines it, or that it holds in.
        since: the offset from which it holds there: after a parameter's default, and after the values of a `repeat`.
        owner: the name of the network or block around it, or whose parameter it is.
        text: the definition as written: the first line where it has braces.
    """

    name: str
    what: str
    path: Path | None
    span: Span
    whole: tuple[int, int]
    since: int
    owner: str
    text: str


def symbols(file: Entry, places: Places, source: str, came: Iterable[Imported]) -> list[Symbol]:
    """Return the names that a text and its imports define.

    Args:
        file: the outline of the text.
        places: the conversion of its places.
        source: its name in spans.
        came: the files that it imports.
    """
    found = [*_defined(file, places, source, None)]
    for _, path, text in came:
        found += _defined(outlined(text), Places(text), str(path), path)
    return found


def imported(file: Entry, path: Path | None, read: Callable[[Path], str | None]) -> Iterator[Imported]:
    """Yield every file that a text imports, itself or by way of others.

    Args:
        file: the outline of the text.
        path: the file it is, or will be; without one it cannot import.
        read: returns the text of a file, if it can be read.
    """
    seen = set() if path is None else {path.resolve()}
    for token in _imports(file):
        waiting = [(token, path)]
        while waiting:
            written, importing = waiting.pop(0)
            target = imported_file(written, importing)
            if target is None or target.resolve() in seen:
                continue
            seen.add(target.resolve())
            text = read(target)
            if text is not None:
                yield token, target, text
                waiting = [*((one, target) for one in _imports(outlined(text))), *waiting]


def outlined(text: str) -> Entry:
    """Return the outline of a text."""
    return Outline.of(tokens(text)).file


def _imports(file: Entry) -> list[Token]:
    """The texts after `import`."""
    statements = (entry.tokens for entry in file.inside if entry.head == "IMPORT")
    return [found[1] for found in statements if len(found) > 1 and found[1].type == "TEXT"]


def imported_file(written: str, path: Path | None) -> Path | None:
    """Return the file or folder that an import refers to, if it may be imported."""
    if path is None or "\0" in written:
        return None
    target = path.parent / written.strip('"')
    try:
        target.exists()  # raises where a name is too long, or a link leads back to itself
        return target if target.resolve().is_relative_to(path.parent.resolve()) else None
    except (OSError, RuntimeError):
        return None


def _defined(file: Entry, places: Places, source: str, path: Path | None) -> Iterator[Symbol]:
    for entry, around in file.walk():
        for what, words in _DEFINING.get(entry.head, lambda entry: ())(entry):
            before_braces = list(takewhile(lambda token: token.type != "LBRACE", entry.tokens))
            named = [*around, entry] if what == "parameter" else around
            owners = [one.tokens[1] for one in named if one.head in ("BLOCK", "NETWORK") and len(one.tokens) > 1]
            yield Symbol(
                name="".join(words),
                what=what,
                path=path,
                span=places.span(source, words[0].start_pos or 0, words[-1].end_pos or 0),
                whole=entry.reach,
                since=_since(what, words[-1], entry),
                owner=str(owners[-1]) if owners else "",
                text=places.text[before_braces[0].start_pos or 0 : before_braces[-1].end_pos or 0],
            )


def _since(what: str, word: Token, entry: Entry) -> int:
    start, end = entry.reach
    if what == "value":
        return next((token.start_pos or 0 for token in entry.tokens if token.type == "LBRACE"), end)
    if what != "parameter":
        return start
    depth = 0
    for token in dropwhile(lambda one: one is not word, entry.tokens):
        if depth == 0 and token.type in ("COMMA", "RPAR", "LBRACE"):
            return token.start_pos or 0
        depth += BRACKETS.get(token.type, 0)
    return end


_Words = tuple[str, Sequence[Token]]


def _second(what: str) -> Callable[[Entry], Iterable[_Words]]:
    def words(entry: Entry) -> Iterable[_Words]:
        return [(what, entry.tokens[1:2])] if len(entry.tokens) > 1 and entry.tokens[1].type == "NAME" else []

    return words


def _template(what: str) -> Callable[[Entry], Iterable[_Words]]:
    """The name of a network or block and those of its parameters."""

    def words(entry: Entry) -> Iterable[_Words]:
        yield from _second(what)(entry)
        if len(entry.tokens) < 3 or entry.tokens[2].type != "LPAR":
            return
        depth = 0
        for before, token in pairwise(takewhile(lambda token: token.type != "LBRACE", entry.tokens)):
            depth += BRACKETS.get(before.type, 0)
            if token.type == "NAME" and depth == 1 and before.type in ("LPAR", "COMMA"):
                yield "parameter", [token]

    return words


def _layer(entry: Entry) -> Iterable[_Words]:
    words = list(takewhile(lambda token: token.type in ("NAME", "SLASH"), entry.tokens[1:]))
    return [("layer", words)] if words else []


def _after_as(what: str) -> Callable[[Entry], Iterable[_Words]]:
    def words(entry: Entry) -> Iterable[_Words]:
        at = next((index for index, token in enumerate(entry.tokens) if token.type == "AS"), len(entry.tokens))
        found = takewhile(lambda token: token.type != "LBRACE", entry.tokens[at:])
        return [(what, [token]) for token in found if token.type == "NAME"]

    return words


_DEFINING: dict[str, Callable[[Entry], Iterable[_Words]]] = {
    "LET": _second("let"),
    "BLOCK": _template("block"),
    "NETWORK": _template("network"),
    "LAYER": _layer,
    "USE": _after_as("use"),
    "REPEAT": _after_as("value"),
}
"""Functions that find the names which an entry defines, by the word that it begins with."""
