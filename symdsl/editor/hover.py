"""Explanations of the word at a place, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
from lark import Token

from symdsl.analysis.facts import Candidate, Input, Layer, Node
from symdsl.analysis.parameters import PARAMETER_TYPES
from symdsl.analysis.priors import matches
from symdsl.catalog.networks import ACTIVATIONS, REDUCTIONS
from symdsl.catalog.searches import SEARCH
from symdsl.catalog.signatures import Parameter
from symdsl.editor.cursor import Bracket, Cursor
from symdsl.editor.definition import meant, selector
from symdsl.editor.outline import Entry
from symdsl.editor.reading import Reading
from symdsl.editor.symbols import GLOBAL, LOCAL, Symbol
from symdsl.editor.wording import (
    BUILTINS,
    KEYWORDS,
    kinds,
    parameter_words,
    signature_at,
    signature_words,
    signatures,
    values,
)
from symdsl.groups import GROUPS, LIFTED
from symdsl.kinds import call_signature
from symdsl.language import ast
from symdsl.language.repairs import ITEMS
from symdsl.resources import read_shipped

_MOST_SHOWN = 8


@attrs.frozen
class Hover:
    """An explanation in Markdown of the text between two offsets."""

    text: str
    reach: tuple[int, int]


@attrs.frozen
class _Asked:
    """A word by its index among the tokens, its place and the text."""

    index: int
    cursor: Cursor
    reading: Reading

    @property
    def word(self) -> Token:
        return self.reading.tokens[self.index]

    @property
    def start(self) -> int:
        return self.word.start_pos or 0

    @property
    def following(self) -> str:
        return next((one.type for one in self.reading.tokens[self.index + 1 : self.index + 2]), "")


def hover(reading: Reading, offset: int) -> Hover | None:
    """Return an explanation of what stands at an offset, if there is one."""
    index = reading.index_at(offset)
    if index is None or reading.cursor(offset).untouched:
        return None
    token = reading.tokens[index]
    asked = _Asked(index, reading.cursor(token.end_pos or 0), reading)
    text = next((text for finder in _FINDERS if (text := finder(asked))), "")
    return Hover(text, (asked.start, token.end_pos or 0)) if text else None


# ---------------------------------------------------------------- items and layers


def _item(asked: _Asked) -> str:
    """A reserved word that begins an item, or the name of a layer: what it reads and writes."""
    items = (one for one, _ in asked.reading.file.walk() if one.head in ITEMS)
    entry = next((one for one in items if any(asked.word is token for token in one.tokens)), None)
    if entry is None:
        return ""
    begins = asked.word is entry.tokens[0]
    colon = next((token.start_pos or 0 for token in entry.tokens if token.type == "COLON"), 0)
    names_layer = entry.head == "LAYER" and asked.start < colon
    if not (begins or names_layer):
        return ""
    about = [KEYWORDS[str(asked.word)]] if begins else []
    nodes = _NODES.get(entry.head, _nodes_in)(entry, asked.reading)
    return "\n\n".join([*_described(nodes), *about])


def _nodes_in(entry: Entry, reading: Reading) -> list[Node]:
    places = ((node, reading.reach(node.span)) for node in reading.nodes)
    start, end = entry.reach
    return [node for node, place in places if place is not None and start <= place[0] and place[1] <= end]


def _nodes_of_use(entry: Entry, reading: Reading) -> list[Node]:
    """The layers that a block has under the name it is given here, which stands in the paths of their names."""
    named = [symbol.name for symbol in reading.symbols if symbol.what == "use" and symbol.whole == entry.reach]
    return [node for node in reading.layers if any(f"/{name}/" in f"/{node.name}" for name in named)]


_NODES: dict[str, Callable[[Entry, Reading], list[Node]]] = {
    "REPEAT": lambda entry, reading: [],
    "USE": _nodes_of_use,
}
"""Functions that find the nodes which an item makes, by its first word; else they are those written in it."""


def _described(nodes: Sequence[Node]) -> list[str]:
    if len(nodes) == 1 and isinstance(nodes[0], Layer):
        rows = [f"| `{one.name}` | {one.parameters:,} | {_keeps(one)} |" for one in nodes[0].candidates]
        table = ["| candidate | parameters | keeps strictly |", "| --- | ---: | --- |", *rows]
        return [f"{_shapes(nodes[0])}\n\n" + "\n".join(table)]
    lines = [f"- {_shapes(node)}" for node in nodes[:_MOST_SHOWN]]
    more = len(nodes) - _MOST_SHOWN
    return ["\n".join([*lines, *([f"- and {more} more"] if more > 0 else [])])] if lines else []


def _shapes(node: Node) -> str:
    reads = "" if isinstance(node, Input) else f"{node.in_shape} to "
    counted = f", {node.parameters:,} parameters" if isinstance(node, Layer) else ""
    return f"`{node.name}`: {reads}{node.out_shape}{counted}"


def _keeps(candidate: Candidate) -> str:
    return ", ".join(candidate.preserves) or "nothing"


def _selected_layers(asked: _Asked) -> str:
    """The first part of a selector."""
    pattern = selector(asked.index, asked.cursor, asked.reading)
    named = [node for node in asked.reading.layers if pattern and matches(pattern, node.name)]
    return "\n\n".join(_described(named))


# ---------------------------------------------------------------- kinds


def _kind(asked: _Asked) -> str:
    """The page of a kind, and what it is at this place."""
    kind = kinds().get(str(asked.word))
    if kind is None:
        return ""
    try:
        page = read_shipped(kind.page).replace("# ", "### ", 1)  # a smaller title than the editor would show
    except FileNotFoundError:  # the page is in another package
        page = f"see {kind.page}"
    return "\n\n".join([*_here(asked), f"```sym\n{call_signature(kind).usage}\n```", page])


def _here(asked: _Asked) -> list[str]:
    named = [
        f"- `{layer.name}`, {layer.in_shape} to {layer.out_shape}: {one.parameters:,} parameters, keeps {_keeps(one)}"
        for layer in asked.reading.layers
        for one in layer.candidates
        if asked.reading.covers(one.span, asked.start)
    ]
    return ["\n".join(named[:_MOST_SHOWN])] if named else []


# ---------------------------------------------------------------- arguments, keys and names


def _argument(asked: _Asked) -> str:
    """A name before `=`: of an argument, or of a key."""
    if asked.following != "EQUAL":
        return ""
    if asked.cursor.block in _KEYS and not asked.cursor.before:
        parameter = _KEYS[asked.cursor.block](asked)
        if parameter is None:
            return ""
        known = signatures()
        options = [f"- `{known[name].usage}`: {known[name].about}" for name in values(parameter.type) if name in known]
        return "\n\n".join([parameter_words(parameter), *(["\n".join(options)] if options else [])])
    signature = signature_at(asked.cursor)
    parameter = None if signature is None else signature.parameter(str(asked.word))
    if parameter is not None:
        return parameter_words(parameter)
    found = asked.reading.template(asked.cursor.brackets[-1].called) if asked.cursor.brackets else []
    return next((_symbol_text(one) for one in found if one.name == asked.word), "")


_KEYS: dict[str, Callable[[_Asked], Parameter | None]] = {
    "SEARCH": lambda asked: SEARCH.parameter(str(asked.word)),
    "PROFILE": lambda asked: asked.reading.keys.get(str(asked.word)),
}
"""Functions that look up a key in the language, by the braces around it."""


def _type(asked: _Asked) -> str:
    """The type of a parameter."""
    typed = asked.cursor.head in ("BLOCK", "NETWORK") and asked.cursor.previous == "COLON"
    found = PARAMETER_TYPES.get(str(asked.word)) if typed else None
    return "" if found is None else f"`{found.name}`: {found.words}"


def _symbol(asked: _Asked) -> str:
    """A name that the text or its imports define."""
    found = [one for one in meant(asked.index, asked.cursor, asked.reading) if one.what in GLOBAL | LOCAL]
    return _symbol_text(found[0]) + _value(found[0], asked.reading) if found else ""


def _symbol_text(symbol: Symbol) -> str:
    origin = f"\n\nfrom `{symbol.path}`" if symbol.path else ""
    role = f"{symbol.name}: {symbol.what} of\n\n" if symbol.what in ("parameter", "value") else ""
    return f"{role}```sym\n{symbol.text}\n```{origin}"


def _value(symbol: Symbol, reading: Reading) -> str:
    """Return the value of a `let`, unless it is what is written."""
    if symbol.what != "let" or reading.findings is None or symbol.name not in reading.findings.scope.lets:
        return ""
    found = reading.findings.scope.let(ast.Word(symbol.name))
    value = None if found is None else found.value
    shown = str(value).lower() if isinstance(value, int | float) else ""  # a truth value is written in small letters
    return f"\n\nis `{shown}`" if shown and not symbol.text.endswith(f"= {shown}") else ""


def _builtin(asked: _Asked) -> str:
    """`classes` and `channels`."""
    if asked.word not in BUILTINS:
        return ""
    found = asked.reading.findings
    data = None if found is None else found.data
    value = "" if data is None else f"`{asked.word}` is {getattr(data, str(asked.word))}. "
    return value + BUILTINS[str(asked.word)]


# ---------------------------------------------------------------- words of the language


def _callable(asked: _Asked) -> str:
    """A source, a transform, a prior, or an option of a setting."""
    if asked.word in GROUPS:
        return ""
    inside = attrs.evolve(asked.cursor, brackets=(*asked.cursor.brackets, Bracket(str(asked.word))))
    found = signature_at(inside)
    return "" if found is None else signature_words(found)


def _word(asked: _Asked) -> str:
    """A word that has a meaning of its own."""
    word = str(asked.word)
    if word in LIFTED:
        return f"`{word}`: the group of {GROUPS[word].moves}, with {GROUPS[word].order} elements"
    if word in ACTIVATIONS and asked.cursor.since("THEN"):
        return f"`{word}`: an activation, which acts on every number by itself"
    if word in REDUCTIONS and asked.cursor.head in ("PROJECT", "POOL"):
        return KEYWORDS[asked.cursor.head.lower()]
    return KEYWORDS.get(word, "")


_FINDERS: tuple[Callable[[_Asked], str], ...] = (
    _item,
    _argument,
    _selected_layers,
    _kind,
    _type,
    _symbol,
    _builtin,
    _callable,
    _word,
)
"""The first that has something to say says it."""
