"""The values of expressions. A value that could not be found, and was reported, is `None`."""

from __future__ import annotations

from typing import TypeAlias, TypeGuard

import attrs

from symdsl.diagnostics import Span, shortened
from symdsl.language.ast import Word


@attrs.frozen
class Given:
    """An argument as written in a call."""

    name: Word | None
    value: Located | None
    span: Span


@attrs.frozen
class Applied:
    """A word that is not a variable, with its arguments: a kind, a prior, an option."""

    name: str
    name_span: Span
    arguments: tuple[Given, ...] = ()


Plain: TypeAlias = int | float | bool | str | Applied | tuple["Located", ...]


@attrs.frozen
class Located:
    """A value, its place in the spec, and the places where the names in it were defined."""

    value: Plain
    span: Span
    origins: tuple[Span, ...] = ()

    @property
    def notes(self) -> list[tuple[Span, str]]:
        """Notes for a diagnostic that say where the value comes from."""
        return [(origin, "a value comes from here") for origin in dict.fromkeys(self.origins)]


def is_number(value: Plain) -> TypeGuard[int | float]:
    """Return whether a value is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def describe(value: Plain) -> str:
    """Describe a value in a few words."""
    match value:
        case bool():
            return f"`{str(value).lower()}`"
        case int() | float():
            return f"`{value}`"
        case str():
            return f'the text "{shortened(value)}"'
        case Applied():
            return f"`{shortened(value.name)}`"
        case _:
            return f"a list of {len(value)}"
