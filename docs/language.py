"""Fills in what the package knows about the language: `python docs/language.py`.

It writes the tables of `docs/language.md`, and what is said about its wrong examples. A test compares the page with
what this would write, and checks every example.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path

from symdsl.analysis.expressions import FUNCTIONS
from symdsl.analysis.names import LIMITS
from symdsl.analysis.parameters import PARAMETER_TYPES
from symdsl.catalog.data import SOURCES, TRANSFORMS
from symdsl.catalog.networks import ACTIVATIONS, AFFINE, INPUTS, NORMAL, REDUCTIONS
from symdsl.catalog.searches import SEARCH
from symdsl.catalog.signatures import REQUIRED, Parameter, Quoted, Real, Signature, Switch, Type, Variant, Whole
from symdsl.diagnostics import SpecError, listing, render_text
from symdsl.editor.wording import UNBOUNDED, values
from symdsl.groups import GROUPS, TRIVIAL
from symdsl.kinds import INIT_SCALE, KINDS
from symdsl.spec import parse

FILE = Path(__file__).with_suffix(".md")

_ITEMS = ("input", "lift", "layer", "use", "repeat", "residual", "average", "project", "pool", "flatten")
_EXAMPLE = re.compile(r"^```sym( wrong)?\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
_TABLE = re.compile(r"(<!-- begin (\w+) -->\n)(.*?)(?=<!-- end -->)", re.DOTALL)


# ---------------------------------------------------------------- tables


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(head), ["---"] * len(list(head)), *(list(row) for row in rows)]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def _arguments(signature: Signature) -> Iterator[tuple[str, str, str, str]]:
    for parameter in signature.parameters:
        yield f"`{parameter.name}`", parameter.about, _type(parameter.type), _default(parameter)


def _type(type: Type) -> str:
    """Describe the values of a type in few words."""
    match type:
        case Whole(low, high):
            return f"whole, {_range(low, high)}"
        case Real(low, high, above, below):
            return _range(low, high, above, below)
        case Quoted():
            return "text"
        case Switch():
            return "flag"
        case _:
            return listing(values(type))


def _range(low: float, high: float, above: bool = False, below: bool = False) -> str:
    if high >= UNBOUNDED:
        return f"> {low:g}" if above else f"≥ {low:g}"
    if above or below:
        return f"{'>' if above else '≥'} {low:g}, {'<' if below else '≤'} {high:g}"
    return f"{low:g} to {high:g}"


def _default(parameter: Parameter) -> str:
    if parameter.default is REQUIRED:
        return "required"
    return f"`{parameter.default_words}`" if parameter.default is not None else ""


def _called(signatures: Iterable[Signature]) -> str:
    """A row for each argument, or one without; signatures that follow one another with equal arguments share rows."""
    rows: list[tuple[str, ...]] = []
    for _, group in groupby(signatures, lambda one: one.parameters):
        alike = list(group)
        first = "<br>".join(f"`{one.name}`: {one.about}" if one.about else f"`{one.name}`" for one in alike)
        for row in _arguments(alike[0]) if alike[0].parameters else [("", "", "", "")]:
            rows.append((first, *row))
            first = ""
    return _table(("", "argument", "meaning", "values", "default"), rows)


def _nested(signature: Signature) -> Iterator[Signature]:
    for parameter in signature.parameters:
        if isinstance(parameter.type, Variant):
            for option in parameter.type.options:
                yield option
                yield from _nested(option)


def _unique(signatures: Iterable[Signature]) -> list[Signature]:
    """Those with arguments, of equal ones the first."""
    return [one for one in dict.fromkeys(signatures) if one.parameters]


TABLES: dict[str, Callable[[], str]] = {
    "sources": lambda: _called(source.signature for source in SOURCES.values()),
    "transforms": lambda: _called(transform.signature for transform in TRANSFORMS.values()),
    "kinds": lambda: _called(
        [*(kind.signature for kind in KINDS.built_in.values()), Signature("every kind", (INIT_SCALE,))]
    ),
    "affine": lambda: _called([AFFINE]),
    "normal": lambda: _called([NORMAL]),
    "image": lambda: _called(INPUTS.values()),
    "search": lambda: _table(("key", "meaning", "values", "default"), _arguments(SEARCH)),
    "values": lambda: _called(_unique(_nested(SEARCH))),
    "types": lambda: _table(("type", "accepts"), ((f"`{one.name}`", one.words) for one in PARAMETER_TYPES.values())),
    "groups": lambda: _table(
        ("group", "elements", "moves the image by"),
        ((f"`{one.name}`", str(one.order), ", ".join(one.movements)) for one in GROUPS.values() if one.name != TRIVIAL),
    ),
    "words": lambda: _table(
        ("where", "words"),
        (
            ("activations, after `|>` behind a layer", listing(ACTIVATIONS)),
            ("reductions, after `project` and `pool`", listing(REDUCTIONS)),
            ("functions of a number", listing(FUNCTIONS)),
        ),
    ),
    "limits": lambda: _table(("of", "at most"), ((what, f"{most:,}") for what, most in LIMITS.items())),
}
"""What writes the table of a name."""


# ---------------------------------------------------------------- examples


def examples(text: str) -> Iterator[tuple[str, bool]]:
    """The examples of the page, and whether each is marked as wrong."""
    for match in _EXAMPLE.finditer(text):
        yield match[2], bool(match[1])


def whole(example: str) -> str:
    """An example with what a spec needs besides: data and a network behind it, or a network around items."""
    data = "" if re.search(r"^data ", example, re.MULTILINE) else "data digits(size = 16)\n"
    if not example.startswith(_ITEMS):
        end = "" if re.search(r"^network ", example, re.MULTILINE) else "network n {\n" + _around("") + "}\n"
        return example + data + end
    return f"network n {{\n{_around(example)}}}\n{data}"


def _around(items: str) -> str:
    """Items with an input before them and a head behind them, where they have none."""
    start = "" if items.startswith("input") else "input image(1, 16, 16)\n"
    end = "" if "-> classes" in items else "layer head: FC -> classes\n"
    return start + items + ("" if "flatten" in items else "flatten\n") + end


def said(example: str) -> str:
    """What is said about an example: warnings, or errors and warnings."""
    try:
        found = parse(whole(example), source="spec.sym").warnings
    except SpecError as error:
        found = error.diagnostics
    return render_text(found)


def refreshed(text: str) -> str:
    """The page with its tables, and what is said about wrong examples, written anew."""
    text = _TABLE.sub(lambda match: f"{match[1]}\n{TABLES[match[2]]()}\n", text)
    return _EXAMPLE.sub(_shown, text)


def _shown(match: re.Match[str]) -> str:
    if not match[1]:
        return match[0]
    return f"```sym wrong\n{match[2]}```\n\n```text\n{said(match[2])}\n```\n"


if __name__ == "__main__":
    FILE.write_text(refreshed(FILE.read_text(encoding="utf-8")), encoding="utf-8")
