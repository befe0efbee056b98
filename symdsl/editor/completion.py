"""Completions: the words and values that can be written at a place of a spec."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

import attrs

from symdsl.analysis.parameters import PARAMETER_TYPES
from symdsl.analysis.priors import BIAS, matches
from symdsl.catalog.data import SOURCES, TRANSFORMS
from symdsl.catalog.networks import ACTIVATIONS, INPUTS, NORMAL, REDUCTIONS, TRANSFORMATIONS
from symdsl.catalog.searches import SEARCH
from symdsl.catalog.signatures import Parameter, Signature, Switch, Type
from symdsl.editor.cursor import Cursor
from symdsl.editor.reading import Reading
from symdsl.editor.symbols import Symbol, imported_file
from symdsl.editor.wording import (
    BUILTINS,
    KEYWORDS,
    argument,
    kinds,
    parameter_words,
    signature_at,
    signature_words,
    signatures,
    values,
)
from symdsl.groups import LIFTED
from symdsl.kinds import call_signature
from symdsl.language.keywords import keywords
from symdsl.language.repairs import ITEMS, STATEMENTS

_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:/[A-Za-z0-9_]*)*$")
_PART_ENDS = re.compile(r'[/"\n]')
_CALCULATING = frozenset({"PLUS", "MINUS", "STAR", "SLASH", "PERCENT", "COMPARE"})


@attrs.frozen
class Item:
    """A word or text that completion offers.

    Attributes:
        label: what is shown and, unless `insert` says else, written.
        what: `keyword`, `kind`, `function`, `value`, `variable`, `argument`, `layer`, `network`, `block` or `file`.
        detail: a few words beside it.
        about: Markdown about it.
        insert: what is written.
    """

    label: str
    what: str
    detail: str = ""
    about: str = ""
    insert: str = ""


@attrs.frozen
class Completion:
    """The items that completion offers, and the range of text that they replace."""

    items: tuple[Item, ...]
    reach: tuple[int, int]


def complete(reading: Reading, offset: int) -> Completion:
    """Return what can be written at an offset, each label once."""
    cursor = reading.cursor(offset)
    if cursor.untouched:
        return _path(cursor, reading, offset)
    found: dict[str, Item] = {}
    following = next((one.type for one in reading.tokens if (one.start_pos or 0) >= cursor.word[1]), "")
    for item in _items(cursor, reading):
        named = following == "EQUAL" and item.insert.endswith(" = ")
        found.setdefault(item.label, attrs.evolve(item, insert=item.label) if named else item)
    reach = cursor.word
    if cursor.block == "PRIOR" and not (cursor.brackets or {"DOT", "TILDE"} & {token.type for token in cursor.before}):
        # in the first part of a selector the whole path is written anew, as `stage/l1`
        path = _PATH.search(reading.text, reading.text.rfind("\n", 0, offset) + 1, offset)
        reach = (path.start(), reach[1]) if path else reach
    return Completion(tuple(found.values()), reach)


def _items(cursor: Cursor, reading: Reading) -> Iterator[Item]:
    if cursor.brackets:
        yield from _in_brackets(cursor, reading)
        return
    if cursor.fresh:
        yield from _BEGINNINGS.get(cursor.block, _reserved(ITEMS))(cursor, reading)
    if cursor.before:
        within = _within_item if cursor.head in STATEMENTS | ITEMS else _WITHIN.get(cursor.block, _within_item)
        yield from within(cursor, reading)


# ---------------------------------------------------------------- beginnings


def _reserved(terminals: Collection[str]) -> Callable[[Cursor, Reading], Iterable[Item]]:
    return lambda cursor, reading: (
        Item(word, "keyword", about=KEYWORDS[word]) for terminal, word in keywords().items() if terminal in terminals
    )


def _selector(cursor: Cursor, reading: Reading) -> Iterator[Item]:
    yield from (Item(node.name, "layer", f"{node.in_shape} to {node.out_shape}") for node in reading.layers)
    blocks = {one.name for one in reading.symbols if one.what == "block"} if reading.layers else set()
    written = (one.name for one in reading.symbols if one.what == "layer" and one.owner not in blocks)
    yield from (Item(name, "layer") for name in written)
    yield Item("*", "value", "any layer")


def _key(cursor: Cursor, reading: Reading) -> Iterator[Item]:
    settings = (one.tokens[0] for entry in reading.file.inside if entry.head == "SEARCH" for one in entry.inside)
    given = {str(key) for key in settings if key.start_pos != cursor.word[0]}
    return _arguments(SEARCH, given, 0)


def _override(cursor: Cursor, reading: Reading) -> Iterator[Item]:
    """A key of a profile, unless the profile has it."""
    around = next(one for one in reading.file.inside if one.reach[0] == cursor.around[0].reach[0])
    given = {str(one.tokens[0]) for one in around.inside if one.tokens[0].start_pos != cursor.word[0]}
    for name, parameter in reading.keys.items():
        if name not in given and parameter is None:
            yield Item(name, "variable", insert=f"{name} = ")
        elif name not in given and parameter is not None:
            yield Item(name, "argument", parameter.about, parameter_words(parameter), f"{name} = ")


_BEGINNINGS: dict[str, Callable[[Cursor, Reading], Iterable[Item]]] = {
    "": _reserved(STATEMENTS),
    "RESIDUAL": _reserved({"LAYER", "USE", "REPEAT", "RESIDUAL", "AVERAGE"}),
    "PRIOR": _selector,
    "SEARCH": _key,
    "PROFILE": _override,
}
"""Completions at the beginning of an entry, by the braces around it; in all others an item of a network can begin."""


# ---------------------------------------------------------------- within statements and items


def _within_item(cursor: Cursor, reading: Reading) -> Iterable[Item]:
    if cursor.previous in _CALCULATING and cursor.since("COLON", "ARROW") != "COLON":
        return _names(cursor, reading)
    return next((row.items(cursor, reading) for row in _ITEM_ROWS if row.fits(cursor)), ())


@attrs.frozen
class _Row:
    """After which words of which item something can be written."""

    head: str
    previous: frozenset[str]
    items: Callable[[Cursor, Reading], Iterable[Item]]
    since: str = ""

    def fits(self, cursor: Cursor) -> bool:
        last = cursor.since("ARROW", "STRIDE", "THEN", "TILDE", "EQUAL", "COLON", "AS")
        return cursor.head == self.head and cursor.previous in self.previous and self.since in ("", last)


def _callables(listed: Collection[Signature]) -> Callable[[Cursor, Reading], Iterable[Item]]:
    return lambda cursor, reading: map(_callable, listed)


def _callable(signature: Signature, what: str = "function") -> Item:
    return Item(signature.name, what, signature.usage, signature_words(signature))


def _words(words: Iterable[str], detail: str) -> Callable[[Cursor, Reading], Iterable[Item]]:
    return lambda cursor, reading: (Item(word, "value", detail) for word in words)


def _kinds(cursor: Cursor, reading: Reading) -> Iterator[Item]:
    yield from (_callable(call_signature(kind), "kind") for kind in kinds().values())
    yield from _defined(cursor, reading)


def _defined(cursor: Cursor, reading: Reading) -> Iterator[Item]:
    for one in reading.visible(cursor.word[0]):
        around = one.what == "let" and _is_around(one, cursor)
        if one.what in ("let", "parameter", "value") and not around:
            yield Item(one.name, "variable", one.text if one.what == "let" else f"{one.what} of `{one.text}`")


def _is_around(symbol: Symbol, cursor: Cursor) -> bool:
    """Whether the cursor is in the definition of a name, which cannot need itself."""
    return symbol.path is None and symbol.whole[0] == cursor.before[0].start_pos


def _names(cursor: Cursor, reading: Reading) -> Iterator[Item]:
    yield from _defined(cursor, reading)
    if cursor.head != "DATA":  # which define them
        yield from (Item(name, "variable", about=about) for name, about in BUILTINS.items())


def _anything(cursor: Cursor, reading: Reading) -> Iterator[Item]:
    yield from _kinds(cursor, reading)
    yield from _names(cursor, reading)
    yield from (
        _callable(one)
        for one in signatures().values()
        if one.name not in {*SOURCES, *TRANSFORMS, *INPUTS, *TRANSFORMATIONS}
    )


def _prior(cursor: Cursor, reading: Reading) -> Iterator[Item]:
    yield _callable(NORMAL)
    yield from _defined(cursor, reading)


def _templates(what: str) -> Callable[[Cursor, Reading], Iterable[Item]]:
    return lambda cursor, reading: (
        Item(one.name, what, one.text) for one in reading.symbols if one.what == what and not _is_around(one, cursor)
    )


def _as(cursor: Cursor, reading: Reading) -> Iterable[Item]:
    return () if cursor.since("AS") else _reserved({"AS"})(cursor, reading)


_VALUE_ENDS = frozenset({"NAME", "NUMBER", "RPAR", "RSQB"})

_ITEM_ROWS = (
    _Row("LET", frozenset({"EQUAL"}), _anything),
    _Row("DATA", frozenset({"DATA"}), _callables([one.signature for one in SOURCES.values()])),
    _Row("DATA", frozenset({"THEN"}), _callables([one.signature for one in TRANSFORMS.values()])),
    _Row("NETWORK", frozenset({"EQUAL"}), _templates("network")),
    _Row("USE", frozenset({"USE"}), _templates("block")),
    _Row("INPUT", frozenset({"INPUT"}), _callables(INPUTS.values())),
    _Row("AVERAGE", frozenset({"AVERAGE"}), _callables(TRANSFORMATIONS.values())),
    _Row("LIFT", frozenset({"LIFT"}), _words(LIFTED, "group")),
    _Row("PROJECT", frozenset({"PROJECT"}), _words(REDUCTIONS, "over the group")),
    _Row("POOL", frozenset({"POOL"}), _words(REDUCTIONS, "over all positions")),
    _Row("REPEAT", frozenset({"REPEAT"}), _names),
    _Row("REPEAT", _VALUE_ENDS, _as),
    _Row("USE", _VALUE_ENDS, _as),
    _Row("LAYER", frozenset({"COLON", "PLUS"}), _kinds),
    _Row("LAYER", frozenset({"TILDE"}), _prior),
    _Row("LAYER", frozenset({"ARROW", "STRIDE"}), _names),
    _Row("LAYER", frozenset({"THEN"}), _words(ACTIVATIONS, "activation")),
    _Row("LAYER", _VALUE_ENDS, _reserved({"STRIDE"}), since="ARROW"),
)
"""The first row that fits says what can be written."""


def _within_rule(cursor: Cursor, reading: Reading) -> Iterable[Item]:
    parts = "".join(cursor.before).split(".")
    if cursor.since("TILDE"):
        return _prior(cursor, reading) if cursor.previous == "TILDE" else ()
    if len(parts) == 1:
        return _selector(cursor, reading) if cursor.previous == "SLASH" else ()
    if cursor.previous != "DOT":
        return ()
    layers = [layer for layer in reading.layers if matches(parts[0], layer.name)]
    if len(parts) == 2:
        named = dict.fromkeys(one.kind for layer in layers for one in layer.candidates) or kinds()
        return [*(_callable(call_signature(kinds()[name]), "kind") for name in named), Item(BIAS, "value"), _ANY]
    candidates = (one for layer in layers for one in layer.candidates if matches(parts[1], one.kind))
    tensors = (tensor.name for one in candidates for tensor in one.tensors)
    return [*(Item(name, "value", "parameter tensor") for name in dict.fromkeys(tensors)), _ANY]


_ANY = Item("*", "value", "any")


def _within_setting(cursor: Cursor, reading: Reading) -> Iterable[Item]:
    return _valued(SEARCH.parameter(str(cursor.before[0])), cursor, reading)


def _within_override(cursor: Cursor, reading: Reading) -> Iterable[Item]:
    key = str(cursor.before[0])
    if cursor.previous == "EQUAL" and reading.keys.get(key) is None:
        return _anything(cursor, reading)
    return _valued(reading.keys.get(key), cursor, reading)


def _valued(parameter: Parameter | None, cursor: Cursor, reading: Reading) -> Iterable[Item]:
    """Yield what can be the value of a key, or a part of it."""
    if cursor.previous != "EQUAL" or parameter is None:
        return _names(cursor, reading) if cursor.previous in _CALCULATING else ()
    return [*_values(parameter.type), *_names(cursor, reading)]


_WITHIN: dict[str, Callable[[Cursor, Reading], Iterable[Item]]] = {
    "PRIOR": _within_rule,
    "SEARCH": _within_setting,
    "PROFILE": _within_override,
}
"""Completions after the beginning of an entry, by the braces around it; in all others the rows decide."""


# ---------------------------------------------------------------- arguments


def _in_brackets(cursor: Cursor, reading: Reading) -> Iterable[Item]:
    bracket = cursor.brackets[-1]
    if cursor.head in ("BLOCK", "NETWORK") and not cursor.since("EQUAL"):
        return _own_parameter(cursor, reading)
    parameters = reading.template(bracket.called)
    if parameters and len(cursor.brackets) == 1:
        return _of_template(parameters, cursor, reading)
    signature = signature_at(cursor)
    if signature is None:
        return _anything(cursor, reading) if cursor.since("EQUAL", "COLON", "AS") != "AS" else ()
    parameter = argument(signature, bracket.argument, bracket.index)
    written = [] if parameter is None else [*_values(parameter.type), *_names(cursor, reading)]
    return written if bracket.argument else [*_arguments(signature, bracket.named, bracket.index), *written]


def _own_parameter(cursor: Cursor, reading: Reading) -> Iterable[Item]:
    """The type and the default of a parameter that is being defined; its name is one's own."""
    if cursor.previous == "COLON":
        return [Item(one.name, "value", one.words) for one in PARAMETER_TYPES.values()]
    return _anything(cursor, reading) if cursor.brackets[0].argument else ()


def _of_template(parameters: list[Symbol], cursor: Cursor, reading: Reading) -> Iterator[Item]:
    bracket = cursor.brackets[-1]
    if not bracket.argument:
        for one in parameters[bracket.index :]:
            if one.name not in bracket.named:
                yield Item(one.name, "argument", one.text, insert=f"{one.name} = ")
    yield from _kinds(cursor, reading)


def _arguments(signature: Signature, given: Iterable[str], index: int) -> Iterator[Item]:
    """The arguments that are not given yet, by their names."""
    for parameter in signature.parameters[index:]:
        if parameter.name not in given:
            bare = isinstance(parameter.type, Switch) and signature is not SEARCH
            insert = parameter.name if bare else f"{parameter.name} = "
            yield Item(parameter.name, "argument", parameter.about, parameter_words(parameter), insert)


def _values(type: Type) -> Iterator[Item]:
    known = signatures()
    for word in values(type):
        yield _callable(known[word]) if word in known else Item(word, "value")


# ---------------------------------------------------------------- paths


def _path(cursor: Cursor, reading: Reading, offset: int) -> Completion:
    """Files that an import can name, one folder at a time."""
    begun = cursor.untouched[1:]
    end = offset + len(_PART_ENDS.split(reading.text[offset:], maxsplit=1)[0])
    within = reading.text[end : end + 1] == "/"
    reach = (offset - len(begun.rpartition("/")[2]), end + within)
    if cursor.head != "IMPORT" or not cursor.untouched.startswith('"'):
        return Completion((), reach)
    folder = imported_file(begun.rpartition("/")[0] or ".", reading.path)
    if folder is None or not folder.is_dir():
        return Completion((), reach)
    found = sorted(name for name in _importable(folder, reading.path) if name.endswith("/") or not within)
    return Completion(tuple(Item(name, "file") for name in found), reach)


def _importable(folder: Path, importing: Path | None) -> Iterator[str]:
    for path in folder.iterdir():
        if path.is_dir() and not path.name.startswith("."):
            yield f"{path.name}/"
        elif path.suffix == ".sym" and path != importing:
            yield path.name
