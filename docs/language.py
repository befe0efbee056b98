"""Fills in what the package knows about the language: `python docs/language.py`.

It writes the tables of `docs/language.md`, and what is said about its wrong examples. A test compares the page with
what this would write, and checks every example.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from symdsl.analysis.expressions import FUNCTIONS
from symdsl.analysis.parameters import PARAMETER_TYPES
from symdsl.catalog.data import SOURCES, TRANSFORMS
from symdsl.catalog.networks import ACTIVATIONS, AFFINE, REDUCTIONS
from symdsl.catalog.searches import SEARCH
from symdsl.catalog.signatures import REQUIRED, Parameter, Quoted, Real, Signature, Switch, Type, Whole
from symdsl.diagnostics import SpecError, listing, render_text
from symdsl.editor.wording import UNBOUNDED, values
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


def _listed(parameters: Iterable[Parameter], indent: str = "") -> str:
    """A list of arguments or settings: name, meaning, values and default."""
    return "".join(f"{indent}- `{one.name}`: {one.about} ({'; '.join(_accepted(one))})\n" for one in parameters)


def _accepted(parameter: Parameter) -> Iterator[str]:
    yield _type(parameter.type)
    if parameter.default is REQUIRED:
        yield "required"
    elif parameter.default is not None:
        yield f"default `{parameter.default_words}`"


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
    least, most = (f"{bound:,}" if isinstance(bound, int) else f"{bound:g}" for bound in (low, high))
    if high >= UNBOUNDED:
        return f"> {least}" if above else f"≥ {least}"
    if above or below:
        return f"{'>' if above else '≥'} {least}, {'<' if below else '≤'} {most}"
    return f"{least} to {most}"


def _called(signatures: Iterable[Signature]) -> str:
    """A list of what can be called, each with its arguments; signatures with equal arguments share them."""
    alike: dict[tuple[Parameter, ...], list[str]] = {}
    for one in signatures:
        alike.setdefault(one.parameters, []).append(f"`{one.name}`: {one.about}" if one.about else f"`{one.name}`")
    return "".join(
        f"- {'<br>'.join(names) if ':' in names[0] else ', '.join(names)}\n{_listed(parameters, '  ')}"
        for parameters, names in alike.items()
    )


def _unique(signatures: Iterable[Signature]) -> list[Signature]:
    """Those with arguments, of equal ones the first."""
    return [one for one in dict.fromkeys(signatures) if one.parameters]


TABLES: dict[str, Callable[[], str]] = {
    "sources": lambda: _called(source.signature for source in SOURCES.values()),
    "transforms": lambda: _called(transform.signature for transform in TRANSFORMS.values()),
    "kinds": lambda: (
        _called(kind.signature for kind in KINDS.built_in.values()) + f"- every kind\n{_listed((INIT_SCALE,), '  ')}"
    ),
    "affine": lambda: _called([AFFINE]),
    "search": lambda: _listed(SEARCH.parameters),
    "values": lambda: _called(_unique(SEARCH.options())),
    "types": lambda: "".join(f"- `{one.name}`: {one.words}\n" for one in PARAMETER_TYPES.values()),
    "words": lambda: _table(
        ("where", "words"),
        (
            ("activations, after `|>` after a layer", listing(ACTIVATIONS)),
            ("reductions, after `project` and `pool`", listing(REDUCTIONS)),
            ("functions of a number", listing(FUNCTIONS)),
        ),
    ),
}
"""What writes the table of a name."""


# ---------------------------------------------------------------- examples


def examples(text: str) -> Iterator[tuple[str, bool]]:
    """The examples of the page, and whether each is marked as wrong."""
    for match in _EXAMPLE.finditer(text):
        yield match[2], bool(match[1])


def whole(example: str) -> str:
    """An example with what a spec needs besides: data and a network after it, or a network around items."""
    data = "" if re.search(r"^data ", example, re.MULTILINE) else "data digits(size = 16)\n"
    if not example.startswith(_ITEMS):
        end = "" if re.search(r"^network ", example, re.MULTILINE) else "network n {\n" + _around("") + "}\n"
        return example + data + end
    return f"network n {{\n{_around(example)}}}\n{data}"


def _around(items: str) -> str:
    """Items with an input before them and a head after them, where they have none."""
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
