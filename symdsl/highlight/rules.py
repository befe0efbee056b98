"""Rules for highlighting a spec: regular expressions made from the tables of the language."""

from __future__ import annotations

import re
from collections.abc import Iterable

import attrs

from symdsl.analysis.expressions import FUNCTIONS
from symdsl.analysis.overrides import SECTIONS
from symdsl.analysis.parameters import PARAMETER_TYPES
from symdsl.catalog.data import SOURCES, TRANSFORMS
from symdsl.catalog.networks import ACTIVATIONS, INPUTS, NORMAL, REDUCTIONS, TRANSFORMATIONS
from symdsl.catalog.searches import SEARCH
from symdsl.catalog.signatures import Choice, Signature, Switch
from symdsl.groups import GROUPS, LIFTED
from symdsl.kinds import KINDS
from symdsl.language.keywords import FLAGS, keywords

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_DECLARING = ("LET", "NETWORK", "LAYER", "BLOCK", "PROFILE", "AS")
_END = r"(?![A-Za-z0-9_])"
_GAP = r"[ \t]+"

BLANK = r"[ \t\r\n\f]"
"""A pattern of what may stand between words, as in the grammar."""


@attrs.frozen
class Rule:
    """A regular expression with the class of what it matches, or one class for each group.

    Attributes:
        pattern: in the common part of Python's and TextMate's dialects; it never reaches over the end of a line.
        classes: of words: `comment`, `text`, `keyword`, `flag`, `kind`, `type`, `callable`, `constant`,
            `declared`, `key`, `name`, `number`, `operator`, `punctuation` or `gap`.
    """

    pattern: str
    classes: tuple[str, ...]


def declaring() -> tuple[str, ...]:
    """Return the reserved words that are followed by a new name."""
    return tuple(keywords()[terminal] for terminal in _DECLARING if terminal in keywords())


def callables() -> tuple[str, ...]:
    """Return the words that can be called, except kinds, and groups, which have the same meaning everywhere."""
    steps = [*SOURCES, *TRANSFORMS, *INPUTS, *TRANSFORMATIONS, NORMAL.name, *FUNCTIONS]
    return _sorted([*steps, *(option.name for option in SEARCH.options() if option.name not in GROUPS)])


def constants() -> tuple[str, ...]:
    """Return the words with a fixed meaning."""
    called = [one.signature for table in (SOURCES, TRANSFORMS, KINDS.built_in) for one in table.values()]
    choices = [word for signature in (*called, NORMAL, SEARCH) for word in _choices(signature)]
    return _sorted({*ACTIVATIONS, *REDUCTIONS, *LIFTED, "classes", "channels", "bias", *choices} - {*callables()})


def rules() -> tuple[Rule, ...]:
    """Return the rules in order: at each place of a text the first match counts."""
    reserved = set(keywords().values())
    word, types = _one_of(reserved - FLAGS), _one_of(PARAMETER_TYPES.keys() - reserved)
    return (
        Rule(r"//[^\n]*", ("comment",)),
        Rule(r'"(?:\\.|[^"\\\n])*"', ("text",)),
        Rule(rf"(?<!\*){_one_of(SECTIONS)}\.{NAME}", ("key",)),
        Rule(rf"({_one_of(declaring())})({_GAP})(?!{_one_of(reserved)})({NAME})", ("keyword", "gap", "declared")),
        Rule(rf"{word}(?=\*)|(?<=\*){word}", ("name",)),
        Rule(word, ("keyword",)),
        Rule(_one_of(FLAGS), ("flag",)),
        Rule(rf"(?:[FS]-[A-Z]{{2,}}{_END}|{_one_of(KINDS.built_in)})", ("kind",)),
        Rule(rf"(:)({_GAP})({types})(?=[ \t]*[=,)])", ("punctuation", "gap", "type")),
        Rule(rf"{NAME}(?=[ \t]*=(?!=))", ("key",)),
        Rule(_one_of(callables()), ("callable",)),
        Rule(_one_of(constants()), ("constant",)),
        Rule(NAME, ("name",)),
        Rule(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", ("number",)),
        Rule(r"\|>|->|==|!=|<=|>=|[<>=~+*/%-]", ("operator",)),
        Rule(r"[\[\](){},:.]", ("punctuation",)),
    )


def _one_of(words: Iterable[str]) -> str:
    """Whole words, the longest first."""
    listed = sorted(words, key=lambda word: (-len(word), word))
    return f"(?:{'|'.join(map(re.escape, listed))}){_END}".replace(r"\-", "-")


def _sorted(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(words)))


def _choices(signature: Signature) -> Iterable[str]:
    for one in (signature, *signature.options()):
        for parameter in one.parameters:
            match parameter.type:
                case Choice(options):
                    yield from options
                case Switch():
                    yield parameter.name
