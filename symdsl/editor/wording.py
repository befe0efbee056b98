"""Descriptions of signatures, arguments and reserved words, for people who write a spec."""

from __future__ import annotations

import contextlib
from functools import cache

from symdsl.analysis.types import one_of
from symdsl.catalog.data import SOURCES, TRANSFORMS
from symdsl.catalog.networks import INPUTS, NORMAL, TRANSFORMATIONS
from symdsl.catalog.searches import SEARCH
from symdsl.catalog.signatures import (
    Choice,
    Parameter,
    Quoted,
    Real,
    Signature,
    Switch,
    Type,
    Variant,
    Whole,
)
from symdsl.diagnostics import RunError
from symdsl.editor.cursor import Cursor
from symdsl.kinds import KINDS, Kind, call_signature

UNBOUNDED = 10**9

KEYWORDS = {
    "let": "`let name = value` gives a name to a number, a text, a list or a kind.",
    "import": '`import "path.sym"` puts the statements of another file, in this folder or below, here.',
    "data": "`data source |> transform |> ...` says what to learn from.",
    "block": "`block name(parameters) { ... }` names a run of layers, for networks to `use`.",
    "network": "`network name { ... }` is what to learn; `network name = other(...)` gives one its parameters.",
    "prior": "`prior { layer.kind ~ normal(...) }` says what is believed of weights beforehand; `*` stands for any.",
    "search": "`search { key = value }` says how to search; what is left out has its default.",
    "profile": "`profile name { key = value }` names values to be set together, by `--set profile=name`.",
    "input": "`input image(channels, height, width)`, or `signal(channels, length)`, is what the network reads.",
    "lift": "`lift group` copies the map to every element of a group, for group convolutions to act on.",
    "layer": "`layer name: kinds -> channels stride s |> activation`: a sum of candidates; the search chooses.",
    "use": "`use block(arguments) as name` puts the items of a block here, and `name/` before the names of its layers.",
    "repeat": "`repeat [...] as name { ... }` writes its items once for every value.",
    "residual": "`residual { ... }` adds what its layers make of the map to the map itself: y = x + body(x).",
    "average": "`average affine(rotation = 5) { ... }` is the mean of what its items make of moved copies of the map.",
    "project": "`project max` or `project mean` reduces over the group: what follows is invariant to it.",
    "pool": "`pool max` or `pool mean` reduces over all positions: what follows is invariant to translations.",
    "flatten": "`flatten` turns a map into a vector, for `FC` heads.",
    "stride": "`stride s` keeps every s-th position, in either direction; it must divide the map.",
    "as": "`as name`, or `as (name, name)` to take each value apart.",
    "true": "A value of a switch.",
    "false": "A value of a switch.",
}
"""The meanings of the reserved words."""

BUILTINS = {
    "classes": "How many classes, or target columns, the data have.",
    "channels": "How many channels an example of the data has.",
}
"""Names that stand for what the data say."""


@cache
def kinds() -> dict[str, Kind]:
    """Return all kinds by name, without those that an installed package fails to deliver."""
    found = dict(KINDS.built_in)
    for name in KINDS:
        with contextlib.suppress(RunError):
            found[name] = KINDS[name]
    return found


def signatures() -> dict[str, Signature]:
    """Return everything that can be called, by name; the first of equal names."""
    listed = [
        *(call_signature(kind) for kind in kinds().values()),
        *(one.signature for table in (SOURCES, TRANSFORMS) for one in table.values()),
        *(*INPUTS.values(), *TRANSFORMATIONS.values(), NORMAL),
        *SEARCH.options(),
    ]
    return {one.name: one for one in reversed(listed)}


def signature_at(cursor: Cursor) -> Signature | None:
    """Return the signature of the call around a place, or nothing."""
    if not cursor.brackets:
        return None
    if cursor.before and search_key(cursor.block, cursor.before[0]):
        return _in_setting(cursor)
    return signatures().get(cursor.brackets[-1].called)


def search_key(block: str, word: str) -> str:
    """Return the key of `search` that a word names, in its block or after `search.` in a profile, or nothing."""
    section, _, key = word.partition(".")
    return word if block == "SEARCH" else key if block == "PROFILE" and section == "search" else ""


def _in_setting(cursor: Cursor) -> Signature | None:
    """The signature of the call around a place after a key of `search`, which decides what a name there means."""
    parameter, signature = SEARCH.parameter(search_key(cursor.block, cursor.before[0])), None
    for bracket in cursor.brackets:
        if parameter is None or not isinstance(parameter.type, Variant) or bracket.called not in parameter.type.names:
            return None
        signature = parameter.type.option(bracket.called)
        parameter = argument(signature, bracket.argument, bracket.index)
    return signature


def argument(signature: Signature, name: str, index: int) -> Parameter | None:
    """Return the parameter of a name, or at a position if there is no name."""
    if name:
        return signature.parameter(name)
    return signature.parameters[index] if index < len(signature.parameters) else None


def values(type: Type) -> tuple[str, ...]:
    """Return the words that are values of a type."""
    match type:
        case Choice(options):
            return options
        case Variant():
            return type.names
        case Switch():
            return ("true", "false")
        case _:
            return ()


def type_words(type: Type) -> str:
    """Describe the values of a type."""
    match type:
        case Whole(low, high):
            return f"a whole number, {_bounds(low, high)}"
        case Real(low, high, above, below):
            return f"a number, {_bounds(low, high, above, below)}"
        case Quoted():
            return "a text in quotes"
        case _:
            return one_of(values(type))


def _bounds(low: float, high: float, above: bool = False, below: bool = False) -> str:
    least = f"{'above' if above else 'at least'} {low:g}"
    return least if high >= UNBOUNDED else f"{least} and {'below' if below else 'at most'} {high:g}"


def parameter_words(parameter: Parameter) -> str:
    """Describe an argument or a key in a line of Markdown."""
    default = parameter.default_words
    ends = f"; {default} unless given" if default else ""
    about = f"{parameter.about}; " if parameter.about else ""
    return f"`{parameter.name}`: {about}{type_words(parameter.type)}{ends}"


def signature_words(signature: Signature) -> str:
    """Describe something that can be called in Markdown: its usage, its meaning, its arguments."""
    lines = [f"```sym\n{signature.usage}\n```"]
    lines += [f"{signature.about[0].upper()}{signature.about[1:]}."] if signature.about else []
    lines += ["\n".join(f"- {parameter_words(one)}" for one in signature.parameters)]
    return "\n\n".join(line for line in lines if line)
