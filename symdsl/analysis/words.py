"""Words that can stand in values without being defined: kinds, priors, and choices of the search."""

from __future__ import annotations

from symdsl.catalog.networks import NORMAL
from symdsl.catalog.searches import SEARCH
from symdsl.kinds import KINDS

_OTHERS = (NORMAL.name, *NORMAL.words(), *SEARCH.words())


def is_word(name: str) -> bool:
    """Return whether a name is a word of the language that can stand in a value."""
    return name in _OTHERS or name in KINDS


def words() -> tuple[str, ...]:
    """Return all words of the language that can stand in values."""
    return (*KINDS, *_OTHERS)
